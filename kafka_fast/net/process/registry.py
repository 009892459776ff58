"""Objects that are known as long as somebody else keeps them: for the end of a process, and forks.

`weakref.WeakSet` is not safe here: while one thread iterates, another may add or discard objects,
and Python raises RuntimeError. Here one step copies all references.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class Registry(Generic[T]):
    """Weakly referenced objects. Any thread, also in a finalizer."""

    def __init__(self) -> None:
        self._refs: dict[int, weakref.ref[T]] = {}  # by id; an entry goes before its id is free

    def add(self, item: T) -> None:
        """Add an object; it leaves the registry when it is freed."""
        key, refs = id(item), self._refs

        def forget(_: weakref.ref[T]) -> None:
            refs.pop(key, None)

        refs[key] = weakref.ref(item, forget)

    def discard(self, item: T) -> None:
        """Remove an object, if it is there."""
        self._refs.pop(id(item), None)

    def clear(self) -> None:
        """Remove all objects."""
        self._refs.clear()

    def __iter__(self) -> Iterator[T]:
        """Iterate over the objects as of now; others may be added or removed meanwhile."""
        objects = [ref() for ref in self._refs.copy().values()]
        return iter([item for item in objects if item is not None])

    def __len__(self) -> int:
        """Return how many objects there are."""
        return len(self._refs)
