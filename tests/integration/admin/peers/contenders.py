"""What the peers' admin clients and ours have in common here: the same calls, with plain facts.

Each class of `ours`, `confluent` and `kafka_python` has the same methods. They return numbers,
names and tuples of them; a call that fails returns Kafka's name of its error, and one that changes
something OK.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from kafka_fast.errors import ErrorCode

OK = "OK"
TIMEOUT = 20.0

Facts = Any
"""Plain values, which can be compared."""


def error_name(code: int) -> str:
    """Return Kafka's name of an error code; OK: it is none."""
    return OK if code == 0 else ErrorCode(code).name


def telling(
    error_class: type[Exception], code_of: Callable[[Any], int]
) -> Callable[[Callable[..., Facts]], Callable[..., Facts]]:
    """Return a decorator of calls: their errors become names, and None becomes OK.

    Args:
        error_class: the errors of the client.
        code_of: returns the error's code.
    """

    def decorate(call: Callable[..., Facts]) -> Callable[..., Facts]:
        @functools.wraps(call)
        def tell(*args: Any, **kwargs: Any) -> Facts:
            try:
                facts = call(*args, **kwargs)
            except error_class as error:
                return error_name(code_of(error))
            return OK if facts is None else facts

        return tell

    return decorate


class Setting(NamedTuple):
    """A property of a topic, of a broker or of a group."""

    value: str | None
    source: int
    """Kafka's number."""
    is_read_only: bool
    is_sensitive: bool


class Group(NamedTuple):
    """A group as it is described."""

    state: str
    """In capitals, without signs in between."""
    assignor: str
    is_simple: bool
    assigned: list[list[int]]
    """The partitions of each member."""


class Client(Protocol):
    """An admin client that answers with facts."""

    name: str

    def __getattr__(self, call: str) -> Callable[..., Facts]:
        """Return a call; not every peer has all of them."""
