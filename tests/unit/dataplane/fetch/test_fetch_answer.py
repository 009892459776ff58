"""Fetch answers as the data plane reads them: chunks, positions, punts, hostile bytes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kafka_fast.control.consumer.consumer_messages import FetchPunt, StreamsStopped
from kafka_fast.control.messages import BadAnswer, LinkClosed, Misfit
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.records.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
)
from tests.unit.dataplane.fetch.fetch_rig import (
    SESSION,
    VERSIONS,
    FetchRig,
    answer_to,
    batch,
    part,
)

BAD_RESPONSE = 6
NOT_LEADER = 6
SESSION_NOT_FOUND = 70
SESSION_EPOCH = 71
SESSION_TOPIC_ID = 106


@pytest.mark.parametrize("version", VERSIONS)
def test_batches_become_chunks(version: int) -> None:
    rig = FetchRig(partitions=2, version=version)
    data = batch(8, 5) + batch(13, 2, epoch=4)
    aborted = [AbortedTransaction(producer_id=7, first_offset=9)] * 3
    rig.answer(rig.request(), {"t": [part(0), part(1, data, aborted_transactions=aborted)]})
    (chunk,) = rig.streams.take_chunks(10)
    assert chunk.data == data
    assert (chunk.stream_id, chunk.generation, chunk.asked_offset) == (1, 0, 10)
    assert (chunk.next_offset, chunk.broken) == (15, False)
    assert (chunk.high_watermark, chunk.last_stable_offset) == (100, 90)
    assert chunk.log_start_offset == (5 if version >= 5 else -1)
    assert chunk.aborted == [(7, 9)] * 3
    assert rig.streams.watermarks(0) == (100, 90, 5 if version >= 5 else -1)
    asked = rig.request()
    assert asked.positions["t", 1] == 15
    if version >= 12:
        assert asked.request.topics[0].partitions[0].last_fetched_epoch == 4
    assert rig.events == []


def test_a_last_batch_that_is_cut_off_is_fetched_again() -> None:
    whole = batch(10, 3)
    for size in range(1, len(whole)):
        rig = FetchRig()
        rig.answer(rig.request(), {"t": [part(0, whole + batch(13, 3)[:size])]})
        (chunk,) = rig.streams.take_chunks(10)
        assert (chunk.data, chunk.next_offset, chunk.broken) == (whole, 13, False)


def test_nothing_but_a_piece_of_a_batch_is_the_control_planes_business() -> None:
    """The first batch comes whole (KIP-74): asked again, the broker would say the same forever."""
    rig = FetchRig()
    rig.answer(rig.request(), {"t": [part(0, batch(10, 3)[:-1])]})
    assert rig.offsets() == []
    assert rig.rows(FetchPunt) == [(0, 0, 0, 10, -1)]
    rig.advance(1.0)
    assert rig.requests() == []


BAD = [
    batch(13)[:16] + b"\x03" + batch(13)[17:],  # magic
    batch(13)[:8] + (48).to_bytes(4, "big") + batch(13)[12:],  # too short for a header
    batch(13)[:8] + (-1).to_bytes(4, "big", signed=True) + batch(13)[12:],
    b"\xff" + batch(13)[1:],  # negative offset
    b"\x7f" + b"\xff" * 7 + batch(13)[8:],  # the last offset there is
    batch(13)[:23] + b"\xff" + batch(13)[24:],  # negative delta
]
GOOD = batch(10, 3)


@pytest.mark.parametrize(
    ("good", "bad"),
    [*((b"", bad) for bad in BAD), *((GOOD, bad) for bad in [*BAD, batch(9), batch(12)])],
)
def test_a_header_that_makes_no_sense_stops_the_stream(good: bytes, bad: bytes) -> None:
    rig = FetchRig(partitions=2)
    rig.answer(rig.request(), {"t": [part(0, good + bad + b"more"), part(1, batch(10))]})
    broken, fine = rig.streams.take_chunks(10)
    assert (broken.data, broken.broken) == (good + bad + b"more", True)
    assert broken.next_offset == (13 if good else 10)
    assert not fine.broken
    asked = rig.request()
    assert (asked.positions, asked.forgotten) == ({("t", 1): 11}, {("t", 0)})
    rig.start(0, generation=1, offset=20)
    rig.answer(asked, {})
    assert rig.request().positions == {("t", 0): 20}


def test_what_ends_below_the_position_is_passed_over() -> None:
    """Regression: the stream stood still, and the reader, who passes over it, said nothing."""
    rig = FetchRig()
    data = batch(8) + batch(9) + batch(10)
    rig.answer(rig.request(), {"t": [part(0, data)]})
    (chunk,) = rig.streams.take_chunks(10)
    assert (chunk.data, chunk.next_offset, chunk.broken) == (data, 11, False)
    assert rig.rows(FetchPunt) == []
    rig.answer(rig.request(), {"t": [part(0, data)]})
    assert rig.rows(FetchPunt) == [(0, 0, 0, 11, 3)]  # nothing at all leads on


def test_old_formats_are_walked_as_well() -> None:
    def message(offset: int, magic: int) -> bytes:
        time = bytes(8) if magic else b""
        body = bytes(4) + bytes([magic, 0]) + time + b"\xff\xff\xff\xff" + b"\x00\x00\x00\x01v"
        return offset.to_bytes(8, "big") + len(body).to_bytes(4, "big") + body

    rig = FetchRig()
    data = message(10, 0) + message(12, 1) + batch(13, 2) + message(20, 1)
    rig.answer(rig.request(), {"t": [part(0, data + message(21, 1)[:20])]})
    (chunk,) = rig.streams.take_chunks(10)
    assert (chunk.data, chunk.next_offset, chunk.broken) == (data, 21, False)
    (topic,) = rig.request().request.topics
    assert (topic.partitions[0].fetch_offset, topic.partitions[0].last_fetched_epoch) == (21, -1)


# ---- what is not plain ----


NOT_PLAIN: dict[str, tuple[int, dict[str, Any]]] = {
    "an error": (4, {"error_code": NOT_LEADER}),
    "a preferred replica": (11, {"preferred_read_replica": 2}),
    "a diverging epoch": (12, {"diverging_epoch": EpochEndOffset(epoch=1, end_offset=4)}),
    "another leader": (
        12,
        {"error_code": NOT_LEADER, "current_leader": LeaderIdAndEpoch(leader_id=2)},
    ),
}


@pytest.mark.parametrize(
    ("case", "version"),
    [(case, version) for case, (since, _) in NOT_PLAIN.items() for version in range(since, 19)],
)
def test_what_is_not_plain_goes_up_and_stands_still(case: str, version: int) -> None:
    fields = NOT_PLAIN[case][1]
    rig = FetchRig(partitions=2, version=version)
    asked = rig.request()
    answer = answer_to(asked, {"t": [part(0, **fields), part(1, batch(10))]})
    rig.arrive(answer)
    (event,) = rig.take(FetchPunt)
    assert (event.link_id, event.version, event.frame) == (1, version, answer[4:])
    rig.events.append(event)
    assert rig.rows(FetchPunt) == [(0, 0, fields.get("error_code", 0), 10, -1)]
    assert rig.offsets() == [(1, 10, 11)]
    asked = rig.request()
    assert asked.positions["t", 1] == 11
    assert ("t", 0) not in asked.positions
    rig.start(0, generation=1, offset=7)
    rig.answer(asked, {"t": [part(1)]})
    rig.advance(1.0)
    assert rig.request().positions["t", 0] == 7


@pytest.mark.parametrize("version", [16, 18])
def test_endpoints_of_other_nodes_go_up_with_the_frame(version: int) -> None:
    rig = FetchRig(version=version)
    leader = LeaderIdAndEpoch(leader_id=2, leader_epoch=9)
    endpoint = NodeEndpoint(node_id=2, host="h", port=1)
    parts = {"t": [part(0, error_code=NOT_LEADER, current_leader=leader)]}
    rig.answer(rig.request(), parts, node_endpoints=[endpoint])
    (event,) = rig.take(FetchPunt)
    _, response = frame.decode_response(FetchResponse, event.frame, version)
    assert response.node_endpoints == [endpoint]


@pytest.mark.parametrize("version", range(7, 19))
@pytest.mark.parametrize("error", [SESSION_NOT_FOUND, SESSION_EPOCH, SESSION_TOPIC_ID])
def test_a_lost_session_is_begun_again(error: int, version: int) -> None:
    rig = FetchRig(partitions=2, version=version)
    rig.answer(rig.request(), {"t": [part(0, batch(10)), part(1)]})
    rig.answer(rig.request(), {}, error_code=error, session_id=0)
    rig.advance(0.01)
    asked = rig.request()
    known = 0 if error == SESSION_NOT_FOUND else SESSION
    assert (asked.request.session_id, asked.request.session_epoch) == (known, 0)
    assert asked.positions == {("t", 0): 11, ("t", 1): 10}
    assert rig.events == []
    assert rig.streams.stats()["sessions_lost"] == 1


def test_a_session_error_of_a_full_request_goes_up() -> None:
    rig = FetchRig()
    rig.answer(rig.request(), {}, error_code=SESSION_EPOCH, session_id=0)
    assert rig.rows(FetchPunt) == [(0, 0, SESSION_EPOCH, 10, -1)]
    rig.advance(10.0)
    assert rig.requests() == []


def test_any_other_error_of_the_whole_answer_goes_up_for_all() -> None:
    rig = FetchRig(partitions=2)
    rig.answer(rig.request(), {"t": [part(0), part(1)]})
    rig.answer(rig.request(), {}, error_code=29, session_id=0)
    assert rig.rows(FetchPunt) == [(0, 0, 29, 10, -1), (1, 0, 29, 10, -1)]


def test_a_broker_without_room_for_sessions_gets_full_requests() -> None:
    rig = FetchRig(partitions=2)
    for _ in range(3):
        asked = rig.request()
        assert (asked.request.session_id, asked.request.session_epoch) == (0, 0)
        assert len(asked.positions) == 2
        rig.answer(
            asked, {"t": [part(p, batch(asked.positions["t", p])) for p in (0, 1)]}, session_id=0
        )


def test_the_epoch_of_a_session_wraps_to_one() -> None:
    rig = FetchRig()
    rig.answer(rig.request(), {"t": [part(0)]})
    for epoch in range(1, 50):
        asked = rig.request()
        assert asked.request.session_epoch == epoch
        rig.advance(0.1)
        rig.answer(asked, {})


def test_a_client_that_is_too_fast_waits() -> None:
    rig = FetchRig(partitions=2)
    rig.answer(rig.request(), {}, throttle_time_ms=300, session_id=0)
    rig.advance(0.2)
    assert rig.requests() == []
    rig.advance(0.11)
    assert rig.request().positions == {("t", 0): 10, ("t", 1): 10}


# ---- what nobody waits for any more ----


def test_what_was_asked_for_before_a_seek_is_dropped() -> None:
    rig = FetchRig(partitions=2)
    asked = rig.request()
    rig.streams.set_generation(0, 1)
    rig.answer(asked, {"t": [part(0, batch(10)), part(1, batch(10))]})
    assert rig.offsets() == [(1, 10, 11)]
    assert rig.streams.stats()["dropped_chunks"] == 1
    rig.start(0, generation=0, offset=33)  # a start that does not know of the seek
    asked = rig.request()
    assert (asked.positions, asked.forgotten) == ({("t", 1): 11}, {("t", 0)})
    rig.start(0, generation=1, offset=44)
    rig.answer(asked, {})
    assert rig.request().positions == {("t", 0): 44}


def test_an_error_of_an_older_start_is_dropped() -> None:
    rig = FetchRig()
    asked = rig.request()
    rig.start(0, generation=1, offset=20)
    rig.answer(asked, {"t": [part(0, error_code=NOT_LEADER)]})
    assert rig.events == []
    rig.advance(1.0)
    assert rig.request().positions == {("t", 0): 20}


def test_what_was_asked_for_before_a_pause_still_counts() -> None:
    rig = FetchRig()
    asked = rig.request()
    rig.streams.set_paused(0, True)
    rig.answer(asked, {"t": [part(0, batch(10))]})
    assert rig.offsets() == [(0, 10, 11)]
    rig.advance(10.0)
    assert rig.requests() == []
    rig.streams.set_paused(0, False)
    assert rig.request().positions == {("t", 0): 11}


# ---- hostile bytes ----


def closed_as_bad(rig: FetchRig) -> bool:
    """Whether the link was closed for a malformed answer, and its streams were reported."""
    closed = rig.take(LinkClosed)
    if not closed:
        return False
    assert [event.reason for event in closed] == [BAD_RESPONSE]
    assert len(rig.rows(StreamsStopped)) == 2
    assert rig.streams.stats()["reserved_bytes"] == 0
    return True


def told_as_bad(rig: FetchRig) -> tuple[Misfit, int, bool]:
    """Return what was wrong with an answer, where or with what, and whether one was well before."""
    (bad,) = rig.take(BadAnswer)
    which = bad.asked if bad.misfit is Misfit.MISSING else bad.place
    return bad.misfit, which, bad.was_well


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_that_ends_too_early_closes_the_link(version: int) -> None:
    aborted = [AbortedTransaction(producer_id=1, first_offset=2)]
    parts = {"t": [part(0, batch(10), aborted_transactions=aborted), part(1)]}
    whole = answer_to(FetchRig(partitions=2, version=version).request(), parts)
    for size in range(4, len(whole) - 4):
        rig = FetchRig(partitions=2, version=version)
        rig.request()
        rig.arrive(size.to_bytes(4, "big") + whole[4 : 4 + size])
        assert closed_as_bad(rig), size
        assert rig.offsets() == []


@pytest.mark.parametrize("version", [4, 6, 11, 12, 13, 18])
def test_flipped_bits_do_no_harm(version: int) -> None:
    chance = random.Random(version)
    aborted = [AbortedTransaction(producer_id=1, first_offset=2)]
    parts = {"t": [part(0, batch(10, 3), aborted_transactions=aborted), part(1)]}
    whole = answer_to(FetchRig(partitions=2, version=version).request(), parts)
    for _ in range(300):
        data = bytearray(whole)
        for _ in range(chance.choice([1, 1, 2, 8])):
            data[chance.randrange(8, len(data))] ^= 1 << chance.randrange(8)
        rig = FetchRig(partitions=2, version=version)
        rig.request()
        rig.arrive(bytes(data))
        rig.offsets()
        stats = rig.streams.stats()
        assert stats["buffered_bytes"] == stats["pinned_bytes"] == 0


WRONG = {
    "of a partition that was not asked for": ({"t": [part(0), part(1), part(2)]}, "FOREIGN", 2),
    "of a topic that was not asked for": ({"t": [part(0), part(1)], "u": [part(0)]}, "FOREIGN", 2),
    "with a partition twice": ({"t": [part(0), part(1), part(1)]}, "TWICE", 2),
    "without one that was asked for": ({"t": [part(1)]}, "MISSING", 0),
    "with nothing": ({}, "MISSING", 0),
}


@pytest.mark.parametrize("version", [4, 12, 13])
@pytest.mark.parametrize("case", WRONG)
def test_an_answer_to_something_else_is_told_and_closes_the_link(case: str, version: int) -> None:
    rig = FetchRig(partitions=2, version=version)
    parts, misfit, which = WRONG[case]
    rig.answer(rig.request(), parts)
    assert told_as_bad(rig) == (Misfit[misfit], which, False)
    assert closed_as_bad(rig)


def test_a_session_that_changes_its_id_closes_the_link() -> None:
    rig = FetchRig(partitions=2)
    rig.answer(rig.request(), {"t": [part(0), part(1)]})
    rig.answer(rig.request(), {}, session_id=SESSION + 1)
    assert told_as_bad(rig) == (Misfit.SESSION, 0, True)
    assert closed_as_bad(rig)


@pytest.mark.parametrize("count", [2**31 - 1, 10**6])
def test_counts_that_cannot_be_are_not_believed(count: int) -> None:
    rig = FetchRig(partitions=2, version=4)
    asked = rig.request()
    whole = bytearray(answer_to(asked, {"t": [part(0, batch(10)), part(1)]}))
    for at in range(8, len(whole) - 4):
        broken = bytes(whole[:at]) + count.to_bytes(4, "big") + bytes(whole[at + 4 :])
        rig = FetchRig(partitions=2, version=4)
        rig.request()
        rig.arrive(broken)
        rig.offsets()
        assert rig.streams.stats()["buffered_bytes"] == 0
