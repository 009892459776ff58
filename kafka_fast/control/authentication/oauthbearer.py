"""SASL OAUTHBEARER (RFC 7628, KIP-255): the client shows a token that an identity provider issued.

    n,,^Aauth=Bearer <token>^A<extension>=<value>^A^A  ──►
                                                       ◄── nothing: accepted
                                                       ◄── JSON, what is wrong
                                                   ^A  ──►
                                                       ◄── the error of SaslAuthenticate

The token comes from a `TokenSource`: a user's function, a file, an identity provider.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol

from kafka_fast.control.authentication.mechanism import Conversation, Work
from kafka_fast.control.authentication.peer_text import as_told
from kafka_fast.errors import AuthenticationError, ConfigError
from kafka_fast.secret import Secret
from kafka_fast.values import Value

__all__ = ["OAuthBearerMechanism", "Token", "TokenSource", "check_extensions"]

_SEPARATOR = b"\1"
_TOKEN = re.compile(rb"[\x21-\x7e]+")
# KIP-342, as Kafka's broker reads them.
_NAME = re.compile(r"[A-Za-z]+")
_VALUE = re.compile(r"[\x21-\x7e \t\r\n]+")


class Token(Value, eq=False):
    """A token, and until when it is good."""

    value: Secret
    expires_at: float | None = None
    """Unix seconds; None: nobody has said."""
    issued_at: float | None = None
    extensions: tuple[tuple[str, str], ...] = ()


class TokenSource(Protocol):
    """Where a client's tokens come from."""

    @property
    def what(self) -> str:
        """What `current` does, for people: "a token is asked of https://…"."""

    def current(self) -> Token:
        """Return a token that is good now. Any thread that may block.

        Raises:
            AuthenticationError: there is none.
            KafkaConnectionError: there is none for now.
        """

    def handle_refused(self, token: Token) -> None:
        """Do not return this token again: a broker has refused it. Blocks for nothing."""


class OAuthBearerMechanism:
    """OAUTHBEARER with the tokens of one source. Thread: control, but for `Work`."""

    name = "OAUTHBEARER"

    def __init__(self, tokens: TokenSource, extensions: Iterable[tuple[str, str]] = ()) -> None:
        """Take the source.

        Args:
            tokens: asked for a token in each conversation.
            extensions: sent with each token; those that come with a token win.

        Raises:
            ConfigError: an extension cannot be sent.
        """
        self._tokens = tokens
        self._extensions = dict(extensions)
        fault = check_extensions(self._extensions)
        if fault is not None:
            raise ConfigError(f"sasl.oauthbearer.extensions: {fault}")

    def converse(self, host: str) -> Conversation:
        """Get a token and show it to the broker, whose name is not needed.

        Raises:
            AuthenticationError: the broker refuses the token, or there is none that can be sent.
            KafkaConnectionError: there is no token for now.
        """
        token: Token = yield Work(self._tokens.current, self._tokens.what)
        try:
            problem: bytes = yield self._message(token)
            if problem:
                try:
                    yield _SEPARATOR
                except AuthenticationError:
                    pass  # the broker's error, which says less than what came before it
                raise AuthenticationError(f"refused the token: {as_told(problem)}")
        except AuthenticationError:
            self._tokens.handle_refused(token)
            raise

    def _message(self, token: Token) -> bytes:
        extensions = {**self._extensions, **dict(token.extensions)}
        fault = check_extensions(extensions)
        if fault is not None:
            raise AuthenticationError(f"cannot be sent the token: {fault}")
        value = token.value.reveal().encode(errors="surrogatepass")
        if _TOKEN.fullmatch(value):
            pairs = [f"{name}={text}".encode() for name, text in extensions.items()]
            return _SEPARATOR.join((b"n,,", b"auth=Bearer " + value, *pairs, b"", b""))
        is_empty = not value
        del value
        raise AuthenticationError(
            "needs a token, and this one is empty"
            if is_empty
            else "cannot be sent the token: it has characters that no token has"
        )


def check_extensions(extensions: dict[str, str]) -> str | None:
    """Return what is wrong with extensions (KIP-342), or None."""
    for name, value in extensions.items():
        if name == "auth" or not _NAME.fullmatch(name):
            return f"no extension can be called {as_told(name)}"
        if not _VALUE.fullmatch(value):
            return f"the value of the extension {name} has characters that none can have, or no"
    return None
