"""Tokens without a signature, as Kafka's default validator takes them."""

from __future__ import annotations

import base64
import json
import time


def unsecured(user: str, *, lifetime: float = 3600.0, now: float | None = None) -> str:
    """Return a token for OAUTHBEARER; `now` is in Unix seconds."""
    issued = time.time() if now is None else now
    claims = {"sub": user, "iat": int(issued), "exp": int(issued + lifetime)}
    return f"{_part({'alg': 'none'})}.{_part(claims)}."


def _part(value: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
