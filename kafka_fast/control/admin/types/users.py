"""Users, and what brokers keep of their passwords for SCRAM."""

from __future__ import annotations

from typing import NoReturn

from kafka_fast.control.admin.types.open_numbers import OpenNumber
from kafka_fast.secret import HIDDEN, Secret
from kafka_fast.values import Value

DEFAULT_ITERATIONS = 4096
"""As Kafka's own tools have it, and the fewest that brokers take."""


class UserScramMechanism(OpenNumber):
    """A mechanism of SASL whose credentials the cluster keeps."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def mechanism_name(self) -> str:
        """The name of the mechanism in sasl.mechanism: "SCRAM-SHA-256"."""
        return self.name.replace("_", "-")


class ScramCredentialInfo(Value):
    """What a cluster tells of a credential; never the password, nor what is made of it."""

    mechanism: UserScramMechanism
    iterations: int
    """How often the password was hashed."""


class UserScramCredentialUpsertion(Value):
    """A password to set for a user. It is not shown and not pickled."""

    user: str
    mechanism: UserScramMechanism
    password: str | Secret
    """Only its salted hash is sent. As Java's client, this one does not normalize it."""
    iterations: int = DEFAULT_ITERATIONS
    """How often the password is hashed: 4,096 to 16,384."""

    def __repr__(self) -> str:
        return (
            f"UserScramCredentialUpsertion(user={self.user!r}, mechanism={self.mechanism!r}, "
            f"password={HIDDEN}, iterations={self.iterations})"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError("a password is not pickled")


class UserScramCredentialDeletion(Value):
    """A credential to delete: the user can no longer log in with the mechanism."""

    user: str
    mechanism: UserScramMechanism
