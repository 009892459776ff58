"""SASL PLAIN (RFC 4616): the user and the password, in one message. Only TLS hides them."""

from __future__ import annotations

from kafka_fast.control.authentication.mechanism import Conversation, Work
from kafka_fast.control.authentication.revealing import revealed
from kafka_fast.errors import AuthenticationError, ConfigError
from kafka_fast.secret import Secret

__all__ = ["PlainMechanism"]


class PlainMechanism:
    """PLAIN with one user's credentials. Thread: control, but for the functions in `Work`."""

    name = "PLAIN"

    def __init__(self, username: str, password: Secret) -> None:
        """Take the credentials.

        Raises:
            ConfigError: there is no user, or its name cannot be sent.
        """
        if not username or "\0" in username:
            raise ConfigError("sasl.username: PLAIN needs a name without the character NUL")
        self._username = username.encode()
        self._password = password

    def converse(self, host: str) -> Conversation:
        """Send user and password in one message; the broker's name is not needed."""
        # Nothing here holds the message: it is the password.
        yield (yield Work(self._message, "the password"))

    def _message(self) -> bytes:
        """Return the only message: authorization identity (none), user, password."""
        message = b"\0%s\0%s" % (self._username, revealed(self._password, "password"))
        if message.count(0) == 2:
            return message
        del message
        raise AuthenticationError("takes PLAIN passwords only without the character NUL")
