"""The two sockets of one relayed link, and the bytes on their way between them."""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl

from kafka_fast.net.tls._relayed import Relayed
from kafka_fast.net.tls.causes import alike

__all__ = ["RelayedPair"]

CHUNK = 1 << 18
MOVES = 16
"""Of one link in each direction, before it is another link's turn."""


class RelayedPair:
    """Moves the bytes of one link. Only the relay's thread calls it, once it is added."""

    def __init__(self, outer: ssl.SSLSocket, inner: socket.socket, link: Relayed) -> None:
        """Take over both sockets.

        Args:
            outer: to the broker.
            inner: to the data plane.
            link: takes the words for what goes wrong.
        """
        self._outer = outer
        self._inner = inner
        self._link = link
        inner.setblocking(False)
        self._up = memoryview(b"")
        """From the data plane, on its way to the broker."""
        self._down = memoryview(b"")
        self._watched: dict[socket.socket, int] = {}
        self._wanted: dict[socket.socket, int] = {}
        self.is_busy = False
        """More can be moved at once, although no socket says so."""

    def move(self) -> bool:
        """Move what can be moved; False: the link is at its end."""
        self._wanted = {self._outer: 0, self._inner: 0}
        self.is_busy = False
        try:
            return self._move_down() and self._move_up()
        except ssl.SSLError as error:
            self._link.explain(alike(error.reason or str(error)).encode())
        except OSError:
            pass  # either side has closed its connection; the data plane sees that
        return False

    def close(self) -> None:
        """Close both sockets, with a good-bye to the broker."""
        with contextlib.suppress(OSError, ValueError):
            self._outer.unwrap()  # says close_notify; does not wait for the answer
        self._outer.close()
        self._inner.close()

    def watch(self, selector: selectors.BaseSelector) -> None:
        """Have the selector report what `move` waits for."""
        for sock, events in self._wanted.items():
            before = self._watched.get(sock, 0)
            if events == before:
                continue
            if not before:
                selector.register(sock, events, self)
            elif not events:
                selector.unregister(sock)
            else:
                selector.modify(sock, events, self)
            self._watched[sock] = events

    def unwatch(self, selector: selectors.BaseSelector) -> None:
        """Remove both sockets from the selector."""
        for sock, events in self._watched.items():
            if events:
                selector.unregister(sock)
        self._watched.clear()

    def _move_down(self) -> bool:
        """Move what the broker sends."""
        for _ in range(MOVES):
            if not self._down:
                try:
                    self._down = memoryview(self._outer.recv(CHUNK))
                except ssl.SSLWantReadError:
                    self._wanted[self._outer] |= selectors.EVENT_READ
                    return True
                except ssl.SSLWantWriteError:
                    self._wanted[self._outer] |= selectors.EVENT_WRITE
                    return True
                if not self._down:
                    return False
            try:
                self._down = self._down[self._inner.send(self._down) :]
            except BlockingIOError:
                self._wanted[self._inner] |= selectors.EVENT_WRITE
                return True
        self.is_busy = True
        return True

    def _move_up(self) -> bool:
        """Move what the data plane sends."""
        for _ in range(MOVES):
            if not self._up:
                try:
                    self._up = memoryview(self._inner.recv(CHUNK))
                except BlockingIOError:
                    self._wanted[self._inner] |= selectors.EVENT_READ
                    return True
                if not self._up:
                    return False
            try:
                self._up = self._up[self._outer.send(self._up) :]
            except ssl.SSLWantWriteError:
                self._wanted[self._outer] |= selectors.EVENT_WRITE
                return True
            except ssl.SSLWantReadError:
                self._wanted[self._outer] |= selectors.EVENT_READ
                return True
        self.is_busy = True
        return True
