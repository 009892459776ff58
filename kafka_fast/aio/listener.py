"""The listener through which a user of asyncio learns of rebalances."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from kafka_fast.types import TopicPartition

if TYPE_CHECKING:
    from kafka_fast.aio.consumer import Consumer


class RebalanceListener:
    """Override the methods you need, as plain functions or as coroutines.

    All run in the task that polls or unsubscribes; during a close, in a task of the close's own. If
    the task is cancelled meanwhile, the cancellation is raised in the method. The rest is as
    `kafka_fast.RebalanceListener` says.
    """

    def on_partitions_assigned(
        self, consumer: Consumer, partitions: list[TopicPartition]
    ) -> Awaitable[None] | None:
        """These partitions were added. Nothing of them was fetched yet, so `seek` costs nothing.

        Called after every rebalance, also when no partition was added. If it was cancelled, the
        next poll calls it again, for the same partitions.
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
