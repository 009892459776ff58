"""Replay the hostile corpus through PartitionReader, as chunks of Fetch answers, whole and damaged.

Whatever comes in: it ends as its line says, no record comes out twice or out of order, the error
names the partition, and the reader says how to go on.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_fast.dataplane.fetch._chunk import chunk_from_bytes
from kafka_fast.errors import CorruptBatchError, UnreadableBatchError
from kafka_fast.records._consumer_record import ConsumerRecord
from kafka_fast.records._consumer_records import ConsumerRecords
from kafka_fast.records._reading import PartitionReader
from tests.corpus.replay import (
    LIMIT,
    Batches,
    batch_sequences,
    data_of,
    files_of,
    record_batches,
)
from tests.reference import record_codec as slow

Aborted = Sequence[tuple[int, int]]


def reader_of(data: bytes, position: int = 0, aborted: Aborted = ()) -> PartitionReader:
    reader = PartitionReader("t", 3, position, read_committed=True, max_decompressed=LIMIT)
    reader.feed(chunk_from_bytes(data, asked_offset=position, aborted=aborted))
    return reader


def check_error(error: UnreadableBatchError, reader: PartitionReader) -> None:
    assert (error.topic, error.partition, error.offset) == ("t", 3, reader.position)
    assert error.next_offset is None or error.next_offset >= reader.position


def read_on(
    reader: PartitionReader, size: int = 1000
) -> tuple[list[ConsumerRecord], UnreadableBatchError | None]:
    """Read until nothing is left or an error stands in the way."""
    got: list[ConsumerRecord] = []
    while reader:
        before = reader.position
        try:
            records = ConsumerRecords(reader.take(size))
        except UnreadableBatchError as error:
            check_error(error, reader)
            return got, error
        assert reader.position >= before
        for record in records:
            assert before <= record.offset < reader.position
            before = record.offset + 1
        got += records
    return got, None


def test_every_file_has_its_line() -> None:
    assert files_of("reading") == {case.name for case in batch_sequences()}


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("case", batch_sequences(), ids=str)
def test_replay_sequences(case: Batches, size: int) -> None:
    reader = reader_of(case.data, case.position, case.aborted)
    got, error = read_on(reader, size)
    assert tuple(record.offset for record in got) == case.offsets
    if case.next_offset is not None:
        assert error is None
        assert reader.position == case.next_offset
    else:
        assert error is not None
        assert re.search(case.refusal, str(error))


@pytest.mark.parametrize("case", record_batches(), ids=str)
def test_replay_batches(case: Batches) -> None:
    """What the parser says of a batch is what stops the partition."""
    reader = reader_of(case.data)
    _, error = read_on(reader)
    if case.next_offset is not None:
        assert error is None
        assert reader.position == case.next_offset
    else:
        with pytest.raises(CorruptBatchError, match=case.refusal):
            raise error or AssertionError("nothing was refused")


def test_a_chunk_that_leads_nowhere_is_said_to() -> None:
    """Behind a chunk that the data plane calls broken nothing is fetched: never silently."""
    reader = PartitionReader("t", 3, 0)
    good = next(case.data for case in batch_sequences() if case.name == "R13-holes")
    reader.feed(chunk_from_bytes(good, asked_offset=0, broken=True))
    got, error = read_on(reader)
    assert [record.offset for record in got] == [2, 5, 10]
    assert error is not None
    assert "do not lead forwards" in str(error)
    assert "seek()" in str(error)


SOUND = [case.name for case in batch_sequences() if case.next_offset is not None]


@pytest.mark.parametrize("name", SOUND)
def test_cut_at_every_byte(name: str) -> None:
    """A cut chunk gives what stands before the cut, and is no error."""
    data = data_of("reading", name)
    whole, _ = read_on(reader_of(data))
    for size in range(len(data)):
        got, error = read_on(reader_of(data[:size]))
        assert error is None
        assert got == whole[: len(got)]


@pytest.mark.parametrize("name", ["R2-mixed-formats", "R12-two-producers", "R13-holes"])
def test_flipped_bits(name: str) -> None:
    """Under a CRC no flip passes; beside it, what is read is still in order."""
    data = data_of("reading", name)
    values = {(record.offset, record.value) for record in read_on(reader_of(data))[0]}
    for place in range(len(data)):
        damaged = bytearray(data)
        damaged[place] ^= 1 << place % 8
        got, _ = read_on(reader_of(bytes(damaged)))
        for record in got:
            known = (record.offset, record.value) in values
            assert known or record.value in {value for _, value in values}


RUNS = st.lists(
    st.tuples(
        st.integers(0, 3),  # offsets that compaction took before the batch
        st.lists(st.integers(1, 3), max_size=4),  # steps from record to record
        st.integers(0, 3),  # offsets it took at the batch's end
        st.integers(-1, 2),  # producer
        st.sampled_from(["data", "data", "abort", "commit"]),
    ),
    max_size=8,
)


@given(RUNS, st.integers(0, 20), st.integers(1, 5), st.data())
@settings(max_examples=150, deadline=None)
def test_logs_are_read_as_the_slow_reader_reads_them(
    runs: list[tuple[int, list[int], int, int, str]], position: int, size: int, data: st.DataObject
) -> None:
    """A log of transactions, gaps and empty batches, cut into chunks, against a plain model."""
    batches: list[slow.SlowBatch] = []
    at = 0
    for skipped, steps, tail, producer, kind in runs:
        first = at + skipped
        offsets = [first + sum(steps[:i]) for i in range(len(steps))]
        last = max([first, *offsets]) + tail
        rows = tuple(slow.SlowRecord(offset, offset, None, b"%d" % offset) for offset in offsets)
        attributes = 0x10 if producer >= 0 else 0
        if kind != "data" and producer >= 0:
            key = b"\0\0\0\0" if kind == "abort" else b"\0\0\0\1"
            rows = (slow.SlowRecord(first, 0, key, bytes(6)),)
            attributes, last = 0x30, first
        batches.append(
            slow.SlowBatch(first, 0, attributes, last - first, 0, 0, producer, 0, 0, rows)
        )
        at = last + 1
    aborted, expected = model(batches)
    reader = PartitionReader("t", 3, position, read_committed=True)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(batches)), max_size=3)))
    for low, high in zip([0, *cuts], [*cuts, len(batches)], strict=True):
        part = batches[low:high]
        listed = data.draw(st.permutations(aborted_in(aborted, part)))
        reader.feed(
            chunk_from_bytes(
                b"".join(map(slow.encode_batch, part)), asked_offset=position, aborted=listed
            )
        )
    got, error = read_on(reader, size)
    assert error is None
    assert [record.offset for record in got] == [o for o in expected if o >= position]
    assert reader.position == max(position, at)


Transaction = tuple[int, int, int]  # producer, first offset, offset of its marker


def model(batches: list[slow.SlowBatch]) -> tuple[list[Transaction], list[int]]:
    """Return the aborted transactions, and the offsets that a committed reader sees.

    A transaction without an end counts as committed: the broker would not send it.
    """
    under_way: dict[int, list[int]] = {}
    aborted: list[Transaction] = []
    dropped: set[int] = set()
    seen: list[int] = []
    for batch in batches:
        offsets = [row.offset for row in batch.records]
        if batch.attributes & 0x20:
            mine = under_way.pop(batch.producer_id, [])
            if batch.records[0].key == b"\0\0\0\0" and mine:
                aborted.append((batch.producer_id, mine[0], batch.base_offset))
                dropped.update(mine)
            continue
        seen += offsets
        if batch.attributes & 0x10:
            under_way.setdefault(batch.producer_id, []).extend([batch.base_offset, *offsets])
    return aborted, [offset for offset in seen if offset not in dropped]


def aborted_in(aborted: list[Transaction], part: list[slow.SlowBatch]) -> Aborted:
    """Return what a broker lists for these batches: each aborted transaction that touches them."""
    if not part:
        return []
    first = part[0].base_offset
    last = part[-1].base_offset + part[-1].last_offset_delta
    return [(producer, begin) for producer, begin, end in aborted if end >= first and begin <= last]
