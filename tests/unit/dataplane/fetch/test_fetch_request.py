"""Fetch requests as the data plane writes them, against the table codec."""

from __future__ import annotations

import pytest

from kafka_fast.protocol import frame
from tests.unit.dataplane.fetch.fetch_rig import (
    CLIENT,
    FIRST_WITH_IDS,
    FIRST_WITH_SESSIONS,
    MAX_WAIT,
    PARTITION_BYTES,
    PIECE,
    RACK,
    SESSION,
    VERSIONS,
    Asked,
    FetchRig,
    batch,
    name_of,
    part,
    topic_id,
)


def check_by_codec(asked: Asked) -> None:
    """The codec writes the same bytes for what it has read."""
    again = frame.encode_request(asked.request, asked.version, asked.correlation_id, CLIENT)
    assert asked.data == again


@pytest.mark.parametrize("version", VERSIONS)
def test_a_full_request_is_what_the_codec_writes(version: int) -> None:
    rig = FetchRig(partitions=3, version=version, start=False)
    rig.add_topic("other", 2)
    for stream_id in range(5):
        rig.start(stream_id, offset=10 + stream_id, leader_epoch=7)
    asked = rig.request()
    check_by_codec(asked)
    assert list(asked.positions) == [("t", 0), ("t", 1), ("t", 2), ("other", 0), ("other", 1)]
    assert list(asked.positions.values()) == [10, 11, 12, 13, 14]
    body = asked.request
    assert (body.max_wait_ms, body.min_bytes, body.isolation_level) == (MAX_WAIT * 1000, 1, 1)
    assert body.max_bytes == PIECE
    assert body.replica_id == -1
    assert body.rack_id == (RACK if version >= 11 else "")
    assert (body.session_id, body.session_epoch) == (0, 0 if version >= 7 else -1)
    for topic in body.topics:
        has_id = version >= FIRST_WITH_IDS
        assert topic.topic_id == (topic_id(name_of(topic)) if has_id else bytes(16))
        for partition in topic.partitions:
            assert partition.current_leader_epoch == (7 if version >= 9 else -1)
            assert partition.last_fetched_epoch == -1  # nothing was fetched yet
            assert (partition.log_start_offset, partition.partition_max_bytes) == (
                -1,
                PARTITION_BYTES,
            )


@pytest.mark.parametrize("version", range(FIRST_WITH_SESSIONS, 19))
def test_an_incremental_request_names_what_is_news(version: int) -> None:
    rig = FetchRig(partitions=4, version=version)
    rig.answer(rig.request(), {"t": [part(0), part(1, batch(10, 5)), part(2), part(3)]})
    asked = rig.request()
    check_by_codec(asked)
    assert (asked.request.session_id, asked.request.session_epoch) == (SESSION, 1)
    assert (asked.positions, asked.forgotten) == ({("t", 1): 15}, set())
    if version >= 12:
        assert asked.request.topics[0].partitions[0].last_fetched_epoch == 3

    rig.streams.set_paused(2, True)
    rig.stop_stream(3, 0)
    rig.add_topic("new", 1)
    rig.start(4, offset=1)
    rig.answer(asked, {})
    asked = rig.request()
    check_by_codec(asked)
    assert asked.request.session_epoch == 2
    assert (asked.positions, asked.forgotten) == ({("new", 0): 1}, {("t", 2), ("t", 3)})

    rig.streams.set_paused(2, False)
    rig.answer(asked, {"t": [part(0, batch(10))]})
    asked = rig.request()
    check_by_codec(asked)
    assert (asked.positions, asked.forgotten) == ({("t", 0): 11, ("t", 2): 10}, set())


@pytest.mark.parametrize("version", [4, 5, 6])
def test_without_sessions_each_request_is_full(version: int) -> None:
    rig = FetchRig(partitions=3, version=version)
    rig.answer(rig.request(), {"t": [part(0), part(1, batch(10)), part(2)]})
    asked = rig.request()
    check_by_codec(asked)
    assert asked.positions == {("t", 2): 10, ("t", 0): 10, ("t", 1): 11}


def test_who_brought_something_last_comes_last_in_full_requests() -> None:
    rig = FetchRig(partitions=2, version=6)
    rig.add_topic("u", 2)
    rig.start(2)
    rig.start(3)
    parts = {"t": [part(0, batch(10)), part(1)], "u": [part(0), part(1)]}
    rig.answer(rig.request(), parts)
    asked = rig.request()
    assert list(asked.positions) == [("t", 1), ("t", 0), ("u", 0), ("u", 1)]
    rig.answer(asked, {"t": [part(1, batch(10)), part(0)], "u": [part(0), part(1)]})
    asked = rig.request()
    assert list(asked.positions) == [("u", 0), ("u", 1), ("t", 0), ("t", 1)]
    rig.answer(asked, {"u": [part(0), part(1, batch(10))], "t": [part(0), part(1)]})
    assert list(rig.request().positions) == [("t", 0), ("t", 1), ("u", 0), ("u", 1)]


def test_no_topic_stands_in_a_request_twice() -> None:
    rig = FetchRig(partitions=50, version=12, start=False)
    rig.add_topic("u", 50)
    for stream_id in range(100):
        rig.start(stream_id * 37 % 100)
    asked = rig.request()
    check_by_codec(asked)
    assert [topic.topic for topic in asked.request.topics] == ["t", "u"]
    assert list(asked.positions) == [(t, p) for t in "tu" for p in range(50)]


@pytest.mark.parametrize("version", [6, 12])
def test_nothing_is_asked_for_behind_the_end_of_a_stream(version: int) -> None:
    rig = FetchRig(partitions=1, version=version)
    rig.add_topic("u", 2, end=20)
    rig.start(1)
    rig.start(2)
    parts = {"t": [part(0)], "u": [part(0, batch(10, 9)), part(1, batch(10, 11))]}
    rig.answer(rig.request(), parts)  # up to the last record but one, and beyond the end
    asked = rig.request()
    check_by_codec(asked)
    unchanged = {} if version >= FIRST_WITH_SESSIONS else {("t", 0): 10}
    assert asked.positions == unchanged | {("u", 0): 19}
    assert asked.forgotten == ({("u", 1)} if version >= FIRST_WITH_SESSIONS else set())
    rig.start(2, generation=1, offset=12)  # back before its end
    others = {} if version >= FIRST_WITH_SESSIONS else {"t": [part(0)]}
    rig.answer(asked, {**others, "u": [part(0, batch(19))]})
    assert rig.request().positions == unchanged | {("u", 1): 12}


def test_a_link_whose_streams_are_all_at_their_ends_asks_for_nothing() -> None:
    rig = FetchRig(partitions=1, start=False)
    rig.add_topic("u", 2, end=20)
    rig.start(1, offset=20)
    rig.start(2)
    asked = rig.request()
    assert asked.positions == {("u", 1): 10}
    rig.answer(asked, {"u": [part(1, batch(10, 10))]})
    rig.advance(10.0)
    assert rig.requests() == []


@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_one_fetch_is_in_flight_for_each_link(seconds: float) -> None:
    rig = FetchRig(partitions=2, links=2, start=False)
    rig.start(0, link_id=1)
    rig.start(1, link_id=2)
    assert list(rig.request(1).positions) == [("t", 0)]
    assert list(rig.request(2).positions) == [("t", 1)]
    rig.advance(seconds)
    rig.start(0, generation=1, offset=99)
    assert rig.requests(1) == rig.requests(2) == []


def test_a_stream_that_moves_is_forgotten_on_its_old_link() -> None:
    rig = FetchRig(partitions=2, links=2)
    first = rig.request(1)
    rig.start(1, link_id=2, generation=1, offset=50)
    assert rig.request(2).positions == {("t", 1): 50}
    rig.answer(first, {"t": [part(0), part(1, batch(10))]})  # of the first start
    asked = rig.request(1)
    assert (asked.positions, asked.forgotten) == ({}, {("t", 1)})
    assert rig.offsets() == []
    rig.start(1, link_id=1, generation=2, offset=60)
    rig.answer(asked, {})
    assert rig.request(1).positions == {("t", 1): 60}


def test_a_recreated_topic_is_forgotten_by_its_old_id() -> None:
    rig = FetchRig(version=13)
    rig.answer(rig.request(), {"t": [part(0)]})
    asked = rig.request()
    rig.name(0, "t", topic_id("t2"))
    rig.answer(asked, {"t": [part(0)]})  # by the id that was asked for
    asked = rig.request()
    check_by_codec(asked)
    assert (asked.positions, asked.forgotten) == ({("t2", 0): 10}, {("t", 0)})
    rig.answer(asked, {"t2": [part(0, batch(10))]})
    assert rig.offsets() == [(0, 10, 11)]


def test_another_version_begins_with_the_next_request() -> None:
    rig = FetchRig(version=13)
    rig.answer(rig.request(), {"t": [part(0)]})
    asked = rig.request()
    rig.program(1, 12)
    assert rig.requests() == []
    rig.answer(asked, {"t": [part(0, batch(10))]})
    asked = rig.request()
    check_by_codec(asked)
    assert (asked.version, asked.positions) == (12, {("t", 0): 11})
    assert (asked.request.session_id, asked.request.session_epoch) == (SESSION, 0)
    rig.answer(asked, {"t": [part(0, batch(11))]}, session_id=SESSION + 1)
    assert rig.request().request.session_id == SESSION + 1
    assert rig.offsets() == [(0, 10, 11), (0, 11, 12)]


def test_a_stream_without_a_name_in_the_links_form_waits() -> None:
    rig = FetchRig(version=13, start=False)
    rig.streams.add_stream(1, "unnamed", 0)
    rig.start(1)
    assert rig.requests() == []
    rig.name(1, "unnamed", topic_id("unnamed"))
    assert rig.request().positions == {("unnamed", 0): 10}
