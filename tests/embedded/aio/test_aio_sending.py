"""The asyncio producer in its loop: sends that wait or do not, bulk calls, callbacks, losses."""

from __future__ import annotations

import asyncio
import copy
import enum
import gc
import sys
import time
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kafka_fast import TopicPartition, WouldWaitError, aio
from kafka_fast.errors import (
    DeliveryError,
    InvalidRecord,
    InvalidTopicException,
    KafkaTimeoutError,
    UsageError,
)
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import PRODUCE
from kafka_fast.types import RecordMetadata
from tests.embedded.looped import Ticks, consumer_of, producer_of, run, until
from tests.embedded.producing import new_topic, values
from tests.waiting import TIMEOUT


def test_a_send_that_nobody_awaits_sends_nothing_and_is_told_of(
    kafka: EmbeddedKafka, topic: str
) -> None:
    async def main() -> None:
        async with producer_of(kafka) as producer:
            await producer.partitions_for(topic)
            with pytest.warns(RuntimeWarning, match="'Producer.send' was never awaited"):
                producer.send(topic, b"x")
            call = producer.send(topic, b"y")
            await call
            with pytest.raises(RuntimeError, match="cannot reuse already awaited coroutine"):
                await call
            other = producer.send(topic, b"z")
            other.close()
            assert asyncio.iscoroutine(other)

    run(main())
    assert values(kafka, topic) == [b"y"]


def test_a_send_that_never_waits(kafka: EmbeddedKafka, topic: str) -> None:
    async def main() -> None:
        async with producer_of(kafka, buffer_memory=1 << 17, batch_size=1 << 16) as producer:
            with pytest.raises(WouldWaitError) as missing:
                producer.send_nowait(topic, b"x")
            assert (missing.value.topic, missing.value.size) == (topic, 0)
            deadline = time.monotonic() + TIMEOUT
            while True:  # the metadata come, because they were asked for
                try:
                    producer.send_nowait(topic, b"first")
                    break
                except WouldWaitError:
                    assert time.monotonic() < deadline
                    await asyncio.sleep(0.01)
            await producer.flush()
            kafka.pause(1)

            def send_until_full() -> None:
                for _ in range(100):
                    producer.send_nowait(topic, bytes(10_000))

            with pytest.raises(WouldWaitError, match=r"no room in buffer.memory") as full:
                send_until_full()
            assert full.value.size > 10_000
            kafka.resume(1)
            await producer.flush()
            with pytest.raises(UsageError, match=r"larger than buffer\.memory"):
                producer.send_nowait(topic, bytes(1 << 18))

    run(main())


def test_a_send_waits_as_long_as_it_may(kafka: EmbeddedKafka, topic: str) -> None:
    async def main() -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        async with producer_of(
            kafka, buffer_memory=1 << 17, batch_size=1 << 16, max_block_ms=300
        ) as producer:
            ticking = asyncio.create_task(tick())
            await producer.send_and_wait(topic, b"first")
            kafka.pause(1)
            for send in (
                lambda: producer.send(topic, bytes(10_000)),
                lambda: producer.send_many(topic, [bytes(10_000)]),
            ):

                async def send_until_full(send: Callable[[], Awaitable[object]]) -> None:
                    while True:
                        await send()

                with pytest.raises(KafkaTimeoutError, match=r"after max.block.ms \(300\)"):
                    await send_until_full(send)
            assert ticks > 20, "the loop was not held"
            kafka.resume(1)
            ticking.cancel()

    run(main())


def test_bulk_calls(kafka: EmbeddedKafka, topic: str, loop: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    count = 20_000

    async def main() -> None:
        other = new_topic(kafka, "other")
        async with producer_of(kafka, buffer_memory=1 << 20, batch_size=1 << 16) as producer:
            many = await producer.send_many(topic, [b"%d" % number for number in range(count)])
            table = pyarrow.table({"value": [b"x"] * count, "topic": [topic, other] * (count // 2)})
            rows = await producer.send_table(None, table)
            results = await asyncio.gather(many, rows)
            assert [(one.records, one.failed) for one in results] == [(count, 0), (count, 0)]
        assert kafka.end_offset(topic, 0) == count + count // 2
        assert values(kafka, topic)[:count] == [b"%d" % number for number in range(count)]

    run(main(), loop)


def test_users_code_of_a_producer(kafka: EmbeddedKafka) -> None:
    """Serializers and partitioners are called once for a record, even if it has to wait."""
    topic = new_topic(kafka, "prepared", partitions=3)
    called: list[object] = []

    def serialize(value: Any) -> bytes:
        called.append(value)
        return b"%d" % value

    def choose(topic: str, key: Any, value: Any, count: int) -> int:
        return int(value) % count

    async def main() -> None:
        async with producer_of(
            kafka, value_serializer=serialize, partitioner_class=choose
        ) as producer:
            for number in range(6):
                await producer.send(topic, number)
            await (await producer.send_many(topic, list(range(6, 12))))
            for partition in range(3):
                assert values(kafka, topic, partition) == [
                    b"%d" % number for number in range(partition, 12, 3)
                ]

    run(main())
    assert called == list(range(12))


def test_a_bulk_call_of_a_row_that_can_never_have_room(kafka: EmbeddedKafka, topic: str) -> None:
    """It is refused at once, and not after max.block.ms."""

    async def main() -> None:
        async with producer_of(kafka, buffer_memory=1 << 16, batch_size=1 << 14) as producer:
            await producer.partitions_for(topic)
            with pytest.raises(UsageError, match=r"larger than buffer\.memory"):
                await producer.send_many(topic, [bytes(1 << 17)])
            many = await (await producer.send_many(topic, [b"x", bytes(1 << 17), b"y"]))
            assert (many.records, many.failed) == (3, 2)

    run(main())
    assert values(kafka, topic) == [b"x"]


def test_a_call_that_waits_for_room_again_and_again_is_counted_once(
    kafka: EmbeddedKafka, topic: str
) -> None:
    async def main() -> None:
        async with producer_of(kafka, buffer_memory=1 << 17, batch_size=1 << 16) as producer:
            await producer.send_and_wait(topic, b"first")
            kafka.pause(1)
            big = bytes(60_000)
            sends = [asyncio.create_task(producer.send_and_wait(topic, big)) for _ in range(12)]
            await until(lambda: producer.metrics()["blocked"] >= 10)
            kafka.resume(1)
            await asyncio.gather(*sends)
            assert producer.metrics()["blocked"] < len(sends)

    run(main())


def test_other_tasks_run_while_nothing_has_to_wait(kafka: EmbeddedKafka, topic: str) -> None:
    """A hundred thousand sends, or records, need no wait. Others are let in meanwhile.

    No call holds the loop for half of its time. (It is a millisecond; the half has room for slow
    machines. `bench/loops/asyncio_loop.py` measures it.)
    """
    count = 100_000
    other = new_topic(kafka, "other")

    async def main() -> None:
        async def send_one_by_one() -> None:
            for number in range(count):
                await producer.send(topic, b"%d" % number)

        async def send_many() -> None:
            await producer.send_many(other, [b"x"] * 5 * count)

        async def read() -> None:
            left = count - 1
            async for _ in consumer:
                left -= 1
                if not left:
                    return

        ticks = Ticks()
        await asyncio.sleep(0)
        async with producer_of(kafka) as producer:
            await producer.partitions_for(topic)
            await producer.partitions_for(other)
            for send in (send_one_by_one, send_many):
                assert await ticks.longest_share(send()) < 0.5, send.__name__
                await producer.flush()
        async with consumer_of(kafka, fetch_max_bytes=50_000_000) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            await consumer.poll(TIMEOUT, 1)
            assert await ticks.longest_share(read()) < 0.5
        ticks.end()

    run(main())


def test_serializers_of_a_bulk_call_let_others_run(kafka: EmbeddedKafka, topic: str) -> None:
    async def main() -> None:
        ticks = Ticks()
        async with producer_of(kafka, value_serializer=lambda value: b"%d" % value) as producer:
            await producer.partitions_for(topic)
            assert await ticks.longest_share(producer.send_many(topic, range_list)) < 0.5
        ticks.end()

    range_list = list(range(100_000))
    run(main())
    assert kafka.end_offset(topic, 0) == len(range_list)


class TestTheLine:
    """Sends that wait for room wait in a line: the first one first."""

    COUNT = 150

    @staticmethod
    def full(kafka: EmbeddedKafka, **more: Any) -> aio.Producer:
        """A producer whose memory holds a few of these records."""
        return producer_of(kafka, buffer_memory=1 << 17, batch_size=1 << 14, **more)

    async def begin(
        self, kafka: EmbeddedKafka, producer: aio.Producer, topic: str
    ) -> list[asyncio.Task[Any]]:
        """Send more records than there is room for, to a paused broker; return the tasks."""
        await producer.partitions_for(topic)
        kafka.pause(1)
        sends: list[asyncio.Task[Any]] = []

        def have_begun() -> bool:
            ended = sum(send.done() for send in sends)  # max.block.ms may be over already
            return producer.in_line + producer.metrics()["pending_records"] + ended == len(sends)

        for number in range(self.COUNT):
            value = b"%04d" % number + bytes(4_000)
            sends.append(asyncio.create_task(producer.send_and_wait(topic, value)))
            await until(have_begun)
        assert producer.in_line > self.COUNT // 2
        return sends

    def numbers(self, kafka: EmbeddedKafka, topic: str) -> list[int]:
        return [int(value[:4]) for value in values(kafka, topic) if value and len(value) == 4_004]

    def test_goes_in_order(self, kafka: EmbeddedKafka, topic: str, loop: str) -> None:
        async def main() -> None:
            async with self.full(kafka) as producer:
                sends = await self.begin(kafka, producer, topic)
                kafka.resume(1)
                await asyncio.gather(*sends)
                assert producer.in_line == 0

        run(main(), loop)
        assert self.numbers(kafka, topic) == list(range(self.COUNT))

    def test_goes_on_without_those_that_are_cancelled(
        self, kafka: EmbeddedKafka, topic: str
    ) -> None:
        """Before the line moves, and while it does."""

        async def main() -> None:
            async with self.full(kafka) as producer:
                sends = await self.begin(kafka, producer, topic)
                waiting = range(self.COUNT - producer.in_line, self.COUNT)
                for send in sends[::3]:
                    send.cancel()
                kafka.resume(1)
                for send in sends[1::3]:
                    await asyncio.sleep(0)
                    send.cancel()
                results = await asyncio.gather(*sends, return_exceptions=True)
                assert producer.in_line == 0
            sent = [
                number
                for number in range(self.COUNT)
                if isinstance(results[number], RecordMetadata)
            ]
            numbers = self.numbers(kafka, topic)
            assert numbers == sorted(numbers)
            assert set(sent) <= set(numbers)
            assert not {number for number in numbers if number in waiting and number % 3 == 0}, (
                "taken in vain"
            )
            assert set(sent) >= set(range(2, self.COUNT, 3))

        run(main())

    def test_ends_with_max_block_ms(self, kafka: EmbeddedKafka, topic: str) -> None:
        async def main() -> None:
            async with self.full(kafka, max_block_ms=2_000) as producer:
                sends = await self.begin(kafka, producer, topic)
                waiting = producer.in_line
                await until(lambda: producer.in_line == 0)
                kafka.resume(1)
                await producer.send_and_wait(topic, b"last")
                results = await asyncio.gather(*sends, return_exceptions=True)
            late = [result for result in results if isinstance(result, BaseException)]
            assert len(late) == waiting
            for error in late:
                with pytest.raises(KafkaTimeoutError, match=r"after max\.block\.ms \(2000\)"):
                    raise error
            accepted = [
                number
                for number in range(self.COUNT)
                if isinstance(results[number], RecordMetadata)
            ]
            assert self.numbers(kafka, topic) == accepted

        run(main())

    def test_ends_with_the_producer(self, kafka: EmbeddedKafka, topic: str) -> None:
        async def main() -> None:
            producer = self.full(kafka)
            sends = await self.begin(kafka, producer, topic)
            await producer.close(0.1)
            results = await asyncio.gather(*sends, return_exceptions=True)
            kinds = {type(result) for result in results}
            assert kinds == {DeliveryError, UsageError}, "accepted ones, and those in the line"
            assert producer.in_line == 0
            kafka.resume(1)

        run(main())


class TestTheCoroutine:
    """`send` is no coroutine of Python's, and is to be used as one."""

    def test_is_shown_as_one(self, kafka: EmbeddedKafka, topic: str) -> None:
        async def main() -> None:
            async with producer_of(kafka) as producer:
                call = producer.send(topic, b"x")
                with pytest.raises(
                    TypeError,
                    match=r"a call of Producer\.send cannot be pickled or copied: await it",
                ):
                    copy.copy(call)
                task = asyncio.create_task(call)
                assert "Producer.send" in repr(task)
                await asyncio.sleep(0)
                (frame,) = task.get_stack()
                assert frame.f_code.co_name == "_send_waiting"
                await task
                assert not task.get_stack()

        run(main())

    def test_ends_for_those_who_watch_it(self, kafka: EmbeddedKafka, topic: str) -> None:
        """It is filled again for the next record, but for one that is watched."""

        async def main() -> None:
            async with producer_of(kafka) as producer:
                await producer.partitions_for(topic)
                call = producer.send(topic, b"x")
                watched = weakref.ref(call)
                await call
                del call
                await producer.send(topic, b"y")
                assert watched() is None

        run(main())

    @pytest.mark.parametrize("is_plain", [True, False], ids=["bytes", "headers"])
    def test_holds_its_record_no_longer_than_it_has_to(
        self, kafka: EmbeddedKafka, topic: str, *, is_plain: bool
    ) -> None:
        """Bytes are held without the garbage collection's knowledge: each way out lets go."""
        key, value = bytearray(b"key " * 100), bytearray(b"value " * 100)
        record = (bytes(value), bytes(key))
        more: dict[str, Any] = {} if is_plain else {"headers": [("a", b"b")]}

        async def main() -> None:
            async with producer_of(kafka) as producer:
                await producer.partitions_for(topic)
                held = [topic, *record]
                before = [sys.getrefcount(part) for part in held]
                closed, thrown, dropped = (producer.send(topic, *record, **more) for _ in range(3))
                closed.close()
                with pytest.raises(ValueError, match="stop"):
                    thrown.throw(ValueError("stop"))
                with pytest.warns(RuntimeWarning, match="never awaited"):
                    del dropped
                assert [sys.getrefcount(part) for part in held] == before
                before = [sys.getrefcount(part) for part in record]
                await producer.send(topic, *record, **more)
                for _ in range(3):
                    await producer.send(topic, *record, **more)
                await producer.send(topic, record[0], key=record[1], **more)
                refused = producer.send("not/valid", *record, **more)
                with pytest.raises(InvalidTopicException):
                    await refused
                del refused
                cold = producer_of(kafka)
                await cold.send(topic, *record, **more)  # waits for metadata
                await cold.close()
                await producer.flush()
                gc.collect()
                assert [sys.getrefcount(part) for part in record] == before

        run(main())
        assert values(kafka, topic) == 6 * [record[0]]

    def test_takes_its_arguments_by_place_and_by_name(
        self, kafka: EmbeddedKafka, topic: str
    ) -> None:
        class Name(str):
            """A topic that is not exactly a str."""

            __slots__ = ()

        async def main() -> None:
            async with producer_of(kafka) as producer:
                for call in (
                    producer.send(topic, b"v", b"k"),
                    producer.send(topic, b"v", key=b"k"),
                    producer.send(topic, value=b"v", key=b"k"),
                    producer.send(topic=topic, key=b"k", value=b"v"),
                    producer.send(Name(topic), b"v", b"k"),
                    producer.send(topic, bytearray(b"v"), memoryview(b"k")),
                    producer.send(topic, b"v", key=b"k", partition=0),
                ):
                    await call
                for wrong in (
                    lambda: producer.send(value=b"v"),  # type: ignore[call-arg]
                    lambda: producer.send(topic, b"v", b"k", 0),  # type: ignore[misc]
                    lambda: producer.send(topic, b"v", valve=b"k"),  # type: ignore[call-arg]
                    lambda: producer.send(topic, b"v", b"k", key=b"k"),  # type: ignore[misc]
                ):
                    with pytest.raises(TypeError, match=r"send\(\)"):
                        wrong()
                with pytest.raises(TypeError, match="topic must be str"):
                    await producer.send(7, b"v")  # type: ignore[arg-type]
                with pytest.raises(TypeError):
                    await producer.send(topic, 7)  # type: ignore[arg-type]
                await producer.send(topic)
                await producer.send(topic, None, b"k")

        run(main())
        fetched = [(record.key, record.value) for record in kafka.records(topic, 0)]
        assert fetched == 7 * [(b"k", b"v")] + [(None, None), (b"k", None)]

    def test_is_for_one_task(self, kafka: EmbeddedKafka, topic: str) -> None:
        async def main() -> None:
            async def wait_for(call: Any) -> Any:
                return await call

            async with producer_of(kafka) as producer:
                call = producer.send(topic, b"x")
                first, second = (asyncio.create_task(wait_for(call)) for _ in range(2))
                with pytest.raises(RuntimeError, match="is being awaited already"):
                    await second
                await (await first)
                with pytest.raises(RuntimeError, match="cannot reuse"):
                    await call

        run(main())
        assert values(kafka, topic) == [b"x"]

    def test_is_made_by_send_only(self, kafka: EmbeddedKafka, topic: str) -> None:
        async def main() -> None:
            async with producer_of(kafka) as producer:
                call: Any = producer.send(topic, b"x")
                call.close()
                with pytest.raises(TypeError, match=r"SendCall is made by Producer\.send"):
                    await type(call).__new__(type(call))

        run(main())

    @pytest.mark.parametrize("way", ["close", "throw", "send"])
    def test_cannot_be_ended_from_within(self, kafka: EmbeddedKafka, topic: str, way: str) -> None:
        """Regression: it was freed while it ran."""
        calls: list[Any] = []
        arguments = {"close": (), "throw": (ZeroDivisionError(),), "send": (None,)}[way]

        def serialize(value: Any) -> bytes:
            with pytest.raises(ValueError, match="already executing"):
                getattr(calls[0], way)(*arguments)
            gc.collect()
            return b"x"

        async def main() -> None:
            async with producer_of(kafka, value_serializer=serialize) as producer:
                calls.append(producer.send(topic, b""))
                await (await calls[0])

        run(main())
        assert values(kafka, topic) == [b"x"]

    def test_of_a_producer_that_was_not_made(self) -> None:
        class Unmade(aio.Producer):
            def __init__(self) -> None:
                pass

        async def main() -> None:
            with pytest.raises(UsageError, match="constructor"):
                await Unmade().send("topic", b"x")

        run(main())

    def test_topics_may_be_members_of_an_enum(self, kafka: EmbeddedKafka, topic: str) -> None:
        async def main() -> None:
            async with producer_of(kafka) as producer:
                name = enum.Enum("Topics", {"ONE": topic}, type=str).ONE  # type: ignore[attr-defined]
                await producer.send(name, b"a")
                await producer.send(name, b"b")
                producer.send_nowait(name, b"c")
                await producer.send_many(name, [b"d"])

        run(main())
        assert values(kafka, topic) == [b"a", b"b", b"c", b"d"]


def test_losses_are_raised(kafka: EmbeddedKafka, topic: str) -> None:
    async def main() -> None:
        async with producer_of(kafka) as producer:
            await producer.partitions_for(topic)
            kafka.faults.error(PRODUCE, InvalidRecord, topic=topic, count=2)
            producer.send_nowait(topic, b"x")
            with pytest.raises(DeliveryError, match="nobody was told"):
                await producer.flush()
            with pytest.raises(DeliveryError):
                await producer.send_and_wait(topic, b"x")

    run(main())
