"""OpenSSL below a server's session of Python's `ssl`, for what `ssl` does not do."""

from __future__ import annotations

import ctypes
import ssl
from pathlib import Path

import pytest

__all__ = ["Native", "Session", "native_or_skip"]

Session = ssl.SSLSocket | ssl.SSLObject

KEY_UPDATE_REQUESTED = 1


class Native:
    """Calls the library that `_ssl` uses."""

    def __init__(self) -> None:
        """Find the library.

        Raises:
            OSError: it is not a shared library of its own.
        """
        self._library = ctypes.CDLL(_loaded("libssl"))
        for name in ("SSL_new_session_ticket", "SSL_version", "SSL_renegotiate"):
            getattr(self._library, name).argtypes = [ctypes.c_void_p]
        self._library.SSL_do_handshake.argtypes = [ctypes.c_void_p]
        self._library.SSL_key_update.argtypes = [ctypes.c_void_p, ctypes.c_int]

    def renew_keys(self, session: Session) -> None:
        """Renew the keys of both directions with the next record."""
        assert self._library.SSL_key_update(self._pointer(session), KEY_UPDATE_REQUESTED) == 1

    def add_ticket(self, session: Session) -> None:
        """Send a session ticket with the next record."""
        self._library.SSL_new_session_ticket(self._pointer(session))

    def send_messages(self, session: Session) -> None:
        """Send what of the handshake's messages waits for the next record."""
        assert self._library.SSL_do_handshake(self._pointer(session)) == 1

    def ask_to_renegotiate(self, session: Session) -> None:
        """Send a HelloRequest, which TLS 1.2 has."""
        assert self._library.SSL_renegotiate(self._pointer(session)) == 1
        self.send_messages(session)

    def _pointer(self, session: Session) -> int:
        inner = session._sslobj  # type: ignore[union-attr]
        place = id(inner) + object.__basicsize__ + ctypes.sizeof(ctypes.c_void_p)
        pointer = ctypes.c_void_p.from_address(place).value
        assert pointer is not None
        assert self._library.SSL_version(pointer) in (0x0303, 0x0304)
        return pointer


def native_or_skip() -> Native:
    """Return what calls OpenSSL; skip the test where Python's ssl contains it."""
    try:
        return Native()
    except OSError as error:
        pytest.skip(str(error))


def libcrypto_or_skip() -> str:
    """Return the path of OpenSSL's library; skip the test where Python's ssl contains it."""
    try:
        return _loaded("libcrypto")
    except OSError as error:
        pytest.skip(str(error))


def _loaded(name: str) -> str:
    for line in Path("/proc/self/maps").read_text().splitlines():
        if name in line:
            return line.split()[-1]
    raise OSError(f"Python's ssl has no {name} of its own")
