"""The calls of a consumer's user that may wait, as steps: written once for all kinds of callers.

    Consumer ──────┐                   ┌─► check arguments, take the lock, set a deadline
    aio.Consumer ──┴──► ConsumerCalls ─┴─► ConsumerSteps, queries and topics do the work

The public methods have the documentation. What cannot wait is in `ConsumerBase`.

Thread: the caller's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from kafka_fast.config import ConsumerSettings
from kafka_fast.consumer.arguments import (
    on_commit,
    one_by_one,
    times_by_partition,
    topic_names,
    topic_partitions,
)
from kafka_fast.consumer.caller_lock import CallerLock, Closing
from kafka_fast.consumer.consumer_core import ConsumerCore
from kafka_fast.consumer.consumer_steps import ConsumerSteps
from kafka_fast.consumer.group.membership import OnCommit
from kafka_fast.consumer.reading.commit_argument import Upto, offsets_of
from kafka_fast.control.consumer.lookup import Found
from kafka_fast.control.consumer.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kafka_fast.errors import UsageError
from kafka_fast.logs import ClientLog
from kafka_fast.net.waiting.steps import Invoke, Steps
from kafka_fast.times import timeout_seconds
from kafka_fast.types import (
    OffsetAndMetadata,
    OffsetAndTimestamp,
    PartitionInfo,
    TopicPartition,
)

if TYPE_CHECKING:
    from datetime import datetime

FOREVER = 1e9


class ConsumerCalls:
    """The public calls of one consumer that may wait."""

    def __init__(
        self,
        core: ConsumerCore,
        settings: ConsumerSettings,
        caller_lock: CallerLock,
        steps: ConsumerSteps,
    ) -> None:
        """Connect the public calls with the steps that do their work.

        Args:
            core: answers questions.
            settings: the consumer's configuration.
            caller_lock: of the consumer.
            steps: does the work.
        """
        self._core = core
        self._reading = core.reading
        self._settings = settings
        self._caller_lock = caller_lock
        self._steps = steps
        self.log = ClientLog("kafka_fast.consumer", core.client_id)
        """For lines about what a call was given."""

    def deadline(self, timeout: float | None) -> float:
        """Return when a call must end; None: default.api.timeout.ms from now."""
        limit = self._settings.default_api_timeout if timeout is None else timeout_seconds(timeout)
        return self._core.now() + min(limit, FOREVER)

    def assigned(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return checked partitions; raise UsageError if one is not assigned."""
        own = topic_partitions(partitions)
        foreign = [
            partition
            for partition in own
            if self._reading.buffer.buffered_partition(partition) is None
        ]
        if foreign:
            raise UsageError(f"not assigned to this consumer: {', '.join(map(str, foreign))}")
        return own

    def unsubscribe(self) -> Steps[None]:
        """Stop reading, and leave the group."""
        is_interrupted = sys.exc_info()[0] is not None
        with self._caller_lock:
            yield from self._steps.unsubscribe(self.deadline(None), is_interrupted=is_interrupted)

    def begin_loop(self) -> Steps[None]:
        """Handle group news before a loop: a rebalance may have taken unread records away."""
        with self._caller_lock:
            if self._settings.group_id is not None:
                yield from self._steps.membership.handle_news()

    def position(self, partition: TopicPartition, timeout: float | None) -> Steps[int]:
        """Return the offset of the record that comes next."""
        with self._caller_lock:
            (own,) = self.assigned(one_by_one((partition,), "position", "partition"))
            return (yield from self._steps.position(own, self.deadline(timeout)))

    # ---- offsets ----

    def commit(
        self, upto: Upto | None, *, sync: bool, timeout: float | None, callback: OnCommit | None
    ) -> Steps[None]:
        """Commit offsets for the group.

        A commit that was begun goes on after an interruption: its outcome is not known, but its
        records are covered.
        """
        on_commit(callback)
        with self._caller_lock:
            membership, cursor = self._steps.membership, self._steps.cursor
            membership.require_group()
            offsets = cursor.handed_over() if upto is None else offsets_of(upto)
            deadline = self.deadline(timeout)
            if not sync:
                membership.commit_later(offsets, callback, deadline)
                cursor.note_committed(offsets)
                return
            try:
                yield from membership.commit(offsets, deadline)
            except Exception:
                raise
            except BaseException:
                cursor.note_committed(offsets)
                raise
            cursor.note_committed(offsets)
            if callback is not None:
                yield Invoke(callback, (offsets, None))

    def committed(
        self, partitions: Iterable[TopicPartition] | None, timeout: float | None
    ) -> Steps[dict[TopicPartition, OffsetAndMetadata | None]]:
        """Return the group's committed offsets."""
        with self._caller_lock:
            requested = None if partitions is None else topic_partitions(partitions)
            return (yield from self._core.queries.committed(requested, self.deadline(timeout)))

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None
    ) -> Steps[dict[TopicPartition, int]]:
        """Return the first offset of each partition."""
        return self.offsets_at(partitions, EARLIEST_TIMESTAMP, timeout)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None
    ) -> Steps[dict[TopicPartition, int]]:
        """Return the end of each partition; with read_committed, its last stable offset."""
        return self.offsets_at(partitions, LATEST_TIMESTAMP, timeout)

    def offsets_at(
        self, partitions: Iterable[TopicPartition], timestamp: int, timeout: float | None
    ) -> Steps[dict[TopicPartition, int]]:
        """Return the offset of each partition at a special timestamp of ListOffsets."""
        with self._caller_lock:
            timestamps = dict.fromkeys(topic_partitions(partitions), timestamp)
            offsets = yield from self._core.queries.offsets(timestamps, self.deadline(timeout))
            return {partition: offsets[partition].offset for partition in timestamps}

    def offsets_by_time(
        self, times: Mapping[TopicPartition, int], timeout: float | None
    ) -> Steps[Found]:
        """Return offsets by time in Unix ms, which was checked before."""
        with self._caller_lock:
            return (yield from self._core.queries.offsets(times, self.deadline(timeout)))

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int | datetime], timeout: float | None
    ) -> Steps[dict[TopicPartition, OffsetAndTimestamp | None]]:
        """Return each partition's first record that is not older than a time."""
        with self._caller_lock:
            times = times_by_partition(timestamps)
            offsets = yield from self.offsets_by_time(times, timeout)
            return {
                partition: OffsetAndTimestamp(listed.offset, listed.timestamp, listed.leader_epoch)
                if listed.offset >= 0
                else None
                for partition in times
                for listed in [offsets[partition]]
            }

    def lag(self, timeout: float | None) -> Steps[dict[TopicPartition, int]]:
        """Return how many offsets each assigned partition is behind its end."""
        with self._caller_lock:
            deadline = self.deadline(timeout)
            partitions = self._reading.buffer.partitions
            ends = yield from self.offsets_at(partitions, LATEST_TIMESTAMP, timeout)
            return (yield from self._steps.lag(ends, deadline))

    # ---- the cluster ----

    def partitions_for(
        self, topics: str | Iterable[str], timeout: float | None, *, refresh: bool
    ) -> Steps[list[PartitionInfo]]:
        """Return the metadata of the partitions of topics."""
        with self._caller_lock:
            names = sorted(topic_names(topics))
            deadline = self.deadline(timeout)
            return (yield from self._core.topics.partitions(names, deadline, refresh=refresh))

    def topics(self, timeout: float | None, *, internal: bool) -> Steps[set[str]]:
        """Return the names of all topics that this client may see."""
        with self._caller_lock:
            subscription = self._steps.membership.subscription
            keep = subscription is not None and subscription.pattern is not None
            all_topics = yield from self._core.topics.all_names(self.deadline(timeout), keep=keep)
            return {topic.name for topic in all_topics if internal or not topic.is_internal}

    # ---- the end ----

    def close(
        self, timeout: float | None, *, is_interrupted: bool, begin: Callable[[], object]
    ) -> Steps[None]:
        """Close the consumer, once no other caller is in a call.

        Args:
            timeout: seconds; None: default.api.timeout.ms.
            is_interrupted: whether an exception is on its way; see `UserCursor.give_up`.
            begin: called before anything is closed.
        """
        if self._core.has_ended:
            return
        deadline = self.deadline(timeout)
        closing = Closing()
        try:
            if (yield from self._caller_lock.acquire_to_close(closing, deadline)):
                begin()
                yield from self._steps.close(deadline, is_interrupted=is_interrupted)
        finally:
            self._caller_lock.release_to_close(closing)
