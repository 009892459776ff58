"""When a request has waited too long for its answer, and its link is closed."""

from __future__ import annotations

from kafka_fast.control.messages import LinkClosed, RawResponse
from tests.unit.dataplane.rig import ProduceRig

LINK = 1
SLOW, QUICK = 7, 8
TIMEOUT = 1.0


def request(size: int = 40) -> bytes:
    """Return a raw request; nobody reads what it asks."""
    return size.to_bytes(4, "big") + bytes(size)


def answer(correlation_id: int) -> bytes:
    """Return the frame of an answer, length included."""
    return (8).to_bytes(4, "big") + correlation_id.to_bytes(4, "big") + bytes(4)


def closed(rig: ProduceRig) -> bool:
    return any(isinstance(event, LinkClosed) for event in rig.events)


def test_a_request_behind_a_slow_one_has_its_time_from_the_slow_ones_answer_on() -> None:
    """Regression: a heartbeat behind a SyncGroup cost the member its coordinator.

    The SyncGroup waits at the broker for the leader's, longer than request.timeout.ms. Until then
    the broker answers nothing that comes after it on this connection.
    """
    rig = ProduceRig()
    rig.send_raw(LINK, SLOW, request(), 10 * TIMEOUT)
    rig.send_raw(LINK, QUICK, request(), TIMEOUT)
    rig.turn()
    rig.advance(5 * TIMEOUT)
    rig.links[LINK].arrive(answer(0))
    rig.turn()
    rig.advance(0.9 * TIMEOUT)
    assert not closed(rig)
    rig.links[LINK].arrive(answer(1))
    rig.turn()
    assert [event.token for event in rig.events if isinstance(event, RawResponse)] == [SLOW, QUICK]


def test_a_request_behind_an_answered_one_is_given_its_own_time_and_no_more() -> None:
    rig = ProduceRig()
    rig.send_raw(LINK, SLOW, request(), 10 * TIMEOUT)
    rig.send_raw(LINK, QUICK, request(), TIMEOUT)
    rig.turn()
    rig.advance(5 * TIMEOUT)
    rig.links[LINK].arrive(answer(0))
    until = rig.turn()
    assert until == rig.machine.now + TIMEOUT
    rig.advance(1.01 * TIMEOUT)
    assert closed(rig)
