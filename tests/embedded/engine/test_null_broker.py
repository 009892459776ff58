"""The null broker against the bytes of the protocol and against other people's producers."""

from __future__ import annotations

import asyncio
import platform
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from kafka_fast.errors import UsageError
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafka_fast.protocol.apis.cluster.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kafka_fast.protocol.apis.records.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kafka_fast.protocol.apis.records.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kafka_fast.protocol.apis.records.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kafka_fast.protocol.apis.transactions.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from kafka_fast.protocol.schema import Request, Response
from kafka_fast.record import read_batches
from kafka_fast.record._writer import RecordBatchBuilder
from tests.support import null_broker
from tests.support.null_broker import NullBroker, NullBrokerError

R = TypeVar("R", bound=Response)


class Client:
    """One connection that writes requests and reads answers, frame by frame."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.correlation_id = 0
        self.unanswered: deque[int] = deque()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exc: object) -> None:
        self.socket.close()

    def send(self, request: Request, version: int, *, times: int = 1) -> None:
        data = b""
        for _ in range(times):
            self.correlation_id += 1
            if not (isinstance(request, ProduceRequest) and request.acks == 0):
                self.unanswered.append(self.correlation_id)
            data += frame.encode_request(request, version, self.correlation_id, "test")
        self.socket.sendall(data)

    def receive(self, cls: type[R], version: int) -> R:
        data = self.read(int.from_bytes(self.read(4), "big"))
        correlation_id, body = frame.decode_response(cls, data, version)
        assert correlation_id == self.unanswered.popleft()
        return body

    def ask(self, request: Request, cls: type[R], version: int) -> R:
        self.send(request, version)
        return self.receive(cls, version)

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def is_closed_by_peer(self) -> bool:
        return self.socket.recv(1) == b""


def batch(count: int = 3, **fields: int) -> bytes:
    builder = RecordBatchBuilder(**fields)
    for i in range(count):
        builder.append(None, b"value %d" % i, 1_700_000_000_000)
    return builder.build()


def produce(
    *records: bytes | None, topic: str = "t", topic_id: bytes = bytes(16), acks: int = -1
) -> ProduceRequest:
    """One topic, one partition for each item of `records`."""
    data = [PartitionProduceData(index=i, records=r) for i, r in enumerate(records)]
    topics = [TopicProduceData(name=topic, topic_id=topic_id, partition_data=data)]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=topics)


def create(client: Client, topic: str = "t", version: int = 12) -> MetadataResponse:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    return client.ask(request, MetadataResponse, version)


def error_codes(answer: ProduceResponse) -> list[int]:
    return [p.error_code for t in answer.responses for p in t.partition_responses]


@pytest.fixture
def broker() -> Iterator[NullBroker]:
    with NullBroker(partitions=4, check_crc=True, check_sequence=True) as broker:
        yield broker


@pytest.fixture
def client(broker: NullBroker) -> Iterator[Client]:
    with Client(broker.ports[0]) as client:
        create(client)
        yield client


@pytest.mark.parametrize("version", range(5))
def test_api_versions(client: Client, version: int):
    answer = client.ask(ApiVersionsRequest(client_software_name="n"), ApiVersionsResponse, version)
    ranges = {a.api_key: (a.min_version, a.max_version) for a in answer.api_keys}
    assert answer.error_code == 0
    assert ranges[0] == (0, 13)
    assert ranges[3] == (0, 13)
    assert ranges[22] == (0, 5)


def test_api_versions_above_its_own_is_answered_in_version_0(client: Client):
    client.send(ApiVersionsRequest(client_software_name="n"), 5)
    answer = client.receive(ApiVersionsResponse, 0)
    assert answer.error_code == 35
    assert (18, 0, 4) in {(a.api_key, a.min_version, a.max_version) for a in answer.api_keys}


@pytest.mark.parametrize("version", range(14))
def test_metadata_spreads_the_leaders(version: int):
    with NullBroker(brokers=2, partitions=3) as broker, Client(broker.ports[1]) as client:
        answer = create(client, "a.topic", version)
        assert [(b.node_id, b.host, b.port) for b in answer.brokers] == [
            (1, "127.0.0.1", broker.ports[0]),
            (2, "127.0.0.1", broker.ports[1]),
        ]
        (topic,) = answer.topics
        assert (topic.name, topic.error_code) == ("a.topic", 0)
        assert [(p.partition_index, p.leader_id) for p in topic.partitions] == [
            (0, 1), (1, 2), (2, 1),
        ]  # fmt: skip
        everything = client.ask(MetadataRequest(topics=None if version else []), MetadataResponse,
                                version)  # fmt: skip
        assert [t.name for t in everything.topics] == ["a.topic"]


def test_metadata_by_topic_id(client: Client):
    topic_id = create(client).topics[0].topic_id
    assert any(topic_id)
    request = MetadataRequest(topics=[MetadataRequestTopic(topic_id=topic_id, name=None)])
    assert client.ask(request, MetadataResponse, 12).topics[0].name == "t"


@pytest.mark.parametrize("name", ["", "no spaces", "x" * 250])
def test_a_bad_topic_name_is_unknown(client: Client, name: str):
    assert create(client, name).topics[0].error_code == 3


def test_advertised_addresses(broker: NullBroker, client: Client):
    broker.advertise(1, "proxy.example", 1234)
    (node,) = create(client).brokers
    assert (node.host, node.port) == ("proxy.example", 1234)
    with pytest.raises(NullBrokerError, match="advertise 2"):
        broker.advertise(2, "proxy.example", 1234)


@pytest.mark.parametrize("version", range(6))
def test_producer_ids_are_fresh(client: Client, version: int):
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1)
    answers = [client.ask(request, InitProducerIdResponse, version) for _ in range(2)]
    assert answers[0].producer_id != answers[1].producer_id
    assert [a.producer_epoch for a in answers] == [0, 0]


def test_a_known_producer_gets_its_next_epoch(client: Client):
    request = InitProducerIdRequest(producer_id=77, producer_epoch=4)
    answer = client.ask(request, InitProducerIdResponse, 4)
    assert (answer.producer_id, answer.producer_epoch) == (77, 5)


@pytest.mark.parametrize("version", range(3, 14))
def test_produce_counts_offsets_up(broker: NullBroker, client: Client, version: int):
    topic_id = create(client).topics[0].topic_id
    request = produce(batch(3), batch(5), topic_id=topic_id)
    client.ask(request, ProduceResponse, version)
    (topic,) = client.ask(request, ProduceResponse, version).responses
    assert topic.name == ("t" if version < 13 else "")
    assert [(p.index, p.error_code, p.base_offset) for p in topic.partition_responses] == [
        (0, 0, 3),
        (1, 0, 5),
    ]
    stats = broker.stats()
    assert (stats.requests, stats.batches, stats.records, stats.refused) == (2, 4, 16, 0)
    assert stats.bytes == 2 * (len(batch(3)) + len(batch(5)))
    assert stats.partitions == {"t": [6, 10, 0, 0]}
    (first, count), (second, _) = broker.arrivals()
    assert (count, stats.first_ns) == (8, first)
    assert first < second < stats.last_ns


def test_acks_0_has_no_answer(broker: NullBroker, client: Client):
    client.send(produce(batch(), acks=0), 9)
    answer = client.ask(produce(batch()), ProduceResponse, 9)
    assert answer.responses[0].partition_responses[0].base_offset == 3
    assert broker.stats().records == 6


def test_large_batches_are_dropped_without_losing_the_frame():
    with NullBroker() as broker, Client(broker.ports[0]) as client:
        create(client)
        for count in (1, 100, 1000, 100_000, 2):
            client.ask(produce(batch(count)), ProduceResponse, 12)
        assert broker.stats().records == 101_103


@pytest.mark.parametrize(
    ("records", "code"),
    [
        (None, None),
        (b"", 2),
        (batch()[:60], 2),
        (batch()[:-1], 87),
        (batch() + batch(), 87),
        (batch()[:16] + b"\x01" + batch()[17:], 2),
        (batch()[:-1] + b"?", 2),
        (batch()[:57] + b"\0\0\0\x04" + batch()[61:], 87),
    ],
)
def test_damaged_batches_are_refused(
    broker: NullBroker, client: Client, records: bytes | None, code: int | None
):
    client.send(produce(records), 12)
    if code is None:
        assert client.is_closed_by_peer()
        return
    answer = client.receive(ProduceResponse, 12)
    assert error_codes(answer) == [code]
    assert answer.responses[0].partition_responses[0].base_offset == -1
    assert (broker.stats().records, broker.stats().refused) == (0, 1)
    assert error_codes(client.ask(produce(batch()), ProduceResponse, 12)) == [0]


def test_every_truncation_ends_the_connection_and_nothing_else(broker: NullBroker):
    whole = frame.encode_request(produce(batch(), batch()), 12, 1, "test")[4:]
    for size in range(len(whole)):
        with Client(broker.ports[0]) as client:
            client.socket.sendall(size.to_bytes(4, "big") + whole[:size])
            client.socket.shutdown(socket.SHUT_WR)
            assert client.is_closed_by_peer()
    with Client(broker.ports[0]) as client:
        assert create(client).topics[0].error_code == 0


def test_sequences(client: Client):
    def send(sequence: int, producer_id: int = 9, epoch: int = 0) -> list[int]:
        records = batch(3, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)
        return error_codes(client.ask(produce(records), ProduceResponse, 12))

    assert send(0) == [0]
    assert send(3) == [0]
    assert send(3) == [46]
    assert send(9) == [45]
    assert send(6) == [0]
    assert send(0, producer_id=10) == [0]
    assert send(3, epoch=1) == [45]
    assert send(0, epoch=1) == [0]
    assert send(3, epoch=1) == [0]


@pytest.mark.parametrize("version", [4, 7, 11, 12, 13, 17])
def test_fetch_serves_copies_of_one_batch(version: int):
    canned = batch(3)
    with NullBroker(partitions=2, batch=canned, copies=4) as broker, Client(broker.ports[0]) as one:
        topic_id = create(one).topics[0].topic_id
        partitions = [
            FetchPartition(partition=0, fetch_offset=4, partition_max_bytes=2 * len(canned)),
            FetchPartition(partition=1, fetch_offset=11, partition_max_bytes=1),
            FetchPartition(partition=2, fetch_offset=0, partition_max_bytes=1000),
        ]
        request = FetchRequest(
            max_wait_ms=0,
            max_bytes=1 << 20,
            topics=[FetchTopic(topic="t", topic_id=topic_id, partitions=partitions)],
        )
        answer = one.ask(request, FetchResponse, version)
        first, second, missing = answer.responses[0].partitions
        assert [fetched.base_offset for fetched in read_batches(first.records or b"")] == [3, 6]
        assert (first.high_watermark, first.error_code) == (12, 0)
        assert (bytes(second.records or b""), second.error_code) == (b"", 0)
        assert missing.error_code == 3
        assert broker.stats().fetched_records == 6


@pytest.mark.parametrize("version", [1, 2, 4, 6, 7])
def test_list_offsets(version: int):
    with NullBroker(batch=batch(3), copies=5) as broker, Client(broker.ports[0]) as one:
        create(one)
        for timestamp, offset in ((-2, 0), (-1, 15)):
            partitions = [ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
            request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=partitions)])
            answer = one.ask(request, ListOffsetsResponse, version)
            (answered,) = answer.topics[0].partitions
            assert (answered.error_code, answered.offset) == (0, offset)


def test_wrong_partition_and_wrong_leader():
    with NullBroker(brokers=2, partitions=2) as broker, Client(broker.ports[1]) as client:
        create(client)
        answer = client.ask(produce(batch(), batch(), batch()), ProduceResponse, 12)
        assert error_codes(answer) == [6, 0, 3]
        unknown = client.ask(produce(batch(), topic="other"), ProduceResponse, 12)
        assert error_codes(unknown) == [3]


def test_a_stopped_broker_reads_nothing(broker: NullBroker, client: Client):
    broker.stop_reading()
    client.send(produce(batch()), 12)
    assert broker.stats().requests == 0
    client.socket.settimeout(0.05)
    with pytest.raises(TimeoutError):
        client.socket.recv(1)
    client.socket.settimeout(10)
    broker.resume_reading()
    assert error_codes(client.receive(ProduceResponse, 12)) == [0]


def test_held_answers_come_in_order(broker: NullBroker, client: Client):
    broker.hold_answers()
    for _ in range(3):
        client.send(produce(batch()), 12)
    broker.await_records(9, hold_gil=True)
    client.socket.setblocking(False)
    with pytest.raises(BlockingIOError):
        client.socket.recv(1)
    client.socket.settimeout(10)
    broker.release_answers()
    for i in range(3):
        answer = client.receive(ProduceResponse, 12)
        assert answer.responses[0].partition_responses[0].base_offset == 3 * i


def test_delayed_answers_overlap(broker: NullBroker, client: Client):
    broker.set_delay(200)
    client.send(produce(batch()), 12, times=2)
    for _ in range(2):
        client.receive(ProduceResponse, 12)
    broker.set_delay(0)
    client.ask(produce(batch()), ProduceResponse, 12)
    first, second, after = (at for at, _ in broker.arrivals())
    # Both answers were late, and the second request was read before the first was answered.
    assert after - first >= 200e6
    assert second - first < 200e6


def test_throttle_cut_and_reset(broker: NullBroker, client: Client):
    broker.set_throttle(250)
    assert client.ask(produce(batch()), ProduceResponse, 12).throttle_time_ms == 250
    broker.reset()
    stats = broker.stats()
    assert (stats.records, stats.requests, stats.first_ns, stats.connections) == (0, 0, 0, 1)
    broker.cut()
    assert client.is_closed_by_peer()


def test_it_has_to_run():
    broker = NullBroker()
    with pytest.raises(UsageError, match="not running"):
        broker.stats()
    with broker:
        broker.close()
        broker.close()
        with pytest.raises(UsageError, match="not running"):
            broker.stats()


def test_each_system_has_its_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Regression: what a chroot with a newer C library had compiled did not run outside."""
    monkeypatch.setattr(null_broker, "ROOT", tmp_path)
    here = null_broker.build()
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "9.99"))
    assert null_broker.build() != here


def test_it_ends_with_its_parent():
    """The parent is killed, so that no handler of its own can help."""
    code = (
        "import os, signal\n"
        "from tests.support.null_broker import NullBroker\n"
        "with NullBroker() as broker:\n"
        "    print(broker.ports[0], flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    deadline_tries = 500
    for _ in range(deadline_tries):
        try:
            with socket.create_connection(("127.0.0.1", int(run.stdout)), timeout=10) as peer:
                if peer.recv(1) == b"":
                    continue
        except ConnectionError:
            return
    pytest.fail("the null broker outlived its parent")


@pytest.mark.not_under(
    "thread", "it does not hear of threads that librdkafka starts with thrd_create"
)
def test_confluent_kafka(broker: NullBroker):
    from confluent_kafka import Producer

    errors: list[object] = []
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        producer = Producer(
            {
                "bootstrap.servers": broker.bootstrap,
                "enable.idempotence": True,
                "compression.type": codec,
                "log_level": 0,
            }
        )
        for i in range(1000):
            producer.produce(codec, b"x" * 100, on_delivery=lambda e, m: e and errors.append(e))
            if i % 100 == 0:
                producer.poll(0)
        assert producer.flush(10) == 0
    assert errors == []
    assert broker.stats().records == 5000
    assert broker.stats().refused == 0


@pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")
def test_kafka_python(broker: NullBroker):
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    try:
        futures = [producer.send("t", b"x" * 100, partition=1) for _ in range(100)]
        producer.flush(10)
        assert [f.get(1).offset for f in futures] == list(range(100))
    finally:
        producer.close()


def test_aiokafka(broker: NullBroker):
    from aiokafka import AIOKafkaProducer

    async def run() -> list[int]:
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, enable_idempotence=True)
        await producer.start()
        try:
            futures = [await producer.send("t", b"x" * 100, partition=2) for _ in range(100)]
            return [(await f).offset for f in futures]
        finally:
            await producer.stop()

    assert asyncio.run(run()) == list(range(100))
