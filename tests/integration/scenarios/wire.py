"""A plain client for scenarios: one socket, one request after the other, no policy at all."""

from __future__ import annotations

import itertools
import socket
import ssl
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from kafka_fast._wire._checksum import crc32c
from kafka_fast.errors import UnknownTopicOrPartition
from kafka_fast.protocol import frame as framing
from kafka_fast.protocol.apis import response_class
from kafka_fast.protocol.apis.cluster.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from kafka_fast.protocol.apis.records.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
)
from kafka_fast.protocol.apis.records.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from kafka_fast.protocol.apis.topics.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka_fast.protocol.schema import Request, Response
from kafka_fast.record import RecordBatchBuilder
from tests.waiting import eventually

CLIENT_ID = "scenario"
LENGTH_SIZE = 4
PRODUCE_VERSION = 12  # the last with topic names
FETCH_VERSION = 12  # the last with topic names
METADATA_VERSION = 12
DELETE_RECORDS_VERSION = 2
TIMEOUT = 10.0

R = TypeVar("R", bound=Response)


class ClosedError(Exception):
    """The broker closed the connection instead of answering."""


class WireClient:
    """One connection to one broker."""

    def __init__(self, address: str, tls: ssl.SSLContext | None = None) -> None:
        """Connect to `host:port`."""
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), TIMEOUT)
        if tls is not None:
            self._socket = tls.wrap_socket(self._socket, server_hostname=host)
        self._correlation_ids = itertools.count(1)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    # ---- any request ----

    def send(self, body: Request, version: int) -> int:
        """Send a request; return its correlation id."""
        correlation_id = next(self._correlation_ids)
        self.send_bytes(framing.encode_request(body, version, correlation_id, CLIENT_ID))
        return correlation_id

    def send_bytes(self, data: bytes) -> None:
        """Send whatever it is."""
        self._socket.sendall(data)

    def receive(self) -> bytes:
        """Return the next frame without its length.

        Raises:
            ClosedError: the broker closed the connection.
        """
        length = int.from_bytes(self._exactly(LENGTH_SIZE), "big")
        return self._exactly(length)

    def ask(self, body: Request, version: int) -> Any:
        """Send a request and return its response; every answer must carry its correlation id."""
        correlation_id = self.send(body, version)
        return self.answer(body, version, correlation_id)

    def answer(self, body: Request, version: int, correlation_id: int | None = None) -> Any:
        """Return the response to a request that was sent, the next one."""
        got, response = framing.decode_response(
            response_class(body.api_key), self.receive(), version
        )
        assert correlation_id in (None, got)
        return response

    def is_closed(self) -> bool:
        """Wait for the broker to close; False if it sends something instead."""
        try:
            return self._socket.recv(1) == b""
        except ConnectionError:
            return True

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                piece = self._socket.recv(size - len(data))
            except ConnectionError:
                piece = b""
            if not piece:
                raise ClosedError(f"closed after {len(data)} of {size} bytes")
            data += piece
        return bytes(data)

    # ---- the usual ones, for one topic ----

    def produce(
        self,
        topic: str,
        records: bytes | None,
        *,
        partition: int = 0,
        acks: int = -1,
        version: int = PRODUCE_VERSION,
        topic_id: bytes = bytes(16),
    ) -> PartitionProduceResponse:
        """Produce one partition's records; return the partition's answer."""
        response = self.ask(
            produce_request(topic, [(partition, records)], acks=acks, topic_id=topic_id), version
        )
        answer: PartitionProduceResponse = response.responses[0].partition_responses[0]
        return answer

    def fetch(
        self,
        topic: str,
        offset: int,
        *,
        partition: int = 0,
        max_bytes: int = 1 << 20,
        partition_max_bytes: int = 1 << 20,
        min_bytes: int = 1,
        max_wait_ms: int = 0,
        leader_epoch: int = -1,
        version: int = FETCH_VERSION,
    ) -> PartitionData:
        """Fetch from one partition; return the partition's answer."""
        asked = FetchPartition(
            partition=partition,
            fetch_offset=offset,
            current_leader_epoch=leader_epoch,
            partition_max_bytes=partition_max_bytes,
        )
        request = FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            topics=[FetchTopic(topic=topic, partitions=[asked])],
        )
        answer: PartitionData = self.ask(request, version).responses[0].partitions[0]
        return answer

    def delete_records(self, topic: str, partition: int, before: int) -> None:
        """Move the start of a partition's log up to `before`."""
        asked = DeleteRecordsPartition(partition_index=partition, offset=before)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=topic, partitions=[asked])], timeout_ms=5000
        )
        answer = self.ask(request, DELETE_RECORDS_VERSION).topics[0].partitions[0]
        assert (answer.error_code, answer.low_watermark) == (0, before)

    def metadata(
        self, *topics: str, auto_create: bool = False, version: int = METADATA_VERSION
    ) -> MetadataResponse:
        """Ask for topics by name."""
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in topics],
            allow_auto_topic_creation=auto_create,
        )
        response: MetadataResponse = self.ask(request, version)
        return response

    def wait_for_topic(self, name: str, *, gone: bool = False) -> MetadataResponseTopic:
        """Ask until the broker leads every partition of the topic, or knows it no more."""

        def probe() -> MetadataResponseTopic | None:
            topic = self.metadata(name).topics[0]
            unknown = topic.error_code == UnknownTopicOrPartition.code
            settled = unknown if gone else not topic.error_code and self._leads(topic)
            return topic if settled else None

        return eventually(probe, f"topic {name!r} to be {'gone' if gone else 'led'}")

    def _leads(self, topic: MetadataResponseTopic) -> bool:
        """Tell whether the broker acts as leader: metadata may know of it a moment earlier."""
        assert topic.name is not None
        answers = [self.fetch(topic.name, 0, partition=p.partition_index) for p in topic.partitions]
        return not any(one.error_code for one in answers)


def produce_request(
    topic: str,
    partitions: Sequence[tuple[int, bytes | None]],
    *,
    acks: int = -1,
    topic_id: bytes = bytes(16),
    transactional_id: str | None = None,
) -> ProduceRequest:
    """Return a Produce request for partitions of one topic."""
    data = [PartitionProduceData(index=index, records=records) for index, records in partitions]
    return ProduceRequest(
        acks=acks,
        timeout_ms=5000,
        transactional_id=transactional_id,
        topic_data=[TopicProduceData(name=topic, topic_id=topic_id, partition_data=data)],
    )


def batch(
    count: int = 1,
    *,
    value: bytes = b"value",
    producer: tuple[int, int, int] | None = None,
    timestamp: int | None = None,
    **options: Any,
) -> bytes:
    """Return a batch of equal records; `producer` is id, epoch and first sequence."""
    if producer is not None:
        names = ("producer_id", "producer_epoch", "base_sequence")
        options.update(zip(names, producer, strict=True))
    builder = RecordBatchBuilder(**options)
    start = int(time.time() * 1000) if timestamp is None else timestamp
    for number in range(count):
        builder.append(b"key-%d" % number, value, start + number)
    return builder.build()


# Fields of the batch header that a broker has to check: position and struct format.
_HEADER_FIELDS = {
    "length": (8, ">i"),
    "magic": (16, ">b"),
    "attributes": (21, ">h"),
    "last_offset_delta": (23, ">i"),
    "record_count": (57, ">i"),
    "first_record_byte": (61, ">B"),
}
_CRC_POS, _CRC_START = 17, 21


def changed(records: bytes, **fields: int) -> bytes:
    """Return a batch with other values in its header, and a CRC that fits them."""
    made = bytearray(records)
    for name, value in fields.items():
        pos, form = _HEADER_FIELDS[name]
        struct.pack_into(form, made, pos, value)
    struct.pack_into(">I", made, _CRC_POS, crc32c(made[_CRC_START:]))
    return bytes(made)


@contextmanager
def connected(address: str, tls: ssl.SSLContext | None = None) -> Iterator[WireClient]:
    """Connect for the duration of a block."""
    client = WireClient(address, tls)
    try:
        yield client
    finally:
        client.close()
