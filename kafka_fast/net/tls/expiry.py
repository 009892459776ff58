"""Warns of certificates that end soon."""

from __future__ import annotations

import time

from kafka_fast.logs import UNLIMITED, get_logger

__all__ = ["EXPIRES_SOON", "warn_of_expiry"]

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
