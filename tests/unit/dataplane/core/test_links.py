"""A link under a layer that holds bytes back, as TLS does.

The data plane must never wait for a poller that has nothing to say.
`run` turns the data plane as its thread does: again only when it asked for that, or when a poller
would end its sleep.
"""

from __future__ import annotations

from typing import Any

import pytest

from kafka_fast.control.messages import LinkClosed, RawResponse
from kafka_fast.testing._memory import MemoryLink
from kafka_fast.testing._tls_stand_in import TlsStandIn
from tests.unit.dataplane.fetch.fetch_rig import FetchRig, answer_to, batch, part
from tests.unit.dataplane.rig import ProduceRig

LINK = 2
TOKEN = 7
TURNS_MAX = 100_000


def request(size: int = 40) -> bytes:
    """Return a raw request; nobody reads what it asks."""
    return size.to_bytes(4, "big") + bytes(size)


def answer(correlation_id: int, size: int) -> bytes:
    """Return the frame of an answer, length included."""
    return size.to_bytes(4, "big") + correlation_id.to_bytes(4, "big") + bytes(size - 4)


def run(rig: ProduceRig | FetchRig) -> float:
    """Turn until the data plane sleeps; returns when it wants to turn again."""
    for _ in range(TURNS_MAX):
        until = rig.turner.turn()
        at_once = until == -1.0 or 0.0 < until <= rig.machine.now
        if not at_once and not any(link.is_ready for link in rig.links.values()):
            rig.events += rig.take_events()
            return until
    raise AssertionError("the data plane does not sleep any more")


def responses(rig: ProduceRig) -> list[tuple[int, Any]]:
    """Return token and frame of the answers that came up."""
    return [(event.token, event.frame) for event in rig.events if isinstance(event, RawResponse)]


def layered(rig: ProduceRig | FetchRig, layer: TlsStandIn) -> MemoryLink:
    """Return a further link, under a layer."""
    rig.machine.advance(1.0)
    link = rig.links[LINK] = MemoryLink(LINK, LINK, 0, 1, layer)
    rig.turner.add_link(link)
    return link


@pytest.mark.parametrize("read_bytes", [1, 7, 100])
def test_what_waits_inside_the_layer_is_read_to_its_end(read_bytes: int) -> None:
    rig = ProduceRig()
    layer = TlsStandIn(record_bytes=1 << 20, read_bytes=read_bytes)
    link = layered(rig, layer)
    rig.send_raw(LINK, TOKEN, request(), 30.0)
    rig.send_raw(LINK, TOKEN + 1, request(), 30.0)
    run(rig)
    data = answer(0, 3_000) + answer(1, 5_000)
    link.arrive(data)
    run(rig)
    assert responses(rig) == [(TOKEN, data[4:3004]), (TOKEN + 1, data[3008:])]
    assert layer.pending() == 0


def test_a_fetch_answer_inside_the_layer_is_read_to_its_end() -> None:
    rig = FetchRig(start=False)
    link = layered(rig, TlsStandIn(record_bytes=1 << 20, read_bytes=50))
    rig.program(LINK, rig.version)
    rig.start(link_id=LINK)
    rig.turn()
    asked = rig.request(LINK)
    link.arrive(answer_to(asked, {"t": [part(0, batch(10, value=bytes(30_000)))]}))
    run(rig)
    assert rig.offsets() == [(0, 10, 11)]


def test_the_end_behind_what_waits_inside_is_seen() -> None:
    rig = ProduceRig()
    link = layered(rig, TlsStandIn(record_bytes=1 << 20, read_bytes=1))
    rig.send_raw(LINK, TOKEN, request(), 30.0)
    run(rig)
    link.arrive(answer(0, 500))
    link.end()
    run(rig)
    assert [token for token, frame in responses(rig) if frame is not None] == [TOKEN]
    assert [event.link_id for event in rig.events if isinstance(event, LinkClosed)] == [LINK]


def test_a_read_that_must_write_first_goes_on_when_it_can() -> None:
    rig = ProduceRig()
    link = layered(rig, TlsStandIn(record_bytes=1 << 20, read_bytes=100, answer_every=1))
    rig.send_raw(LINK, TOKEN, request(), 30.0)
    run(rig)
    link.fill()
    link.arrive(answer(0, 5_000))
    run(rig)  # and the poller is not asked for what would end each sleep at once
    assert responses(rig) == []
    link.make_room()
    assert link.is_ready
    run(rig)
    assert [token for token, _ in responses(rig)] == [TOKEN]


def test_a_read_that_must_write_first_takes_no_turn_for_bytes_that_come_meanwhile() -> None:
    rig = ProduceRig()
    link = layered(rig, TlsStandIn(record_bytes=100, read_bytes=100, answer_every=1))
    rig.send_raw(LINK, TOKEN, request(), 30.0)
    run(rig)
    link.fill()
    link.arrive(answer(0, 300))
    run(rig)
    assert not link.is_ready  # though bytes are there
    link.make_room()
    run(rig)
    assert [token for token, _ in responses(rig)] == [TOKEN]


def test_a_write_that_must_read_first_goes_on_when_it_can() -> None:
    rig = ProduceRig()
    layer = TlsStandIn(record_bytes=1 << 20, read_bytes=100)
    link = layered(rig, layer)
    run(rig)
    layer.expect_handshake(20)
    rig.send_raw(LINK, TOKEN, request(), 30.0)
    run(rig)  # ends: room to write, which there is, is not waited for
    assert link.take_sent() == b""
    link.arrive(bytes(15))
    run(rig)
    assert link.take_sent() == b""
    link.arrive(bytes(5))
    run(rig)
    assert len(link.take_sent()) == len(request())
    link.arrive(answer(0, 10))
    run(rig)
    assert [token for token, _ in responses(rig)] == [TOKEN]


def test_a_failure_ends_a_read_that_waits_to_write() -> None:
    rig = ProduceRig()
    link = layered(rig, TlsStandIn(record_bytes=1 << 20, read_bytes=100, answer_every=1))
    rig.send_raw(LINK, TOKEN, request(), 30.0)
    run(rig)
    link.fill()
    link.arrive(answer(0, 50))
    run(rig)
    link.fail(104)
    assert link.is_ready
    link.make_room()
    run(rig)
    assert [event.link_id for event in rig.events if isinstance(event, LinkClosed)] == [LINK]
