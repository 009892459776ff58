"""What an answer means for an item of a call.

* `Done(value)`: the item is answered.
* `Retry(error)`: the same node may answer later, after a backoff.
* `Refresh(error)`: another node may answer, once the metadata are new.
* `FindAgain(error)`: another node may, once the coordinator or the controller is found again.
* `Refused(error)`: no node will answer otherwise.

`meaning_of` has the usual meaning of error codes; a call may know better.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeAlias, TypeVar

from kafka_fast.errors import ERRORS, ErrorCode, KafkaError, broker_error, error_description
from kafka_fast.values import Value

__all__ = [
    "Done",
    "FindAgain",
    "Meaning",
    "NotDone",
    "Refresh",
    "Refused",
    "Retry",
    "meaning_of",
    "worst",
]

V = TypeVar("V")

MOVED = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NOT_CONTROLLER,
    }
)
"""Codes of a node that does not, or not yet, do what the metadata or FindCoordinator said."""


class Done(Value, Generic[V]):
    """The item is answered."""

    value: V


class Retry(Value):
    """The same node may answer later."""

    error: KafkaError


class Refresh(Value):
    """Another node may answer, once the metadata name it."""

    error: KafkaError
    topic: str | None = None
    """Whose metadata are stale; None: all."""


class FindAgain(Value):
    """Another node may answer, once the coordinator or the controller has been found again."""

    error: KafkaError


class Refused(Value):
    """No node will answer otherwise."""

    error: KafkaError


NotDone: TypeAlias = Retry | Refresh | FindAgain | Refused
Meaning: TypeAlias = Done[V] | NotDone


def worst(meanings: Sequence[NotDone]) -> NotDone:
    """Return what decides of several: a refusal, else that another node is to be asked, else any.

    Args:
        meanings: at least one.
    """
    for kind in (Refused, FindAgain, Refresh):
        for meaning in meanings:
            if isinstance(meaning, kind):
                return meaning
    return meanings[0]


def meaning_of(code: int, what: str, *, topic: str | None = None) -> NotDone:
    """Return what an error code usually means.

    Args:
        code: of the error.
        what: was asked, for the error's text: "ListOffsets of orders-3".
        topic: whose metadata may be stale.
    """
    error = broker_error(code, f"{what}: {error_description(code)}")
    if code in MOVED:
        return FindAgain(error)
    known = ERRORS.get(code)
    if known is not None and known.refresh_metadata:
        return Refresh(error, topic)
    if known is not None and known.retriable:
        return Retry(error)
    return Refused(error)
