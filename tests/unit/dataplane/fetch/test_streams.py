"""Streams as the control plane and the user's thread use them."""

from __future__ import annotations

import pytest

from kafka_fast.control.consumer.consumer_messages import ProgramFetch
from kafka_fast.dataplane.core._wake import Wake
from kafka_fast.dataplane.fetch._streams import Streams
from kafka_fast.errors import UsageError
from tests.unit.dataplane.fetch.fetch_rig import FetchRig, batch, part


def test_a_plane_has_its_streams_once() -> None:
    rig = FetchRig()
    with pytest.raises(UsageError, match="already"):
        Streams(rig.plane, buffer_bytes=1, max_bytes=1, partition_max_bytes=1)


def test_chunks_are_taken_in_the_order_of_their_arrival() -> None:
    rig = FetchRig(partitions=3)
    rig.answer(rig.request(), {"t": [part(p, batch(10)) for p in (2, 0, 1)]})
    rig.answer(rig.request(), {"t": [part(p, batch(11)) for p in (1, 2)]})
    assert [chunk.stream_id for chunk in rig.streams.take_chunks(2)] == [2, 0]
    assert rig.streams.take_chunks(0) == []
    assert [chunk.stream_id for chunk in rig.streams.take_chunks(9)] == [1, 1, 2]
    assert rig.streams.take_chunks(9) == []
    rig.answer(rig.request(), {"t": [part(0, batch(11))]})
    assert [chunk.stream_id for chunk in rig.streams.take_chunks(9)] == [0]


def test_a_generation_drops_what_is_older_and_nothing_else() -> None:
    rig = FetchRig(partitions=2)
    rig.answer(rig.request(), {"t": [part(0, batch(10)), part(1, batch(10))]})
    rig.start(0, generation=5, offset=30)
    rig.answer(rig.request(), {"t": [part(1, batch(11))]})
    rig.answer(rig.request(), {"t": [part(0, batch(30))]})
    assert rig.streams.unread_bytes(0) == len(batch(10)) + len(batch(30))
    rig.streams.set_generation(0, 4)
    assert rig.offsets() == [(1, 10, 11), (1, 11, 12), (0, 30, 31)]
    assert rig.streams.unread_bytes(0) == 0


def test_a_removed_stream_leaves_nothing_behind() -> None:
    rig = FetchRig(partitions=2)
    rig.answer(rig.request(), {"t": [part(0, batch(10)), part(1, batch(10))]})
    asked = rig.request()
    rig.remove_stream(0)
    with pytest.raises(KeyError):
        rig.start(0)
    rig.streams.add_stream(0, "t", 0)  # the id is free again
    rig.name(0, "t", b"t".ljust(16, b"#"))
    rig.start(0, generation=1, offset=70)
    rig.answer(asked, {"t": [part(0, batch(11)), part(1, batch(11))]})
    assert rig.offsets() == [(1, 10, 11), (1, 11, 12)]
    asked = rig.request()
    assert asked.positions == {("t", 0): 70, ("t", 1): 12}
    assert asked.forgotten == set()  # a broker would forget what it has just been told


def test_an_id_is_of_one_stream() -> None:
    rig = FetchRig()
    with pytest.raises(UsageError, match="stream 0"):
        rig.streams.add_stream(0, "u", 0)


def test_what_is_no_prefix_is_refused() -> None:
    with pytest.raises(ValueError, match="prefix"):
        FetchRig().carry(ProgramFetch(1, 12, b"short", b""))


def test_a_chunk_outlives_the_plane() -> None:
    rig = FetchRig()
    rig.answer(rig.request(), {"t": [part(0, batch(10))]})
    (chunk,) = rig.streams.take_chunks(1)
    rig.answer(rig.request(), {"t": [part(0, batch(11))]})
    del rig
    assert chunk.data == batch(10)


# ---- waiting ----


def test_an_arrival_raises_the_wake_of_users() -> None:
    rig = FetchRig()
    wake = Wake(rig.plane)
    seen = wake.count
    assert not rig.streams.has_chunks
    rig.answer(rig.request(), {"t": [part(0, batch(10))]})
    assert rig.streams.has_chunks
    assert wake.count == seen + 1
    rig.streams.take_chunks(1)
    assert not rig.streams.has_chunks
