"""What a certificate says of itself, and what a handshake shows of certificates.

Python's `ssl` hands out the certificates of a handshake only if it has succeeded. Those who look
for the reason of a failure need them all the more. So a handshake is watched as it is read
(`SSLContext._msg_callback`, which exists for such tools), and the certificates are read by the
decoder that `ssl` has for its own tests.
"""

from __future__ import annotations

import os
import ssl
import threading
from collections.abc import Iterator
from typing import Any

from kafka_fast.values import Value

__all__ = ["CertificateFacts", "HandshakeWatch", "certificate_facts"]

HANDSHAKE = 22
HEADER = 256
CERTIFICATE = 11
CERTIFICATE_REQUEST = 13
TLS_1_3 = 0x0304

NAMES = ("DNS", "IP Address")


class CertificateFacts(Value, kw_only=True):
    """One certificate."""

    subject: str
    """As "CN=broker, O=Example"; "" for one that has only alternative names."""
    issuer: str
    names: tuple[str, ...] = ()
    """Host names and IP addresses that it is for."""
    not_before: int
    """Unix seconds."""
    not_after: int


class HandshakeWatch:
    """Sees what the other side sends in the handshakes that a context makes. Any thread."""

    def __init__(self, context: ssl.SSLContext) -> None:
        """Watch a context, which belongs to nobody else."""
        self._of_thread = threading.local()  # a handshake is made by one thread
        watched: Any = context
        watched._msg_callback = self._note

    def forget_last(self) -> None:
        """Forget this thread's last handshake."""
        self._of_thread.chain = ()
        self._of_thread.asks = False
        self._of_thread.head = b""

    @property
    def chain(self) -> tuple[CertificateFacts, ...]:
        """The certificates of this thread's last handshake."""
        return tuple(certificate_facts(der) for der in self._of_thread.chain)

    @property
    def asks_certificate(self) -> bool:
        """Whether a client certificate was asked for."""
        return bool(self._of_thread.asks)

    @property
    def head(self) -> bytes:
        """The first bytes that came."""
        return bytes(self._of_thread.head)

    def _note(
        self, _: object, direction: str, version: int, kind: int, message: int, data: bytes
    ) -> None:
        """Take a message; an exception here would be lost."""
        seen = self._of_thread
        if direction != "read":
            return
        seen.head = seen.head or data
        if kind == HANDSHAKE and message == CERTIFICATE_REQUEST:
            seen.asks = True
        elif kind == HANDSHAKE and message == CERTIFICATE:
            seen.chain = tuple(_sent_certificates(data, has_extensions=version == TLS_1_3))


def _sent_certificates(message: bytes, *, has_extensions: bool) -> Iterator[bytes]:
    """Yield the certificates of a Certificate message, which OpenSSL has found well formed so far.

    Its form (RFC 8446, 4.4.2): type, length; with TLS 1.3 a context; a length; then for each
    certificate its length and bytes, with TLS 1.3 also its extensions.
    """
    pos = 4
    if has_extensions:
        pos += 1 + message[pos]
    pos += 3
    while pos + 3 <= len(message):
        end = pos + 3 + int.from_bytes(message[pos : pos + 3], "big")
        yield message[pos + 3 : end]
        pos = end
        if has_extensions:
            pos += 2 + int.from_bytes(message[pos : pos + 2], "big")


def certificate_facts(der: bytes) -> CertificateFacts:
    """Return what a certificate says; of one that cannot be read, that it cannot."""
    import _ssl  # the decoder has no public name

    decoder: Any = _ssl
    fd = os.memfd_create("kafka_fast", os.MFD_CLOEXEC)
    try:
        os.write(fd, ssl.DER_cert_to_PEM_cert(der).encode())
        decoded: dict[str, Any] = decoder._test_decode_cert(f"/proc/self/fd/{fd}")
    except (ssl.SSLError, ValueError):
        return CertificateFacts(
            subject="a certificate that cannot be read", issuer="", not_before=0, not_after=0
        )
    finally:
        os.close(fd)
    return CertificateFacts(
        subject=_name(decoded.get("subject", ())),
        issuer=_name(decoded.get("issuer", ())),
        names=tuple(value for kind, value in decoded.get("subjectAltName", ()) if kind in NAMES),
        not_before=int(ssl.cert_time_to_seconds(decoded["notBefore"])),
        not_after=int(ssl.cert_time_to_seconds(decoded["notAfter"])),
    )


_SHORT = {
    "commonName": "CN",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "localityName": "L",
    "stateOrProvinceName": "ST",
}


def _name(parts: tuple[tuple[tuple[str, str], ...], ...]) -> str:
    """Return a distinguished name, the most telling part first, without control characters."""
    flat = [f"{_SHORT.get(kind, kind)}={value}" for part in parts for kind, value in part]
    text = ", ".join(reversed(flat))
    return "".join(char if char.isprintable() else "?" for char in text)
