"""The records of a poll: a sequence, lists, partitions, offsets, numpy."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

from kafka_fast.errors import MissingPackageError, UsageError
from kafka_fast.record import read_batches
from kafka_fast.record._slices import RecordSlice, slice_of
from kafka_fast.records._consumer_records import ConsumerRecords, iterate
from kafka_fast.types import OffsetAndMetadata, TopicPartition
from tests.reference.record_codec import SlowBatch, SlowRecord, encode_batch


def rows(start: int, count: int) -> tuple[SlowRecord, ...]:
    return tuple(
        SlowRecord(i, 1000 + i, b"k%d" % i if i % 3 else None, b"v" * i, (("h", b"%d" % i),))
        for i in range(start, start + count)
    )


def slice_at(
    start: int, count: int, topic: str = "t", partition: int = 0, gap: int = 0, epoch: int = 4
) -> RecordSlice:
    """Return a batch's slice; after its records are `gap` offsets that compaction took."""
    data = encode_batch(
        SlowBatch(start, epoch, 0, count + gap - 1, 1000, 2000, -1, -1, -1, rows(start, count))
    )
    return slice_of(read_batches(data)[0], topic, partition)


ALL = [*rows(0, 4), *rows(4, 3), *rows(7, 1), *rows(100, 5)]


@pytest.fixture
def records() -> ConsumerRecords:
    return ConsumerRecords(
        [
            slice_at(0, 4),
            slice_at(4, 3, epoch=6),
            slice_at(7, 1, partition=1, gap=2),
            slice_at(100, 5, "u"),
        ]
    )


def test_is_a_sequence(records: ConsumerRecords) -> None:
    assert len(records) == len(ALL)
    assert records
    assert [(r.offset, r.timestamp_ms, r.key, r.value, r.headers) for r in records] == ALL
    assert [records[i] for i in range(len(ALL))] == list(records)
    assert [records[i - len(ALL)] for i in range(len(ALL))] == list(records)
    for index in (len(ALL), -len(ALL) - 1):
        with pytest.raises(IndexError, match=f"record {index} of 13"):
            records[index]
    assert ALL[5].offset in (record.offset for record in records)
    assert repr(records) == "ConsumerRecords(13 records of 3 partitions)"


def test_they_are_not_pickled_as_a_whole(records: ConsumerRecords) -> None:
    with pytest.raises(TypeError, match=r"use list\(records\)"):
        pickle.dumps(records)
    assert pickle.loads(pickle.dumps(list(records))) == list(records)


def test_two_iterations_do_not_meet(records: ConsumerRecords) -> None:
    first, second = iter(records), iter(records)
    next(first)
    assert next(first).offset == 1
    assert next(second).offset == 0
    assert len(list(first)) == 11
    assert next(first, None) is None


def test_iteration_goes_on_over_polls(records: ConsumerRecords) -> None:
    polls = [records[:5], ConsumerRecords(), records[5:6], records[6:]]
    refills: list[ConsumerRecords | None] = [*polls, None, None]
    iterator = iterate(lambda: refills.pop(0))
    assert iterator.handed_out == 0
    assert len(refills) == 6
    got = []
    for record in iterator:
        got.append(record.offset)
        assert iterator.records[iterator.handed_out - 1] == record
    assert got == [row.offset for row in ALL]
    assert (iterator.records, iterator.handed_out) == (polls[3], len(polls[3]))
    assert next(iterator, None) is None


def test_a_refill_may_raise(records: ConsumerRecords) -> None:
    def refill() -> ConsumerRecords:
        raise UsageError("closed")

    with pytest.raises(UsageError, match="closed"):
        next(iterate(refill))


def test_an_iterator_says_what_it_has_handed_out(records: ConsumerRecords) -> None:
    iterator = iter(records)
    for count in range(len(records)):
        assert iterator.handed_out == count
        next(iterator)
    assert iterator.handed_out == len(records)
    assert iterator.records is records


@pytest.mark.parametrize(
    "cut",
    [
        slice(None),
        slice(0, 4),
        slice(1, 3),
        slice(3, 9),
        slice(-2, None),
        slice(5, 5),
        slice(9, 2),
        slice(40, 50),
        slice(None, None, 3),
        slice(None, None, -1),
        slice(10, 2, -4),
    ],
)
def test_cuts_are_records_again(records: ConsumerRecords, cut: slice) -> None:
    part = records[cut]
    expected = ALL[cut]
    assert len(part) == len(expected)
    assert [record.offset for record in part] == [row.offset for row in expected]
    assert part.values() == [row.value for row in expected]


def test_columns(records: ConsumerRecords) -> None:
    assert records.values() == [row.value for row in ALL]
    assert records.keys() == [row.key for row in ALL]
    assert records.offsets() == [row.offset for row in ALL]
    assert records.timestamps() == [row.timestamp_ms for row in ALL]
    assert records.headers() == [row.headers for row in ALL]


def test_columns_hold_the_only_references(records: ConsumerRecords) -> None:
    # The column, `item` and, up to Python 3.13, the argument.
    expected = 3 if sys.version_info < (3, 14) else 2
    for column in (records.values(), [value + b"!" for value in records.values()]):
        item = column[5]
        assert sys.getrefcount(item) == expected
    if sys.version_info < (3, 12):  # from there on None is immortal
        before = sys.getrefcount(None)
        keys = records.keys()
        assert sys.getrefcount(None) - before == keys.count(None)


def test_partitions(records: ConsumerRecords) -> None:
    first, second, other = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
    assert records.partitions() == [first, second, other]
    parts = records.by_partition()
    assert list(parts) == records.partitions()
    assert parts[first].offsets() == list(range(7))
    assert parts[second].offsets() == [7]
    assert parts[other].offsets() == list(range(100, 105))


def test_next_offsets_pass_over_gaps_but_not_over_records(records: ConsumerRecords) -> None:
    first, second, other = records.partitions()
    assert records.next_offsets() == {
        first: OffsetAndMetadata(7, 6),
        second: OffsetAndMetadata(10, 4),
        other: OffsetAndMetadata(105, 4),
    }
    assert records[:6].next_offsets() == {first: OffsetAndMetadata(6, 6)}
    assert records[:4].next_offsets() == {first: OffsetAndMetadata(4, 4)}
    assert records[7:8].next_offsets() == {second: OffsetAndMetadata(10, 4)}
    assert records[:7][::-1].next_offsets() == {first: OffsetAndMetadata(7, 6)}


def test_nothing() -> None:
    records = ConsumerRecords()
    assert not records
    assert len(records) == 0
    assert list(records) == records.values() == records.headers() == records.partitions() == []
    assert records.next_offsets() == records.by_partition() == {}
    assert len(records[0:5]) == 0
    assert len(records.to_numpy()["offset"]) == 0


def test_numpy(records: ConsumerRecords) -> None:
    columns = records.to_numpy()
    assert columns["topic"].tolist() == ["t"] * 8 + ["u"] * 5
    assert columns["partition"].tolist() == [0] * 7 + [1] + [0] * 5
    assert columns["partition"].dtype == np.int32
    assert columns["offset"].tolist() == records.offsets()
    assert columns["timestamp"].dtype == np.dtype("M8[ms]")
    assert columns["timestamp"].astype(np.int64).tolist() == records.timestamps()
    assert columns["key"].tolist() == records.keys()
    assert columns["value"].tolist() == records.values()


@pytest.mark.parametrize(("method", "package"), [("to_numpy", "numpy"), ("to_arrow", "pyarrow")])
def test_says_what_to_install(
    records: ConsumerRecords, method: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=f"needs {package}: pip install"):
        getattr(records, method)()
    assert len(records.arrow()) == len(records)
