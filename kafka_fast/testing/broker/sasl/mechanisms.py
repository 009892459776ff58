"""The broker's side of the SASL mechanisms.

A mechanism is a generator: it is sent the client's tokens, yields the broker's, and returns who the
client is. The texts of refusals are Kafka's.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Generator
from dataclasses import dataclass

from kafka_fast.testing.broker.received_request import CloseConnectionError
from kafka_fast.testing.broker.sasl.tokens import read_token
from kafka_fast.testing.broker.security import SCRAM_HASHES, SecurityState

_PLAIN_PARTS = 3
_NONCE_SIZE = 16
_OTHER_AUTHORIZATION_ID = (
    "Authentication failed: Client requested an authorization id that is different from username"
)

# RFC 5802, as narrow as Kafka has it: no channel binding, no mandatory extensions.
_NAME = r"(?:[^\x00=,]|=2C|=3D)+"
_CLIENT_FIRST = re.compile(
    rf"n,(?:a=(?P<authorization_id>{_NAME}))?,"
    rf"(?P<bare>n=(?P<name>{_NAME}),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)(?:,[A-Za-z]=[^\x00,]+)*)"
)
_BASE64 = "(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?"
_CLIENT_FINAL = re.compile(
    rf"(?P<without_proof>c=(?P<channel>{_BASE64}),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)"
    rf"(?:,[A-Za-z]=[^\x00,]+)*),p=(?P<proof>{_BASE64})"
)

# RFC 7628.
_BEARER_FIRST = re.compile(
    rf"n,(?:a=(?P<authorization_id>{_NAME}))?,\x01"
    r"(?P<pairs>(?:[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01)*)\x01"
)
_BEARER = re.compile(r"(?P<scheme>\w+) +(?P<token>[-_.a-zA-Z0-9]+)")
_INVALID_TOKEN = '{"status":"invalid_token"}'
_SEEN = b"\x01"


class RefusedError(Exception):
    """The client is refused; the message is for it."""


class BadTokenError(Exception):
    """The client is refused, and is not told why: a token is malformed or proves nothing."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the client is."""

    user: str
    token: bytes = b""
    """The broker's last."""
    expires_at_ms: int | None = None
    """Unix ms; None: with no credential."""


Tokens = Generator[bytes, bytes, Identity]


def begin(mechanism: str, security: SecurityState, unix_ms: int) -> Tokens:
    """Return the conversation of a mechanism, ready to be sent the client's first token."""
    if mechanism == "PLAIN":
        tokens = plain(security)
    elif mechanism == "OAUTHBEARER":
        tokens = oauthbearer(security, unix_ms)
    else:
        tokens = scram(mechanism, security)
    next(tokens)
    return tokens


def plain(security: SecurityState) -> Tokens:
    """Compare a password (RFC 4616)."""
    parts = _text((yield b"")).split("\0")
    if len(parts) != _PLAIN_PARTS:
        count = min(len(parts), _PLAIN_PARTS + 1)
        raise RefusedError(f"Invalid SASL/PLAIN response: expected 3 tokens, got {count}")
    authorization_id, user, password = parts
    if not user:
        raise RefusedError("Authentication failed: username not specified")
    if not password:
        raise RefusedError("Authentication failed: password not specified")
    if not security.is_password(user, password):
        raise RefusedError("Authentication failed: Invalid username or password")
    if authorization_id not in ("", user):
        raise RefusedError(_OTHER_AUTHORIZATION_ID)
    return Identity(user)


def scram(mechanism: str, security: SecurityState) -> Tokens:
    """Prove on both sides that the password is known, and show it on neither (RFC 5802)."""
    digest = SCRAM_HASHES[mechanism]
    first = _match(_CLIENT_FIRST, (yield b""))
    user = first["name"].replace("=2C", ",").replace("=3D", "=")
    credential = security.scram(user, mechanism)
    if credential is None:
        raise BadTokenError("no such user")
    authorization_id = first["authorization_id"]
    if authorization_id not in (None, user):
        raise RefusedError(_OTHER_AUTHORIZATION_ID)
    nonce = first["nonce"] + security.random.randbytes(_NONCE_SIZE).hex()
    salt = base64.b64encode(credential.salt).decode()
    server_first = f"r={nonce},s={salt},i={credential.iterations}"
    final = _match(_CLIENT_FINAL, (yield server_first.encode()))
    if final["nonce"] != nonce:
        raise BadTokenError("another nonce")
    if not base64.b64decode(final["channel"]).startswith(b"n,"):
        raise BadTokenError("channel binding")
    signed = f"{first['bare']},{server_first},{final['without_proof']}".encode()
    client_signature = hmac.digest(credential.stored_key, signed, digest)
    proof = base64.b64decode(final["proof"])
    if len(proof) != len(client_signature):
        raise CloseConnectionError("a SCRAM proof of another length")
    client_key = bytes(a ^ b for a, b in zip(proof, client_signature, strict=True))
    if not hmac.compare_digest(hashlib.new(digest, client_key).digest(), credential.stored_key):
        raise BadTokenError("wrong proof")
    verifier = base64.b64encode(hmac.digest(credential.server_key, signed, digest))
    return Identity(user, b"v=" + verifier)


def oauthbearer(security: SecurityState, unix_ms: int) -> Tokens:
    """Check a bearer token; a client with a bad one is told so and acknowledges that (RFC 7628)."""
    answer = b""
    while True:
        token = yield answer
        if token == _SEEN and answer:
            raise RefusedError(_INVALID_TOKEN)
        match = _match(_BEARER_FIRST, token)
        pairs = dict(pair.split("=", 1) for pair in match["pairs"].split("\x01") if pair)
        bearer = _BEARER.fullmatch(pairs.get("auth", ""))
        if bearer is not None and bearer["scheme"].lower() != "bearer":
            raise CloseConnectionError(f"a token of the scheme {bearer['scheme']}, not Bearer")
        if bearer is None:
            raise BadTokenError("no bearer token")
        try:
            claims = (security.settings.check_token or read_token)(bearer["token"], unix_ms)
        except ValueError:
            answer = _INVALID_TOKEN.encode()
            continue
        if match["authorization_id"] not in (None, claims.user):
            raise RefusedError(
                "Authentication failed: Client requested an authorization id "
                f"({match['authorization_id']}) that is different from the token's principal name "
                f"({claims.user})"
            )
        return Identity(claims.user, b"", claims.expires_at_ms)


def _text(token: bytes) -> str:
    try:
        return token.decode()
    except UnicodeDecodeError as error:
        raise BadTokenError("not UTF-8") from error


def _match(pattern: re.Pattern[str], token: bytes) -> re.Match[str]:
    match = pattern.fullmatch(_text(token))
    if match is None:
        raise BadTokenError("not the grammar")
    return match
