"""The public class `aio.Consumer`: the consumer for tasks of asyncio's event loops."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Generic

from kafka_fast._hints import hint_at_names
from kafka_fast.aio.listener import RebalanceListener
from kafka_fast.consumer.arguments import most_records
from kafka_fast.consumer.base import ITERATION_WAIT, ConsumerBase
from kafka_fast.consumer.reading.for_statement import looping_frame
from kafka_fast.consumer.reading.record_handover import RecordHandover
from kafka_fast.consumer.typed import K_co, V_co
from kafka_fast.errors import UsageError
from kafka_fast.logs import ClientLog
from kafka_fast.peer_names import AIO_CONSUMER, CONSUMER_ARGUMENTS
from kafka_fast.records._async_records import AsyncRecords
from kafka_fast.records._consumer_record import ConsumerRecord
from kafka_fast.records._consumer_records import ConsumerRecords
from kafka_fast.types import (
    OffsetAndMetadata,
    OffsetAndTimestamp,
    PartitionInfo,
    TopicPartition,
)

if TYPE_CHECKING:
    from datetime import datetime

    from typing_extensions import Self, Unpack

    from kafka_fast.config.properties import ConsumerProperties
    from kafka_fast.consumer.consumer_core import ConsumerCore
    from kafka_fast.consumer.group.membership import OnCommit
    from kafka_fast.consumer.reading.commit_argument import Upto
    from kafka_fast.net.waiting.looping import LoopDriver


class Consumer(ConsumerBase, Generic[K_co, V_co]):
    """Reads records, alone or as a member of a group. For one task at a time.

    In an event loop, methods that may wait are coroutines. A cancelled call leaves the consumer
    consistent: a poll loses no record, and a commit or a close that was begun goes on in the
    background.

    Examples:
        >>> async with Consumer(bootstrap_servers="localhost:9092", group_id="g") as consumer:
        ...     consumer.subscribe(["events"])
        ...     async for record in consumer:
        ...         print(record.offset, record.value)

    Args:
        config: Java's property names, dotted or with underscores; see the configuration page.
        **properties: the same properties as keywords, such as `group_id=...`.

    Raises:
        ConfigError: a property is unknown, out of range or contradicts another.
    """

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        **properties: Unpack[ConsumerProperties],
    ) -> None:
        try:
            super().__init__(config, properties)
        finally:
            del config, properties  # a traceback that has this frame shows no secret
        self._closing: asyncio.Task[None] | None = None

    def _make_core(self) -> ConsumerCore:
        from kafka_fast.consumer.consumer_core import ConsumerCore
        from kafka_fast.net.threaded_host import ThreadedHost
        from kafka_fast.net.waiting.looping import TaskCallers

        host = ThreadedHost(self._settings, TaskCallers())
        core = ConsumerCore(self._settings, self.client_id, host)
        self._driver: LoopDriver = host.make_loop_driver(core.plane)
        return core

    # ---- subscription ----

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
            topics: names of topics.
            pattern: a regular expression instead of names: every topic whose whole name matches is
                read. With group.protocol=consumer a str is RE2 and matched by the broker.
            listener: hears of partitions that come and go, in the task that polls.

        Raises:
            UsageError: there is no group.id, partitions were assigned by hand, or both or neither
                of topics and pattern are given; or the list of topics is empty: `await
                unsubscribe()` to read none.
        """
        if not self._subscribe(topics, pattern, listener):
            raise UsageError("no topics are given: `await consumer.unsubscribe()` to read none")

    async def unsubscribe(self) -> None:
        """Commit if that is automatic, as `close` does; stop reading, and leave the group."""
        await self._driver.run(self._calls.unsubscribe())

    # ---- records ----

    async def poll(
        self, timeout: float = 1.0, max_records: int | None = None
    ) -> ConsumerRecords[K_co, V_co]:
        """Return records, as soon as there are any.

        Automatic commits now cover the records of earlier calls. Rebalances happen in this call,
        and so the listener is called in it.

        In an event loop, other tasks run at least once a millisecond, even if there are always
        records.

        Args:
            timeout: seconds to wait if there are no records; 0 takes those that are already here.
            max_records: most records to return; None: max.poll.records.

        Raises:
            UsageError: nothing is subscribed or assigned.
            PositionError: a partition cannot be read on from its position; `seek` to go on.
            CorruptBatchError: a partition has a bad batch; the message says how to pass it.
            AssignorError: an assignor of partition.assignment.strategy has failed.
            WakeupError: another task called `wakeup` or `close`.
            KafkaError: the group does not accept this member, or a partition cannot be read.
        """
        handover = RecordHandover()
        try:
            await self._take(handover, timeout, max_records)
            return self._cursor.settle(handover)
        except BaseException:  # a cancellation, too
            self._cursor.take_back(handover)
            raise

    async def _take(
        self, handover: RecordHandover, timeout: float, max_records: int | None
    ) -> None:
        """Take the records that a poll returns."""
        with self._caller_lock:
            most, deadline = self._begin_take(timeout, max_records)
            await self._driver.yield_if_due()  # not before: a cancellation interrupts no work now
            if not self._steps.try_poll(most, handover):
                await self._driver.run(self._steps.poll(most, handover, deadline))
            self._end_take()

    def _refill(self, handover: RecordHandover) -> None:
        """Never called: the iterator of an event loop is refilled by `_next_record`."""
        raise AssertionError("an iterator was asked for a record that it does not have")

    def __aiter__(self) -> AsyncIterator[ConsumerRecord[K_co, V_co]]:
        """Read record by record, without end; `wakeup` ends the loop after the current record.

        A record is covered by automatic commits when the next one is asked for, or another loop
        begins. An `async for` statement over the consumer itself that is left by `break` or
        `return` covers its last record, too; one that is left by an exception does not. The records
        that a loop has not reached come with the next poll or loop.
        """
        with self._caller_lock:
            records = self._cursor.the_iterator()
            frame = looping_frame(sys._getframe().f_back)
            return AsyncRecords(records, self._next_record, frame, self._core.plane)

    async def _next_record(self, loop: AsyncRecords) -> ConsumerRecord:
        """Let other tasks run, if the event loop was held for too long; return the next record."""
        is_first = loop.begin_next()
        with self._caller_lock:
            self._cursor.cover_handed_over()  # a cancellation from here on interrupts no work
            if is_first:
                await self._driver.run(self._calls.begin_loop())
            await self._driver.yield_if_due()
            self._core.waits.check_wakeup()
            if self._cursor.the_iterator().has_next():
                self._cursor.note_reached()
            else:
                await self._refill_loop()
        return loop.take_next()

    async def _refill_loop(self) -> None:
        """Wait for records without limit, and have the iterator go on with them."""
        handover = RecordHandover()
        try:
            while not handover:
                await self._take(handover, ITERATION_WAIT, None)
            self._cursor.iterate_over_taken(handover)
        except BaseException:  # a cancellation, too
            self._cursor.take_back(handover)
            raise

    def batches(self, max_records: int | None = None) -> AsyncIterator[ConsumerRecords[K_co, V_co]]:
        """Return an endless iterator over the records of polls; empty polls are left out.

        Automatic commits cover a batch when the next one is asked for, and not when the loop is
        left. To commit what was handled of a batch, call `commit(upto=record)` with the last record
        that was handled.
        """
        if max_records is not None:
            max_records = most_records(max_records)
        return AsyncBatches(partial(self._next_batch, max_records))

    async def _next_batch(self, max_records: int | None) -> ConsumerRecords:
        """Wait for records without limit and return them; all records before are covered."""
        with self._caller_lock:
            while not (records := await self.poll(ITERATION_WAIT, max_records)):
                pass
            return records

    # ---- positions and offsets ----

    async def position(self, partition: TopicPartition, timeout: float | None = None) -> int:
        """Return the offset of the record that comes next.

        Raises:
            KafkaTimeoutError: the position was not known within `timeout` seconds.
            PositionError: there is no position.
        """
        return await self._driver.run(self._calls.position(partition, timeout))

    async def commit(
        self,
        upto: Upto | None = None,
        *,
        sync: bool = True,
        timeout: float | None = None,
        callback: OnCommit | None = None,
    ) -> None:
        """Commit offsets for the group.

        In an event loop, the callback may be a coroutine. With `sync=False` this does not wait.

        Args:
            upto: records that are done, the last record that is done of its partition, or the
                offsets to read next; None: all records that were handed over.
            sync: whether to wait. Otherwise the callback gets the outcome; without a callback only
                a failure is logged. Commits never overtake each other.
            timeout: seconds; None: default.api.timeout.ms.
            callback: called as `(offsets, error)` in a later poll, commit or close. With `sync` it
                is called before this call returns, and only if nothing is raised.

        Raises:
            CommitFailedError: the group has moved on, or a partition is not ours any more, or not
                yet.
            KafkaTimeoutError: no answer within `timeout`; the commit may or may not be done.
            UsageError: there is no group.id.
        """
        await self._driver.run(
            self._calls.commit(upto, sync=sync, timeout=timeout, callback=callback)
        )

    async def committed(
        self, partitions: Iterable[TopicPartition] | None = None, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the group's committed offsets; None for partitions that have none.

        Args:
            partitions: partitions to ask for; None: all that the group has committed.
            timeout: seconds; None: default.api.timeout.ms.
        """
        return await self._driver.run(self._calls.committed(partitions, timeout))

    async def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset of each partition.

        Raises:
            KafkaTimeoutError: some offsets did not come within `timeout` seconds; the message
                names their partitions.
            BrokerError: a topic may not be read, or the brokers have said for three seconds that
                there is no such topic or partition.
        """
        return await self._driver.run(self._calls.beginning_offsets(partitions, timeout))

    async def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the end of each partition; with read_committed, its last stable offset.

        Raises:
            KafkaError: as in `beginning_offsets`.
        """
        return await self._driver.run(self._calls.end_offsets(partitions, timeout))

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int | datetime], timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return each partition's first record that is not older than a time; None if none is.

        Args:
            timestamps: Unix ms, or datetimes with a time zone, by partition.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            KafkaError: as in `beginning_offsets`.
        """
        return await self._driver.run(self._calls.offsets_for_times(timestamps, timeout))

    async def lag(self, timeout: float | None = None) -> dict[TopicPartition, int]:
        """Return how many offsets each assigned partition is behind its end, asking the brokers."""
        return await self._driver.run(self._calls.lag(timeout))

    # ---- the cluster ----

    async def partitions_for(
        self, topics: str | Iterable[str], timeout: float | None = None, *, refresh: bool = False
    ) -> list[PartitionInfo]:
        """Return leader, replicas and state of each partition of a topic, or of several.

        Args:
            topics: a topic, or several; they are asked for in one request.
            timeout: seconds; None: default.api.timeout.ms.
            refresh: whether to ask a broker, even about topics that are known. What is known may be
                as old as metadata.max.age.ms: partitions that were added, and topics that were
                deleted or created again, are seen with `refresh` only.

        Raises:
            KafkaTimeoutError: a topic is not known within `timeout` seconds.
            BrokerError: a topic cannot be used, or the brokers have said for three seconds that
                there is no such topic: news of a new topic takes a moment to reach all brokers.
        """
        return await self._driver.run(self._calls.partitions_for(topics, timeout, refresh=refresh))

    async def topics(self, timeout: float | None = None, *, internal: bool = False) -> set[str]:
        """Return the names of all topics that this client may see.

        Args:
            timeout: seconds; None: default.api.timeout.ms.
            internal: whether to include internal topics, which brokers keep for themselves.
        """
        return await self._driver.run(self._calls.topics(timeout, internal=internal))

    async def debug_dump(self, timeout: float = 5.0) -> str:
        """Return what this consumer waits for and did lately, as text for a bug report.

        For each partition, in one line: its state and since when, its position, how far it was
        handed over, the connection that fetches it, and why it is not read, if it is not. For each
        connection: its latest events, without the contents of records. Connections that do not
        answer within `timeout` seconds are missing. Any task.
        """
        return await self._driver.run(self._core.debug_dump(timeout))

    # ---- the end ----

    async def close(self, timeout: float | None = None) -> None:
        """Commit if that is automatic, tell the listener, leave the group, and stop. Any task.

        An automatic commit covers a record only if the next one was asked for, or if an `async for`
        statement over the consumer itself was left after it by `break` or `return`. So the records
        of the last poll or batch are not committed: call `commit` for these. While an exception is
        being handled, the last record of a loop is not committed in any case. In a listener that
        this call runs, `commit()` without arguments commits no more either. kafka-python,
        confluent-kafka and aiokafka commit all that was returned, also a record whose handler has
        raised.

        A static member (group.instance.id) does not leave: its partitions wait for its return.

        If another task is in a call, that call ends with a WakeupError, and its records are not
        committed. This call waits for that, then closes. A second call does nothing. A call in a
        forked child does nothing either.

        In an event loop, a close that is cancelled goes on in the background, in a task of its own.

        Args:
            timeout: seconds for all of this; None: default.api.timeout.ms. With 0, leaving the
                group is still tried for 0.1 s.

        Raises:
            KafkaTimeoutError: another task did not come out of its call: nothing is closed.
        """
        await self._close(timeout, is_interrupted=sys.exc_info()[0] is not None)

    async def _close(self, timeout: float | None, *, is_interrupted: bool) -> None:
        steps = self._calls.close(
            timeout, is_interrupted=is_interrupted, begin=self._finalizer.detach
        )
        if self._core.has_ended or self._caller_lock.is_mine:
            await self._driver.run(steps)  # nothing to do, or within a call of this same task
            return
        closing = asyncio.create_task(self._driver.run(steps), name=f"close of {self.client_id}")
        self._closing = closing  # the loop itself keeps no task
        try:
            await asyncio.shield(closing)
        except asyncio.CancelledError:
            closing.add_done_callback(self._log_failure)  # even if it has just failed
            raise

    def _log_failure(self, closing: asyncio.Task[None]) -> None:
        """Log why a close in the background has failed: its caller has given up waiting for it."""
        if closing.cancelled():
            return
        error = closing.exception()
        if error is not None:
            log = ClientLog("kafka_fast.consumer", self.client_id)
            log.error("the close of this consumer has failed", exc_info=error)

    async def __aenter__(self) -> Self:
        """Return the consumer itself; leaving the block closes it."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close, as `close` does; an exception of this block counts as being handled."""
        await self._close(None, is_interrupted=error is not None)


hint_at_names(Consumer, AIO_CONSUMER, CONSUMER_ARGUMENTS)


class AsyncBatches:
    """An asynchronous iterator over polls' records.

    This is not a generator, because an exception that is thrown into a generator may concern the
    records that it yielded last.
    """

    def __init__(self, next_batch: Callable[[], Awaitable[ConsumerRecords]]) -> None:
        self._next_batch = next_batch

    def __aiter__(self) -> AsyncBatches:
        return self

    async def __anext__(self) -> ConsumerRecords:
        """Wait for records. Automatic commits cover all records that were returned before."""
        return await self._next_batch()
