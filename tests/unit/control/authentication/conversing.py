"""Runs a conversation to its end, with its work done in line."""

from __future__ import annotations

from collections.abc import Callable

from kafka_fast.control.authentication.mechanism import Conversation, Work

Answer = Callable[[bytes], bytes]


def converse(conversation: Conversation, *answers: Answer | bytes) -> list[bytes]:
    """Run a conversation against a broker, and return what the client said.

    Args:
        conversation: the client's side.
        answers: the broker's: bytes, or a function from the client's message. All must be wanted.
    """
    said: list[bytes] = []
    left = list(answers)
    try:
        step = next(conversation)
        while True:
            if isinstance(step, Work):
                try:
                    result = step.function()
                except Exception as error:  # noqa: BLE001 -- of whatever kind
                    step = conversation.throw(error)
                else:
                    step = conversation.send(result)
                continue
            said.append(step)
            answer = left.pop(0)
            step = conversation.send(answer(step) if callable(answer) else answer)
    except StopIteration:
        assert not left, f"the client ended before {left}"
        return said
