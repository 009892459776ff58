"""SCRAM keys, derived once for each salt and kept: to authenticate again costs no derivation."""

from __future__ import annotations

import hmac
import secrets
import threading

from kafka_fast.control.authentication.revealing import revealed
from kafka_fast.control.authentication.saslprep import saslprep
from kafka_fast.control.authentication.scram import ScramKeys, derive_keys
from kafka_fast.errors import AuthenticationError
from kafka_fast.logs import get_logger
from kafka_fast.secret import Secret

__all__ = ["ScramKeyCache"]

log = get_logger(__name__)

KEPT = 16
"""Keys that are kept. The brokers of one cluster share a salt; false brokers may send many."""


class ScramKeyCache:
    """The keys of one user, for the salts that brokers have sent. Any thread that may block."""

    def __init__(self, hash_name: str) -> None:
        """Derive keys by one hash function: `hash_name` is sha256 or sha512."""
        self._hash = hash_name
        # Keys are found by a digest of the password, which is of no use without this process.
        self._pepper = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._keys: dict[tuple[bytes, bytes, int], ScramKeys] = {}
        self._has_warned = False

    def derive(self, secret: Secret, salt: bytes, iterations: int) -> ScramKeys:
        """Return the keys. Links that ask at the same time wait for one derivation.

        Raises:
            AuthenticationError: the password cannot be used with SCRAM.
        """
        password = self._prepared(secret)
        key = (hmac.digest(self._pepper, password, "sha256"), salt, iterations)
        with self._lock:
            keys = self._keys.pop(key, None)
            if keys is None:
                keys = derive_keys(self._hash, password, salt, iterations)
            self._keys[key] = keys  # the latest is the last
            while len(self._keys) > KEPT:
                del self._keys[next(iter(self._keys))]
        return keys

    def _prepared(self, secret: Secret) -> bytes:
        password = revealed(secret, "password")
        prepared, fault = saslprep(password.decode())
        if fault is None:
            if prepared.encode() != password:
                self._warn()
            return prepared.encode()
        del password, prepared
        raise AuthenticationError(f"takes no SCRAM password that has {fault}")

    def _warn(self) -> None:
        """Log once that SASLprep changes the password."""
        if not self._has_warned:
            self._has_warned = True
            log.warning(
                "SCRAM sends the password in its normal form (SASLprep, RFC 4013), which is not as "
                "it was given. Kafka's own tools store passwords as they are: if the broker "
                "refuses it, set the credential anew, with the normal form."
            )
