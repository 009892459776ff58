"""Requests that the data plane sends every period."""

from __future__ import annotations

import pytest

from kafka_fast.control.messages import HeartbeatsEnded, RawResponse
from tests.unit.dataplane.fetch.fetch_rig import FetchRig
from tests.unit.dataplane.rig import ProduceRig

TOKEN, BETWEEN = 9, 10
PERIOD = 3.0
TIMEOUT = 20.0
EXPECTED = b"all is well"
BY_US, EOF = 1, 2
BODY = b"\0\x0c\0\4\0\0\0\0" + b"I am alive"
FRAME = len(BODY).to_bytes(4, "big") + BODY
NEWS = len(BODY).to_bytes(4, "big") + BODY[:-5] + b"busy!"
OTHER = b"all is lost"
ANSWER = (4 + len(EXPECTED)).to_bytes(4, "big") + bytes(4) + EXPECTED


def rig_with_heartbeats(alive: float = 60.0) -> FetchRig:
    """Return a rig that sends heartbeats over link 1."""
    rig = FetchRig(start=False)
    rig.plane.set_alive_until(alive)
    rig.start_heartbeats(1, TOKEN, FRAME, PERIOD, EXPECTED, TIMEOUT)
    return rig


def sent(rig: FetchRig, expected: bytes = FRAME) -> list[int]:
    """Return the correlation ids of the frames sent since the last call."""
    ids = []
    for data in rig.frames():
        assert data[:8] + bytes(4) + data[12:] == expected
        ids.append(int.from_bytes(data[8:12], "big"))
    return ids


def with_id(frame: bytes, correlation_id: int, at: int = 8) -> bytes:
    return frame[:at] + correlation_id.to_bytes(4, "big") + frame[at + 4 :]


def answer(rig: FetchRig, correlation_id: int, body: bytes = EXPECTED) -> None:
    rig.arrive((4 + len(body)).to_bytes(4, "big") + correlation_id.to_bytes(4, "big") + body)


def test_a_frame_goes_out_each_period_and_nobody_hears_of_it() -> None:
    rig = rig_with_heartbeats()
    for number in range(10):
        assert sent(rig) == [number]
        answer(rig, number)
        assert rig.until == pytest.approx(rig.machine.now + PERIOD, abs=1e-3)
        rig.advance(PERIOD - 0.1)
        assert sent(rig) == []
        rig.advance(0.11)
    assert rig.events == []
    assert rig.plane.stats()["heartbeats"] == 11


def test_the_next_one_waits_for_the_answer() -> None:
    rig = rig_with_heartbeats()
    assert sent(rig) == [0]
    rig.advance(2 * PERIOD)
    assert sent(rig) == []
    answer(rig, 0)
    assert sent(rig) == [1]


def responses(rig: FetchRig) -> list[tuple[int, bytes]]:
    """Return the answers that went up since the last call, by token."""
    return [(event.token, (event.frame or b"")[4:]) for event in rig.take(RawResponse)]


@pytest.mark.parametrize("body", [b"", EXPECTED[:-1], EXPECTED + b"!", OTHER])
def test_any_other_answer_goes_up_and_it_goes_on(body: bytes) -> None:
    """The control plane may hear it much later; until then the member keeps its place."""
    rig = rig_with_heartbeats()
    for number in range(3):
        assert sent(rig) == [number]
        answer(rig, number, body)
        assert responses(rig) == [(TOKEN, body)]
        rig.advance(PERIOD - 0.1)
        assert sent(rig) == []
        rig.advance(0.11)


def test_it_lasts_as_long_as_the_user_is_alive() -> None:
    rig = rig_with_heartbeats(alive=10.0)
    count = 0
    while not rig.take(HeartbeatsEnded):
        for correlation_id in sent(rig):
            answer(rig, correlation_id)
            count += 1
        if rig.machine.now < 8.0:
            rig.plane.set_alive_until(rig.machine.now + 10.0)
        rig.advance(0.5)
    assert rig.machine.now == pytest.approx(17.5, abs=0.6)
    assert count == 6
    rig.advance(100.0)
    assert sent(rig) == []


def test_whoever_never_polled_is_not_alive() -> None:
    rig = FetchRig(start=False)
    rig.start_heartbeats(1, TOKEN, FRAME, PERIOD, EXPECTED, TIMEOUT)
    assert [event.token for event in rig.take(HeartbeatsEnded)] == [TOKEN]
    assert sent(rig) == []


@pytest.mark.parametrize("in_flight", [True, False])
def test_the_end_of_the_link_ends_it(in_flight: bool) -> None:
    rig = rig_with_heartbeats()
    assert sent(rig) == [0]
    if not in_flight:
        answer(rig, 0)
    rig.hang_up()
    assert [(event.reason, event.token) for event in rig.take(RawResponse)] == [(EOF, TOKEN)]


def test_no_answer_closes_the_link() -> None:
    rig = rig_with_heartbeats()
    assert sent(rig) == [0]
    rig.advance(TIMEOUT + 0.1)
    assert [event.token for event in rig.take(RawResponse)] == [TOKEN]


def test_over_a_link_that_is_not_there() -> None:
    rig = FetchRig(start=False)
    rig.plane.set_alive_until(10.0)
    rig.start_heartbeats(5, TOKEN, FRAME, PERIOD, EXPECTED, TIMEOUT)
    assert [(event.reason, event.token) for event in rig.take(RawResponse)] == [(BY_US, TOKEN)]


@pytest.mark.parametrize("body", [EXPECTED, b"all is lost"])
def test_after_a_stop_answers_are_swallowed(body: bytes) -> None:
    rig = rig_with_heartbeats()
    assert sent(rig) == [0]
    rig.stop_heartbeats(TOKEN)
    rig.stop_heartbeats(TOKEN)
    answer(rig, 0, body)
    rig.advance(100.0)
    assert sent(rig) == []
    assert rig.events == []


@pytest.mark.parametrize("in_flight", [True, False])
@pytest.mark.parametrize("body", [EXPECTED, OTHER])
def test_another_request_goes_between_two(in_flight: bool, body: bytes) -> None:
    """Beside none that is in flight; its answer goes up whatever it says."""
    rig = rig_with_heartbeats()
    assert sent(rig) == [0]
    if not in_flight:
        answer(rig, 0)
    rig.send_between(TOKEN, BETWEEN, 0, NEWS, TIMEOUT)
    if in_flight:
        assert sent(rig) == []
        answer(rig, 0)
    assert sent(rig, NEWS) == [1]
    rig.advance(PERIOD + 0.1)
    assert sent(rig) == []
    answer(rig, 1, body)
    assert responses(rig) == [(BETWEEN, body)]
    rig.advance(PERIOD - 0.1)
    assert sent(rig) == []
    rig.advance(0.11)
    assert sent(rig) == [2]
    answer(rig, 2)
    assert rig.events == []


def test_a_request_built_without_knowledge_of_an_answer_is_not_sent() -> None:
    """Neither if that is on its way up, nor if it comes before there was room."""
    rig = rig_with_heartbeats()
    assert sent(rig) == [0]
    rig.send_between(TOKEN, BETWEEN, 0, NEWS, TIMEOUT)
    answer(rig, 0, OTHER)
    assert responses(rig) == [(TOKEN, OTHER)]
    rig.send_between(TOKEN, BETWEEN + 1, 0, NEWS, TIMEOUT)
    assert sent(rig) == []
    rig.send_between(TOKEN, BETWEEN + 2, 1, NEWS, TIMEOUT)
    assert sent(rig, NEWS) == [1]
    answer(rig, 1, OTHER)
    assert responses(rig) == [(BETWEEN + 2, OTHER)]
    rig.send_between(TOKEN, BETWEEN + 3, 1, NEWS, TIMEOUT)
    assert sent(rig) == []
    rig.send_between(TOKEN, BETWEEN + 4, 2, NEWS, TIMEOUT)
    assert sent(rig, NEWS) == [2]


@pytest.mark.parametrize("in_flight", [True, False])
def test_the_end_of_the_link_is_told_once(in_flight: bool) -> None:
    rig = rig_with_heartbeats()
    assert sent(rig) == [0]
    if in_flight:
        answer(rig, 0)
    rig.send_between(TOKEN, BETWEEN, 0, NEWS, TIMEOUT)
    assert len(sent(rig, NEWS)) == in_flight
    rig.hang_up()
    assert [(event.reason, event.token) for event in rig.take(RawResponse)] == [(EOF, TOKEN)]


@pytest.mark.parametrize("stopped_first", [True, False])
def test_with_the_heartbeats_the_request_between_ends(stopped_first: bool) -> None:
    rig = rig_with_heartbeats()
    assert sent(rig) == [0]
    if stopped_first:
        rig.stop_heartbeats(TOKEN)
    rig.send_between(TOKEN, BETWEEN, 0, NEWS, TIMEOUT)
    rig.stop_heartbeats(TOKEN)
    answer(rig, 0)
    rig.advance(100.0)
    assert sent(rig) == []
    assert rig.events == []


def test_the_first_may_wait() -> None:
    rig = FetchRig(start=False)
    rig.plane.set_alive_until(60.0)
    rig.start_heartbeats(1, TOKEN, FRAME, PERIOD, EXPECTED, TIMEOUT, 5.0)
    assert sent(rig) == []
    rig.advance(4.9)
    assert sent(rig) == []
    rig.advance(0.11)
    assert sent(rig) == [0]


def test_a_client_that_fetches_nothing_keeps_heartbeats() -> None:
    rig = ProduceRig()
    rig.plane.set_alive_until(10.0)
    rig.start_heartbeats(1, TOKEN, FRAME, PERIOD, EXPECTED, TIMEOUT)
    for correlation_id in range(3):
        rig.turn()
        assert rig.links[1].take_sent() == with_id(FRAME, correlation_id)
        rig.links[1].arrive(with_id(ANSWER, correlation_id, at=4))
        assert rig.turn() == pytest.approx(rig.machine.now + PERIOD)
        rig.advance(PERIOD)
    rig.advance(PERIOD)
    assert [event.token for event in rig.take(HeartbeatsEnded)] == [TOKEN]


def test_two_kinds_go_beside_each_other() -> None:
    rig = rig_with_heartbeats()
    rig.start_heartbeats(1, TOKEN + 1, FRAME, 2 * PERIOD, EXPECTED, TIMEOUT)
    for correlation_id in sent(rig):
        answer(rig, correlation_id)
    rig.advance(PERIOD + 0.01)
    assert len(sent(rig)) == 1
