"""What has come in and not been handed over, when Ctrl-C comes in between."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_fast.consumer.reading.fetch_buffer import FetchBuffer
from kafka_fast.consumer.reading.record_handover import RecordHandover
from kafka_fast.control.consumer.consumer_messages import generation
from kafka_fast.control.consumer.partition import Position
from kafka_fast.dataplane.fetch._chunk import Chunk, chunk_from_bytes
from kafka_fast.record import RecordBatchBuilder
from kafka_fast.records._reading import PartitionReader
from kafka_fast.types import TopicPartition

PARTITIONS = [TopicPartition("t", number) for number in range(3)]


class Arrivals:
    """A data plane that has fetched already."""

    def __init__(self) -> None:
        self.chunks: list[Chunk] = []

    def add_stream(self, stream_id: int, topic: str, partition: int, end: int) -> None:
        """Do nothing: all streams stand still."""

    def set_generation(self, stream_id: int, generation: int) -> None:
        """Do nothing."""

    def set_paused(self, stream_id: int, paused: bool) -> None:
        """Do nothing."""

    def watermarks(self, stream_id: int) -> tuple[int, int, int]:
        return -1, -1, -1

    def forget_watermarks(self, stream_id: int) -> None:
        """Do nothing."""

    def take_chunks_into(self, found: list[Chunk], most: int) -> None:
        found += self.chunks
        self.chunks = []


class Interrupted:
    """A reader during whose nth call of take_into a signal comes: Python raises when it is over."""

    def __init__(self, reader: PartitionReader, calls: list[int]) -> None:
        self.reader = reader
        self.calls = calls

    def __getattr__(self, name: str) -> Any:
        return getattr(self.reader, name)

    def __bool__(self) -> bool:
        return bool(self.reader)

    def take_into(self, found: list[Any], most: int) -> int:
        count = self.reader.take_into(found, most)
        self.calls[0] -= 1
        if self.calls[0] == 0:
            raise KeyboardInterrupt
        return count


def batch_of(count: int) -> bytes:
    builder = RecordBatchBuilder()
    for number in range(count):
        builder.append(None, b"%d" % number, 0)
    return builder.build()


def buffer_of(calls: list[int]) -> FetchBuffer:
    """Return an buffer of three partitions with four records each."""
    arrivals = Arrivals()

    def make(partition: TopicPartition) -> Any:
        return Interrupted(PartitionReader(*partition, 0), calls)

    buffer = FetchBuffer(arrivals, make, read_committed=False)
    for partition, stream_id in buffer.assign(PARTITIONS):
        buffer.positioned(partition, generation(0, 0), Position(0))
        arrivals.chunks.append(
            chunk_from_bytes(
                batch_of(4), asked_offset=0, stream_id=stream_id, generation=generation(0, 0)
            )
        )
    buffer.feed()
    return buffer


def take(buffer: FetchBuffer, most: int) -> list[tuple[int, int]]:
    """Do as a poll does."""
    handover = RecordHandover()
    try:
        buffer.take_slices(most, handover)
        records = handover.settle()
    except BaseException:
        handover.take_back()
        raise
    return [(record.partition, record.offset) for record in records]


@pytest.mark.parametrize("most", [1, 3, 5, 100])
@pytest.mark.parametrize("call", range(1, 7))
def test_ctrl_c_while_records_are_read_loses_and_repeats_nothing(call: int, most: int) -> None:
    buffer = buffer_of([call])
    got: list[tuple[int, int]] = []
    interrupts = 0
    for _ in range(30):
        before = buffer.positions()
        try:
            got += take(buffer, most)
        except KeyboardInterrupt:
            interrupts += 1
            after = buffer.positions()
            assert {partition: at.offset for partition, at in after.items()} == {
                partition: at.offset for partition, at in before.items()
            }
    assert interrupts == 1
    assert sorted(got) == [(number, offset) for number in range(3) for offset in range(4)]
    assert [at.offset for at in buffer.positions().values()] == [4, 4, 4]


def test_a_new_position_is_not_forgotten() -> None:
    calls = [2]
    buffer = buffer_of(calls)
    # Once its four records are out:
    buffer.positioned(PARTITIONS[0], generation(0, 1), Position(40))
    with pytest.raises(KeyboardInterrupt):
        take(buffer, 100)
    calls[0] = -1
    assert len(take(buffer, 4)) == 4
    for _ in range(3):
        take(buffer, 100)
    assert [at.offset for at in buffer.positions().values()] == [40, 4, 4]
