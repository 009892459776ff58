"""A data plane that opens links over TLS, without a client around it."""

from __future__ import annotations

import os
import selectors
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kafka_fast.config.security._security_settings import TlsSettings
from kafka_fast.control.messages import LinkClosed, RawResponse, SendRaw
from kafka_fast.dataplane.core._plane import DataPlane
from kafka_fast.net._pump import Machine, Pump
from kafka_fast.net._transport_carrier import carry_transport
from kafka_fast.net.core.client_carrier import read_event
from kafka_fast.net.sockets import Connecting
from kafka_fast.net.tls.connector import TlsConnector
from kafka_fast.testing.certificates import Certificate
from tests.waiting import eventually

HANGS_AFTER = 30.0
NODE = 1


class Client:
    """A data plane's end of a few links."""

    def __init__(self, connector: TlsConnector, pump: Pump) -> None:
        self.connector = connector
        self.plane = pump.plane
        self.events: list[Any] = []
        self._pump = pump
        self._last_id = 0

    def begin(
        self,
        port: int,
        host: str = "localhost",
        timeout: float = HANGS_AFTER,
        send_buffer: int | None = None,
    ) -> int:
        """Connect a socket, and begin the handshake; return the link's id.

        Args:
            port: of the server.
            host: what its certificate must name.
            timeout: of the handshake.
            send_buffer: SO_SNDBUF; None: the system's.
        """
        sock = socket.create_connection(("127.0.0.1", port))
        if send_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
        sock.setblocking(False)
        self._last_id += 1
        deadline = time.monotonic() + timeout
        self.connector.begin_handshake(Connecting(self._last_id, NODE, host, sock, deadline))
        return self._last_id

    def take(self, count: int = 1) -> dict[int, OSError | None]:
        """Wait for the end of so many handshakes."""
        ended: dict[int, OSError | None] = {}
        deadline = time.monotonic() + HANGS_AFTER
        with selectors.DefaultSelector() as selector:
            selector.register(self.connector.event, selectors.EVENT_READ)
            while len(ended) < count:
                assert time.monotonic() < deadline, "the handshake does not end"
                selector.select(1.0)
                ended.update(self.connector.take_ended(self._pump))
        return ended

    def open(self, port: int, host: str = "localhost", send_buffer: int | None = None) -> int:
        """Open a link; return its id."""
        link_id = self.begin(port, host, send_buffer=send_buffer)
        error = self.take()[link_id]
        if error is not None:
            raise error
        return link_id

    def failure(self, port: int, host: str = "localhost", timeout: float = HANGS_AFTER) -> str:
        """Return why a link cannot be opened."""
        link_id = self.begin(port, host, timeout)
        error = self.take()[link_id]
        assert error is not None, "it could be opened"
        return f"{type(error).__name__}: {error}"

    def ask(self, link_id: int, size: int = 40, token: int = 0) -> None:
        """Send a request of so many bytes behind its length.

        An echo is its answer if the token is the correlation id: counted up from 0 on a link.
        """
        frame = size.to_bytes(4, "big") + token.to_bytes(4, "big") + os.urandom(size - 4)
        carry_transport(SendRaw(link_id, token, frame, 60.0), self.plane)

    def answer(self, token: int = 0) -> bytes | None:
        """Wait for the answer to a request: its bytes, None if the link was closed."""
        eventually(lambda: self.has_answer(token), timeout=HANGS_AFTER)
        return next(
            event.frame
            for event in self.events
            if isinstance(event, RawResponse) and event.token == token
        )

    def has_answer(self, token: int = 0) -> bool:
        """Return whether the answer is there."""
        self.events += map(read_event, self.plane.take_events())
        return any(isinstance(event, RawResponse) and event.token == token for event in self.events)

    def end(self, link_id: int) -> Any:
        """Wait for the end of a link; return the control plane's event."""
        eventually(lambda: self._ended(link_id) is not None, timeout=HANGS_AFTER)
        return self._ended(link_id)

    def _ended(self, link_id: int) -> Any:
        self.events += map(read_event, self.plane.take_events())
        ends = (
            event
            for event in self.events
            if isinstance(event, LinkClosed) and event.link_id == link_id
        )
        return next(ends, None)


@contextmanager
def client_with(settings: TlsSettings, way: str = "native") -> Iterator[Client]:
    """Yield a client that speaks TLS in one of the two ways."""
    connector: TlsConnector
    if way == "relay":
        from kafka_fast.net.tls.relay import RelayConnector

        connector = RelayConnector(settings, "SSL")
    else:
        from kafka_fast.net.tls.native import NativeConnector

        connector = NativeConnector(settings, "SSL")
    machine = Machine()
    plane = DataPlane(machine, max_frame=1 << 26, request_timeout=60.0)
    pump = Pump(plane, machine)
    pump.start()
    try:
        yield Client(connector, pump)
    finally:
        connector.stop()
        pump.stop()
        plane.shut_down()
        machine.close()


def server_context(certificate: Certificate) -> ssl.SSLContext:
    """Return a server's context with this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.chain, certificate.key)
    return context


def echo(connection: socket.socket) -> None:
    """Answer each request with its own bytes."""
    while head := read_exactly(connection, 4):
        body = read_exactly(connection, int.from_bytes(head, "big"))
        connection.sendall(head + body)


def read_exactly(connection: socket.socket, size: int) -> bytes:
    """Return the next bytes, or fewer at the end of the connection."""
    data = bytearray()
    while len(data) < size and (got := connection.recv(min(1 << 16, size - len(data)))):
        data += got
    return bytes(data)
