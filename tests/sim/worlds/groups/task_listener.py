"""The listener of a user of asyncio: most of its methods are coroutines, and wait.

    aio.Consumer.poll ─► steps ── Invoke ──► TaskListener ── work, commit ───► the loop
                                                          ◄── CancelledError, at some of both

A method has begun when its coroutine waits for the first time. So its user hears of everything,
even if it is cancelled there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from contextlib import AbstractContextManager
from typing import Any, Protocol

from kafka_fast import aio
from kafka_fast.types import TopicPartition

Partitions = Collection[TopicPartition]


class Hearer(Protocol):
    """The user."""

    @property
    def commits_when_revoked(self) -> bool:
        """Whether there is a commit when partitions are given up."""

    def on_partitions_assigned(self, consumer: Any, partitions: Partitions) -> None:
        """Partitions were added."""

    def on_partitions_lost(self, consumer: Any, partitions: Partitions) -> None:
        """Partitions are gone."""

    def giving_up(self, partitions: Partitions) -> AbstractContextManager[None]:
        """Partitions are gone at the end of this block."""

    def committing(self) -> AbstractContextManager[None]:
        """There is a commit in this block, which may fail."""


class TaskListener(aio.RebalanceListener):
    """Tells the user, and takes its time."""

    def __init__(self, user: Hearer, work: Callable[[], Awaitable[None]]) -> None:
        """Tell `user` of each call; `work` delays all but `on_partitions_lost`.

        Args:
            user: hears of everything.
            work: takes some time.
        """
        self._user = user
        self._work = work
        self._told: set[TopicPartition] = set()  # in calls that were cancelled

    async def on_partitions_assigned(self, consumer: aio.Consumer, partitions: Partitions) -> None:
        """Tell the user at once; after a cancellation, what comes again is no news."""
        news = [partition for partition in partitions if partition not in self._told]
        self._user.on_partitions_assigned(consumer, news)
        self._told.update(partitions)
        await self._work()
        self._told.clear()

    async def on_partitions_revoked(self, consumer: aio.Consumer, partitions: Partitions) -> None:
        """Commit, if the user does, and tell the user at the end."""
        self._told.difference_update(partitions)
        with self._user.giving_up(partitions):
            await self._work()
            if self._user.commits_when_revoked:
                with self._user.committing():
                    await consumer.commit()

    def on_partitions_lost(  # type: ignore[override]  # a plain function will do
        self, consumer: aio.Consumer, partitions: Partitions
    ) -> None:
        """Tell the user."""
        self._told.difference_update(partitions)
        self._user.on_partitions_lost(consumer, partitions)
