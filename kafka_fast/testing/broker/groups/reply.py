"""An answer that may come later: a join waits for the other members, a sync for the leader."""

from __future__ import annotations

from typing import Generic, TypeVar

T = TypeVar("T")


class Reply(Generic[T]):
    """The place where a response will be."""

    __slots__ = ("response",)

    def __init__(self, response: T | None = None) -> None:
        self.response = response
