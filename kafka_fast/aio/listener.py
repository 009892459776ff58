"""The listener through which a user of asyncio learns of rebalances."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from kafka_fast.types import TopicPartition

if TYPE_CHECKING:
    from kafka_fast.aio.consumer import Consumer


class RebalanceListener:
    """Override the methods you need.

    Partitions come as a list, in the order of their topics and numbers.

    Within one rebalance the order is lost or revoked, then assigned. An exception of a method is
    raised by the `poll` that called it, after the rebalance has been carried out.

    In an event loop, methods are plain functions or coroutines. All run in the task that polls or
    unsubscribes; during a close, in a task of the close's own. If that task is cancelled meanwhile,
    the cancellation is raised in the method, and the next poll calls `on_partitions_assigned` again
    for the same partitions.
    """

    def on_partitions_assigned(
        self, consumer: Consumer, partitions: list[TopicPartition]
    ) -> Awaitable[None] | None:
        """These partitions were added. Nothing of them was fetched yet, so `seek` costs nothing.

        Called after every rebalance, also when no partition was added.
        """
        return None

    def on_partitions_revoked(
        self, consumer: Consumer, partitions: list[TopicPartition]
    ) -> Awaitable[None] | None:
        """These partitions are about to be given up: commit now what was processed of them."""
        return None

    async def on_partitions_lost(
        self, consumer: Consumer, partitions: list[TopicPartition]
    ) -> None:
        """These partitions were taken away without warning: their offsets cannot be committed.

        As in Java this calls `on_partitions_revoked` unless it is overridden.
        """
        result = self.on_partitions_revoked(consumer, partitions)
        if inspect.isawaitable(result):
            await result
