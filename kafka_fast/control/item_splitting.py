"""Long work, cut so that neither a request nor a turn of the control thread grows too long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def split_items(items: Sequence[T], most: int) -> list[Sequence[T]]:
    """Return the items in their order, in pieces of at most so many."""
    return [items[first : first + most] for first in range(0, len(items), most)]
