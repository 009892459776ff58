"""Frames that the data plane sends again and again."""

from __future__ import annotations

import pytest

from kafka_fast.dataplane._plane import EVENT_RESPONSE
from kafka_fast.dataplane._streams import EVENT_REPEAT_ENDED
from tests.unit.dataplane.fetch_rig import FetchRig

TOKEN = 9
PERIOD = 3.0
TIMEOUT = 20.0
EXPECTED = b"all is well"
BY_US, EOF = 1, 2
BODY = b"\0\x0c\0\4\0\0\0\0" + b"I am alive"
FRAME = len(BODY).to_bytes(4, "big") + BODY


def rig_with_repeat(alive: float = 60.0) -> FetchRig:
    """Return a rig whose link 1 repeats a frame."""
    rig = FetchRig(start=False)
    rig.streams.set_alive_until(alive)
    rig.streams.repeat(1, TOKEN, FRAME, PERIOD, EXPECTED, TIMEOUT)
    return rig


def sent(rig: FetchRig) -> list[int]:
    """Return the correlation ids of the frames sent since the last call."""
    found = []
    for data in rig.frames():
        assert data[:8] + bytes(4) + data[12:] == FRAME
        found.append(int.from_bytes(data[8:12], "big"))
    return found


def answer(rig: FetchRig, correlation_id: int, body: bytes = EXPECTED) -> None:
    rig.arrive((4 + len(body)).to_bytes(4, "big") + correlation_id.to_bytes(4, "big") + body)


def test_a_frame_goes_out_each_period_and_nobody_hears_of_it() -> None:
    rig = rig_with_repeat()
    for number in range(10):
        assert sent(rig) == [number]
        answer(rig, number)
        assert rig.until == pytest.approx(rig.machine.now + PERIOD, abs=1e-3)
        rig.advance(PERIOD - 0.1)
        assert sent(rig) == []
        rig.advance(0.11)
    assert rig.events == []
    assert rig.streams.stats()["repeats"] == 11


def test_the_next_one_waits_for_the_answer() -> None:
    rig = rig_with_repeat()
    assert sent(rig) == [0]
    rig.advance(2 * PERIOD)
    assert sent(rig) == []
    answer(rig, 0)
    assert sent(rig) == [1]


@pytest.mark.parametrize("body", [b"", EXPECTED[:-1], EXPECTED + b"!", b"all is lost"])
def test_any_other_answer_goes_up_and_ends_it(body: bytes) -> None:
    rig = rig_with_repeat()
    assert sent(rig) == [0]
    answer(rig, 0, body)
    (event,) = rig.take(EVENT_RESPONSE)
    assert (event[1], event[2], event[4], event[5][4:]) == (1, 0, TOKEN, body)
    rig.advance(2 * PERIOD)
    assert sent(rig) == []


def test_it_lasts_as_long_as_the_user_is_alive() -> None:
    rig = rig_with_repeat(alive=10.0)
    count = 0
    while not rig.take(EVENT_REPEAT_ENDED):
        for correlation_id in sent(rig):
            answer(rig, correlation_id)
            count += 1
        if rig.machine.now < 8.0:
            rig.streams.set_alive_until(rig.machine.now + 10.0)
        rig.advance(0.5)
    assert rig.machine.now == pytest.approx(17.5, abs=0.6)
    assert count == 6
    rig.advance(100.0)
    assert sent(rig) == []


def test_whoever_never_polled_is_not_alive() -> None:
    rig = FetchRig(start=False)
    rig.streams.repeat(1, TOKEN, FRAME, PERIOD, EXPECTED, TIMEOUT)
    assert [event[4] for event in rig.take(EVENT_REPEAT_ENDED)] == [TOKEN]
    assert sent(rig) == []


@pytest.mark.parametrize("in_flight", [True, False])
def test_the_end_of_the_link_ends_it(in_flight: bool) -> None:
    rig = rig_with_repeat()
    assert sent(rig) == [0]
    if not in_flight:
        answer(rig, 0)
    rig.hang_up()
    assert [(event[2], event[4]) for event in rig.take(EVENT_RESPONSE)] == [(EOF, TOKEN)]


def test_no_answer_closes_the_link() -> None:
    rig = rig_with_repeat()
    assert sent(rig) == [0]
    rig.advance(TIMEOUT + 0.1)
    assert [event[4] for event in rig.take(EVENT_RESPONSE)] == [TOKEN]


def test_over_a_link_that_is_not_there() -> None:
    rig = FetchRig(start=False)
    rig.streams.set_alive_until(10.0)
    rig.streams.repeat(5, TOKEN, FRAME, PERIOD, EXPECTED, TIMEOUT)
    assert [(event[2], event[4]) for event in rig.take(EVENT_RESPONSE)] == [(BY_US, TOKEN)]


@pytest.mark.parametrize("body", [EXPECTED, b"all is lost"])
def test_after_a_stop_answers_are_swallowed(body: bytes) -> None:
    rig = rig_with_repeat()
    assert sent(rig) == [0]
    rig.streams.stop_repeat(TOKEN)
    rig.streams.stop_repeat(TOKEN)
    answer(rig, 0, body)
    rig.advance(100.0)
    assert sent(rig) == []
    assert rig.events == []


@pytest.mark.parametrize("in_flight", [True, False])
@pytest.mark.parametrize("body", [EXPECTED, b"all is lost"])
def test_a_recall_brings_the_next_answer_whatever_it_says(in_flight: bool, body: bytes) -> None:
    rig = rig_with_repeat()
    assert sent(rig) == [0]
    if not in_flight:
        answer(rig, 0)
    rig.streams.recall_repeat(TOKEN)
    assert sent(rig) == ([] if in_flight else [1])  # nothing is sent beside one in flight
    answer(rig, 0 if in_flight else 1, body)
    assert [event[5][4:] for event in rig.take(EVENT_RESPONSE)] == [body]
    rig.streams.recall_repeat(TOKEN)
    rig.advance(100.0)
    assert sent(rig) == []
    assert rig.events == []


def test_the_first_may_wait() -> None:
    rig = FetchRig(start=False)
    rig.streams.set_alive_until(60.0)
    rig.streams.repeat(1, TOKEN, FRAME, PERIOD, EXPECTED, TIMEOUT, 5.0)
    assert sent(rig) == []
    rig.advance(4.9)
    assert sent(rig) == []
    rig.advance(0.11)
    assert sent(rig) == [0]


def test_two_are_repeated_beside_each_other() -> None:
    rig = rig_with_repeat()
    rig.streams.repeat(1, TOKEN + 1, FRAME, 2 * PERIOD, EXPECTED, TIMEOUT)
    for correlation_id in sent(rig):
        answer(rig, correlation_id)
    rig.advance(PERIOD + 0.01)
    assert len(sent(rig)) == 1
