"""Servers with TLS by Python's `ssl`, for tests: one in front of a broker, one that misbehaves."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable

CHUNK = 65_536


class Server:
    """Serves each connection to a loopback port in a thread of its own."""

    def __init__(self, serve: Callable[[socket.socket], None], host: str = "127.0.0.1") -> None:
        """Listen.

        Args:
            serve: what to do with a connection; it is closed afterwards.
            host: the address to listen on.
        """
        self._serve = serve
        self._listener = socket.create_server((host, 0))
        self.port: int = self._listener.getsockname()[1]
        self.bootstrap = f"{host}:{self.port}"
        self.accepted = 0
        self._open: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        for thread in self._threads:
            thread.join(30)
            assert not thread.is_alive()

    def cut(self) -> None:
        """Break all connections."""
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            thread = threading.Thread(target=self._run, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _run(self, connection: socket.socket) -> None:
        guard = connection.dup()  # `wrap_socket` empties the object
        self._open.add(guard)
        with contextlib.suppress(OSError):
            self._serve(connection)
        connection.close()
        self._open.discard(guard)
        guard.close()


def terminating(context: ssl.SSLContext, port: int) -> Callable[[socket.socket], None]:
    """Return what takes TLS off a connection and passes it on to a port of this machine."""

    def serve(connection: socket.socket) -> None:
        with (
            context.wrap_socket(connection, server_side=True) as outer,
            socket.create_connection(("127.0.0.1", port)) as inner,
        ):
            back = threading.Thread(target=_copy, args=(inner, outer), daemon=True)
            back.start()
            _copy(outer, inner)
            back.join(30)

    return serve


def over_tls(
    context: ssl.SSLContext, serve: Callable[[ssl.SSLSocket], None]
) -> Callable[[socket.socket], None]:
    """Return what shakes hands, and then serves the connection."""

    def shake_and_serve(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as wrapped:
            serve(wrapped)

    return shake_and_serve


def shaken_in_memory(
    context: ssl.SSLContext, connection: socket.socket
) -> tuple[ssl.SSLObject, ssl.MemoryBIO]:
    """Shake hands as the server; return the session, and what it says, which is yet to be sent."""
    incoming, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, out, server_side=True)
    while True:
        try:
            tls.do_handshake()
            return tls, out
        except ssl.SSLWantReadError:  # noqa: PERF203 - a flight of messages for each
            connection.sendall(out.read())
            incoming.write(connection.recv(CHUNK))


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError, ValueError):
        while data := source.recv(CHUNK):
            sink.sendall(data)
    for end in (source, sink):
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
