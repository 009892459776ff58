"""TLS between a socket and a broker: bytes in, bytes out, as everything here (`ssl.MemoryBIO`)."""

from __future__ import annotations

import contextlib
import ssl
from typing import Any

from kafka_fast.testing.broker.acls import ANONYMOUS

_CHUNK = 256 * 1024


class TlsSession:
    """The server's side of one TLS connection."""

    def __init__(self, context: ssl.SSLContext) -> None:
        """Wait for the client's greeting."""
        self.is_ready = False  # the handshake is over
        self.is_ended = False  # the client has said that nothing more comes
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._session = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    @property
    def user(self) -> str:
        """Return the common name of the client's certificate, or ANONYMOUS without one."""
        subject: Any = (self._session.getpeercert() or {}).get("subject", ())
        for part in subject:
            for name, value in part:
                if name == "commonName":
                    return str(value)
        return ANONYMOUS

    def receive(self, data: bytes | bytearray | memoryview) -> bytes:
        """Take bytes of the socket and return their plaintext; `poll_output` may have an answer.

        Raises:
            ssl.SSLError: the client is refused, or speaks no TLS.
        """
        self._incoming.write(data)
        plaintext = bytearray()
        try:
            if not self.is_ready:
                self._session.do_handshake()
                self.is_ready = True
            while piece := self._session.read(_CHUNK):
                plaintext += piece
            self.is_ended = True
        except ssl.SSLWantReadError:
            pass
        return bytes(plaintext)

    def send(self, data: bytes) -> None:
        """Say something; `poll_output` has the bytes for the socket."""
        self._session.write(data)

    def end(self) -> None:
        """Say that nothing more comes (close_notify), without waiting for the client to agree."""
        with contextlib.suppress(ssl.SSLError):
            self._session.unwrap()

    def poll_output(self) -> bytes:
        """Return what has to be written to the socket."""
        return self._outgoing.read()
