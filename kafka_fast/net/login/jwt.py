"""JSON web tokens: how long one lives, and how a client signs one itself (RFC 7519, RFC 7515)."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from typing import Any

from kafka_fast.control.authentication.oauthbearer import Token
from kafka_fast.errors import ConfigError
from kafka_fast.secret import Secret

__all__ = ["ALGORITHMS", "number", "sign", "token_from"]

ALGORITHMS = ("RS256", "ES256")


def token_from(
    text: str, expires_at: float | None = None, extensions: tuple[tuple[str, str], ...] = ()
) -> Token:
    """Return a token; if nobody has said when it ends, it may say so itself.

    Its signature is not checked: that is the broker's to do, and this is a matter of time only.
    """
    issued_at = None
    if expires_at is None:
        claims = _claims(text)
        expires_at, issued_at = number(claims.get("exp")), number(claims.get("iat"))
    return Token(Secret(text), expires_at, issued_at, extensions)


def _claims(text: str) -> Mapping[str, Any]:
    parts = text.split(".")
    if len(parts) == 3:
        try:
            claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        except (ValueError, RecursionError):
            return {}
        if isinstance(claims, dict):
            return claims
    return {}


def number(value: object) -> float | None:
    """Return a number of JSON that can be a time, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        time = float(value)
    except OverflowError:
        return None
    return time if math.isfinite(time) else None


def sign(header: Mapping[str, Any], claims: Mapping[str, Any], key: Any) -> str:
    """Return a signed token. Needs `cryptography`.

    Args:
        header: has "alg", one of ALGORITHMS.
        claims: the payload.
        key: a private key of `cryptography`.

    Raises:
        ConfigError: the key is not of the algorithm's kind.
    """
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa, utils
    from cryptography.hazmat.primitives.hashes import SHA256

    said = b".".join(_base64(json.dumps(part).encode()) for part in (header, claims))
    if header["alg"] == "RS256" and isinstance(key, rsa.RSAPrivateKey):
        signature = key.sign(said, padding.PKCS1v15(), SHA256())
    elif (
        header["alg"] == "ES256"
        and isinstance(key, ec.EllipticCurvePrivateKey)
        and isinstance(key.curve, ec.SECP256R1)
    ):
        numbers = utils.decode_dss_signature(key.sign(said, ec.ECDSA(SHA256())))
        signature = b"".join(number.to_bytes(32, "big") for number in numbers)
    else:
        raise ConfigError(f"the private key is none for {header['alg']}")
    return (said + b"." + _base64(signature)).decode()


def _base64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
