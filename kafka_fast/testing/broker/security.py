"""How the brokers of a cluster find out who speaks to them, and what that one may do."""

from __future__ import annotations

import hashlib
import hmac
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from kafka_fast.testing.broker.acls import Authorizer

SCRAM_HASHES: Mapping[str, str] = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MECHANISMS: Sequence[str] = ("PLAIN", *SCRAM_HASHES, "OAUTHBEARER")
_SALT_SIZE = 16
_MIN_ITERATIONS = 4096  # as Kafka and RFC 5802 have it


@dataclass(frozen=True, slots=True)
class TokenClaims:
    """What a good token says."""

    user: str
    expires_at_ms: int
    """Unix ms."""


TokenCheck = Callable[[str, int], TokenClaims]
"""(token, now in Unix ms) -> its claims; raises ValueError if the token is not good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Security:
    """SASL and ACLs of a cluster; TLS is its sockets'."""

    users: Mapping[str, str] = field(default_factory=dict)
    """Names and passwords, for PLAIN and SCRAM."""
    mechanisms: Sequence[str] = MECHANISMS
    """Those that are offered, of `MECHANISMS`; empty: clients do not authenticate."""
    scram_iterations: int = _MIN_ITERATIONS
    """Of every password; Kafka allows 4,096 to 16,384."""
    reauth_ms: int = 0
    """`connections.max.reauth.ms`; 0: sessions end only with their token."""
    check_token: TokenCheck | None = None
    """Of OAUTHBEARER; None: tokens are unsecured, as Kafka's own default has it."""
    super_users: Collection[str] | None = None
    """May do everything, others what rules allow; None: everybody may do everything."""
    failure_delay_ms: int = 100
    """`connection.failed.authentication.delay.ms`."""

    def __post_init__(self) -> None:
        """Refuse what Kafka has not.

        Raises:
            ValueError: an unknown mechanism, or too few iterations.
        """
        unknown = [one for one in self.mechanisms if one not in MECHANISMS]
        if unknown:
            raise ValueError(f"mechanism {unknown[0]!r} is not one of {', '.join(MECHANISMS)}")
        if self.scram_iterations < _MIN_ITERATIONS:
            raise ValueError(f"{self.scram_iterations} iterations are fewer than {_MIN_ITERATIONS}")


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """What a broker keeps of a password (RFC 5802)."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes


class SecurityState:
    """What all brokers of a cluster know of users: passwords and rules, which may change."""

    def __init__(self, settings: Security, random_source: random.Random) -> None:
        """Start with the settings' users; salts and nonces are drawn from `random_source`."""
        self.settings = settings
        self.random = random_source
        self.authorizer: Authorizer | None = None
        if settings.super_users is not None:
            self.authorizer = Authorizer(settings.super_users)
        self._passwords = dict(settings.users)
        self._scram: dict[tuple[str, str], ScramCredential] = {}  # by user and mechanism

    def set_password(self, user: str, password: str | None) -> None:
        """Change a user's password, or remove the user; sessions go on."""
        for mechanism in SCRAM_HASHES:
            self._scram.pop((user, mechanism), None)
        if password is None:
            self._passwords.pop(user, None)
        else:
            self._passwords[user] = password

    def is_password(self, user: str, password: str) -> bool:
        """Tell whether it is a user's password."""
        known = self._passwords.get(user)
        return known is not None and hmac.compare_digest(known.encode(), password.encode())

    def scram(self, user: str, mechanism: str) -> ScramCredential | None:
        """Return what is kept of a user's password, None: there is no such user."""
        password = self._passwords.get(user)
        if password is None:
            return None
        if (user, mechanism) not in self._scram:
            self._scram[user, mechanism] = self._derive(password, SCRAM_HASHES[mechanism])
        return self._scram[user, mechanism]

    def _derive(self, password: str, digest: str) -> ScramCredential:
        salt, iterations = self.random.randbytes(_SALT_SIZE), self.settings.scram_iterations
        salted = hashlib.pbkdf2_hmac(digest, password.encode(), salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", digest)
        return ScramCredential(
            salt,
            iterations,
            hashlib.new(digest, client_key).digest(),
            hmac.digest(salted, b"Server Key", digest),
        )
