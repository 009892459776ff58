"""The public class `Consumer`, which checks arguments and sets deadlines; others do the work."""

from __future__ import annotations

import itertools
import re
import weakref
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kafka_fast.config import CONSUMER_PROTOCOL, consumer_settings, warn_of_weakness
from kafka_fast.consumer.arguments import (
    offset_to_read,
    seconds,
    subscription,
    topic_names,
    topic_partition,
    topic_partitions,
    unix_ms,
)
from kafka_fast.consumer.batches import Batches
from kafka_fast.consumer.core import ConsumerCore
from kafka_fast.consumer.listener import RebalanceListener
from kafka_fast.consumer.membership import OnCommit
from kafka_fast.consumer.record_handover import RecordHandover
from kafka_fast.consumer.steps import ConsumerSteps
from kafka_fast.consumer.turn import Turn
from kafka_fast.consumer.upto import Upto, offsets_of
from kafka_fast.control.consumer.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from kafka_fast.dataplane.fetch._consumer_record import ConsumerRecord
from kafka_fast.dataplane.fetch._consumer_records import ConsumerRecords
from kafka_fast.errors import UsageError
from kafka_fast.logs import get_logger
from kafka_fast.net.threaded_host import ThreadedHost
from kafka_fast.types import (
    GroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    PartitionInfo,
    TopicPartition,
)

if TYPE_CHECKING:
    from datetime import datetime

    from typing_extensions import Unpack

    from kafka_fast.config.properties import ConsumerProperties

logger = get_logger("kafka_fast.consumer")

_numbers = itertools.count(1)

ITERATION_WAIT = 1.0
"""Seconds that one step of an iteration waits; the iteration repeats such steps without end."""

FOREVER = 1e9


class Consumer:
    """Reads records, alone or as a member of a group. For one thread at a time.

    Example:
        >>> with Consumer({"bootstrap.servers": "localhost:9092", "group.id": "g"}) as consumer:
        ...     consumer.subscribe(["events"])
        ...     for record in consumer:
        ...         print(record.offset, record.value)

    Args:
        config: Java's property names, dotted or with underscores; see the configuration page.
        **properties: The same properties as keywords, such as `group_id=...`.

    Raises:
        ConfigError: A property is unknown, out of range or contradicts another.
    """

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        **properties: Unpack[ConsumerProperties],
    ) -> None:
        try:
            self._settings = consumer_settings(config, properties)
        finally:
            del config, properties  # a traceback that has this frame shows no secret
        warn_of_weakness(self._settings)
        group = self._settings.group_id
        number = next(_numbers)
        self.client_id = self._settings.client_id or (
            f"consumer-{group}-{number}" if group else f"consumer-{number}"
        )
        self._core = self._make_core()
        self._reading = self._core.reading
        self._turn = Turn(self._core)
        self._run = self._core.driver.run
        self._steps = ConsumerSteps(self, self._core, self._settings, self._refill)
        self._unread = self._steps.unread
        self._membership = self._steps.membership
        self._finalizer = weakref.finalize(self, self._core.abandon)
        self._finalizer.atexit = False

    def _make_core(self) -> ConsumerCore:
        """Return the core; the simulation overrides this to give it another host."""
        return ConsumerCore(self._settings, self.client_id, ThreadedHost(self._settings))

    # Subscription and assignment

    def subscribe(
        self,
        topics: Iterable[str] | None = None,
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Read these topics as a member of the group, which shares out their partitions.

        Replaces the last subscription, and takes effect in `poll`. If a topic cannot be used (its
        name is not valid, or we may not read it), `poll` raises once; the other topics are read on.

        Args:
            topics: Names of topics; an empty list is the same as `unsubscribe`.
            pattern: A regular expression instead of names: every topic whose whole name matches is
                read. With group.protocol=consumer a str is RE2 and matched by the broker.
            listener: Hears of partitions that come and go, in the thread that polls.

        Raises:
            UsageError: There is no group.id, partitions were assigned by hand, or both or
                neither of topics and pattern are given.
        """
        with self._turn:
            by_broker = self._settings.group_protocol == CONSUMER_PROTOCOL
            wanted = subscription(topics, pattern, broker_side=by_broker)
            if wanted is None:
                self.unsubscribe()
                return
            if not self._membership.is_subscribed and self._reading.intake.partitions:
                raise UsageError("partitions are assigned by hand: unsubscribe() first")
            self._membership.subscribe(wanted, listener)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions and no others, without sharing them with a group.

        Partitions that were assigned before are read on undisturbed. With a group.id, reading
        begins at the committed offsets.

        Raises:
            UsageError: The consumer is subscribed.
        """
        with self._turn:
            if self._membership.is_subscribed:
                raise UsageError("the group decides what is read: unsubscribe() first")
            wanted = topic_partitions(partitions)
            gone = frozenset(self._reading.intake.partitions) - frozenset(wanted)
            if gone:
                self._membership.commit_in_background()
            self._unread.forget(gone)
            self._reading.assign(wanted)

    def unsubscribe(self) -> None:
        """Stop reading, and leave the group."""
        with self._turn:
            self._run(self._steps.unsubscribe(self._deadline(None)))

    def assignment(self) -> set[TopicPartition]:
        """Return the partitions that are read now."""
        with self._turn:
            return set(self._reading.intake.partitions)

    def subscription(self) -> set[str]:
        """Return the topics that were subscribed by name."""
        with self._turn:
            wanted = self._membership.subscription
            return set() if wanted is None else set(wanted.topics)

    # Records

    def poll(self, timeout: float = 1.0, max_records: int | None = None) -> ConsumerRecords:
        """Return records, as soon as there are any.

        Records of earlier calls now count as done, for automatic commits. Rebalances happen in this
        call, and so the listener is called in it.

        Args:
            timeout: Seconds to wait if there are no records; 0 takes those that are already here.
            max_records: Most records to return; None: max.poll.records.

        Raises:
            UsageError: Nothing is subscribed or assigned.
            PositionError: A partition cannot be read on from its position; `seek` to go on.
            CorruptBatchError: A partition has a bad batch; the message says how to pass it.
            WakeupError: Another thread called `wakeup` or `close`.
            KafkaError: The group does not accept this member, or a partition cannot be read.
        """
        handover = RecordHandover()
        try:
            self._take(handover, timeout, max_records)
            return self._unread.settle(handover)
        except BaseException:  # Ctrl-C, too
            self._unread.take_back(handover)
            raise

    def _take(self, handover: RecordHandover, timeout: float, max_records: int | None) -> None:
        """Take the records that a poll returns."""
        with self._turn:
            most = self._settings.max_poll_records if max_records is None else max_records
            if most < 1:
                raise UsageError(f"max_records must be at least 1, not {max_records}")
            deadline = self._core.now() + seconds(timeout)
            self._steps.begin_poll()
            if not self._steps.try_poll(most, handover):
                self._run(self._steps.poll(most, handover, deadline))
            self._core.waits.check_closed()
            self._core.waits.check_closer()

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Read record by record, for ever.

        A record counts as done when the next one is asked for, or another loop begins. If a loop is
        left, the records that it has not reached come with the next poll or loop.
        """
        with self._turn:
            if self._settings.group_id is not None:
                # A rebalance may have given away partitions of an earlier loop's unread records.
                self._run(self._membership.handle_news())
            return self._unread.iterator()

    def _refill(self, handover: RecordHandover, max_records: int | None = None) -> None:
        """Wait for records without limit and take them; all records before count as done."""
        while not handover:
            self._take(handover, ITERATION_WAIT, max_records)

    def batches(self, max_records: int | None = None) -> Iterator[ConsumerRecords]:
        """Return an endless iterator over the records of polls; empty polls are left out."""
        return Batches(self._unread, partial(self._refill, max_records=max_records))

    def wakeup(self) -> None:
        """Raise WakeupError in the thread that uses this consumer. Any thread.

        The error ends the wait that the other thread is in, or its next poll or wait.
        """
        self._core.wakeup()

    # Positions

    def seek(
        self,
        partition: TopicPartition,
        offset: int | OffsetAndMetadata,
    ) -> None:
        """Read a partition on from this offset.

        Args:
            partition: An assigned partition.
            offset: Offset of the record to read next. An OffsetAndMetadata with a leader epoch is
                validated (KIP-320).
        """
        with self._turn:
            (own,) = self._assigned([partition])
            at = offset_to_read(offset, own)
            self._unread.forget({own})
            self._reading.seek(own, at.offset, at.leader_epoch)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        """Read on from the first offset of these partitions; without any, of all assigned ones."""
        self._look_up(partitions, "earliest")

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        """Read on from the end of these partitions; without any, of all assigned ones."""
        self._look_up(partitions, "latest")

    def seek_to_timestamp(self, timestamp_ms: int | datetime, *partitions: TopicPartition) -> None:
        """Read on from the first record that is not older than a time.

        A partition without such a record is read on from its end.

        Args:
            timestamp_ms: Unix ms, or a datetime with a time zone.
            partitions: Without any, all assigned partitions.
        """
        self._look_up(partitions, unix_ms(timestamp_ms))

    def _look_up(self, partitions: tuple[TopicPartition, ...], reset: str | int) -> None:
        with self._turn:
            own = self._assigned(partitions or self._reading.intake.partitions)
            self._unread.forget(own)
            for partition in own:
                self._reading.look_up(partition, reset)

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand over no records of these partitions until `resume`; fetched records are kept."""
        with self._turn:
            own = self._assigned(partitions)
            self._unread.hold(own)
            for partition in own:
                self._reading.intake.pause(partition, True)

    def resume(self, *partitions: TopicPartition) -> None:
        """Hand over records of these partitions again."""
        with self._turn:
            own = self._assigned(partitions)
            self._unread.release(own)
            for partition in own:
                self._reading.intake.pause(partition, False)

    def paused(self) -> set[TopicPartition]:
        """Return the partitions that are paused."""
        with self._turn:
            return self._reading.intake.paused

    def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        """Return the offset of the record that comes next.

        Raises:
            KafkaTimeoutError: The position was not known within `timeout` seconds.
            PositionError: There is no position.
        """
        with self._turn:
            (own,) = self._assigned([partition])
            return self._run(self._steps.position(own, self._deadline(timeout)))

    def _assigned(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return checked partitions; raise UsageError if one is not assigned."""
        own = topic_partitions(partitions)
        foreign = [it for it in own if self._reading.intake.read_partition(it) is None]
        if foreign:
            raise UsageError(f"not assigned to this consumer: {', '.join(map(str, foreign))}")
        return own

    # Offsets

    def commit(
        self,
        upto: Upto | None = None,
        *,
        sync: bool = True,
        timeout: float | None = None,
        callback: OnCommit | None = None,
    ) -> None:
        """Commit offsets for the group.

        Args:
            upto: Records that are done, the last record that is done, or the offsets to read next;
                None: all records that were handed over.
            sync: Whether to wait. Otherwise the callback gets the outcome; without a callback only
                a failure is logged. Commits never overtake each other.
            timeout: Seconds; None: default.api.timeout.ms.
            callback: Called as `(offsets, error)` in a later poll, commit or close. With `sync` it
                is called before this call returns, and only if nothing is raised.

        Raises:
            CommitFailedError: The group has moved on, or a partition is not ours any more, or not
                yet.
            KafkaTimeoutError: No answer within `timeout`; the commit may or may not be done.
            UsageError: There is no group.id.
        """
        with self._turn:
            self._membership.group  # noqa: B018  raises without a group.id
            offsets = self._unread.done_offsets() if upto is None else offsets_of(upto)
            deadline = self._deadline(timeout)
            if sync:
                self._run(self._membership.commit(offsets, deadline))
                self._unread.note_committed(offsets)
                if callback is not None:
                    callback(offsets, None)
            else:
                self._membership.commit_later(offsets, callback, deadline)
                self._unread.note_committed(offsets)

    def committed(
        self, partitions: Iterable[TopicPartition] | None = None, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's committed offsets; None for partitions that have none.

        Args:
            partitions: Partitions to ask for; None: all that the group has committed.
            timeout: Seconds; None: default.api.timeout.ms.
        """
        with self._turn:
            wanted = None if partitions is None else topic_partitions(partitions)
            return self._run(self._core.queries.committed(wanted, self._deadline(timeout)))

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset of each partition.

        Raises:
            KafkaTimeoutError: Some offsets did not come within `timeout` seconds; the message
                names their partitions.
            BrokerError: A topic may not be read, or the brokers have said for three seconds that
                there is no such topic or partition.
        """
        return self._offsets_at(partitions, EARLIEST_TIMESTAMP, timeout)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the end of each partition; with read_committed, its last stable offset.

        Raises:
            KafkaError: As in `beginning_offsets`.
        """
        return self._offsets_at(partitions, LATEST_TIMESTAMP, timeout)

    def _offsets_at(
        self, partitions: Iterable[TopicPartition], timestamp: int, timeout: float | None
    ) -> dict[TopicPartition, int]:
        with self._turn:
            wanted = dict.fromkeys(topic_partitions(partitions), timestamp)
            found = self._run(self._core.queries.offsets(wanted, self._deadline(timeout)))
            return {partition: found[partition].offset for partition in wanted}

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int | datetime], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return each partition's first record that is not older than a time; None if none is.

        Args:
            timestamps: Unix ms, or datetimes with a time zone, by partition.
            timeout: Seconds; None: default.api.timeout.ms.

        Raises:
            KafkaError: As in `beginning_offsets`.
        """
        with self._turn:
            wanted = {topic_partition(it): unix_ms(at, it) for it, at in timestamps.items()}
            found = self._run(self._core.queries.offsets(wanted, self._deadline(timeout)))
            return {
                partition: OffsetAndTimestamp(it.offset, it.timestamp, it.leader_epoch)
                if it.offset >= 0
                else None
                for partition in wanted
                for it in [found[partition]]
            }

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Return how far a partition's end was away at its last fetch; None: not known."""
        with self._turn:
            (own,) = self._assigned([partition])
            unread = self._unread.first_offsets().get(own)
            return self._reading.intake.lag(own, None if unread is None else unread.offset)

    def lag(self, timeout: float | None = None) -> dict[TopicPartition, int]:
        """Return how many offsets each assigned partition is behind its end, asking the brokers."""
        with self._turn:
            deadline = self._deadline(timeout)
            ends = self.end_offsets(self._reading.intake.partitions, timeout)
            return self._run(self._steps.lag(ends, deadline))

    # The cluster and the group

    def partitions_for(
        self, topics: str | Iterable[str], timeout: float | None = None, *, refresh: bool = False
    ) -> list[PartitionInfo]:
        """Return leader, replicas and state of each partition of a topic, or of several.

        Args:
            topics: A topic, or several; they are asked for in one request.
            timeout: Seconds; None: default.api.timeout.ms.
            refresh: Whether to ask a broker, even about topics that are known. What is known may be
                as old as metadata.max.age.ms: partitions that were added, and topics that were
                deleted or created again, are seen with `refresh` only.

        Raises:
            KafkaTimeoutError: A topic is not known within `timeout` seconds.
            BrokerError: A topic cannot be used, or the brokers have said for three seconds that
                there is no such topic: news of a new topic takes a moment to reach all brokers.
        """
        with self._turn:
            wanted = sorted(topic_names(topics))
            deadline = self._deadline(timeout)
            return self._run(self._core.topics.partitions(wanted, deadline, refresh=refresh))

    def topics(self, timeout: float | None = None, *, internal: bool = False) -> set[str]:
        """Return the names of all topics that this client may see.

        Args:
            timeout: Seconds; None: default.api.timeout.ms.
            internal: Whether to include internal topics, which brokers keep for themselves.
        """
        with self._turn:
            wanted = self._membership.subscription
            keep = wanted is not None and wanted.pattern is not None
            found = self._run(self._core.topics.all_names(self._deadline(timeout), keep=keep))
            return {topic.name for topic in found if internal or not topic.is_internal}

    def group_metadata(self) -> GroupMetadata:
        """Return this member's identity, for a producer that commits in its name (transactions)."""
        with self._turn:
            who = self._membership.group.member.identity
            return GroupMetadata(
                self._settings.group_id or "", who.generation, who.member_id, who.instance_id
            )

    def enforce_rebalance(self, reason: str = "the user asked for it") -> None:
        """Have the group share out its partitions again, in a later poll."""
        with self._turn:
            member = self._membership.group.member
            self._core.call(lambda now: member.rejoin(reason, now))

    def metrics(self) -> dict[str, Any]:
        """Return counters of fetches, buffers, troubles and nodes, and the latest rebalances.

        A node's counters cover all connections to it: for fetches, for other requests, and to it as
        the group's coordinator. Node -1 stands for bootstrap.servers.

        Any thread, and also after `close`.
        """
        self._core.check_lives()
        return {
            "client_id": self.client_id,
            **self._core.stats(),
            "rebalances": list(self._membership.events),
        }

    def debug_dump(self, timeout: float = 5.0) -> str:
        """Return what this consumer waits for and did lately, as text for a bug report.

        For each partition, in one line: its state and since when, its position, how far it was
        handed over, the connection that fetches it, and why it is not read, if it is not. For each
        connection: its latest events, without the contents of records. Connections that do not
        answer within `timeout` seconds are missing.
        Any thread.
        """
        return self._core.debug_dump(timeout)

    # The end

    def close(self, timeout: float | None = None) -> None:
        """Commit if that is automatic, tell the listener, leave the group, and stop. Any thread.

        All records that were handed over count as done; but see `__exit__`. A static member
        (group.instance.id) does not leave: its partitions wait for its return.

        If another thread is in a call, that call ends with a WakeupError, and its records do not
        count as done. This call waits for that, then closes. A second call does nothing. A call in
        a forked child does nothing either.

        Args:
            timeout: Seconds for all of this; None: default.api.timeout.ms.

        Raises:
            KafkaTimeoutError: Another thread did not come out of its call: nothing is closed.
        """
        self._close(timeout, is_interrupted=False)

    def _close(self, timeout: float | None, *, is_interrupted: bool) -> None:
        if self._core.has_ended:
            return
        deadline = self._deadline(timeout)
        with self._turn.to_close(deadline) as is_to_close:
            if is_to_close:
                self._finalizer.detach()
                self._run(self._steps.close(deadline, is_interrupted=is_interrupted))

    def __enter__(self) -> Consumer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close. Work that an exception has interrupted is not committed.

        Interrupted work is the record that a loop was working on, or the records of the last poll,
        except those that were committed by hand since. An exception of `poll` itself interrupts
        nothing.
        """
        self._close(None, is_interrupted=error is not None)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Refuse to be pickled."""
        raise TypeError("a Consumer cannot be pickled: make one where it is needed")

    def __repr__(self) -> str:
        if not hasattr(self, "_reading"):
            return "<Consumer, not made>"  # its constructor has failed, and an error is reported
        count = len(self._reading.intake.partitions)
        state = "closed" if self._core.closed else f"{count} partitions"
        return f"Consumer({self.client_id!r}, {state})"

    # Guards

    def _deadline(self, timeout: float | None) -> float:
        limit = self._settings.default_api_timeout if timeout is None else seconds(timeout)
        return self._core.now() + min(limit, FOREVER)
