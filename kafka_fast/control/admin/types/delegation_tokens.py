"""Delegation tokens: what logs a program in, in place of a user's own credentials (KIP-48)."""

from __future__ import annotations

from kafka_fast.secret import Secret
from kafka_fast.values import Value


class DelegationToken(Value):
    """A token. It is not pickled, because its HMAC is a secret; two are the same by `token_id`."""

    token_id: str
    """The user name to log in with, by SCRAM; its login module has the option tokenauth=true."""
    hmac: Secret
    """The password to log in with, in base64: `token.hmac.reveal()`."""
    owner: str
    """The principal as which the token logs in, as "User:alice"."""
    requester: str | None
    """The principal that has asked for the token; None: the broker is older than 3.3."""
    renewers: tuple[str, ...]
    """Principals that may renew the token, as its owner may."""
    issue_timestamp: int
    """When the token was made: Unix time in ms."""
    expiry_timestamp: int
    """When it expires, unless it is renewed: Unix time in ms."""
    max_timestamp: int
    """When it expires for good: Unix time in ms."""
