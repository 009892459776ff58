"""The producer over real sockets, against the embedded broker, which fails on demand."""

from __future__ import annotations

import asyncio
import os
import resource
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from kafka_fast import Producer
from kafka_fast.errors import (
    BrokerError,
    ClusterAuthorizationFailed,
    CoordinatorLoadInProgress,
    DeliveryError,
    InvalidRecord,
    InvalidTopicException,
    KafkaTimeoutError,
    MessageTooLarge,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    Outcome,
    RequestTimedOut,
    UnknownTopicOrPartition,
)
from kafka_fast.testing.broker.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import INIT_PRODUCER_ID, KAFKA_2_1, METADATA, PRODUCE
from kafka_fast.testing.null_broker import NullBroker
from kafka_fast.types import RecordMetadata

TIMEOUT = 30.0
MIB = 1 << 20

MakeProducer = Callable[..., Producer]


@pytest.fixture(scope="module")
def cluster() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(brokers=3, replication_factor=3) as kafka:
        yield kafka


@pytest.fixture(name="kafka")
def healed_cluster(cluster: EmbeddedKafka) -> Iterator[EmbeddedKafka]:
    """Three brokers; faults end with the test."""
    yield cluster
    cluster.heal()


@pytest.fixture
def topic(kafka: EmbeddedKafka, request: pytest.FixtureRequest) -> str:
    """A new topic with one partition, led by broker 1."""
    return new_topic(kafka, request.node.name)


@pytest.fixture
def producer_on(kafka: EmbeddedKafka) -> Iterator[MakeProducer]:
    """Producers that are closed in the end; short waits between tries."""
    made: list[Producer] = []

    def make(**config: object) -> Producer:
        quick = {"retry.backoff.ms": 20, "retry.backoff.max.ms": 100, "reconnect.backoff.ms": 20}
        made.append(Producer({"bootstrap.servers": kafka.bootstrap, **quick}, **config))
        return made[-1]

    yield make
    for one in made:
        one.close(0)


def new_topic(kafka: EmbeddedKafka, name: str, partitions: int = 1, **config: str) -> str:
    legal = "".join(c if c.isascii() and c.isalnum() else "-" for c in name)
    made = f"{legal[:100]}-{os.urandom(4).hex()}"
    dotted = {key.replace("_", "."): value for key, value in config.items()}
    kafka.create_topic(made, partitions, config=dotted)
    for partition in range(partitions):
        kafka.move_leader(made, partition, partition % 3 + 1)
    return made


def values(kafka: EmbeddedKafka, topic: str, partition: int = 0) -> list[bytes | None]:
    return [record.value for record in kafka.records(topic, partition)]


def eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + TIMEOUT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def send_and_check(kafka: EmbeddedKafka, producer: Producer, topic: str, count: int = 100) -> None:
    """Send, and see every record once, in order, where its sender was told."""
    start = kafka.end_offset(topic, 0)
    sent = [b"%d" % number for number in range(count)]
    futures = [producer.send(topic, value) for value in sent]
    offsets = [future.result(TIMEOUT).offset for future in futures]
    assert offsets == list(range(start, start + count))
    assert values(kafka, topic)[start:] == sent


class TestPlain:
    @pytest.mark.parametrize("acks", [0, 1, "all"])
    @pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
    def test_records_arrive_as_sent(
        self, kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer, codec: str, acks: object
    ) -> None:
        producer = producer_on(acks=acks, compression_type=codec)
        headers = [("a", b"1"), ("a", None), ("ü", b"")]
        rows = [(b"k", b"v"), (None, None), (b"", b""), (b"k", b"x" * 500)] * 50
        futures = [
            producer.send(topic, value, key, headers=headers, timestamp_ms=1_000 + number)
            for number, (key, value) in enumerate(rows)
        ]
        told = [future.result(TIMEOUT) for future in futures]
        eventually(lambda: kafka.end_offset(topic, 0) == len(rows))
        for number, (record, (key, value)) in enumerate(
            zip(kafka.records(topic), rows, strict=True)
        ):
            assert (record.key, record.value, record.headers) == (key, value, tuple(headers))
            assert record.timestamp_ms == told[number].timestamp_ms == 1_000 + number
            assert told[number].offset == (-1 if acks == 0 else number)

    def test_the_append_time_is_told(self, kafka: EmbeddedKafka, producer_on: MakeProducer) -> None:
        topic = new_topic(kafka, "append", message_timestamp_type="LogAppendTime")
        told = producer_on().send(topic, b"x", timestamp_ms=1).result(TIMEOUT)
        assert told.timestamp_ms == kafka.records(topic)[0].timestamp_ms != 1

    def test_many_topics_and_brokers(self, kafka: EmbeddedKafka, producer_on: MakeProducer) -> None:
        topics = [new_topic(kafka, "many", partitions=4) for _ in range(5)]
        producer = producer_on()
        sent = [
            (topic, number, producer.send(topic, b"%d" % number))
            for number in range(300)
            for topic in topics
        ]
        for topic, number, future in sent:
            told = future.result(TIMEOUT)
            assert told.topic == topic
            assert kafka.records(topic, told.partition)[told.offset].value == b"%d" % number
        ends = [kafka.end_offset(topic, p) for topic in topics for p in range(4)]
        assert sum(ends) == len(sent)

    @pytest.mark.parametrize("versions", [KAFKA_2_1], ids=["2.1"])
    def test_an_old_broker(
        self,
        kafka: EmbeddedKafka,
        topic: str,
        producer_on: MakeProducer,
        versions: dict[int, tuple[int, int]],
    ) -> None:
        kafka.faults.limit_versions(versions)
        send_and_check(kafka, producer_on(), topic)


class TestPartitions:
    def test_without_a_key_the_spread_is_even(self) -> None:
        """Chi-square over the draws of a sticky partition; each record is a batch's worth."""
        with NullBroker(partitions=6) as broker:
            with Producer(
                bootstrap_servers=broker.bootstrap, partitioner_adaptive_partitioning_enable=False
            ) as producer:
                for _ in range(600):
                    producer.send_nowait("t", bytes(300_000))
            drawn = broker.stats().partitions["t"]
        assert sum(drawn) == 600
        chi_square = sum((count - 100) ** 2 / 100 for count in drawn)
        assert chi_square < 30, drawn  # five degrees of freedom: p < 0.00002

    def test_without_a_key_records_stay_together(
        self, kafka: EmbeddedKafka, producer_on: MakeProducer
    ) -> None:
        topic = new_topic(kafka, "together", partitions=6)
        producer = producer_on(batch_size=16_384)
        futures = [producer.send(topic, b"x" * 90) for _ in range(1_000)]
        places = [future.result(TIMEOUT).partition for future in futures]
        changes = sum(a != b for a, b in pairwise(places))
        assert changes <= 1_000 * 100 / 16_384 + 1

    def test_round_robin(self, kafka: EmbeddedKafka, producer_on: MakeProducer) -> None:
        topic = new_topic(kafka, "robin", partitions=3)
        producer = producer_on(partitioner_class="round_robin")
        futures = [producer.send(topic, b"x") for _ in range(9)]
        places = [future.result(TIMEOUT).partition for future in futures]
        assert sorted(places[:3]) == [0, 1, 2]
        assert places == places[:3] * 3

    def test_a_callable(self, kafka: EmbeddedKafka, producer_on: MakeProducer) -> None:
        def by_number(topic: str, key: bytes, value: bytes, count: int) -> int:
            return int(key) % count

        topic = new_topic(kafka, "callable", partitions=3)
        producer = producer_on(partitioner_class=by_number)
        for number in range(6):
            told = producer.send(topic, b"x", b"%d" % number).result(TIMEOUT)
            assert told.partition == number % 3


class TestErrors:
    def test_no_batch_overtakes_the_first_one_of_a_partition(
        self, kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
    ) -> None:
        """Regression: a broker that does not know a producer takes it at any sequence."""
        producer = producer_on(max_request_size=1_000, linger_ms=0)
        producer.partitions_for(topic)
        kafka.faults.error(PRODUCE, NotLeaderOrFollower, topic=topic, count=1)
        send_and_check(kafka, producer, topic, 1_000)

    @pytest.mark.parametrize("applied", [False, True], ids=["refused", "written"])
    @pytest.mark.parametrize(
        "error", [NotLeaderOrFollower, NotEnoughReplicas, RequestTimedOut, UnknownTopicOrPartition]
    )
    def test_a_retriable_error_loses_and_doubles_nothing(
        self,
        kafka: EmbeddedKafka,
        topic: str,
        producer_on: MakeProducer,
        error: type[BrokerError],
        applied: bool,
    ) -> None:
        producer = producer_on(batch_size=100)
        producer.send(topic, b"first").result(TIMEOUT)
        kafka.faults.error(PRODUCE, error, topic=topic, count=3, applied=applied)
        send_and_check(kafka, producer, topic)
        assert producer.metrics()["retries"] > 0

    def test_an_error_for_good_names_the_record_and_its_cause(
        self, kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
    ) -> None:
        producer = producer_on(batch_size=0)
        kafka.faults.error(PRODUCE, InvalidRecord, topic=topic, count=1, skip=1)
        futures = []
        for number in range(10):
            futures.append(producer.send(topic, b"%d" % number))
            if number == 3:
                producer.flush()
        errors = [future.exception(TIMEOUT) for future in futures]
        failed = [number for number, error in enumerate(errors) if error is not None]
        assert failed, "the rule must have struck"
        error = errors[failed[0]]
        assert error is not None
        assert error.outcome is Outcome.REJECTED
        assert isinstance(error.__cause__, InvalidRecord)
        assert topic in str(error)
        expected = [b"%d" % number for number in range(10) if number not in failed]
        assert values(kafka, topic) == expected

    def test_flush_raises_what_nobody_can_observe(
        self, kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
    ) -> None:
        producer = producer_on()
        kafka.faults.error(PRODUCE, InvalidRecord, topic=topic, count=1)
        for _ in range(5):
            producer.send_nowait(topic, b"x")
        with pytest.raises(DeliveryError) as caught:
            producer.flush()
        assert caught.value.count == 5
        assert caught.value.outcome is Outcome.REJECTED
        assert producer.flush() == 0

    def test_a_batch_too_large_is_split_until_it_fits(
        self, kafka: EmbeddedKafka, producer_on: MakeProducer
    ) -> None:
        topic = new_topic(kafka, "split", max_message_bytes="20000")
        producer = producer_on(batch_size=200_000, linger_ms=300)
        sent = [b"%06d" % number * 50 for number in range(500)]
        futures = [producer.send(topic, value) for value in sent]
        assert [future.result(TIMEOUT).offset for future in futures] == list(range(500))
        assert values(kafka, topic) == sent
        assert producer.metrics()["splits"] > 0

    def test_a_record_too_large_fails_alone(
        self, kafka: EmbeddedKafka, producer_on: MakeProducer
    ) -> None:
        topic = new_topic(kafka, "large", max_message_bytes="5000")
        producer = producer_on(linger_ms=200)
        sent = [b"%d" % number for number in range(20)]
        sent[7] = b"x" * 6_000
        errors = [future.exception(TIMEOUT) for future in [producer.send(topic, v) for v in sent]]
        assert [number for number, error in enumerate(errors) if error is not None] == [7]
        assert isinstance(errors[7], DeliveryError)
        assert isinstance(errors[7].__cause__, MessageTooLarge)
        assert values(kafka, topic) == [value for value in sent if len(value) < 100]

    def test_an_illegal_topic_fails_at_once(self, producer_on: MakeProducer) -> None:
        with pytest.raises(InvalidTopicException):
            producer_on().send("no spaces allowed", b"x")


class TestTopics:
    def test_an_unknown_topic_ends_with_max_block(self) -> None:
        with (
            EmbeddedKafka(auto_create=False) as kafka,
            Producer(bootstrap_servers=kafka.bootstrap, max_block_ms=300) as producer,
            pytest.raises(KafkaTimeoutError, match="UNKNOWN_TOPIC_OR_PARTITION"),
        ):
            producer.send("absent", b"x")

    def test_an_unknown_topic_may_be_made_meanwhile(self) -> None:
        with (
            EmbeddedKafka(auto_create=False) as kafka,
            Producer(bootstrap_servers=kafka.bootstrap) as producer,
        ):
            timer = threading.Timer(0.3, kafka.create_topic, ["later", 1])
            timer.start()
            assert producer.send("later", b"x").result(TIMEOUT).offset == 0
            timer.join()

    def test_a_topic_is_made_by_asking_for_it(
        self, kafka: EmbeddedKafka, producer_on: MakeProducer
    ) -> None:
        name = f"made-{os.urandom(4).hex()}"
        assert producer_on().send(name, b"x").result(TIMEOUT).offset == 0
        assert values(kafka, name) == [b"x"]

    def test_no_broker_ends_with_max_block(self) -> None:
        with (
            Producer(bootstrap_servers="127.0.0.1:1", max_block_ms=300) as producer,
            pytest.raises(KafkaTimeoutError, match="no metadata of topic 't'"),
        ):
            producer.send("t", b"x")

    def test_a_full_buffer_ends_with_max_block(
        self, kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
    ) -> None:
        producer = producer_on(buffer_memory=MIB, max_block_ms=200)
        producer.send(topic, b"x").result(TIMEOUT)
        kafka.pause(1)
        futures = []
        while attempt(lambda: futures.append(producer.send(topic, b"x" * 1_000))):
            assert len(futures) < 2_000
        assert len(futures) > 500
        kafka.resume(1)
        for future in futures:
            future.result(TIMEOUT)
        assert kafka.end_offset(topic, 0) == len(futures) + 1

    def test_a_topic_is_deleted_and_made_again(
        self, kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
    ) -> None:
        producer = producer_on(metadata_max_age_ms=500)
        producer.send(topic, b"old").result(TIMEOUT)
        kafka.faults.error(METADATA, UnknownTopicOrPartition, topic=topic, count=3)
        kafka.delete_topic(topic)
        kafka.create_topic(topic, 1)
        send_and_check(kafka, producer, topic)


class TestLeadersAndLinks:
    def test_the_leader_moves_all_the_time(
        self, kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
    ) -> None:
        producer = producer_on(batch_size=300)
        sent = [b"%d" % number for number in range(3_000)]
        futures = []
        for number, value in enumerate(sent):
            futures.append(producer.send(topic, value))
            if number % 100 == 99:
                kafka.move_leader(topic, 0, number // 100 % 3 + 1)
        assert [future.result(TIMEOUT).offset for future in futures] == list(range(len(sent)))
        assert values(kafka, topic) == sent

    @pytest.mark.parametrize("after", [0, 3, 10, 40])
    def test_answers_cut_anywhere(
        self, kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer, after: int
    ) -> None:
        producer = producer_on(batch_size=100)
        producer.send(topic, b"first").result(TIMEOUT)
        kafka.faults.cut(after, api=PRODUCE, count=3)
        send_and_check(kafka, producer, topic)

    @pytest.mark.parametrize("applied", [False, True], ids=["request lost", "answer lost"])
    @pytest.mark.parametrize("close", [False, True], ids=["silent", "closed"])
    def test_lost_requests_and_answers(
        self,
        kafka: EmbeddedKafka,
        topic: str,
        producer_on: MakeProducer,
        applied: bool,
        close: bool,
    ) -> None:
        producer = producer_on(batch_size=100, request_timeout_ms=300)
        producer.send(topic, b"first").result(TIMEOUT)
        kafka.faults.drop(applied=applied, close=close, api=PRODUCE, count=2)
        send_and_check(kafka, producer, topic)

    def test_a_killed_leader_is_left_and_met_again(
        self, kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
    ) -> None:
        producer = producer_on()
        for _ in range(3):
            leader = kafka.leader(topic, 0)
            send_and_check(kafka, producer, topic, 10)
            kafka.kill(leader)
            send_and_check(kafka, producer, topic, 10)
            kafka.restart(leader)

    def test_all_brokers_go_and_come_back(
        self, kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
    ) -> None:
        producer = producer_on(reconnect_backoff_max_ms=100)
        send_and_check(kafka, producer, topic, 10)
        for node_id in (1, 2, 3):
            kafka.kill(node_id)
        futures = [producer.send(topic, b"%d" % number) for number in range(10)]
        assert producer.flush(0.3) == 10
        for node_id in (1, 2, 3):
            kafka.restart(node_id)
        assert [future.result(TIMEOUT).offset for future in futures] == list(range(10, 20))

    def test_the_producer_id_is_asked_for_until_it_comes(
        self, kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
    ) -> None:
        kafka.faults.drop(close=True, api=INIT_PRODUCER_ID, count=3)
        send_and_check(kafka, producer_on(), topic)

    def test_a_forgotten_producer_goes_on(
        self, kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
    ) -> None:
        producer = producer_on()
        send_and_check(kafka, producer, topic)
        for producer_id in range(1, 100):
            kafka.forget_producer(topic, 0, producer_id)
        send_and_check(kafka, producer, topic)

    def test_throttled(self, kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer) -> None:
        producer = producer_on(batch_size=100)
        producer.send(topic, b"first").result(TIMEOUT)
        kafka.faults.throttle(200, api=PRODUCE, count=2)
        start = time.monotonic()
        send_and_check(kafka, producer, topic, 1)  # answered at once, with the throttle time
        send_and_check(kafka, producer, topic, 1)
        assert time.monotonic() - start >= 0.2, "the pause that the broker asked for is kept"
        assert producer.metrics()["throttle_ms"] >= 200


class TestOutcomes:
    def test_an_unanswered_record_may_be_written(
        self, kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
    ) -> None:
        producer = producer_on(delivery_timeout_ms=600, request_timeout_ms=200, linger_ms=0)
        producer.send(topic, b"first").result(TIMEOUT)
        kafka.faults.drop(applied=True, api=PRODUCE)
        error = producer.send(topic, b"x").exception(TIMEOUT)
        assert error is not None
        assert error.outcome is Outcome.MAYBE_WRITTEN
        assert isinstance(error.__cause__, KafkaTimeoutError)

    def test_a_record_that_never_left_was_not_sent(
        self, kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
    ) -> None:
        producer = producer_on(delivery_timeout_ms=600, request_timeout_ms=200, linger_ms=0)
        producer.send(topic, b"first").result(TIMEOUT)
        for node_id in (1, 2, 3):
            kafka.kill(node_id)
        eventually(lambda: producer.send(topic, b"x").exception(TIMEOUT) is not None)
        error = producer.send(topic, b"x").exception(TIMEOUT)
        assert error is not None
        assert error.outcome is Outcome.NOT_SENT

    def test_records_follow_after_a_doubt(
        self, kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
    ) -> None:
        """A batch in doubt expires: the epoch is bumped, what follows arrives once and in order."""
        producer = producer_on(delivery_timeout_ms=600, request_timeout_ms=200)
        send_and_check(kafka, producer, topic, 10)
        rule = kafka.faults.drop(applied=True, api=PRODUCE)
        lost = [producer.send(topic, b"lost") for _ in range(10)]
        assert all(future.exception(TIMEOUT) is not None for future in lost)
        rule.cancel()
        eventually(lambda: producer.send(topic, b"again").exception(TIMEOUT) is None)
        send_and_check(kafka, producer, topic)

    def test_callbacks_are_told_once_each(
        self, kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
    ) -> None:
        told: Counter[int] = Counter()
        refused: list[DeliveryError] = []

        def on(number: int) -> Callable[[DeliveryError | None, RecordMetadata], None]:
            def called(error: DeliveryError | None, metadata: RecordMetadata) -> None:
                told[number] += 1
                if error is not None:
                    refused.append(error)

            return called

        producer = producer_on(batch_size=100)
        kafka.faults.error(PRODUCE, InvalidRecord, topic=topic, count=1, skip=1)
        for number in range(500):
            producer.send_nowait(topic, b"%d" % number, on_delivery=on(number))
            if number in (100, 200):
                producer.flush()
        assert producer.flush() == 0
        eventually(lambda: len(told) == 500)
        assert set(told.values()) == {1}
        assert len(refused) == 500 - kafka.end_offset(topic, 0) > 0

    def test_asyncio(self, kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer) -> None:
        producer = producer_on()

        async def send(number: int) -> RecordMetadata:
            return await producer.send(topic, b"%d" % number)

        async def all_of_them() -> list[RecordMetadata]:
            return await asyncio.gather(*(send(number) for number in range(200)))

        assert [one.offset for one in asyncio.run(all_of_them())] == list(range(200))


class TestResources:
    def test_waiting_for_brokers_costs_no_cpu(self, kafka: EmbeddedKafka, topic: str) -> None:
        producer = Producer(bootstrap_servers=kafka.bootstrap)
        producer.send(topic, b"x").result(TIMEOUT)
        for node_id in (1, 2, 3):
            kafka.kill(node_id)
        for _ in range(100):
            producer.send_nowait(topic, b"pending")
        before = resource.getrusage(resource.RUSAGE_SELF)
        assert producer.flush(3.0) == 100
        after = resource.getrusage(resource.RUSAGE_SELF)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        assert spent < 0.3, f"{spent:.3f} s of CPU in 3 s without brokers"
        for node_id in (1, 2, 3):
            kafka.restart(node_id)
        producer.close()
        assert kafka.end_offset(topic, 0) == 101

    def test_nothing_is_left_of_closed_producers(self, kafka: EmbeddedKafka, topic: str) -> None:
        def use() -> None:
            with Producer(bootstrap_servers=kafka.bootstrap, compression_type="lz4") as producer:
                producer.send_nowait(topic, b"x", on_delivery=lambda error, metadata: None)

        # Other libraries' threads (arrays, Arrow) may be here; they are no business of ours.
        tasks = entries("/proc/self/task")
        use()
        # The broker lives in this process, and closes its ends a moment later.
        eventually(lambda: entries("/proc/self/task") <= tasks)
        fds = len(entries("/proc/self/fd"))
        for _ in range(50):
            use()
        eventually(lambda: len(entries("/proc/self/fd")) <= fds + 4)
        eventually(lambda: entries("/proc/self/task") <= tasks)
        assert kafka.end_offset(topic, 0) == 51

    def test_memory_is_bounded_at_a_broker_that_stands_still(self) -> None:
        buffer_memory = 32 * MIB
        with NullBroker(partitions=4) as broker:
            producer = Producer(
                bootstrap_servers=broker.bootstrap, buffer_memory=buffer_memory, max_block_ms=1
            )
            eventually(lambda: attempt(lambda: producer.partitions_for("t")))
            before = resident()
            broker.stop_reading()
            accepted = refused = 0
            while refused < 2_000:
                if attempt(lambda: producer.send_nowait("t", b"x" * 100)):
                    accepted += 1
                else:
                    refused += 1
            grown = resident() - before
            assert accepted * 100 > buffer_memory // 2
            assert grown <= buffer_memory + 64 * MIB
            broker.resume_reading()
            assert producer.flush(TIMEOUT) == 0
            assert broker.stats().records == accepted
            producer.close()


def attempt(call: Callable[[], object]) -> bool:
    """Tell whether the call got through within max.block.ms."""
    try:
        call()
    except KafkaTimeoutError:
        return False
    return True


def entries(folder: str) -> set[str]:
    return {entry.name for entry in Path(folder).iterdir()}


def resident() -> int:
    """Return this process's resident memory in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_a_fatal_error_is_raised_by_sends_and_ends_what_waits() -> None:
    """Nobody waits for delivery.timeout.ms when there will never be a producer id."""
    with EmbeddedKafka() as kafka:
        kafka.create_topic("t")
        kafka.faults.error(INIT_PRODUCER_ID, ClusterAuthorizationFailed, skip=1)
        kafka.faults.error(INIT_PRODUCER_ID, CoordinatorLoadInProgress, count=1)
        properties = {"bootstrap.servers": kafka.bootstrap, "retry.backoff.ms": 500}
        with Producer(properties) as producer:
            failure = producer.send("t", b"waits").exception(TIMEOUT)
            assert failure is not None
            assert failure.outcome is Outcome.NOT_SENT
            assert isinstance(failure.first, ClusterAuthorizationFailed)
            with pytest.raises(ClusterAuthorizationFailed):
                producer.send("t", b"refused")


def test_debug_dump_tells_what_the_links_did_and_no_payload() -> None:
    with EmbeddedKafka() as kafka, Producer({"bootstrap.servers": kafka.bootstrap}) as producer:
        producer.send("t", b"secret payload").result(TIMEOUT)
        dump = producer.debug_dump()
        assert "to node 1, 0 in flight" in dump
        assert " sent correlation=1 batch=1 " in dump
        assert "secret" not in dump
