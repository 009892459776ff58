"""Chunks as the user's thread holds them."""

from __future__ import annotations

import pytest

from kafka_fast.dataplane.fetch._chunk import Chunk, chunk_done, chunk_from_bytes


def test_a_chunk_holds_what_it_was_made_of() -> None:
    chunk = chunk_from_bytes(
        b"batches",
        asked_offset=5,
        next_offset=9,
        high_watermark=11,
        last_stable_offset=10,
        log_start_offset=2,
        aborted=[(7, 6), (8, -1)],
        stream_id=3,
        generation=4,
        broken=True,
    )
    assert chunk.data == b"batches"
    assert (chunk.asked_offset, chunk.next_offset, chunk.high_watermark) == (5, 9, 11)
    assert (chunk.last_stable_offset, chunk.log_start_offset) == (10, 2)
    assert (chunk.stream_id, chunk.generation, chunk.broken) == (3, 4, True)
    assert chunk.aborted == [(7, 6), (8, -1)]


def test_what_is_not_told_is_minus_one() -> None:
    chunk = chunk_from_bytes(b"", asked_offset=0)
    assert (chunk.high_watermark, chunk.last_stable_offset, chunk.log_start_offset) == (-1, -1, -1)
    assert (chunk.data, chunk.aborted, chunk.broken) == (b"", [], False)


def test_done_twice_does_no_harm() -> None:
    chunk = chunk_from_bytes(b"x" * 100_000, asked_offset=0)
    chunk_done(chunk)
    chunk_done(chunk)
    assert chunk.data == b"x" * 100_000


def test_chunks_are_not_made_from_nothing() -> None:
    with pytest.raises(TypeError, match="chunk_from_bytes"):
        Chunk()


@pytest.mark.parametrize("aborted", [[(1,)], [(1, 2, 3)], [(1, "x")], [(1 << 63, 0)]])
def test_a_bad_aborted_list_is_refused(aborted: list[tuple[int, int]]) -> None:
    with pytest.raises((ValueError, TypeError, OverflowError)):
        chunk_from_bytes(b"", asked_offset=0, aborted=aborted)
