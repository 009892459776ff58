"""The yardstick: finished Produce requests written to a plain socket, five in flight.

Nobody can produce faster than one who has nothing left to do but write: batches are encoded,
compressed and checksummed beforehand, without a producer id, so that the same bytes can go out
again and again. One broker only.
"""

from __future__ import annotations

import socket
from collections import deque
from typing import Any

from bench.contenders import Contender, UnsupportedError
from bench.workload import NO_SECURITY, Scenario, Security
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.cluster.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kafka_fast.protocol.apis.records.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from kafka_fast.record._writer import RecordBatchBuilder
from kafka_fast.record.types import Codec

VERSION = 9
IN_FLIGHT = 5
# One batch for each partition, together about what a request may hold.
REQUEST_SIZE = 1_000_000


def connect(host: str, port: int, security: Security) -> socket.socket:
    """Return a connected socket, with TLS if the properties ask for it."""
    plain = socket.create_connection((host, port), timeout=30)
    protocol = security.get("security.protocol", "PLAINTEXT")
    if protocol == "PLAINTEXT":
        return plain
    if protocol != "SSL":
        raise UnsupportedError(protocol)
    import ssl

    context = ssl.create_default_context(cafile=security["ssl.ca.location"])
    return context.wrap_socket(plain, server_hostname=host)


class RawSocket(Contender):
    """A blocking socket of Python's, and requests that were made before the clock started."""

    is_secured = True

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        scenario: Scenario,
        *,
        linger_0: bool,
        security: Security = NO_SECURITY,
    ) -> None:
        super().__init__(bootstrap, topic, scenario, linger_0=linger_0, security=security)
        if scenario.mode != "send":
            raise UnsupportedError(scenario.mode)
        host, _, port = bootstrap.partition(":")
        self._socket = connect(host, int(port), security)
        # With a timeout Python would poll before each call, and lose the GIL once more.
        self._socket.settimeout(None)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._unanswered: deque[int] = deque()
        self._make_topic()
        self._records, self._request = self._build_request()
        self._single = self._encode([self._build_batch(1)])

    def prepare(self, count: int) -> Any:
        """Return how many requests make at least `count` records."""
        return -(-count // self._records)

    def count(self, records: Any) -> int:
        """Return how many records so many requests have."""
        return int(records) * self._records

    def produce(self, records: Any) -> None:
        """Write the request so many times, reading answers when five are out."""
        for _ in range(records):
            if len(self._unanswered) == IN_FLIGHT:
                self._read_answer()
            self._socket.sendall(self._request)
            self._unanswered.append(1)

    def flush(self) -> None:
        """Read every answer that is out."""
        while self._unanswered:
            self._read_answer()

    def send_and_wait(self, value: bytes) -> None:
        """Write a request of one record, read its answer."""
        self._socket.sendall(self._single)
        self._unanswered.append(1)
        self._read_answer()

    def send_only(self, value: bytes) -> None:
        """Write a request of one record; answers stay in the socket's buffer."""
        self._socket.sendall(self._single)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _make_topic(self) -> None:
        request = MetadataRequest(topics=[MetadataRequestTopic(name=self.topic)])
        self._socket.sendall(frame.encode_request(request, VERSION, 0, "raw"))
        _, answer = frame.decode_response(MetadataResponse, self._read_frame(), VERSION)
        if answer.topics[0].error_code:
            raise RuntimeError(f"topic {self.topic}: error {answer.topics[0].error_code}")

    def _build_request(self) -> tuple[int, bytes]:
        partitions = self.scenario.partitions
        room = REQUEST_SIZE // partitions
        count = max(1, room // (self.scenario.value_size + 20))
        batch = self._build_batch(count)
        return count * partitions, self._encode([batch] * partitions)

    def _build_batch(self, count: int) -> bytes:
        codec = Codec[self.scenario.codec.upper()]
        builder = RecordBatchBuilder(codec=codec)
        for i in range(count):
            key = self.keys[i % len(self.keys)] if self.scenario.keyed else None
            builder.append(key, self.values[i % len(self.values)], 1_700_000_000_000)
        return builder.build()

    def _encode(self, batches: list[bytes]) -> bytes:
        data = [PartitionProduceData(index=i, records=batch) for i, batch in enumerate(batches)]
        topics = [TopicProduceData(name=self.topic, partition_data=data)]
        request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics)
        return frame.encode_request(request, VERSION, 0, "raw")

    def _read_answer(self) -> None:
        _, answer = frame.decode_response(ProduceResponse, self._read_frame(), VERSION)
        self._unanswered.popleft()
        for topic in answer.responses:
            for partition in topic.partition_responses:
                if partition.error_code:
                    raise RuntimeError(f"error {partition.error_code}")

    def _read_frame(self) -> bytes:
        return self._read(int.from_bytes(self._read(4), "big"))

    def _read(self, size: int) -> bytes:
        data = self._socket.recv(size)
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise EOFError("the broker closed the connection")
            data += more
        return data


CONTENDER = RawSocket
