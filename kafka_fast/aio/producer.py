"""The public class `aio.Producer`: the producer for tasks of asyncio's event loops.

`Producer` inherits `send` from the compiled `AsyncSender`: a record that finds its topic known and
room in its batch costs no coroutine of Python's. The accumulator behind it never waits: it raises
WouldWaitError, and the coroutine here waits and tries again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from contextlib import ExitStack, suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from kafka_fast._hints import hint_at_names
from kafka_fast.aio.callbacks import DeliveryCallbacks
from kafka_fast.aio.room_line import RoomLines
from kafka_fast.aio.transactional import TransactionalCalls
from kafka_fast.config import ProducerSettings
from kafka_fast.errors import KafkaError, UsageError, WouldWaitError
from kafka_fast.instants import NEVER
from kafka_fast.net.process.daemon_threads import daemon_threads
from kafka_fast.net.waiting.looping import LoopDriver
from kafka_fast.net.waiting.steps import Invoke, Steps, YieldToLoop
from kafka_fast.peer_names import AIO_PRODUCER, AIO_PRODUCER_ARGUMENTS
from kafka_fast.producer.base import (
    OnDelivery,
    ProducerBase,
    accumulator_options,
    serialize_both,
    start_core,
    transaction_steps_of,
)
from kafka_fast.producer.producer_steps import ProducerSteps
from kafka_fast.sending._delivery import DeliveryFuture
from kafka_fast.sending._sending import AsyncSender
from kafka_fast.sending.bulk._batch_future import BatchFuture
from kafka_fast.sending.bulk._bulk import BulkAccumulator
from kafka_fast.times import timeout_seconds
from kafka_fast.types import PartitionInfo, RecordMetadata

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from typing_extensions import Unpack

    from kafka_fast.config.properties import ProducerProperties
    from kafka_fast.dataplane.produce._produce_waits import RoomWait
    from kafka_fast.errors import DeliveryError
    from kafka_fast.producer.producer_core import ProducerCore

T = TypeVar("T")


class Producer(ProducerBase, TransactionalCalls, AsyncSender):
    """Sends records to Kafka. Any number of tasks and event loops may share it.

    In an event loop, methods that may wait are coroutines.

    Examples:
        >>> async with Producer({"bootstrap.servers": "localhost:9092"}) as producer:
        ...     delivery = await producer.send("events", b"value", key=b"key")
        ...     print((await delivery).offset)

    Args:
        config: Java's property names, dotted or with underscores; see the configuration page.
        on_delivery: called as `(error, metadata)` in the event loop, for every record that was sent
            without a callback of its own. May be a coroutine.
        **properties: the same properties as keywords, such as `bootstrap_servers=...`.

    Raises:
        ConfigError: a property is unknown, out of range or contradicts another.
    """

    def __init__(
        self,
        config: Mapping[str, object] | None = None,
        *,
        on_delivery: OnDelivery | None = None,
        **properties: Unpack[ProducerProperties],
    ) -> None:
        try:
            core, settings, host = start_core(config, properties, on_delivery)
        finally:
            del config, properties  # a traceback that has this frame shows no secret
        self.client_id = core.client_id
        with ExitStack() as undo:
            undo.callback(core.close, 0.0)
            callback = on_delivery or settings.on_delivery
            self._begin(core, settings, host.make_loop_driver(core.plane), callback)
            undo.pop_all()
        core.origin = self._origin

    def _begin(
        self,
        core: ProducerCore,
        settings: ProducerSettings,
        driver: LoopDriver,
        on_delivery: OnDelivery | None,
    ) -> None:
        """Set up what sends records through `core`, which already runs."""
        self._core = core
        self._driver = driver
        self._callbacks = DeliveryCallbacks(core.client_id, on_delivery, core.driver.wake, core.now)
        self._steps = ProducerSteps(core, settings.max_block)
        self._transactions = transaction_steps_of(core, settings)
        self._lines = RoomLines(driver, core.produce_waits.has_room, self)
        self._accumulator = _Accumulator(self, core, settings)
        runs_users_code = self._accumulator.prepares or on_delivery is not None
        self._set_accumulator(self._accumulator, runs_users_code)

    # ---- sending ----

    async def _send_waiting(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | datetime | None,
        headers: Any,
        on_delivery: OnDelivery | None,
    ) -> DeliveryFuture:
        """Send a record, after the waits that it needs."""
        callback = self._callbacks.in_this_loop(on_delivery)
        record = topic, value, key, partition, timestamp_ms, headers, callback
        return await self._or_stand_still(self._send_record(*record))

    async def _send_record(
        self,
        topic: str,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | datetime | None,
        headers: Any,
        callback: OnDelivery | None,
    ) -> DeliveryFuture:
        await self._driver.yield_if_due()
        accumulator = self._accumulator
        if isinstance(topic, str):
            topic = str.__str__(topic)  # the value of a member of an Enum
            if not self._core.queues.refuses:  # else the attempt raises
                await self._driver.run(accumulator._topic_steps(topic))
                key, value, partition = accumulator.prepare(topic, value, key, partition, headers)
        record = topic, value, key, partition, timestamp_ms, headers, callback
        if self._may_go_on():
            with suppress(WouldWaitError):
                return self._send_prepared(*record)
        line = self._lines.here()
        wait = self._steps.begin_room(topic)
        size = _rough_size(value) + _rough_size(key)
        place = await line.enter(size, wait.deadline)
        if place is None:
            raise wait.no_room_error()
        try:
            return await self._send_at_the_head(record, wait)
        finally:
            line.leave_line(place)

    async def _or_stand_still(self, sending: Awaitable[T]) -> T:
        """Await a call that sends; stand still, in place of its error, if the process ends."""
        try:
            return await sending
        except UsageError:
            if self._core.queues.refuses:
                await daemon_threads.hold_task()
            raise

    async def _send_at_the_head(self, record: tuple[Any, ...], wait: RoomWait) -> DeliveryFuture:
        """Send a record as soon as there is room; there may be less than it seems."""
        while True:
            try:
                return self._send_prepared(*record)
            except WouldWaitError as refusal:
                size = refusal.size
            await self._driver.run(self._steps.room(wait, size))

    async def send_and_wait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | datetime | None = None,
        headers: Iterable[tuple[str, Any]] | Mapping[str, Any] | None = None,
    ) -> RecordMetadata:
        """Send a record and wait until it is delivered; arguments and errors as for `send`.

        Raises:
            DeliveryError: the record was not, or perhaps not, delivered; `outcome` says which.
        """
        delivery = await self.send(
            topic,
            value,
            key,
            partition=partition,
            timestamp_ms=timestamp_ms,
            headers=headers,
        )
        return await delivery

    def send_nowait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | datetime | None = None,
        headers: Iterable[tuple[str, Any]] | Mapping[str, Any] | None = None,
        on_delivery: Callable[[DeliveryError | None, RecordMetadata], object] | None = None,
    ) -> None:
        """Send a record without a handle: the fastest way for one record at a time.

        A failed delivery is raised by the next `flush` or `close`, unless `on_delivery` is given.
        Arguments and errors are those of `send`.

        In an event loop this is not a coroutine, and does not wait. It raises WouldWaitError if
        there is no room in buffer.memory, or if the topic's metadata are not here. They are asked
        for, so that a later call finds them. Nothing was taken then.
        """
        self._accumulator.send_nowait(
            topic,
            value,
            key,
            partition=partition,
            timestamp_ms=timestamp_ms,
            headers=headers,
            on_delivery=self._callbacks.in_this_loop(on_delivery),
        )

    async def send_many(
        self,
        topic: str,
        values: Any,
        *,
        keys: Any = None,
        partitions: Any = None,
        timestamps_ms: Any = None,
        headers: Sequence[Any] | Mapping[str, Any] | Any = None,
    ) -> BatchFuture:
        """Send many records and return one awaitable handle for all of them.

        In an event loop, the arguments are checked in one go, then other tasks run at least once a
        millisecond. The values must not change meanwhile. A call that is cancelled may have taken
        some of the records; those are delivered.

        Args:
            topic: its name.
            values: a list, tuple or other sequence of bytes-like objects, str (sent as UTF-8) or
                None; a numpy array of `S`, of objects, or of uint8 with a row per record; any Arrow
                array of binary or string; or a pair (data, offsets): a buffer, and n + 1 int32 or
                int64. Serializers see the items of sequences; buffers are sent as they are.
            keys: like `values`, or one str, bytes or bytearray for all records.
            partitions: numbers of partitions: a sequence, an array, or one int for all records;
                None, also for a single record, lets the partitioner choose.
            timestamps_ms: Unix times in ms, given like `partitions`, or datetimes with a time
                zone; None is now.
            headers: one record's headers for all, or a sequence with each record's: (key, value)
                pairs, a mapping, or None. Or an Arrow array of list<struct<key, value>>.

        Returns:
            BatchFuture. Records larger than max.request.size, and those for which no room was found
            in max.block.ms after others had been accepted, are failures of it (`NOT_SENT`).

        Raises:
            KafkaTimeoutError: no metadata, or no room in buffer.memory, within max.block.ms;
                nothing was accepted.
            SerializationError, TypeError: A key, value or header is not what it must be; nothing
                was accepted. The message names its row.
            UsageError: columns differ in length, a partition does not exist, the first record is
                larger than buffer.memory, or the producer is closed; nothing was accepted.
        """
        await self._driver.yield_if_due()
        steps = self._accumulator._many(topic, values, keys, partitions, timestamps_ms, headers)
        return await self._or_stand_still(self._driver.run(steps))

    async def send_table(
        self,
        topic: str | None,
        data: Any,
        *,
        value: str = "value",
        key: str | None = "key",
        headers: str | None = None,
        partition: str | None = None,
        timestamp: str | None = None,
    ) -> BatchFuture:
        """Send the rows of an Arrow table and return one awaitable handle for all of them.

        Record batches are read and sent one after the other, without a Python object per row.
        Serializers do not see them.

        In an event loop, other tasks run at least once a millisecond; see `send_many`.

        Args:
            topic: name of the topic, or None: column "topic" says it for each row.
            data: anything with `__arrow_c_array__` or `__arrow_c_stream__`: a table, a record
                batch, an array of structs, a reader.
            value: name of a column of binary or string.
            key: name of another; without a column "key" there are no keys, and None ignores it.
            headers: name of a column of list<struct<key, value>> or map, or None.
            partition: name of an integer column; null lets the partitioner choose.
            timestamp: name of a column of timestamps, or of Unix times in ms; null is now.

        Returns:
            BatchFuture; rows count from 0 through all record batches. See `send_many`.

        Raises:
            TypeError: a column's type does not fit; nothing was accepted.
            UsageError: a column is missing, or a cell is not what it must be. Record batches
                before its own were accepted, and flush raises what becomes of them.
            KafkaTimeoutError: as for `send_many`.
        """
        await self._driver.yield_if_due()
        steps = self._accumulator._table(topic, data, value, key, headers, partition, timestamp)
        return await self._or_stand_still(self._driver.run(steps))

    # ---- the rest ----

    async def flush(self, timeout: float | None = None) -> int:
        """Send all records accepted so far, and wait until each is delivered or has failed.

        Args:
            timeout: seconds; None waits as long as delivery.timeout.ms lets records live.

        Returns:
            How many records are still pending; 0 without a timeout.

        Raises:
            DeliveryError: records have failed that nobody can observe: they have no callback, and
                they were sent with `send_nowait` or their handle was dropped unread.
            UsageError: the caller is a delivery callback.
        """
        timeout = None if timeout is None else timeout_seconds(timeout)
        self._callbacks.check_may_wait()
        steps = self._and_callbacks(self._steps.flush(timeout), timeout)
        pending = await self._driver.run(steps)
        self._core.raise_lost()
        return pending

    def _and_callbacks(self, steps: Steps[T], timeout: float | None) -> Steps[T]:
        """Run these steps, then wait for callbacks that they have made due; seconds for both."""
        deadline = NEVER if timeout is None else self._core.now() + timeout
        result = yield from steps
        yield from self._callbacks.await_run(deadline)
        return result

    async def close(self, timeout: float | None = None) -> None:
        """Deliver all accepted records, then stop. Closing twice is allowed.

        A transaction that is still open is aborted, and a warning says so.

        In a delivery callback this call does not wait; accepted records are delivered afterwards.

        In an event loop, a close that is cancelled goes on in the background, and failures are only
        logged then.

        Args:
            timeout: seconds; records not delivered by then fail with UsageError as their cause.

        Raises:
            DeliveryError: as for `flush`, and for records that were given up.
        """
        timeout = None if timeout is None else timeout_seconds(timeout)
        core = self._core
        core.origin = None
        if core.queues.dead or not self._callbacks.may_wait:
            core.abandon("its close() was called by a delivery callback")
        else:
            try:
                timeout = await self._driver.run(self._transactions.abort_open(timeout))
                await self._driver.run(self._and_callbacks(self._steps.close(timeout), timeout))
            except BaseException:
                if core.queues.dead:
                    core.log_lost()  # nobody closes again, to whom it could be raised
                raise
        self._core.raise_lost()

    async def partitions_for(self, topic: str) -> list[PartitionInfo]:
        """Return the topic's partitions, waiting for metadata up to max.block.ms.

        Raises:
            KafkaTimeoutError: no metadata by then.
            BrokerError: the topic cannot be used.
            UsageError: the producer does not run any more.
        """
        return await self._driver.run(self._core.topics.partitions(topic))

    async def debug_dump(self, timeout: float = 5.0) -> str:
        """Return what this producer's connections did lately, for a bug report.

        The text lists up to 1,024 events of each link (time, kind, correlation id, batch, number of
        bytes), without the contents of records. Links that do not answer within `timeout` seconds
        are missing.
        """
        return await self._driver.run(self._core.debug_dump(timeout_seconds(timeout)))

    async def __aenter__(self) -> Producer:
        """Return the producer itself; leaving the block closes it."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close. If the block has raised, losses are only logged, and do not hide its error."""
        try:
            await self.close()
        except KafkaError as lost:
            if error is None:
                raise
            self._log_lost(lost)


hint_at_names(Producer, AIO_PRODUCER, AIO_PRODUCER_ARGUMENTS)


class _Accumulator(BulkAccumulator):
    """An accumulator that never waits; its bulk calls yield what they wait for."""

    def __init__(self, producer: Producer, core: ProducerCore, settings: ProducerSettings) -> None:
        self._callbacks = producer._callbacks
        options = accumulator_options(settings, self._callbacks.shared)
        super().__init__(core.queues, never_waits=True, **options)
        self._core = core
        self._settings = settings
        self._steps = producer._steps
        self._lines = producer._lines
        partitioner = options["partitioner"]
        self._partitioner = partitioner if callable(partitioner) else None
        self.prepares = options["transforms"] or self._partitioner is not None
        """Whether `prepare` runs code of the user's."""

    def prepare(
        self, topic: str, value: Any, key: Any, partition: int | None, headers: Any
    ) -> tuple[Any, Any, int | None]:
        """Run the user's serializers and partitioner; return key, value and partition."""
        key, value = self._serialize(topic, key, value, headers)
        if self._partitioner is not None and partition is None:
            count = self._core.queues.partition_count(topic)
            partition = self._partitioner(topic, key, value, count)
        return key, value, partition

    # ---- called by the compiled base class ----

    def _need_topic(self, name: str) -> None:
        topics = self._core.topics
        topics.ask_for(name)
        raise WouldWaitError(f"the metadata of topic {name!r} are not here yet", topic=name)

    def _serialize(self, topic: str, key: object, value: object, headers: Any) -> tuple[Any, Any]:
        return serialize_both(self._settings, topic, key, value, headers)

    def _topic_steps(self, topic: str) -> Steps[None]:
        if not self._core.queues.partition_count(topic):
            yield from self._core.topics.need(topic)

    def _begin_room(self, topic: str) -> RoomWait:
        return self._steps.begin_room(topic)

    def _room_steps(self, wait: RoomWait, size: int) -> Steps[None]:
        line = self._lines.here()
        place = yield Invoke(line.enter, (size, wait.deadline))
        if place is None:
            raise wait.no_room_error()
        try:
            yield from self._steps.room(wait, size)
        finally:
            line.leave_line(place)

    def _bulk_callback(self) -> OnDelivery | None:
        return self._callbacks.in_this_loop(None)

    def _yield_steps(self) -> Steps[None]:
        yield YieldToLoop()


def _rough_size(item: object) -> int:
    """Return about how many bytes of buffer.memory a key or value takes."""
    try:
        return len(item) + 128  # type: ignore[arg-type]
    except TypeError:
        return 128  # None; or a mistake, which is told when it is this record's turn
