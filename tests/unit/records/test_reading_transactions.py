"""What read_committed makes of a partition: aborted records, control batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from kafka_fast.dataplane.fetch._chunk import chunk_from_bytes
from kafka_fast.errors import (
    UnreadableBatchError,
)
from tests.reference.record_codec import SlowBatch, SlowRecord, encode_batch
from tests.unit.records.reading import (
    ABORT,
    COMMIT,
    batch,
    fed,
    marker,
    taken,
)


def committed(*parts: bytes, aborted: Iterable[tuple[int, int]] = (), position: int = 0) -> Any:
    """Return the offsets that read_committed hands out, and where it ends."""
    reader = fed(*parts, position=position, aborted=aborted, read_committed=True)
    return taken(reader), reader.position


def test_control_batches_are_never_handed_out() -> None:
    parts = (batch(0, producer=1), marker(1, 1, COMMIT), marker(2, 2, ABORT))
    for read_committed in (False, True):
        reader = fed(*parts, read_committed=read_committed)
        assert taken(reader) == [0]
        assert reader.position == 3


def test_aborted_records_are_dropped() -> None:
    parts = (
        batch(0, 1, producer=1),
        batch(2, producer=2),
        batch(3),
        marker(4, 1, ABORT),
        batch(5, producer=1),
        marker(6, 2, COMMIT),
        marker(7, 1, COMMIT),
    )
    assert committed(*parts, aborted=[(1, 0)]) == ([2, 3, 5], 8)
    assert taken(fed(*parts, aborted=[(1, 0)])) == [0, 1, 2, 3, 5]


@pytest.mark.parametrize(
    "aborted",
    [
        [(1, 4), (2, 1), (1, 0)],
        [(1, 0), (1, 0), (2, 1), (2, 1), (1, 4), (1, 4)],
        [(7, 0), (2, 1), (8, 2**62), (1, 0), (9, -5), (1, 4)],
    ],
    ids=["unsorted", "repeated", "unknown producers"],
)
def test_lists_of_aborted_transactions_in_any_shape(aborted: list[tuple[int, int]]) -> None:
    parts = (
        batch(0, producer=1),
        batch(1, producer=2),
        marker(2, 1, ABORT),
        batch(3, producer=3),
        batch(4, producer=1),
        marker(5, 2, ABORT),
        marker(6, 1, ABORT),
        batch(7, producer=1),
        batch(8, producer=2),
    )
    assert committed(*parts, aborted=aborted) == ([3, 7, 8], 9)


def test_an_abort_without_an_entry_ends_nothing_else() -> None:
    parts = (marker(0, 1, ABORT), batch(1, producer=1), marker(2, 1, COMMIT))
    assert committed(*parts) == ([1], 3)
    # An aborted transaction without records, and then a committed one.
    assert committed(*parts, aborted=[(1, 0)]) == ([1], 3)
    assert committed(*parts, aborted=[(2, 0)]) == ([1], 3)


def test_an_end_below_the_position_counts() -> None:
    parts = (batch(0, producer=1), marker(1, 1, ABORT), batch(2, producer=1))
    assert committed(*parts, aborted=[(1, 0)], position=2) == ([2], 3)


def test_what_is_not_transactional_is_not_dropped() -> None:
    plain = batch(1, attributes=0)
    idempotent = encode_batch(SlowBatch(2, 3, 0, 0, 0, 0, 1, 0, 0, (SlowRecord(2, 0, None, b"2"),)))
    assert committed(batch(0, producer=1), plain, idempotent, aborted=[(1, 0)]) == ([1, 2], 3)


def test_each_chunk_has_its_own_list() -> None:
    reader = fed(batch(0, producer=1), aborted=[(1, 0)], read_committed=True)
    reader.feed(chunk_from_bytes(batch(1, producer=1), asked_offset=1, aborted=[(1, 0)]))
    reader.feed(chunk_from_bytes(marker(2, 1, ABORT), asked_offset=2))
    reader.feed(chunk_from_bytes(batch(3, producer=1), asked_offset=3))
    assert taken(reader) == [3]
    assert reader.position == 4


def test_a_bad_control_batch_matters_to_read_committed_only() -> None:
    rows = (SlowRecord(0, 0, b"\0\0\0", b""),)
    bad = encode_batch(SlowBatch(0, 3, 0x30, 0, 0, 0, 1, 0, -1, rows))
    assert taken(fed(bad, batch(1))) == [1]
    with pytest.raises(UnreadableBatchError, match="malformed key"):
        fed(bad, batch(1), read_committed=True).take(1)
