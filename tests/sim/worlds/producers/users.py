"""The users of a simulated client: they send, flush, wait, drop what they got, and take notes.

A user never blocks here: where the real call would wait for metadata or memory, the burst is put
off and goes on where it stopped. A burst goes record by record, or in one bulk call: as a list, or
as columns in buffers. Some calls are tasks of asyncio's producer: these do wait, and are cancelled
now and then. Everything that users are told ends in the checker's history.
"""

from __future__ import annotations

import random
from array import array
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from typing import Any

from kafka_fast.dataplane.produce._queues import Queues
from kafka_fast.errors import AuthenticationError, DeliveryError, KafkaError, KafkaTimeoutError
from kafka_fast.sending._delivery import DeliveryFuture
from kafka_fast.sending._observers import raise_lost
from kafka_fast.sending.bulk._batch_future import BatchFuture
from kafka_fast.sending.bulk._bulk import BulkAccumulator
from kafka_fast.testing._memory import Turner
from kafka_fast.types import RecordMetadata
from tests.sim.worlds.checker import NO_OFFSET, Completion, History, Sent, value_of
from tests.sim.worlds.clock import Clock
from tests.sim.worlds.plan import Plan, TopicPlan
from tests.sim.worlds.producers.producer_tasks import ProducerTasks, VirtualAsyncProducer

MEMORY_RETRY = 1.0
"""Seconds until a user tries again after buffer.memory was full, if no record has ended before."""

TOPIC_RETRY = 1.0
"""Seconds until a user asks again for a topic that did not come."""

KEYS = 12
BULK = ("many", "columns", "task_many")
"""The ways that take a whole burst."""
TASKS = ("task", "task_many")
"""The ways of asyncio's producer."""

NOWHERE = RecordMetadata("?", NO_OFFSET, NO_OFFSET, NO_OFFSET)
"""Of a record that failed."""


class TopicUnknownError(Exception):
    """The topic's partitions are not known yet: where a real caller would wait."""


class Front(BulkAccumulator):
    """The shipped append path, for users who do not wait in it."""

    def _need_topic(self, name: str) -> None:
        raise TopicUnknownError(name)


@dataclass(slots=True)
class _Record:
    """What a user is about to send."""

    topic: TopicPlan
    key: bytes | None
    partition: int | None
    padding: int
    way: str


@dataclass(slots=True)
class _Bulk:
    """A bulk call, and what its records are to become."""

    sent: list[Sent]
    future: BatchFuture


class Users:
    """All users of one client."""

    def __init__(
        self,
        clock: Clock,
        plan: Plan,
        queues: Queues,
        turner: Turner,
        source: random.Random,
        log: Callable[[str], None],
        want_topic: Callable[[str], Coroutine[Any, Any, None]],
        tasks: ProducerTasks,
        producer: VirtualAsyncProducer,
    ) -> None:
        """Plan what the users do.

        Args:
            clock: of the world.
            plan: of the world.
            queues: the client's.
            turner: gives its numbers.
            source: of the users' randomness.
            log: takes what happens.
            want_topic: waits until a topic is known.
            tasks: run the calls of asyncio's users.
            producer: takes these calls.
        """
        self.history = History()
        self.unfinished = 0
        """Bursts that have not been sent whole."""
        self._clock = clock
        self._plan = plan
        self._queues = queues
        self._turner = turner
        self._source = source
        self._log = log
        self._want_topic = want_topic
        self._tasks = tasks
        self._producer = producer
        self._front = Front(
            queues,
            max_block=0.0,
            adaptive=plan.config["partitioner.adaptive.partitioning.enable"],
        )
        self._futures: list[tuple[Sent, DeliveryFuture]] = []  # kept ones
        self._bulks: list[_Bulk] = []  # kept ones
        self._refused = 0  # records of bulk calls that were not accepted
        self._blocked: list[deque[_Record]] = []  # bursts that wait for memory
        self._retry_planned = False
        self._ended = 0  # records, when the futures were last looked at
        self._flushing: list[int] = []
        self._plan_bursts()
        for _ in range(source.choice((0, 0, 1, 2, 4))):
            clock.after(source.random() * plan.duration * 1.2, self._begin_flush)
        for _ in range(source.choice((0, 1, 5))):
            clock.after(source.random() * plan.duration * 1.2, self._take_lost)
        for due in plan.task_flushes:
            clock.after(due, self._begin_task_flush)

    # ---- sending ----

    def _plan_bursts(self) -> None:
        left = self._plan.records
        while left > 0:
            count = min(left, self._source.choice((1, 3, 10, 40)))
            left -= count
            topic = self._source.choice(self._plan.topics)
            way = self._way()
            ways = (way if way in BULK else self._way(single=True) for _ in range(count))
            burst = deque(self._record(topic, each) for each in ways)
            self.unfinished += 1
            due = self._source.random() * self._plan.duration
            self._clock.after(due, partial(self._go_on, burst))

    def _way(self, *, single: bool = False) -> str:
        """Choose how to send: the whole burst, or if that is no bulk call each of its records."""
        ways = {
            way: often for way, often in self._plan.style.items() if way not in BULK or not single
        }
        weights = list(ways.values())
        return self._source.choices(list(ways), weights)[0] if any(weights) else "kept"

    def _record(self, topic: TopicPlan, way: str) -> _Record:
        where = self._source.random()
        key = b"key-%d" % self._source.randrange(KEYS) if where < 0.4 else None
        partition = self._source.randrange(topic.partitions) if where > 0.7 else None
        return _Record(topic, key, partition, self._source.choice((0, 0, 10, 60, 250)), way)

    def _go_on(self, burst: deque[_Record]) -> None:
        """Send what is left of a burst, as far as that goes without waiting."""
        while burst:
            try:
                if burst[0].way == "task_many":
                    self._begin_bulk(list(burst))
                    burst.clear()
                    break
                if burst[0].way in BULK:
                    self._send_bulk(list(burst))
                    burst.clear()
                    break
                self._send(burst[0])
            except TopicUnknownError:
                self._await_topic(burst)
                return
            except KafkaTimeoutError:
                self._blocked.append(burst)
                if not self._retry_planned:
                    self._retry_planned = True
                    self._clock.after(MEMORY_RETRY, self._retry)
                return
            except KafkaError as error:
                self._log(f"send refused: {error}")
                if burst[0].way in BULK:
                    break
            burst.popleft()
        self.unfinished -= 1

    def _retry(self) -> None:
        self._retry_planned = False
        self._unblock()

    def _unblock(self) -> None:
        """Memory may have come back: let everybody try again who waits for some."""
        blocked, self._blocked = self._blocked, []
        for burst in blocked:
            self._go_on(burst)

    def _await_topic(self, burst: deque[_Record]) -> None:
        """Go on with a burst when its topic is known, or give it up."""
        topic = burst[0].topic.name

        def end(_: None, error: BaseException | None) -> None:
            if error is None:
                self._go_on(burst)
            elif isinstance(error, KafkaTimeoutError | AuthenticationError):  # it may yet come
                self._clock.after(TOPIC_RETRY, partial(self._await_topic, burst))
            else:
                self.unfinished -= 1

        self._tasks.begin("topic", self._want_topic(topic), end, may_be_cancelled=False)

    def _send(self, record: _Record) -> None:
        if record.way in TASKS:
            self._begin_send(record)
            return
        topic, front = record.topic.name, self._front
        number = len(self.history.sent)
        value = value_of(number, topic, record.padding)
        now = self._clock.now
        sent = Sent(number, topic, now, record.partition, True)

        def on_delivery(error: DeliveryError | None, metadata: RecordMetadata) -> None:
            self._complete(sent, error, metadata)

        key, partition = record.key, record.partition
        future: DeliveryFuture | None = None
        if record.way == "nowait":
            front.send_nowait(topic, value, key, partition=partition)
            sent.observed = False
        elif record.way == "nowait_callback":
            front.send_nowait(topic, value, key, partition=partition, on_delivery=on_delivery)
        elif record.way == "callback":
            front.send(topic, value, key, partition=partition, on_delivery=on_delivery)
        else:
            future = front.send(topic, value, key, partition=partition)
        self.history.sent.append(sent)
        if future is not None:
            self._keep(record.way, sent, future)

    def _send_bulk(self, records: list[_Record]) -> None:
        """Send a whole burst in one call; what is not accepted is a failure of its future."""
        first, topic, now = len(self.history.sent), records[0].topic.name, self._clock.now
        values = [
            value_of(first + number, topic, record.padding) for number, record in enumerate(records)
        ]
        accepted = self._accepted
        columns: dict[str, Any]
        if records[0].way == "columns":
            for record in records:
                record.key = None  # a column without nulls
            columns = {"values": as_column(values)}
        else:
            columns = {"values": values, "keys": [record.key for record in records]}
        partitions = [record.partition for record in records]
        future = self._front.send_many(topic, **columns, partitions=partitions)
        refused = len(records) - (self._accepted - accepted)
        self._refused += refused
        sent = [
            Sent(first + number, topic, now, record.partition, True)
            for number, record in enumerate(records)
        ]
        self.history.sent += sent
        bulk = _Bulk(sent, future)
        fate = self._source.choice(("kept", "kept", "callback", "dropped"))
        self._log(f"{len(records)} records from {first} in one call, {refused} refused, {fate}")
        if fate == "kept":
            self._bulks.append(bulk)
        elif fate == "callback":
            future.add_done_callback(lambda ended: self._complete_bulk(sent, ended))
        else:
            for one in sent:
                one.observed = False

    # ---- tasks ----

    def _begin_send(self, record: _Record) -> None:
        """Send a record in a task of its own, which may wait, or be cancelled."""
        topic, partition = record.topic.name, record.partition
        value = bytearray()

        def renumber() -> None:
            """Give the record the number that it gets if it is accepted in this step."""
            value[:] = value_of(len(self.history.sent), topic, record.padding)

        def end(future: DeliveryFuture | None, error: BaseException | None) -> None:
            self.unfinished -= 1
            if future is not None:
                now = self._clock.now
                sent = Sent(len(self.history.sent), topic, now, partition, True)
                self.history.sent.append(sent)
                self._keep(self._source.choice(("kept", "dropped", "read")), sent, future)

        self.unfinished += 1
        call = self._producer.send(topic, value, record.key, partition=partition)
        self._tasks.begin("task", call, end, before_step=renumber)

    def _begin_bulk(self, records: list[_Record]) -> None:
        """Send a burst in one call of a task, which takes more and more of its rows."""
        topic = records[0].topic.name
        values = [bytearray(numbered_value(0, topic, record.padding)) for record in records]
        sent: list[Sent] = []
        accepted = 0

        def renumber() -> None:
            """Give the rows that are left the numbers that they get if this step takes them."""
            nonlocal accepted
            first = len(self.history.sent) - len(sent)
            for row in range(len(sent), len(records)):
                values[row][:] = numbered_value(first + row, topic, records[row].padding)
            accepted = self._accepted

        def note(count: int) -> None:
            """Note rows that were taken, or refused for good."""
            now, first = self._clock.now, len(self.history.sent)
            rows = [Sent(first + number, topic, now, None, True) for number in range(count)]
            self.history.sent += rows
            sent.extend(rows)

        def end(future: BatchFuture | None, error: BaseException | None) -> None:
            self.unfinished -= 1
            if future is not None:
                refused = len(records) - len(sent)
                self._refused += refused
                note(refused)
                for one in sent:
                    one.at = self._clock.now  # what the handle tells is not told before
                self._bulks.append(_Bulk(sent, future))
            else:
                for one in sent:
                    one.observed = False
            self._log(f"{len(sent)} records of {len(records)} in a call of a task, {error!r}")

        self.unfinished += 1
        call = self._producer.send_many(topic, values)
        self._tasks.begin(
            "bulk task",
            call,
            end,
            before_step=renumber,
            after_step=lambda: note(self._accepted - accepted),
        )

    def _begin_task_flush(self) -> None:
        """Flush without a timeout, in a task."""
        before = len(self.history.sent) - self.ended
        ended = self.ended
        producer = self._producer

        def end(pending: int | None, error: BaseException | None) -> None:
            if error is None and self.ended - ended < before:
                self.history.flushes.append((pending or 0, before - (self.ended - ended)))

        call = producer._driver.run(producer._steps.flush(None))
        self._tasks.begin("flush", call, end)

    @property
    def _accepted(self) -> int:
        """How many records the client has ever accepted."""
        return self._queues.pending() + self._turner.ended_records()

    @property
    def ended(self) -> int:
        """How many of the records that were sent have ended, those that were refused included."""
        return self._turner.ended_records() + self._refused

    def _keep(self, way: str, sent: Sent, future: DeliveryFuture) -> None:
        if way == "dropped":
            sent.observed = False
            return
        if way == "read":
            self._ask(future)
        self._futures.append((sent, future))

    def _ask(self, future: DeliveryFuture) -> None:
        """Ask for a result that is not there yet: the batch leaves at once."""
        try:
            future.result(timeout=0.0)
        except (KafkaTimeoutError, DeliveryError):
            pass

    # ---- hearing ----

    def look(self) -> None:
        """Look at the futures, if anything has ended since."""
        ended = self._turner.ended_records()
        if ended != self._ended:
            self._ended = ended
            waiting = []
            for sent, future in self._futures:
                if not future.done():
                    waiting.append((sent, future))
                    continue
                error, metadata = read_result(future)
                self._complete(sent, error, metadata)
            self._futures = waiting
            for bulk in [bulk for bulk in self._bulks if bulk.future.done()]:
                self._bulks.remove(bulk)
                self._complete_bulk(bulk.sent, bulk.future)
            self._unblock()
        for serial in [flush for flush in self._flushing if self._turner.is_flushed(flush)]:
            self._end_flush(serial)
        self._tasks.look()

    def _complete(self, sent: Sent, error: DeliveryError | None, metadata: RecordMetadata) -> None:
        outcome = None if error is None else error.outcome
        partition, offset = metadata.partition, metadata.offset
        expired = error is not None and isinstance(error.first, KafkaTimeoutError)
        told = Completion(self._clock.now, partition, offset, outcome, expired)
        sent.completions.append(told)
        what = "delivered" if error is None else f"{outcome}: {error.__cause__!r}"
        self._log(f"record {sent.number} {metadata.topic}-{partition}@{offset} {what}")

    def _complete_bulk(self, sent: list[Sent], future: BatchFuture) -> None:
        """Take what became of the records of a bulk call: failures by row, else success."""
        failed = dict(future.failed(timeout=0.0))
        for row, one in enumerate(sent):
            told = RecordMetadata(one.topic, NO_OFFSET, NO_OFFSET, NO_OFFSET)
            if one.partition is not None:
                told = told._replace(partition=one.partition)
            self._complete(one, failed.get(row), told)

    # ---- flushing, counting ----

    def _begin_flush(self) -> None:
        """Flush; the clock ends the flush after a random timeout, if its records do not."""
        pending = len(self.history.sent) - self.ended
        serial = self._turner.begin_flush()
        self.history.flushes.append((self._turner.pending_before(serial), pending))
        self._flushing.append(serial)
        self._log(f"flush {pending} records")
        timeout = self._source.choice((0.0, 0.01, 1.0, 100.0))
        self._clock.after(timeout, lambda: self._end_flush(serial))

    def _end_flush(self, serial: int) -> None:
        if serial in self._flushing:
            self._flushing.remove(serial)
            self._turner.end_flush()

    def _take_lost(self) -> None:
        try:
            raise_lost(self._queues)
        except DeliveryError as lost:
            self.history.lost_counted += lost.count
            self._log(f"{lost.count} failures that nobody saw, first {lost.first}")

    def finish(self) -> None:
        """Take the last notes: everything has ended."""
        self.look()
        self._tasks.close()
        for serial in list(self._flushing):
            self._end_flush(serial)
        self._take_lost()
        stats = self._queues.stats()
        self.history.failed = stats["records_failed"] + self._refused
        self.history.reserved_bytes = self._turner.reserved_bytes()


def numbered_value(number: int, topic: str, padding: int) -> bytes:
    """Return a value of which only digits change with the number."""
    return b"%06d" % number + value_of(0, topic, padding)[1:]


def as_column(values: list[bytes]) -> tuple[bytes, array[int]]:
    """Return values as a buffer and its n + 1 offsets."""
    return b"".join(values), array("q", accumulate(map(len, values), initial=0))


def read_result(future: DeliveryFuture) -> tuple[DeliveryError | None, RecordMetadata]:
    """Return what became of a record whose fate is known."""
    error = future.exception()
    if error is not None:
        return error, NOWHERE
    return None, future.result()
