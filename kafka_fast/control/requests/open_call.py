"""A call that was begun: which of its items are open, and how far each has come.

`Requester` changes it, on the control thread. Users add and discard items through `OpenCall`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, Protocol, TypeVar

from kafka_fast.control.connections.links import Link
from kafka_fast.control.diagnosis.troubles import Reason
from kafka_fast.control.requests.call import Call
from kafka_fast.errors import KafkaError
from kafka_fast.instants import LONG_AGO, NEVER
from kafka_fast.values import Value

__all__ = ["Item", "OpenCall", "Try"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Item(Generic[K]):
    """An item that is open. A call may have thousands, so this is a plain class."""

    __slots__ = (
        "asked",
        "beside_at",
        "failures",
        "in_flight",
        "is_seen",
        "key",
        "not_before",
        "refusal",
        "refused_by",
        "round",
        "tries",
    )

    def __init__(self, key: K, not_before: float) -> None:
        self.key = key
        """The item, as the call names it."""
        self.not_before = not_before
        """When it may be tried again."""
        self.is_seen = False
        """A tick has looked at it in this round, and worked towards the link it needs."""
        self.tries = 0
        """How often it was sent."""
        self.failures = 0
        """How many tries in a row failed."""
        self.round = 0
        """Counts the tries that have ended. An answer to a former round is dropped."""
        self.in_flight = 0
        """Requests of this round that may still be answered."""
        self.asked: tuple[int, ...] = ()
        """The links of these requests."""
        self.beside_at = NEVER
        """When another node is asked beside the silent one."""
        self.refusal: KafkaError | None = None
        """Why the last try failed."""
        self.refused_by: int | None = None
        """The node that refused it; None: no node did, the connection broke."""

    def begin_try(self, link: Link, beside_at: float) -> None:
        """Count a try over a link, and set when another node is asked beside this one."""
        self.tries += 1
        self.in_flight += 1
        self.asked += (link.id,)
        self.beside_at = beside_at

    def end_round(self) -> None:
        """Drop whatever may still be answered."""
        self.round += 1
        self.in_flight = 0
        self.asked = ()
        self.beside_at = NEVER
        self.is_seen = False


class Try(Value, Generic[K], eq=False):
    """A request that was sent, with its items and the round of each item."""

    link: Link
    version: int
    items: list[tuple[Item[K], int]]


class Keeper(Protocol):
    """What `OpenCall` needs of the requester."""

    def keep_open(self, opened: OpenCall[K, V]) -> None:
        """Keep a call among the open ones, if it has an item."""

    def why_waiting(self, opened: OpenCall[K, V], key: K) -> Reason | None:
        """Return why an item is still open; None if it is not. Any thread."""


class OpenCall(Generic[K, V]):
    """A call and its open items. `Requester.open_call` makes it."""

    def __init__(
        self, keeper: Keeper, call: Call[K, V], deadline: float, *, is_spreading: bool
    ) -> None:
        """Start without items; `add_item` brings them.

        Args:
            keeper: the requester.
            call: what is asked.
            deadline: when items that are still open fail.
            is_spreading: the items will be all nodes, once the metadata name them.
        """
        self.call = call
        self.deadline = deadline
        self.items: dict[K, Item[K]] = {}
        self.unsent: dict[K, Item[K]] = {}
        """The items that are not in flight: all that a tick has to look at."""
        self.is_spreading = is_spreading
        """The items will be all nodes, once the metadata name them."""
        self._keeper = keeper

    @property
    def is_open(self) -> bool:
        """Whether any item is open, or will be."""
        return bool(self.items) or self.is_spreading

    def __contains__(self, key: K) -> bool:
        """Tell whether this item is open. Any thread."""
        return key in self.items

    def __len__(self) -> int:
        """Return how many items are open."""
        return len(self.items)

    def __iter__(self) -> Iterator[K]:
        """Iterate over the open items."""
        return iter(list(self.items))

    def add_item(self, key: K, *, not_before: float = LONG_AGO) -> None:
        """Ask about one more item. If it is open already, an answer on its way no longer counts.

        Args:
            key: the item.
            not_before: when it may be sent first.
        """
        self.items[key] = self.unsent[key] = Item(key, not_before)
        self._keeper.keep_open(self)

    def discard(self, key: K) -> None:
        """Ask no more about an item. An answer on its way is dropped."""
        self.items.pop(key, None)
        self.unsent.pop(key, None)

    def cancel(self) -> None:
        """Ask no more about any item."""
        self.items.clear()
        self.unsent.clear()
        self.is_spreading = False

    def why_waiting(self, key: K) -> Reason | None:
        """Return why an item is still open; None if it is not. Any thread."""
        return self._keeper.why_waiting(self, key)
