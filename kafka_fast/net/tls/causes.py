"""Why a TLS connection failed, in words that say what to do about it.

OpenSSL's own words are made for those who know OpenSSL. Both ways to speak TLS, the native one and
the relay, tell here what they know; what they say of the same failure is then the same.
"""

from __future__ import annotations

import os
from datetime import datetime, timezone

from kafka_fast.control.connections.link_errors import foreign_protocol
from kafka_fast.values import Value

__all__ = ["Failure", "alike", "broken", "lost", "refused"]


class Failure(Value, kw_only=True):
    """What is known of a handshake that failed."""

    reason: str = ""
    """OpenSSL's words for it."""
    verify: int = 0
    """OpenSSL's number for why the broker's certificate is refused (X509_V_ERR_*)."""
    error: int = 0
    """errno of the connection."""
    is_closed: bool = False
    """The broker closed the connection."""
    was_asked: bool = False
    """The broker asked for a certificate, and this client has none."""
    is_late: bool = False
    """The handshake took too long."""
    subject: str = ""
    """Of the certificate that is refused."""
    names: str = ""
    """Hosts that it is for."""
    not_before: int = 0
    """When it begins to be valid: Unix seconds."""
    not_after: int = 0
    """When it ends."""
    head: bytes = b""
    """The first bytes that came."""

    @property
    def is_loss(self) -> bool:
        """Whether the connection was lost, and nobody refused anything: a broker that restarts."""
        return not (self.verify or self.reason or self.was_asked or self.is_foreign)

    @property
    def is_foreign(self) -> bool:
        """Whether something came that is not TLS."""
        return self.head != b"" and self.head[0] not in TLS_CONTENT_TYPES


NOT_YET_VALID, EXPIRED = 9, 10
SELF_SIGNED = (18,)
UNKNOWN_ISSUER = (2, 19, 20, 21)
REVOKED = 23
WRONG_HOST = (62, 64)
WEAK = (66, 67, 68)
NO_REVOCATION_LIST, STALE_REVOCATION_LIST = 3, (11, 12)
WRONG_PURPOSE = 26

TLS_CONTENT_TYPES = range(20, 25)
"""The first byte of every TLS record is one of them."""

NO_CLIENT_CERTIFICATE = (
    "asked for a client certificate, and this client has none (see ssl.keystore.location and "
    "ssl.certificate.location)"
)
NO_SUITE = "has no cipher suite in common with this client (see ssl.cipher.suites)"
NO_VERSION = (
    "has no TLS version in common with this client, which speaks 1.2 and 1.3 (see "
    "ssl.enabled.protocols)"
)

RENEGOTIATION = (
    "ended the TLS session: handshake failure: it may have wanted to renegotiate, which this "
    "client refuses"
)
"""The only thing that is negotiated after the handshake."""

CHANGED = "sent a record that was changed on its way"

WITHOUT_TLS = "wrong version number"
"""OpenSSL's words for bytes that are no TLS record."""

BAD_RECORD = "record layer failure"
"""All that Python's `ssl` tells of such bytes, and of a changed record, from OpenSSL 3.2 on."""

ALERTS = {
    "certificate required": NO_CLIENT_CERTIFICATE,
    "bad certificate": "refused this client's certificate as bad",
    "unsupported certificate": "refused this client's certificate as of an unsupported kind",
    "certificate revoked": "refused this client's certificate as revoked",
    "certificate expired": "refused this client's certificate as expired",
    "certificate unknown": "refused this client's certificate",
    "unknown ca": "refused this client's certificate: it does not know who issued it",
    "access denied": "refused this client's certificate: access denied",
    "decrypt error": "refused this client's certificate: its signature does not hold",
    "handshake failure": NO_SUITE,
    "insufficient security": NO_SUITE,
    "protocol version": NO_VERSION,
    "unrecognized name": "has no certificate for this host name",
}
"""What a broker says by an alert, in OpenSSL's words -> in ours."""

REASONS = {
    "unsupported protocol": NO_VERSION,
    "no protocols available": NO_VERSION,
    "no ciphers available": NO_SUITE,
    "no shared cipher": NO_SUITE,
    "excessive message size": "sent a certificate chain that is too long",
    "packet length too long": "sent a record that is too long for TLS",
    "dh key too small": "wants weak cryptography: its Diffie-Hellman key is too small",
    "ee key too small": "wants weak cryptography: its certificate's key is too small",
    "ca md too weak": "wants weak cryptography: its certificate's signature is too weak",
    "decryption failed or bad record mac": CHANGED,
    "bad record mac": CHANGED,
    BAD_RECORD: CHANGED,
}
"""What this side finds, in the same way."""


def alike(reason: str) -> str:
    """Return OpenSSL's words as OpenSSL 3 has them, from what Python's `ssl` makes of them."""
    return reason.lower().replace("_", " ")


def refused(failure: Failure, host: str, protocol: str) -> str:
    """Return why a handshake failed, if it `is_loss` not.

    Args:
        failure: what is known.
        host: the certificate had to name it.
        protocol: the client's `security.protocol`, for a hint.

    Returns:
        A text that follows the broker's address and a colon.
    """
    if failure.verify:
        return _untrusted(failure, host)
    if failure.is_foreign:
        speaker = foreign_protocol(failure.head)
        talks = f"talks like {speaker}" if speaker else "answered without TLS"
        return f"it {talks}{_plaintext(protocol)}"
    if alike(failure.reason) == WITHOUT_TLS:
        return f"it answered without TLS{_plaintext(protocol)}"
    if alike(failure.reason) == BAD_RECORD:
        return f"it answered without TLS, or {CHANGED}{_plaintext(protocol)}"
    if failure.reason:
        return f"it {_said(failure.reason, was_asked=failure.was_asked)}"
    why = os.strerror(failure.error) if failure.error else "it closed the connection"
    return f"{why} during the TLS handshake: it {NO_CLIENT_CERTIFICATE}"


def lost(failure: Failure, protocol: str) -> str:
    """Return how a handshake was lost, if it `is_loss`.

    Args:
        failure: what is known.
        protocol: the client's `security.protocol`, for a hint.

    Returns:
        A text that continues a sentence, which begins with the broker's address.
    """
    hint = "" if failure.head else _plaintext(protocol)
    if failure.is_late:
        return f"accepted the connection and did not finish the TLS handshake in time{hint}"
    if failure.error:
        return f"broke the TLS handshake off: {os.strerror(failure.error)}{hint}"
    return f"closed the connection during the TLS handshake{hint}"


def _plaintext(protocol: str) -> str:
    return f": a plaintext listener? security.protocol is {protocol}"


def broken(reason: str, *, was_asked: bool) -> str:
    """Return why a connection broke after its handshake.

    Args:
        reason: OpenSSL's words.
        was_asked: the broker asked for a certificate, and this client has none.

    Returns:
        A text that follows the broker's address and a colon.
    """
    if not was_asked and alike(reason).endswith(" alert handshake failure"):
        return f"it {RENEGOTIATION}"
    return f"it {_said(reason, was_asked=was_asked)}"


def _said(reason: str, *, was_asked: bool) -> str:
    words = alike(reason)
    _, is_alert, alert = words.partition(" alert ")
    if was_asked and is_alert:
        return NO_CLIENT_CERTIFICATE
    known = ALERTS.get(alert.strip()) if is_alert else REASONS.get(words)
    if known == CHANGED and was_asked:  # Kafka 2.8 so sends the alert for a missing certificate
        return f"{CHANGED}; and it {NO_CLIENT_CERTIFICATE}"
    if known is not None:
        return known
    return f"ended the TLS session: {alert}" if is_alert else f"broke the rules of TLS: {words}"


def _untrusted(failure: Failure, host: str) -> str:
    """Return why the broker's certificate is refused."""
    shown = f" ({failure.subject})" if failure.subject else ""
    whose = f"its certificate{shown}"
    match failure.verify:
        case code if code == EXPIRED:
            return f"{whose} expired{_on(failure.not_after)}"
        case code if code == NOT_YET_VALID:
            return f"{whose} is not valid before{_on(failure.not_before, word='') or ' later'}"
        case code if code in WRONG_HOST:
            named = f": it is for {failure.names}" if failure.names else ""
            return f"{whose} is not for {host}{named}"
        case code if code in SELF_SIGNED:
            return f"{whose} is self-signed and not trusted (see ssl.ca.location)"
        case code if code in UNKNOWN_ISSUER:
            return f"{whose} was issued by an authority that is not trusted (see ssl.ca.location)"
        case code if code == REVOKED:
            return f"{whose} was revoked"
        case code if code in WEAK:
            return f"{whose} has a weak key or signature"
        case code if code == NO_REVOCATION_LIST:
            return f"ssl.crl.location has no revocation list of the issuer of {whose}"
        case code if code in STALE_REVOCATION_LIST:
            return f"the revocation list for {whose} is out of date"
        case code if code == WRONG_PURPOSE:
            return f"{whose} is not for servers"
        case code:
            return f"{whose} is not trusted: {failure.reason or 'no reason'} ({code})"


def _on(seconds: int, word: str = " on") -> str:
    if not seconds:
        return ""
    return f"{word} {datetime.fromtimestamp(seconds, timezone.utc):%Y-%m-%d %H:%M} UTC"
