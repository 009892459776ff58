"""What the blocking consumer and that of asyncio have in common: all that cannot wait."""

from __future__ import annotations

import itertools
import re
import weakref
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kafka_fast.config import CONSUMER_PROTOCOL, consumer_settings, peek, warn_of_weakness
from kafka_fast.consumer.arguments import (
    most_records,
    one_by_one,
    rebalance_listener,
    rebalance_reason,
    subscription,
    topic_partitions,
    unix_ms,
)
from kafka_fast.control.arguments import offset_to_read
from kafka_fast.errors import UsageError
from kafka_fast.logs import count_of, naming
from kafka_fast.net.process import process_life  # noqa: F401  # registers
from kafka_fast.times import timeout_seconds
from kafka_fast.types import GroupMetadata, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from datetime import datetime

    from kafka_fast.consumer.consumer_core import ConsumerCore
    from kafka_fast.consumer.group.rebalances import HearsOfRebalances
    from kafka_fast.consumer.reading.record_handover import RecordHandover

ITERATION_WAIT = 1.0
"""Seconds that one step of an iteration waits; the iteration repeats such steps without end."""

_numbers = itertools.count(1)


class ConsumerBase:
    """A consumer without the calls that may wait; see `Consumer` and `aio.Consumer`."""

    def __init__(self, config: Mapping[str, object] | None, properties: Mapping[str, Any]) -> None:
        """Start the consumer.

        Args:
            config: properties, dotted or with underscores.
            properties: the same as keywords.
        """
        group = peek("group.id", config, properties)
        number = next(_numbers)
        self.client_id = peek("client.id", config, properties) or (
            f"consumer-{group}-{number}" if group else f"consumer-{number}"
        )
        with naming(self.client_id):
            try:
                self._settings = consumer_settings(config, properties)
            finally:
                del config, properties  # a traceback that has this frame shows no secret
            # Here: see `start_core` in producer/base.py.
            from kafka_fast.consumer.caller_lock import CallerLock
            from kafka_fast.consumer.calls import ConsumerCalls
            from kafka_fast.consumer.consumer_steps import ConsumerSteps

            warn_of_weakness(self._settings.tls)
            self._core = self._make_core()
        self._reading = self._core.reading
        self._caller_lock = CallerLock(self._core)
        self._steps = ConsumerSteps(self, self._core, self._settings, self._refill)
        self._calls = ConsumerCalls(self._core, self._settings, self._caller_lock, self._steps)
        self._cursor = self._steps.cursor
        self._membership = self._steps.membership
        self._finalizer = weakref.finalize(self, self._core.abandon)
        self._finalizer.atexit = False

    def _make_core(self) -> ConsumerCore:
        """Return the core, on the host of this kind of callers."""
        raise NotImplementedError

    def _refill(self, handover: RecordHandover) -> None:
        """Wait for records without limit and take them; all records before are covered."""
        raise NotImplementedError

    # ---- subscription and assignment ----

    def _subscribe(
        self,
        topics: Iterable[str] | None,
        pattern: str | re.Pattern[str] | None,
        listener: HearsOfRebalances | None,
    ) -> bool:
        """Do what `subscribe` says; False: the call means `unsubscribe`, and nothing was done."""
        with self._caller_lock:
            rebalance_listener(listener)
            by_broker = self._settings.group_protocol == CONSUMER_PROTOCOL
            new_subscription = subscription(topics, pattern, broker_side=by_broker)
            if new_subscription is None:
                return False
            if not self._membership.is_subscribed and self._reading.buffer.partitions:
                raise UsageError("partitions are assigned by hand: unsubscribe() first")
            self._membership.subscribe(new_subscription, listener)
            return True

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions and no others, without sharing them with a group.

        Partitions that were assigned before are read on undisturbed. With a group.id, reading
        begins at the committed offsets.

        Raises:
            UsageError: the consumer is subscribed.
        """
        with self._caller_lock:
            if self._membership.is_subscribed:
                raise UsageError("the group decides what is read: unsubscribe() first")
            requested = topic_partitions(partitions)
            gone = frozenset(self._reading.buffer.partitions) - frozenset(requested)
            if gone:
                self._membership.commit_in_background()
            self._reading.assign(requested)
            self._cursor.drop_partitions(gone)

    def assignment(self) -> set[TopicPartition]:
        """Return the partitions that are read now."""
        with self._caller_lock:
            return set(self._reading.buffer.partitions)

    def subscription(self) -> set[str]:
        """Return the topics that were subscribed by name."""
        with self._caller_lock:
            current = self._membership.subscription
            return set() if current is None else set(current.topics)

    # ---- records ----

    def _begin_take(self, timeout: float, max_records: int | None) -> tuple[int, float]:
        """Start a poll: automatic commits then cover all records that the user got before it.

        The caller holds the lock.

        Returns:
            The most records to take, and the deadline.
        """
        most = self._settings.max_poll_records if max_records is None else most_records(max_records)
        deadline = self._core.now() + timeout_seconds(timeout)
        self._steps.begin_poll()
        return most, deadline

    def _end_take(self) -> None:
        """Raise WakeupError if the consumer was closed, or another caller closes it."""
        self._core.waits.check_closed()
        self._core.waits.check_closer()

    def wakeup(self) -> None:
        """Raise WakeupError in the thread or task that uses this consumer. Any thread.

        The error ends the wait that this thread or task is in, or its next poll or wait. A loop
        over records ends after the current record.
        """
        self._core.wakeup()
        self._cursor.interrupt()

    # ---- positions ----

    def seek(
        self,
        partition: TopicPartition,
        offset: int | OffsetAndMetadata,
    ) -> None:
        """Read a partition on from this offset.

        Args:
            partition: an assigned partition.
            offset: offset of the record to read next. An OffsetAndMetadata with a leader epoch is
                validated (KIP-320).
        """
        with self._caller_lock:
            (own,) = self._calls.assigned(one_by_one((partition,), "seek", "partition, offset"))
            at = offset_to_read(offset, own)
            self._reading.seek(own, at.offset, at.leader_epoch)
            self._cursor.drop_unread({own})

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Read on from the first offset of these partitions; without any, of all assigned ones."""
        self._look_up(one_by_one(partitions, "seek_to_beginning"), "earliest")

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Read on from the end of these partitions; without any, of all assigned ones."""
        self._look_up(one_by_one(partitions, "seek_to_end"), "latest")

    def seek_to_timestamp(self, timestamp_ms: int | datetime, *partitions: TopicPartition) -> None:
        """Read on from the first record that is not older than a time.

        A partition without such a record is read on from its end.

        Args:
            timestamp_ms: Unix ms, or a datetime with a time zone.
            partitions: without any, all assigned partitions.
        """
        own = one_by_one(partitions, "seek_to_timestamp", "timestamp_ms, *partitions")
        self._look_up(own, unix_ms(timestamp_ms))

    def _look_up(self, partitions: tuple[TopicPartition, ...], reset: str | int) -> None:
        with self._caller_lock:
            own = self._calls.assigned(partitions or self._reading.buffer.partitions)
            for partition in own:
                self._reading.look_up(partition, reset)
            self._cursor.drop_unread(own)

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand over no records of these partitions until `resume`; fetched records are kept."""
        with self._caller_lock:
            own = self._calls.assigned(one_by_one(partitions, "pause"))
            self._cursor.hold(own)
            for partition in own:
                self._reading.buffer.pause(partition, True)

    def resume(self, *partitions: TopicPartition) -> None:
        """Hand over records of these partitions again."""
        with self._caller_lock:
            own = self._calls.assigned(one_by_one(partitions, "resume"))
            self._cursor.release(own)
            for partition in own:
                self._reading.buffer.pause(partition, False)

    def paused(self) -> set[TopicPartition]:
        """Return the partitions that are paused."""
        with self._caller_lock:
            return self._reading.buffer.paused

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Return how far a partition's end was away at its last fetch; None: not known."""
        with self._caller_lock:
            (own,) = self._calls.assigned(one_by_one((partition,), "current_lag", "partition"))
            unread = self._cursor.first_offsets().get(own)
            return self._reading.buffer.lag(own, None if unread is None else unread.offset)

    # ---- the group ----

    def group_metadata(self) -> GroupMetadata:
        """Return this member's identity, for a producer that commits in its name (transactions)."""
        with self._caller_lock:
            who = self._membership.group.member.identity
            return GroupMetadata(
                self._settings.group_id or "", who.generation, who.member_id, who.instance_id
            )

    def enforce_rebalance(self, reason: str = "the user asked for it") -> None:
        """Have the group share out its partitions again, in a later poll.

        Args:
            reason: for the log of the coordinator, which gets its first 255 characters.
        """
        text = rebalance_reason(reason)
        with self._caller_lock:
            member = self._membership.group.member
            self._core.call(lambda now: member.rejoin(text, now))

    def metrics(self) -> dict[str, Any]:
        """Return counters of fetches, buffers, troubles and nodes, and the latest rebalances.

        The page "Metrics" lists each name with its unit and its meaning. A node's counters cover
        all connections to it: for fetches, for other requests, and to it as the group's
        coordinator. Node -1 stands for bootstrap.servers.

        Any thread, and also after `close`.
        """
        self._core.check_lives()
        return {
            "client_id": self.client_id,
            **self._core.stats(),
            "rebalances": list(self._membership.events),
        }

    # ---- the end ----

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Refuse to be pickled."""
        raise TypeError(
            "a Consumer cannot be pickled or copied: make one in each process (for Spark, use "
            "format('kafka_fast'))"
        )

    def __repr__(self) -> str:
        if not hasattr(self, "_reading"):
            return "<Consumer, not made>"  # its constructor has failed, and an error is reported
        count = len(self._reading.buffer.partitions)
        state = "closed" if self._core.closed else count_of(count, "partition")
        return f"Consumer({self.client_id!r}, {state})"
