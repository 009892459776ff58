"""SASL GSSAPI (RFC 4752): Kerberos says who both sides are. TLS, not Kerberos, protects the rest.

token of the client                     ──►
◄──  token of the broker    (until both are satisfied)
nothing more                            ──►
◄──  wrapped: the layers it offers, in a bit mask
wrapped: no layer, for no other user    ──►
◄──  nothing
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kafka_fast.control.authentication.mechanism import Conversation, Work
from kafka_fast.errors import AuthenticationError

__all__ = ["GssapiMechanism", "SecurityContext"]

NO_LAYER = 1
"""The bit for a link that Kerberos neither signs nor encrypts."""

ROUNDS_MAX = 10
"""Tokens of one side; Kerberos needs one or two."""


class SecurityContext(Protocol):
    """The client's side of one authentication. Every method may block, and ask Kerberos's server.

    Methods raise AuthenticationError; and KafkaConnectionError if that may pass.
    """

    def step(self, token: bytes | None) -> bytes:
        """Take the broker's token (None: none has come yet), and return ours; b"": none is due."""

    @property
    def is_complete(self) -> bool:
        """Whether both sides are known to each other."""

    def unwrap(self, message: bytes) -> bytes:
        """Return what the broker has signed."""

    def wrap(self, message: bytes) -> bytes:
        """Sign a message."""


class GssapiMechanism:
    """GSSAPI with one client's Kerberos credentials. Thread: control, but for `Work`."""

    name = "GSSAPI"

    def __init__(self, begin: Callable[[str], SecurityContext]) -> None:
        """Take what makes contexts.

        Args:
            begin: returns a new context for a broker's name, without blocking.
        """
        self._begin = begin

    def converse(self, host: str) -> Conversation:
        """Exchange Kerberos tokens with the broker of that name, then agree on no layer.

        Raises:
            AuthenticationError: Kerberos refuses, or the broker breaks the rules.
            KafkaConnectionError: Kerberos's server does not answer.
        """
        context = self._begin(host)
        answer: bytes | None = None
        for _ in range(ROUNDS_MAX):
            token = answer
            said: bytes = yield Work(
                lambda token=token: context.step(token),  # type: ignore[misc]
                f"a Kerberos ticket for {host} is asked for",
            )
            if not said and not context.is_complete:
                break
            answer = yield said
            if context.is_complete:
                yield from self._negotiate(context, answer)
                return
        raise AuthenticationError("does not come to an end with Kerberos")

    def _negotiate(self, context: SecurityContext, offer: bytes) -> Conversation:
        """Agree that there is no security layer."""
        offered: bytes = yield Work(lambda: context.unwrap(offer), "a message is checked")
        if len(offered) != 4:
            raise AuthenticationError(
                f"offers GSSAPI's security layers in {len(offered)} bytes, not 4"
            )
        if not offered[0] & NO_LAYER:
            raise AuthenticationError(
                "wants GSSAPI itself to protect the link, which Kafka does not do"
            )
        yield (yield Work(lambda: context.wrap(bytes([NO_LAYER, 0, 0, 0])), "a message is signed"))
