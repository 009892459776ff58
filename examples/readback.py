"""Create a topic and read it back, with the public wire API and plain blocking sockets.

    with Kafka("localhost:9092") as kafka:
        kafka.create_topic("events", partitions=8)
        ...
        for keys, values in kafka.read("events"):
            ...

No producer or consumer of kafka_fast is involved, so what is read here is what the broker has.
Plaintext only.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Iterator
from types import TracebackType
from typing import TypeVar

from kafka_fast.errors import KafkaConnectionError, KafkaTimeoutError, ProtocolError, broker_error
from kafka_fast.protocol.apis.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafka_fast.protocol.apis.cluster.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from kafka_fast.protocol.apis.records.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from kafka_fast.protocol.apis.topics.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafka_fast.protocol.frame import decode_response, encode_request
from kafka_fast.protocol.schema import Request, Response
from kafka_fast.protocol.versions import ApiVersions
from kafka_fast.record import read_batches

R = TypeVar("R", bound=Response)

TIMEOUT = 30.0
MAX_BYTES = 4 << 20
MAX_FRAME = 100_000_000
DEFAULT_FACTOR = 4
"""Version of CreateTopics from which on -1 replicas mean the cluster's default."""
LAST_BY_NAME = 12
"""Newer versions of Fetch want the topic's id instead of its name."""

_LENGTH = struct.Struct(">i")


class Connection:
    """A blocking connection to one broker; asks in the highest version that both know."""

    def __init__(self, host: str, port: int) -> None:
        self._address = f"{host}:{port}"
        try:
            self._socket = socket.create_connection((host, port), timeout=TIMEOUT)
        except (OSError, UnicodeError) as error:  # the latter for a name that no DNS could have
            raise KafkaConnectionError(f"no broker at {self._address}: {error}") from error
        self._correlation_id = 0
        self._versions: ApiVersions | None = None

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def ask(self, request: Request, response: type[R], at_most: int | None = None) -> R:
        """Send a request and return its answer."""
        return self._ask(request, response, self.version(type(request), at_most))

    def version(self, kind: type[Request], at_most: int | None = None) -> int:
        """Return the version in which a request will be sent."""
        if self._versions is None:
            # Version 0: every broker understands it, whatever its age.
            answer = self._ask(ApiVersionsRequest(), ApiVersionsResponse, 0)
            self._versions = ApiVersions.from_response(answer)
        return self._versions.version(kind, at_most)

    def _ask(self, request: Request, response: type[R], version: int) -> R:
        self._correlation_id += 1
        frame = encode_request(request, version, self._correlation_id, "kafka-fast-demo")
        try:
            self._socket.sendall(frame)
            (length,) = _LENGTH.unpack(self._read(_LENGTH.size))
            if not 0 <= length <= MAX_FRAME:
                raise ProtocolError(f"{self._address} is no Kafka broker: it does not speak Kafka")
            received = self._read(length)
        except OSError as error:
            raise KafkaConnectionError(f"no answer from {self._address}: {error}") from error
        correlation_id, answer = decode_response(response, received, version)
        if correlation_id != self._correlation_id:
            raise ProtocolError(f"answer {correlation_id} to request {self._correlation_id}")
        return answer

    def _read(self, count: int) -> bytearray:
        data = bytearray(count)
        view = memoryview(data)
        while view:
            received = self._socket.recv_into(view)
            if received == 0:
                raise ConnectionError("the connection was closed")
            view = view[received:]
        return data


class Kafka:
    """A cluster, reached through the first of its brokers that answers."""

    def __init__(self, bootstrap: str) -> None:
        self._leaders: dict[int, Connection] = {}
        self._connection = _first_that_answers(bootstrap)

    def __enter__(self) -> Kafka:
        """Return the cluster itself; leaving the block closes the connections."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close all connections."""
        for connection in [self._connection, *self._leaders.values()]:
            connection.close()

    def create_topic(self, name: str, partitions: int) -> None:
        """Create a topic with the cluster's default of replicas; wait for its leaders.

        Raises:
            BrokerError: The cluster refused.
        """
        # Before KIP-464 (Kafka 2.4) a client must say it.
        factor = -1 if self._connection.version(CreateTopicsRequest) >= DEFAULT_FACTOR else 1
        new_topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=factor)
        request = CreateTopicsRequest(topics=[new_topic], timeout_ms=int(TIMEOUT * 1000))
        (result,) = self._connection.ask(request, CreateTopicsResponse).topics
        if result.error_code:
            raise broker_error(
                result.error_code, f"cannot create topic {name}: {result.error_message}"
            )
        self._metadata(name)

    def partition_count(self, topic: str) -> int:
        """Return the number of the topic's partitions."""
        return len(self._metadata(topic)[1].partitions)

    def read(self, topic: str) -> Iterator[tuple[list[bytes | None], list[bytes | None]]]:
        """Yield (keys, values) of each record batch from the start to the end of all partitions.

        Raises:
            BrokerError: A broker refused.
            CorruptBatchError: A batch's checksum is wrong.
        """
        addresses, metadata = self._metadata(topic)
        for partition in metadata.partitions:
            if partition.leader_id not in self._leaders:
                self._leaders[partition.leader_id] = Connection(*addresses[partition.leader_id])
            leader = self._leaders[partition.leader_id]
            yield from _read_partition(leader, topic, partition.partition_index)

    def _metadata(self, topic: str) -> tuple[dict[int, tuple[str, int]], MetadataResponseTopic]:
        """Return the brokers' addresses and the topic, once all of its partitions have leaders."""
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
        )
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            answer = self._connection.ask(request, MetadataResponse)
            (metadata,) = answer.topics
            codes = [
                metadata.error_code,
                *(partition.error_code for partition in metadata.partitions),
            ]
            if not any(codes):
                return {
                    broker.node_id: (broker.host, broker.port) for broker in answer.brokers
                }, metadata
            time.sleep(0.05)
        raise KafkaTimeoutError(f"topic {topic} has no leaders after {TIMEOUT:.0f} s")


def _first_that_answers(bootstrap: str) -> Connection:
    errors = []
    for address in bootstrap.split(","):
        host, _, port = address.strip().rpartition(":")
        if not (host and port.isdecimal() and int(port) < 65536):
            errors.append(f"{address.strip()!r} is not host:port")
            continue
        try:
            return Connection(host.strip("[]"), int(port))
        except KafkaConnectionError as error:
            errors.append(str(error))
    raise KafkaConnectionError("; ".join(errors))


def _read_partition(
    leader: Connection, topic: str, index: int
) -> Iterator[tuple[list[bytes | None], list[bytes | None]]]:
    offset = 0
    while True:
        partition = FetchPartition(
            partition=index, fetch_offset=offset, partition_max_bytes=MAX_BYTES
        )
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=MAX_BYTES,
            topics=[FetchTopic(topic=topic, partitions=[partition])],
        )
        answer = leader.ask(request, FetchResponse, LAST_BY_NAME)
        if answer.error_code:
            raise broker_error(answer.error_code, f"cannot read {topic}-{index}")
        ((data,),) = [response.partitions for response in answer.responses]
        if data.error_code:
            raise broker_error(data.error_code, f"cannot read {topic}-{index}")
        for batch in read_batches(data.records or b""):
            records = batch.records()  # checks the checksum
            yield records.keys(), records.values()
            offset = batch.next_offset
        if offset >= data.high_watermark:
            return
