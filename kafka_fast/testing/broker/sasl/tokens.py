"""Tokens for OAUTHBEARER that nobody signs, as Kafka's default validator takes them."""

from __future__ import annotations

import base64
import binascii
import json

from kafka_fast.testing.broker.security import TokenClaims

_PARTS = 3


def write_token(user: str, issued_ms: int, lifetime: float) -> str:
    """Return a token.

    Args:
        user: whom it names.
        issued_ms: Unix ms.
        lifetime: in seconds.
    """
    claims = {"sub": user, "iat": issued_ms / 1000, "exp": issued_ms / 1000 + lifetime}
    return f"{_encoded({'alg': 'none'})}.{_encoded(claims)}."


def read_token(token: str, unix_ms: int) -> TokenClaims:
    """Read a JWS without a signature, as Kafka's default validator does.

    Raises:
        ValueError: it is none, or it has expired.
    """
    parts = token.split(".")
    if len(parts) != _PARTS or parts[2]:
        raise ValueError("not an unsecured JWS")
    header, claims = (_decoded(part) for part in parts[:2])
    if header.get("alg") != "none":
        raise ValueError(f"alg {header.get('alg')!r}")
    user, expires = claims.get("sub"), claims.get("exp")
    if not isinstance(user, str) or not user or not isinstance(expires, int | float):
        raise ValueError("sub or exp is missing")
    if expires * 1000 <= unix_ms:
        raise ValueError("expired")
    return TokenClaims(user, int(expires * 1000))


def _decoded(part: str) -> dict[str, object]:
    try:
        fields = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError("not base64") from error
    if not isinstance(fields, dict):
        raise ValueError("not an object")  # noqa: TRY004  # of bytes, not of our caller's
    return fields


def _encoded(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
