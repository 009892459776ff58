"""What an answer means for an item of a call.

* `Done(value)`: the item is answered.
* `Retry(error)`: the same node may answer later, after a backoff.
* `Refresh(error)`: another node may answer, once the metadata are new.
* `FindAgain(error)`: another node may answer, once the coordinator or controller is found again.
* `Refused(error)`: the item fails, because any node would refuse it.

`meaning_of` returns the usual meaning of an error code. A call may decide otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeAlias, TypeVar

from kafka_fast.control.diagnosis.permissions import described
from kafka_fast.errors import ERRORS, ErrorCode, KafkaError, broker_error
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
"""The node is not, or not yet, the coordinator or controller that it was named as."""


class Done(Value, Generic[V]):
    """Meaning: the item is answered, with this value."""

    value: V


class Retry(Value):
    """Meaning: the same node may answer later; ask it again after a backoff."""

    error: KafkaError
    soon: float | None = None
    """Seconds before the second try, where what is in the way ends that soon, as a rule. They
    double with each try, up to the usual backoff. None: the usual backoff."""


class Refresh(Value):
    """Meaning: another node may answer; ask it when new metadata name it."""

    error: KafkaError
    topic: str | None = None
    """The topic with stale metadata; None: all topics."""


class FindAgain(Value):
    """Meaning: another node may answer; find the coordinator or the controller again."""

    error: KafkaError


class Refused(Value):
    """Meaning: any node would refuse the item, so it fails."""

    error: KafkaError


NotDone: TypeAlias = Retry | Refresh | FindAgain | Refused
Meaning: TypeAlias = Done[V] | NotDone


def worst(meanings: Sequence[NotDone]) -> NotDone:
    """Return the meaning that decides: a refusal first, then asking another node, then any.

    Args:
        meanings: at least one.
    """
    for kind in (Refused, FindAgain, Refresh):
        for meaning in meanings:
            if isinstance(meaning, kind):
                return meaning
    return meanings[0]


def meaning_of(code: int, api: str, about: str = "", *, topic: str | None = None) -> NotDone:
    """Return what an error code usually means.

    Args:
        code: of the error.
        api: that answered with it, as "ListOffsets".
        about: what was asked about, to go on from the API: " of orders-3".
        topic: the topic whose metadata may be stale.
    """
    error = broker_error(code, f"{api}{about}: {described(code, api)}")
    if code in MOVED:
        return FindAgain(error)
    known = ERRORS.get(code)
    if known is not None and known.refresh_metadata:
        return Refresh(error, topic)
    if known is not None and known.retriable:
        return Retry(error)
    return Refused(error)
