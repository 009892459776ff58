"""The listener through which a user learns of rebalances."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_fast.types import TopicPartition

if TYPE_CHECKING:
    from kafka_fast.consumer.client import Consumer


class RebalanceListener:
    """Override the methods you need. All run in the thread that calls `poll` or `close`.

    Partitions come as a list, in the order of their topics and numbers.

    Within one rebalance the order is lost or revoked, then assigned. An exception of a method is
    raised by the `poll` that called it, after the rebalance has been carried out.
    """

    def on_partitions_assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """These partitions were added. Nothing of them was fetched yet, so `seek` costs nothing.

        Called after every rebalance, also when no partition was added.
        """

    def on_partitions_revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """These partitions are about to be given up: commit now what was processed of them."""

    def on_partitions_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        """These partitions were taken away without warning: their offsets cannot be committed.

        As in Java this calls `on_partitions_revoked` unless it is overridden.
        """
        self.on_partitions_revoked(consumer, partitions)
