"""The yardstick: Fetch requests on a plain socket, whose answers are walked by batch headers.

Nobody can consume faster than one who only counts. One broker, one request in flight; the values
are not touched.
"""

from __future__ import annotations

import socket
from struct import Struct

from bench.contenders import UnsupportedError
from bench.readers import Reader
from bench.workload import NO_SECURITY, READ_PARTITIONS, Reading, Security
from kafka_fast.protocol import frame
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

VERSION = 11
METADATA_VERSION = 9
MAX_BYTES = 50 << 20
PARTITION_BYTES = 1 << 20
BATCH = Struct(">qi4xb4xhi30xi")  # base offset, length, magic, attributes, last delta, count
OVERHEAD = 12


class RawSocket(Reader):
    """A blocking socket of Python's."""

    def __init__(
        self, bootstrap: str, topic: str, reading: Reading, security: Security = NO_SECURITY
    ) -> None:
        super().__init__(bootstrap, topic, reading, security)
        if reading.mode != "poll":
            raise UnsupportedError(reading.mode)
        host, _, port = bootstrap.partition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=30)
        self._socket.settimeout(None)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = bytearray(MAX_BYTES)
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
        self._socket.sendall(frame.encode_request(request, METADATA_VERSION, 0, "raw"))
        _, answer = frame.decode_response(MetadataResponse, self._read_frame(), METADATA_VERSION)
        if answer.topics[0].error_code:
            raise RuntimeError(f"topic {topic}: error {answer.topics[0].error_code}")
        self.begin()

    def begin(self) -> None:
        """Go to offset 0 of every partition."""
        self._offsets = [0] * READ_PARTITIONS

    def read(self, count: int) -> int:
        """Fetch and walk until there are enough."""
        done = 0
        while done < count:
            self._socket.sendall(self._request())
            _, answer = frame.decode_response(FetchResponse, self._read_frame(), VERSION)
            for topic in answer.responses:
                for partition in topic.partitions:
                    if partition.error_code:
                        raise RuntimeError(f"error {partition.error_code}")
                    if partition.records:
                        done += self._walk(partition.partition_index, partition.records)
        return done

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _walk(self, index: int, data: bytes | bytearray | memoryview) -> int:
        pos, records = 0, 0
        while len(data) - pos >= BATCH.size:
            base, length, _, _, last_delta, count = BATCH.unpack_from(data, pos)
            if len(data) - pos < length + OVERHEAD:
                break
            pos += length + OVERHEAD
            records += count
            self._offsets[index] = base + last_delta + 1
        return records

    def _request(self) -> bytes:
        partitions = [
            FetchPartition(partition=i, fetch_offset=at, partition_max_bytes=PARTITION_BYTES)
            for i, at in enumerate(self._offsets)
        ]
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=MAX_BYTES,
            session_epoch=-1,
            topics=[FetchTopic(topic=self.topic, partitions=partitions)],
        )
        return frame.encode_request(request, VERSION, 0, "raw")

    def _read_frame(self) -> memoryview:
        size = int.from_bytes(self._read(4), "big")
        return self._read(size)

    def _read(self, size: int) -> memoryview:
        if size > len(self._buffer):
            self._buffer = bytearray(size)
        view = memoryview(self._buffer)[:size]
        got = 0
        while got < size:
            some = self._socket.recv_into(view[got:])
            if not some:
                raise EOFError("the broker closed the connection")
            got += some
        return view


READER = RawSocket
