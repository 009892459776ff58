"""A link's gate: what waits there, what passes, and what comes after it."""

from __future__ import annotations

import pytest

from kafka_fast.control.messages import GateShut, LinkClosed, RawResponse
from tests.unit.dataplane.fetch.fetch_rig import FetchRig, part
from tests.unit.dataplane.rig import ProduceRig

IDLE = 8
FOREVER = 0.0


def raw(text: bytes) -> bytes:
    """Return a request frame of the control plane's."""
    body = b"\0\3\0\1\0\0\0\0" + text
    return len(body).to_bytes(4, "big") + body


def sent(rig: ProduceRig | FetchRig, link_id: int = 1) -> list[tuple[int, bytes]]:
    """Return the correlation ids and texts of the raw requests since the last call."""
    rig.turn()
    data, frames = rig.links[link_id].take_sent(), []
    while data:
        size = int.from_bytes(data[:4], "big")
        frames.append((int.from_bytes(data[8:12], "big"), data[12 : 4 + size]))
        data = data[4 + size :]
    return frames


def answer(rig: ProduceRig | FetchRig, correlation_id: int, body: bytes = b"") -> None:
    size = (4 + len(body)).to_bytes(4, "big")
    rig.links[1].arrive(size + correlation_id.to_bytes(4, "big") + body)
    rig.turn()


def is_quiet(rig: ProduceRig | FetchRig) -> bool:
    """Tell whether the data plane sleeps: nothing has it turn in a circle."""
    until = rig.turn()
    return until == 0.0 or until > rig.machine.now


def shut(rig: ProduceRig | FetchRig) -> None:
    """Shut the gate of link 1 now."""
    rig.open_gate(1, rig.machine.now + 1.0)
    rig.turn()
    assert rig.take(GateShut) == []
    rig.advance(1.0)


def test_a_gate_shuts_at_its_time_and_says_so_once() -> None:
    rig = ProduceRig()
    rig.open_gate(1, 5.0)
    assert rig.turn() == 5.0
    rig.advance(4.9)
    assert rig.take(GateShut) == []
    rig.advance(0.1)
    assert [event.link_id for event in rig.take(GateShut)] == [1]
    assert is_quiet(rig)
    rig.advance(60.0)
    assert rig.take(GateShut) == []


def test_requests_in_flight_are_answered_first() -> None:
    rig = ProduceRig()
    rig.send_raw(1, 7, raw(b"before"), 30.0)
    assert sent(rig) == [(0, b"before")]
    shut(rig)
    assert rig.take(GateShut) == []
    assert is_quiet(rig)
    answer(rig, 0, b"well")
    assert len(rig.take(GateShut)) == 1


def test_raw_requests_wait_in_order_and_a_login_passes() -> None:
    rig = ProduceRig()
    shut(rig)
    for token, text in ((7, b"one"), (8, b"two"), (9, b"three")):
        rig.send_raw(1, token, raw(text), 5.0)
        assert sent(rig) == []
    rig.send_raw(1, 0, raw(b"login"), 30.0, True)
    assert sent(rig) == [(0, b"login")]
    answer(rig, 0, b"accepted")
    assert sent(rig) == []
    rig.advance(20.0)
    assert rig.take(LinkClosed) == [], "what waits does not time out"
    rig.open_gate(1, FOREVER)
    assert sent(rig) == [(1, b"one"), (2, b"two"), (3, b"three")]
    assert rig.turn() == pytest.approx(rig.machine.now + 5.0)
    for correlation_id in (1, 2, 3):
        answer(rig, correlation_id)
    assert [event.token for event in rig.take(RawResponse)] == [0, 7, 8, 9]


def test_batches_wait_in_their_queues() -> None:
    rig = ProduceRig(warm=True)
    shut(rig)
    futures = [rig.send(b"a"), rig.send(b"b")]
    assert rig.requests() == []
    rig.advance(10.0)
    assert rig.requests() == []
    assert is_quiet(rig)
    rig.open_gate(1, FOREVER)
    (request,) = rig.requests()
    assert request.values() == [b"a", b"b"]
    rig.answer(request)
    assert all(future.done() for future in futures)


def test_batches_that_linger_do_not_keep_the_plane_awake() -> None:
    rig = ProduceRig(warm=True, linger=0.5)
    shut(rig)
    rig.send(b"a")
    for _ in range(5):
        rig.advance(0.3)
        assert is_quiet(rig)
    assert rig.requests() == []
    rig.open_gate(1, FOREVER)
    assert [request.values() for request in rig.requests()] == [[b"a"]]


def test_records_for_another_link_go_on() -> None:
    rig = ProduceRig(partitions=2, links=2, warm=True)
    rig.route(1, 2)
    rig.turn()
    shut(rig)
    rig.send(b"a", partition=0)
    rig.send(b"b", partition=1)
    assert rig.requests(1) == []
    assert [request.values(1) for request in rig.requests(2)] == [[b"b"]]


def test_requests_without_an_answer_are_written_first() -> None:
    rig = ProduceRig(acks_zero=True, idempotent=False, choppiness=0)
    rig.links[1].fill()
    rig.send(b"a")
    rig.turner.turn()
    rig.open_gate(1, rig.machine.now + 1.0)
    rig.machine.advance(rig.machine.now + 1.0)
    rig.turner.turn()
    rig.events += rig.take_events()
    assert [event for event in rig.events if isinstance(event, GateShut)] == []
    rig.links[1].make_room()
    until = rig.turner.turn()
    assert 0.0 < until <= rig.machine.now, "no answer will wake the plane"
    assert len(rig.requests()) == 1
    assert len(rig.take(GateShut)) == 1


def test_fetches_wait() -> None:
    rig = FetchRig()
    request = rig.request()
    shut(rig)
    assert rig.take(GateShut) == []
    rig.answer(request, {"t": [part(0)]})
    assert len(rig.take(GateShut)) == 1
    for _ in range(3):
        rig.advance(1.0)
        assert rig.requests() == []
        assert is_quiet(rig)
    rig.open_gate(1, FOREVER)
    assert len(rig.requests()) == 1


def test_heartbeats_wait_and_do_not_keep_the_plane_awake() -> None:
    rig = FetchRig(start=False)
    rig.plane.set_alive_until(1e6)
    rig.start_heartbeats(1, 9, raw(b"alive"), 3.0, b"well", 20.0)
    assert sent(rig) == [(0, b"alive")]
    answer(rig, 0, b"well")
    shut(rig)
    for _ in range(5):
        rig.advance(2.0)
        assert sent(rig) == []
        assert is_quiet(rig)
    rig.open_gate(1, FOREVER)
    assert sent(rig) == [(1, b"alive")]


@pytest.mark.parametrize("in_flight", [False, True])
def test_the_end_of_the_link_ends_what_waits(in_flight: bool) -> None:
    rig = ProduceRig()
    if in_flight:
        rig.send_raw(1, 6, raw(b"before"), 30.0)
        rig.turn()
    shut(rig)
    rig.send_raw(1, 7, raw(b"one"), 30.0)
    rig.send_raw(1, 8, raw(b"two"), 30.0)
    rig.turn()
    rig.hang_up()
    ended = [(event.token, event.frame) for event in rig.take(RawResponse)]
    assert ended == [(6, None)] * in_flight + [(7, None), (8, None)]
    assert len(rig.take(LinkClosed)) == 1
    rig.open_gate(1, FOREVER)
    rig.turn()


def test_a_login_that_is_not_answered_ends_the_link() -> None:
    rig = ProduceRig()
    shut(rig)
    rig.send_raw(1, 0, raw(b"login"), 5.0, True)
    rig.turn()
    rig.advance(5.0)
    (closed,) = rig.take(LinkClosed)
    assert closed.reason == 4


def test_a_login_is_no_use_of_an_idle_link() -> None:
    rig = ProduceRig(max_idle=10.0)
    rig.open_gate(1, 8.0)
    rig.advance(8.0)
    assert len(rig.take(GateShut)) == 1
    rig.advance(5.0)
    assert rig.take(LinkClosed) == [], "not in the middle of a login"
    rig.send_raw(1, 0, raw(b"login"), 5.0, True)
    sent(rig)
    answer(rig, 0)
    rig.open_gate(1, 100.0)
    rig.turn()
    rig.advance(0.1)
    (closed,) = rig.take(LinkClosed)
    assert closed.reason == IDLE


def test_a_link_that_is_used_behind_its_gate_is_not_idle() -> None:
    rig = ProduceRig(max_idle=10.0)
    rig.open_gate(1, 8.0)
    rig.advance(8.0)
    rig.send_raw(1, 7, raw(b"one"), 5.0)
    rig.advance(5.0)
    rig.open_gate(1, 100.0)
    assert sent(rig) == [(0, b"one")]
    answer(rig, 0)
    rig.advance(5.0)
    assert rig.take(LinkClosed) == []


def test_a_gate_shuts_again() -> None:
    rig = ProduceRig()
    for _ in range(3):
        shut(rig)
        assert len(rig.take(GateShut)) == 1
    rig.open_gate(1, rig.machine.now)
    rig.turn()
    assert len(rig.take(GateShut)) == 1, "a time that has passed shuts it at once"


def test_the_debug_ring_names_the_gate() -> None:
    rig = ProduceRig()
    shut(rig)
    rig.open_gate(1, FOREVER)
    rig.turn()
    lines = rig.links[1].trace()
    assert "gate shut" in lines[-2]
    assert "gate open" in lines[-1]
