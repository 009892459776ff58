"""The partition's log: reads, the cut at max_bytes, retention."""

from __future__ import annotations

import pytest

from kafka_fast.testing.broker.partitions.log import PartitionLog, StoredBatch


def filled(*sizes_and_counts: tuple[int, int], retention_bytes: int = -1) -> PartitionLog:
    log = PartitionLog(retention_bytes)
    for number, (size, count) in enumerate(sizes_and_counts):
        base = log.end_offset
        batch = StoredBatch(base, base + count - 1, 1000 + number, bytes([number]) * size)
        if number % 2 == 0:
            log.begin_epoch(number // 2)
        log.append(batch)
    return log


def read(log: PartitionLog, offset: int, max_bytes: int, at_least_one: bool) -> bytes:
    return b"".join(log.read(offset, log.end_offset, max_bytes, at_least_one))


def test_read_starts_at_the_batch_that_holds_the_offset() -> None:
    log = filled((10, 5), (10, 5), (10, 5))
    assert read(log, 0, 1000, True) == b"\0" * 10 + b"\1" * 10 + b"\2" * 10
    assert read(log, 7, 1000, True) == b"\1" * 10 + b"\2" * 10
    assert read(log, 15, 1000, True) == b""


def test_read_cuts_through_the_last_batch_but_gives_the_first_whole() -> None:
    log = filled((10, 1), (10, 1))
    assert read(log, 0, 15, True) == b"\0" * 10 + b"\1" * 5
    assert read(log, 0, 3, True) == b"\0" * 10
    assert read(log, 0, 9, False) == b""
    assert read(log, 0, 0, False) == b""
    assert read(log, 0, 20, False) == b"\0" * 10 + b"\1" * 10


def test_read_ends_where_the_reader_may_not_look() -> None:
    log = filled((10, 2), (10, 2), (10, 2))
    assert b"".join(log.read(0, 4, 1000, True)) == b"\0" * 10 + b"\1" * 10
    assert b"".join(log.read(0, 3, 1000, True)) == b"\0" * 10 + b"\1" * 10
    assert log.read(4, 4, 1000, True) == []


def test_read_goes_on_behind_a_gap() -> None:
    log = filled((10, 2))
    log.append(StoredBatch(7, 8, 0, b"x"))
    assert (log.end_offset, len(log)) == (9, 2)
    assert read(log, 2, 1000, True) == read(log, 7, 1000, True) == b"x"
    log.replace([StoredBatch(7, 8, 0, b"x")])
    assert (log.start_offset, log.end_offset, log.size) == (0, 9, 1)
    assert read(log, 0, 1000, True) == b"x"


def test_retention_drops_whole_batches_but_never_the_newest() -> None:
    log = filled((10, 2), (10, 2), (10, 2), retention_bytes=25)
    assert (log.start_offset, log.end_offset, len(log), log.size) == (2, 6, 2, 20)
    tiny = filled((10, 1), (10, 1), retention_bytes=0)
    assert (tiny.start_offset, len(tiny)) == (1, 1)


def test_delete_before_keeps_a_batch_that_is_partly_alive() -> None:
    log = filled((10, 5), (10, 5))
    log.delete_before(7)
    assert (log.start_offset, len(log)) == (7, 1)
    assert read(log, 7, 100, True) == b"\1" * 10
    with pytest.raises(ValueError, match="outside"):
        log.delete_before(11)
    log.delete_before(10)
    assert (log.start_offset, len(log), log.size) == (10, 0, 0)


def test_a_batch_before_the_end_of_the_log_is_a_bug() -> None:
    log = filled((10, 2))
    with pytest.raises(ValueError, match="log ends at 2"):
        log.append(StoredBatch(1, 1, 0, b"x"))


def test_search_by_timestamp_and_epoch() -> None:
    log = filled((10, 2), (10, 2), (10, 2))
    assert [batch.base_offset for batch in log.batches_reaching(1001)] == [2, 4]
    assert list(log.batches_reaching(2000)) == []
    latest = log.batch_of_max_timestamp()
    assert latest is not None
    assert latest.base_offset == 4
    assert [log.epoch_at(offset) for offset in (0, 3, 4, 5)] == [0, 0, 1, 1]
    log.begin_epoch(5)
    log.begin_epoch(6)
    assert (log.epoch_at(5), log.epoch_at(6)) == (1, 6)
    assert PartitionLog().epoch_at(0) == -1
    assert PartitionLog().batch_of_max_timestamp() is None


def test_the_end_of_an_epoch() -> None:
    log = PartitionLog()
    for epoch, count in ((0, 2), (3, 4), (5, 1)):
        log.begin_epoch(epoch)
        log.append(StoredBatch(log.end_offset, log.end_offset + count - 1, 0, b"x"))
    ends = [log.end_of_epoch(epoch) for epoch in range(-1, 7)]
    assert ends == [(-1, -1), (0, 2), (0, 2), (0, 2), (3, 6), (3, 6), (5, 7), (-1, -1)]
    log.delete_before(3)
    assert [log.end_of_epoch(epoch) for epoch in (0, 2, 3)] == [(0, 3), (2, 3), (3, 6)]
    assert log.epoch_at(3) == 3


def test_truncation_takes_whole_batches() -> None:
    log = filled((10, 2), (10, 2), (10, 2))
    log.truncate(5)
    assert (log.end_offset, len(log), log.size) == (4, 2, 20)
    assert log.end_of_epoch(1) == (-1, -1)
    log.truncate(2)
    assert (log.end_offset, len(log)) == (2, 1)
    with pytest.raises(ValueError, match="outside"):
        log.truncate(3)
    log.delete_before(1)
    log.truncate(1)
    assert (log.start_offset, log.end_offset, len(log)) == (1, 1, 0)
