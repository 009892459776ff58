from __future__ import annotations

import pytest

from kafka_fast.control.authentication.gssapi import ROUNDS_MAX, GssapiMechanism
from kafka_fast.errors import AuthenticationError
from tests.unit.control.authentication.conversing import converse


class Context:
    """Says what it is to say, and is complete after so many steps."""

    def __init__(self, *says: bytes, steps: int | None = None) -> None:
        self.says = list(says)
        self.steps = len(says) if steps is None else steps
        self.heard: list[bytes | None] = []

    def step(self, token: bytes | None) -> bytes:
        self.heard.append(token)
        return self.says.pop(0)

    @property
    def is_complete(self) -> bool:
        return len(self.heard) >= self.steps

    def unwrap(self, message: bytes) -> bytes:
        return message.removeprefix(b"wrapped ")

    def wrap(self, message: bytes) -> bytes:
        return b"wrapped " + message


def mechanism(context: Context) -> GssapiMechanism:
    return GssapiMechanism(lambda host: {"broker": context}[host])


NOTHING_BUT_NO_LAYER = b"wrapped \1\0\0\0"


def test_kerberos_with_an_answer_to_each_token() -> None:
    context = Context(b"ticket", b"")
    said = converse(mechanism(context).converse("broker"), b"reply", b"wrapped \7\0\xff\xff", b"")
    assert said == [b"ticket", b"", b"wrapped \1\0\0\0"]
    assert context.heard == [None, b"reply"]


def test_a_last_token_is_sent() -> None:
    context = Context(b"one", b"two")
    said = converse(mechanism(context).converse("broker"), b"reply", NOTHING_BUT_NO_LAYER, b"")
    assert said == [b"one", b"two", b"wrapped \1\0\0\0"]


@pytest.mark.parametrize(
    ("offer", "text"),
    [
        (b"", "in 0 bytes, not 4"),
        (b"\1\0\0", "in 3 bytes"),
        (b"\1\0\0\0\0", "in 5 bytes"),
        (b"\6\0\xff\xff", "wants GSSAPI itself to protect the link"),
        (b"\0\0\0\0", "wants GSSAPI itself to protect the link"),
    ],
)
def test_an_offer_that_cannot_be_taken(offer: bytes, text: str) -> None:
    context = Context(b"ticket", b"")
    with pytest.raises(AuthenticationError, match=text):
        converse(mechanism(context).converse("broker"), b"reply", b"wrapped " + offer)


def test_tokens_without_an_end() -> None:
    context = Context(*[b"x"] * 100)
    with pytest.raises(AuthenticationError, match="does not come to an end"):
        converse(mechanism(context).converse("broker"), *[b"y"] * ROUNDS_MAX)


def test_silence_before_the_end() -> None:
    with pytest.raises(AuthenticationError, match="does not come to an end"):
        converse(mechanism(Context(b"", steps=2)).converse("broker"))
