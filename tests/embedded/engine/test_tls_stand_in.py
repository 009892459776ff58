"""The data plane's thread over a socket under a layer that holds bytes back, as TLS does."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kafka_fast.control.messages import RawResponse, SendRaw
from kafka_fast.dataplane.core._plane import DataPlane
from kafka_fast.net._pump import Machine, Pump
from kafka_fast.net._transport_carrier import carry_transport
from kafka_fast.net.core.client_carrier import read_event
from kafka_fast.testing._tls_stand_in import TlsStandIn
from tests.waiting import eventually

LINK = 1
TOKEN = 7
HANGS_AFTER = 30.0
REQUEST = (40).to_bytes(4, "big") + bytes(40)


class Client:
    """A data plane with one link, and the other end of its connection."""

    def __init__(self, pump: Pump, peer: socket.socket, own: socket.socket) -> None:
        self.pump = pump
        self.plane = pump.plane
        self.peer = peer
        self.own = own
        """The client's end, to fill it."""
        self.events: list[Any] = []

    def answer(self, size: int) -> None:
        self.peer.sendall(size.to_bytes(4, "big") + bytes(size))

    def receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += self.peer.recv(size - len(data))
        return data

    def fill(self) -> int:
        """Let nothing be written before the peer has received what this returns."""
        filled = 0
        try:
            while True:
                filled += self.own.send(bytes(65_536))
        except BlockingIOError:
            return filled

    def is_answered(self) -> bool:
        self.events += map(read_event, self.plane.take_events())
        return any(isinstance(event, RawResponse) and event.token == TOKEN for event in self.events)


@contextmanager
def connected(layer: TlsStandIn) -> Iterator[Client]:
    machine = Machine()
    plane = DataPlane(
        machine,
        max_frame=1 << 26,
        request_timeout=60.0,
    )
    pump = Pump(plane, machine)
    end, peer = socket.socketpair()
    own = end.dup()
    peer.settimeout(HANGS_AFTER)
    own.setblocking(False)
    layer.add_link(pump, LINK, LINK, end.detach())
    pump.start()
    try:
        yield Client(pump, peer, own)
    finally:
        pump.stop()
        plane.shut_down()
        machine.close()
        peer.close()
        own.close()


@pytest.mark.parametrize("read_bytes", [1, 300])
def test_what_waits_inside_the_layer_is_read_to_its_end(read_bytes: int) -> None:
    with connected(TlsStandIn(record_bytes=1 << 20, read_bytes=read_bytes)) as client:
        carry_transport(SendRaw(LINK, TOKEN, REQUEST, 60.0), client.plane)
        client.receive(len(REQUEST))
        client.answer(20_000)
        eventually(client.is_answered, timeout=HANGS_AFTER)


def test_a_read_that_must_write_first_goes_on_when_it_can() -> None:
    with connected(TlsStandIn(record_bytes=512, read_bytes=100, answer_every=1)) as client:
        carry_transport(SendRaw(LINK, TOKEN, REQUEST, 60.0), client.plane)
        client.receive(len(REQUEST))
        filled = client.fill()
        client.answer(20_000)
        assert not client.is_answered()
        client.receive(filled)
        eventually(client.is_answered, timeout=HANGS_AFTER)


def test_a_write_that_must_read_first_goes_on_when_it_can() -> None:
    layer = TlsStandIn(record_bytes=512, read_bytes=100)
    layer.expect_handshake(20)
    with connected(layer) as client:
        carry_transport(SendRaw(LINK, TOKEN, REQUEST, 60.0), client.plane)
        client.peer.sendall(bytes(20))
        client.receive(len(REQUEST))
        client.answer(20)
        eventually(client.is_answered, timeout=HANGS_AFTER)
