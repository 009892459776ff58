"""Warns of certificates that end soon."""

from __future__ import annotations

import calendar
import time
from collections.abc import Iterator

from kafka_fast.logs import UNLIMITED, get_logger

__all__ = ["EXPIRES_SOON", "end_of", "warn_of_expiry"]

logger = get_logger("kafka_fast.net.tls")

EXPIRES_SOON = 14 * 86_400
"""Seconds before its end from which on a certificate is warned of."""


def warn_of_expiry(trusted: tuple[str, int] | None, own: tuple[str, int] | None) -> None:
    """Warn of certificates that end soon.

    Args:
        trusted: the trusted certificate that ends first, and when: Unix seconds.
        own: the same of the client's own chain.
    """
    for what, first in (("trusted certificate", trusted), ("client certificate", own)):
        if first is None or first[1] - time.time() > EXPIRES_SOON:
            continue
        subject, until = first
        day = time.strftime("%Y-%m-%d %H:%M", time.gmtime(until))
        verb = "expired" if until < time.time() else "expires"
        logger.warning("the %s %s %s at %s UTC", what, subject, verb, day, extra=UNLIMITED)


VERSION, UTC_TIME = 0xA0, 0x17
"""Tags of ASN.1."""

COMMON_NAME = b"\x55\x04\x03"


def end_of(der: bytes) -> tuple[str, int]:
    """Return a certificate's subject, and when it ends: Unix seconds.

    For the relay: Python's `ssl` tells neither of a client's own certificate.

    Args:
        der: a certificate that OpenSSL has accepted.
    """
    ((_, certificate),) = _elements(der)
    _, to_be_signed = next(_elements(certificate))
    fields = [content for tag, content in _elements(to_be_signed) if tag != VERSION]
    _, _, _, validity, subject, *_ = fields
    _, (tag, text) = _elements(validity)
    form = "%y%m%d%H%M%SZ" if tag == UTC_TIME else "%Y%m%d%H%M%SZ"
    until = calendar.timegm(time.strptime(text.decode(), form))
    for _, names in _elements(subject):
        for _, pair in _elements(names):
            (_, kind), (_, value) = _elements(pair)
            if kind == COMMON_NAME:
                return f"CN={value.decode(errors='replace')}", until
    return "a certificate without a name", until


def _elements(der: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield tag and content of each element (X.690)."""
    pos = 0
    while pos < len(der):
        tag, size = der[pos], der[pos + 1]
        pos += 2
        if size & 0x80:
            begin, pos = pos, pos + (size & 0x7F)
            size = int.from_bytes(der[begin:pos], "big")
        yield tag, der[pos : pos + size]
        pos += size
