"""What every SASL mechanism is: a name, and conversations.

    conversation ── bytes ──► SaslAuthenticate ──► broker
                 ◄── bytes ── its answer

A conversation is a generator. It yields what the client says, and is sent what the broker answers.
It knows neither links nor clocks, so it is tested without them. What may block (a user's function,
a key derivation, an identity provider) it yields as `Work`, and is sent the result.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Protocol, TypeAlias

from kafka_fast.values import Value

__all__ = ["WORK_TIMEOUT", "Conversation", "Mechanism", "Work"]

WORK_TIMEOUT = 60.0
"""Seconds for one piece of work: a user's function, an identity provider. Then it is given up."""


class Work(Value):
    """Something that may block, or takes long; a thread that waits for nothing else does it.

    The conversation is sent what `function` returns; what it raises is raised at the `yield`.
    """

    function: Callable[[], object]
    what: str
    """For people, as "a token is asked of https://…"; never with a secret in it."""


Conversation: TypeAlias = Generator[bytes | Work, Any, None]
"""Yields bytes for the broker, and is sent the broker's next bytes; or yields `Work`.

It returns when it has nothing more to say: the broker has accepted then, since a refusal comes as
an error of SaslAuthenticate. Whoever runs it may throw that error in, so that a refused token is
not used again. If it asks for `Work` before its first bytes, a token of an identity provider for
example, a renewal has that done while the link still carries requests.

It raises `AuthenticationError` if it cannot go on, or if the broker proves not to be who it should
be; and a plain `KafkaConnectionError` if that may pass, since an identity provider does not answer
for example. The text continues a sentence that begins with the broker's name.
"""


class Mechanism(Protocol):
    """A mechanism with one client's credentials. Conversations of several links may be under way.

    Thread: control, but for the functions in `Work`.
    """

    @property
    def name(self) -> str:
        """The name in SaslHandshake, as "SCRAM-SHA-512"."""

    def converse(self, host: str) -> Conversation:
        """Return a new conversation with the broker of that name."""
