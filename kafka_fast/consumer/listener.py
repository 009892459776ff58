"""What a user can hear of rebalances."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

from kafka_fast.types import TopicPartition

if TYPE_CHECKING:
    from kafka_fast.consumer.client import Consumer


class RebalanceListener:
    """Override what you want to hear. All methods run in the thread that calls `poll` or `close`.

    Within one rebalance the order is lost or revoked, then assigned. What a method raises is raised
    by that `poll`, after the rebalance has been carried out.
    """

    def on_partitions_assigned(
        self, consumer: Consumer, partitions: Collection[TopicPartition]
    ) -> None:
        """These partitions were added; nothing of them has been fetched, so `seek` is free.

        Called after every rebalance, also when nothing was added.
        """

    def on_partitions_revoked(
        self, consumer: Consumer, partitions: Collection[TopicPartition]
    ) -> None:
        """These are about to be given up: the last moment to commit what was processed."""

    def on_partitions_lost(
        self, consumer: Consumer, partitions: Collection[TopicPartition]
    ) -> None:
        """These belong to others already, without warning: nothing of them can be committed.

        As in Java this calls `on_partitions_revoked` unless it is overridden.
        """
        self.on_partitions_revoked(consumer, partitions)


class RebalanceEvent(NamedTuple):
    """One step of a rebalance, as `Consumer.metrics` and the log tell of it."""

    kind: str
    """`assigned`, `revoked` or `lost`."""
    partitions: frozenset[TopicPartition]
    generation: int
    """Of the group, or the member's epoch with KIP-848; -1 where there is none any more."""
    reason: str
    seconds: float
    """That the user's side of it took: commits and listener."""
