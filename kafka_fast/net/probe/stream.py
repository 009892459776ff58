"""A connected socket that carries one request at a time, with calls that block."""

from __future__ import annotations

import socket
import ssl
import time
from contextlib import suppress

from kafka_fast.control.connections.link_errors import foreign_protocol
from kafka_fast.control.messages import CloseReason, LinkClosed
from kafka_fast.net.tls.causes import alike, broken

__all__ = ["Stream"]

LENGTH = 4
CORRELATION = 4
AT_A_TIME = 1 << 16


class Stream:
    """One connection; close it in the end."""

    def __init__(
        self, sock: socket.socket, *, max_bytes: int, lacks_certificate: bool = False
    ) -> None:
        """Take over a socket.

        Args:
            sock: connected, its handshake done if it speaks TLS.
            max_bytes: of an answer.
            lacks_certificate: the broker has asked for a certificate, and there is none.
        """
        self._socket = sock
        self._max_bytes = max_bytes
        self._lacks_certificate = lacks_certificate
        self._received = b""

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def ask(self, request: bytes, deadline: float) -> bytes | LinkClosed:
        """Send a request, and return its answer without the length; or why there is none."""
        self._received = b""
        try:
            self._wait_until(deadline)
            with suppress(BrokenPipeError, ConnectionResetError):
                # Who has closed the connection may have said why before: that can still be read.
                self._socket.sendall(request)
            return self._read_frame(deadline)
        except TimeoutError:
            return self._closed(CloseReason.TIMEOUT)
        except ssl.SSLError as error:
            words = alike(error.reason or str(error))
            return self._closed(
                CloseReason.LAYER, words=broken(words, was_asked=self._lacks_certificate)
            )
        except OSError as error:
            return self._closed(CloseReason.OS_ERROR, error.errno or 0)

    def _read_frame(self, deadline: float) -> bytes | LinkClosed:
        size = 0
        while len(self._received) < LENGTH + size:
            self._wait_until(deadline)
            data = self._socket.recv(AT_A_TIME)
            self._received += data
            if len(self._received) >= LENGTH:
                size = int.from_bytes(self._received[:LENGTH], "big", signed=True)
                is_foreign = foreign_protocol(self._received) is not None
                if is_foreign or not CORRELATION <= size <= self._max_bytes:
                    return self._closed(CloseReason.BAD_FRAME, size)
            if not data:
                return self._closed(CloseReason.EOF)
        number = int.from_bytes(self._received[LENGTH : LENGTH + CORRELATION], "big", signed=True)
        if number != 0:
            return self._closed(CloseReason.CORRELATION, number)
        return self._received[LENGTH : LENGTH + size]

    def _wait_until(self, deadline: float) -> None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._socket.settimeout(left)

    def _closed(self, reason: CloseReason, detail: int = 0, *, words: str = "") -> LinkClosed:
        return LinkClosed(0, reason, detail, head=self._received[:16], words=words)
