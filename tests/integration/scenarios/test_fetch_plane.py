"""The consumer's data plane, without its control plane, against brokers: every version of Fetch."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any, TypeVar

import pytest

from kafka_fast import errors
from kafka_fast.consumer._fetch_carrier import carry_fetch
from kafka_fast.consumer.consumer_carrier import read_event
from kafka_fast.control.consumer.consumer_messages import (
    FetchPunt,
    NameStream,
    ProgramFetch,
    StartStream,
)
from kafka_fast.control.messages import LinkClosed
from kafka_fast.dataplane.core._plane import DataPlane
from kafka_fast.dataplane.core._wake import Wake
from kafka_fast.dataplane.fetch._chunk import chunk_done
from kafka_fast.dataplane.fetch._streams import Streams
from kafka_fast.net._pump import Machine, Pump
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.topics.delete_topics import DeleteTopicState
from kafka_fast.record import read_batches
from tests.integration.scenarios.steps import delete
from tests.integration.scenarios.wire import WireClient, batch
from tests.waiting import eventually

T = TypeVar("T")

VERSIONS = range(4, 19)
OF_EACH_KIND = [6, 11, 12, 13, 18]
PARTITIONS = 3
TIMEOUT = 30.0


class Reader:
    """A data plane that fetches one topic over one link."""

    def __init__(self, address: str, version: int, topic: str, topic_id: bytes) -> None:
        machine = Machine()
        self.plane = DataPlane(
            machine,
            max_frame=64 << 20,
            request_timeout=30.0,
        )
        self.streams = Streams(
            self.plane, buffer_bytes=8 << 20, max_bytes=8 << 20, partition_max_bytes=1 << 20
        )
        self.pump = Pump(self.plane, machine)
        self.wake = Wake(self.plane)
        self.positions = [0] * PARTITIONS
        self.values: list[list[bytes | None]] = [[] for _ in range(PARTITIONS)]
        self.events: list[Any] = []
        host, _, port = address.rpartition(":")
        self.pump.add_link(1, 1, socket.create_connection((host, int(port)), 10.0).detach())
        parts = frame.fetch_parts(
            version, "c", max_wait_ms=200, min_bytes=1, max_bytes=1, read_committed=True
        )
        carry_fetch(ProgramFetch(1, version, parts.prefix, parts.suffix), self.streams)
        field = frame.fetch_topic_prefix(version, topic, topic_id)
        for partition in range(PARTITIONS):
            self.streams.add_stream(partition, topic, partition)
            carry_fetch(NameStream(partition, version, field), self.streams)
        self.pump.start()

    def start(self, partition: int, offset: int = 0, generation: int = 0) -> None:
        self.positions[partition] = offset
        self.streams.set_generation(partition, generation)
        carry_fetch(StartStream(partition, 1, generation, offset, -1), self.streams)

    def read_until(self, *counts: int) -> None:
        """Read until that many records of each partition have come."""
        deadline = time.monotonic() + TIMEOUT
        while [len(them) for them in self.values] != list(counts):
            assert time.monotonic() < deadline, ([len(them) for them in self.values], self.events)
            seen = self.wake.count
            if not self.streams.has_chunks:
                self.wake.wait(seen, 0.1)
            for chunk in self.streams.take_chunks(100):
                assert not chunk.broken
                assert chunk.asked_offset == self.positions[chunk.stream_id]
                for record_batch in read_batches(chunk.data).batches:
                    record_batch.check_crc()
                    values = [
                        one.value
                        for one in record_batch.records()
                        if one.offset >= chunk.asked_offset
                    ]
                    self.values[chunk.stream_id] += values
                self.positions[chunk.stream_id] = chunk.next_offset
                chunk_done(chunk)

    def take(self, kind: type[T]) -> list[T]:
        """Return the events of one kind that have come."""
        self.events += map(read_event, self.plane.take_events())
        return [event for event in self.events if isinstance(event, kind)]

    def punted(self) -> list[tuple[int, int]]:
        """Return (partition, error) of the streams that were frozen."""
        return [
            (row.stream_id, row.error_code) for event in self.take(FetchPunt) for row in event.rows
        ]

    def close(self) -> None:
        self.pump.stop()
        assert self.take(LinkClosed) == []
        self.plane.shut_down()


@pytest.fixture
def reader(
    request: pytest.FixtureRequest, address: str, client: WireClient, topic: str
) -> Iterator[Reader]:
    """A data plane that reads the topic in one version of Fetch."""
    topic_id = client.metadata(topic).topics[0].topic_id
    made = Reader(address, request.param, topic, topic_id)
    yield made
    made.close()


@pytest.mark.parametrize("reader", VERSIONS, indirect=True)
def test_a_topic_is_read_as_it_grows(reader: Reader, client: WireClient, topic: str) -> None:
    for count in (1, 2, 50):
        client.produce(topic, batch(count), partition=0)
    client.produce(topic, batch(3), partition=1)
    for partition in range(PARTITIONS):
        reader.start(partition)
    reader.read_until(53, 3, 0)
    client.produce(topic, batch(4), partition=2)  # into a fetch that waits
    reader.read_until(53, 3, 4)
    client.produce(topic, batch(5), partition=1)
    reader.read_until(53, 8, 4)
    # Kafka notes the end before it reads what may lie behind it; the next answer tells.
    eventually(lambda: reader.streams.watermarks(1)[0] == 8, "the high watermark")
    stats = reader.streams.stats()
    assert (stats["sessions_lost"], stats["punts"], stats["buffered_bytes"]) == (0, 0, 0)


@pytest.mark.parametrize("reader", OF_EACH_KIND, indirect=True)
def test_seeks_pauses_and_offsets_inside_batches(
    reader: Reader, client: WireClient, topic: str
) -> None:
    client.produce(topic, batch(10), partition=0)
    client.produce(topic, batch(10), partition=1)
    reader.start(0, 4)
    reader.start(1)
    reader.read_until(6, 10, 0)
    reader.streams.set_paused(1, True)
    reader.start(0, 2, generation=1)
    reader.read_until(6 + 8, 10, 0)  # by a fetch that knows of the pause
    client.produce(topic, batch(1), partition=1)
    client.produce(topic, batch(1), partition=0)
    reader.read_until(6 + 9, 10, 0)
    reader.streams.set_paused(1, False)
    reader.read_until(6 + 9, 11, 0)
    assert reader.punted() == []


@pytest.mark.parametrize("reader", OF_EACH_KIND, indirect=True)
def test_an_offset_out_of_range_stops_that_stream_only(
    reader: Reader, client: WireClient, topic: str
) -> None:
    client.produce(topic, batch(2), partition=0)
    reader.start(0)
    reader.start(1, 99)
    reader.read_until(2, 0, 0)
    eventually(reader.punted, "the punt", timeout=TIMEOUT)
    assert reader.punted() == [(1, errors.OffsetOutOfRange.code)]
    reader.start(1, 0, generation=1)
    client.produce(topic, batch(3), partition=1)
    reader.read_until(2, 3, 0)


@pytest.mark.parametrize("reader", OF_EACH_KIND, indirect=True)
def test_a_topic_that_is_gone_stops_all_its_streams(
    reader: Reader, client: WireClient, topic: str
) -> None:
    client.produce(topic, batch(2), partition=0)
    for partition in range(PARTITIONS):
        reader.start(partition)
    reader.read_until(2, 0, 0)
    delete(client, DeleteTopicState(name=topic))
    eventually(lambda: len(reader.punted()) == PARTITIONS, "the punts", timeout=TIMEOUT)
    unknown = {
        errors.UnknownTopicOrPartition.code,
        errors.UnknownTopicId.code,
        errors.NotLeaderOrFollower.code,
    }
    assert {error for _, error in reader.punted()} <= unknown
