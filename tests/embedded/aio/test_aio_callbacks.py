"""Delivery callbacks of the asyncio producer: they run in the loop, and may be coroutines."""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kafka_fast import aio
from kafka_fast.errors import DeliveryError, InvalidRecord, UsageError
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import PRODUCE
from kafka_fast.types import RecordMetadata
from tests.embedded.looped import producer_of, run, until
from tests.embedded.producing import values
from tests.waiting import TIMEOUT, eventually


def test_of_every_call(kafka: EmbeddedKafka, topic: str, loop: str) -> None:
    told: list[tuple[str, int, threading.Thread]] = []

    def plain(error: DeliveryError | None, metadata: RecordMetadata) -> None:
        told.append(("plain", metadata.offset, threading.current_thread()))

    async def awaited(error: DeliveryError | None, metadata: RecordMetadata) -> None:
        await asyncio.sleep(0.01)
        told.append(("awaited", metadata.offset, threading.current_thread()))

    async def main() -> None:
        async with producer_of(kafka, on_delivery=awaited) as producer:
            await producer.send(topic, b"x")
            await producer.send(topic, b"x", on_delivery=plain)
            producer.send_nowait(topic, b"x")
            producer.send_nowait(topic, b"x", on_delivery=plain)
            await producer.send_many(topic, [b"x", b"x"])
            assert await producer.flush() == 0
            assert len(told) == 6, "a flush waits for callbacks"
        assert {thread for _, _, thread in told} == {threading.current_thread()}

    run(main(), loop)
    assert sorted(offset for _, offset, _ in told) == list(range(6))
    assert [kind for kind, offset, _ in sorted(told, key=lambda one: one[1])] == [
        "awaited",
        "plain",
        "awaited",
        "plain",
        "awaited",
        "awaited",
    ]


def test_that_wait_for_deliveries(kafka: EmbeddedKafka, topic: str) -> None:
    raised: list[BaseException] = []

    async def main() -> None:
        producer = producer_of(kafka)

        async def flush(error: Any, metadata: Any) -> None:
            try:
                await producer.flush()
            except UsageError as error:
                raised.append(error)
            await producer.send(topic, b"second")
            await producer.close()  # it does not wait

        await producer.send(topic, b"first", on_delivery=flush)
        await asyncio.to_thread(eventually, lambda: producer._core.queues.dead)

    run(main())
    assert "must not wait" in str(raised[0])
    assert values(kafka, topic) == [b"first", b"second"]


def test_that_raise(kafka: EmbeddedKafka, topic: str, caplog: pytest.LogCaptureFixture) -> None:
    def plain(error: Any, metadata: Any) -> None:
        raise ZeroDivisionError

    async def awaited(error: Any, metadata: Any) -> None:
        raise ZeroDivisionError

    async def main() -> None:
        async with producer_of(kafka) as producer:
            for callback in (plain, awaited):
                await producer.send(topic, b"x", on_delivery=callback)

    run(main())
    assert sum("has raised" in line for line in caplog.messages) == 2


Flush = Callable[[aio.Producer], Awaitable[Any]]


@pytest.mark.parametrize(
    "flush",
    [
        lambda producer: producer.flush(),
        lambda producer: asyncio.wait_for(producer.flush(), TIMEOUT),
        lambda producer: asyncio.gather(producer.flush()),
        lambda producer: asyncio.create_task(producer.flush()),
    ],
    ids=["itself", "wait_for", "gather", "task"],
)
def test_that_would_wait_for_themselves(kafka: EmbeddedKafka, topic: str, flush: Flush) -> None:
    """Also by way of a task that they begin."""
    raised: list[BaseException] = []

    async def main() -> None:
        async with producer_of(kafka) as producer:

            async def wait(error: Any, metadata: Any) -> None:
                try:
                    await flush(producer)
                except UsageError as error:
                    raised.append(error)

            await producer.send(topic, b"x", on_delivery=wait)
            await producer.flush()
            assert len(raised) == 1

    run(main())
    assert "must not wait for deliveries" in str(raised[0])


def test_a_task_that_a_callback_has_left_behind_may_wait(kafka: EmbeddedKafka, topic: str) -> None:
    async def main() -> None:
        async with producer_of(kafka) as producer:
            ended = asyncio.Event()

            async def flush_later() -> int:
                await ended.wait()
                return await producer.flush()

            left_behind: list[asyncio.Task[int]] = []

            async def callback(error: Any, metadata: Any) -> None:
                left_behind.append(asyncio.create_task(flush_later()))

            await producer.send(topic, b"x", on_delivery=callback)
            await producer.flush()
            ended.set()
            assert await left_behind[0] == 0

    run(main())


@pytest.mark.skipif(sys.version_info < (3, 12), reason="eager tasks came with Python 3.12")
def test_that_begin_eagerly(kafka: EmbeddedKafka, topic: str) -> None:
    """Regression: such a callback was not known as one, and waited for itself forever."""
    told: list[str] = []

    async def main() -> None:
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
        async with producer_of(kafka) as producer:

            async def callback(error: Any, metadata: Any) -> None:
                try:
                    await producer.flush()
                except UsageError as error:
                    told.append(str(error))

            await producer.send(topic, b"x", on_delivery=callback)
            await producer.flush()

    run(main())
    assert len(told) == 1
    assert "must not wait for deliveries" in told[0]


def test_a_flush_waits_for_those_of_its_own_records_only(
    kafka: EmbeddedKafka, topic: str, loop: str
) -> None:
    """Others go on sending, with callbacks that take long."""
    told: list[int] = []

    async def callback(error: Any, metadata: RecordMetadata) -> None:
        await asyncio.sleep(0.05)
        told.append(metadata.offset)

    async def main() -> None:
        async with producer_of(kafka) as producer:

            async def send_on() -> None:
                while True:
                    await producer.send(topic, b"x", on_delivery=callback)
                    await asyncio.sleep(0.001)

            sending = asyncio.create_task(send_on())
            await until(lambda: len(told) > 3)
            last = await producer.send_and_wait(topic, b"last")
            await producer.flush()
            assert set(told) >= set(range(last.offset))
            sending.cancel()

    run(main(), loop)


request: contextvars.ContextVar[int] = contextvars.ContextVar("request")


@pytest.mark.parametrize("way", ["shared", "own", "nowait", "bulk"])
def test_have_the_context_variables_of_the_sender(
    kafka: EmbeddedKafka, topic: str, way: str
) -> None:
    told: dict[int, int] = {}

    def plain(error: Any, metadata: RecordMetadata) -> None:
        told[metadata.offset] = request.get()

    async def awaited(error: Any, metadata: RecordMetadata) -> None:
        await asyncio.sleep(0)
        plain(error, metadata)

    async def main() -> None:
        async with producer_of(
            kafka, on_delivery=awaited if way in ("shared", "bulk") else None
        ) as producer:
            await producer.partitions_for(topic)
            for number in range(10):
                request.set(number)
                if way == "bulk":
                    await producer.send_many(topic, [b"x"])
                elif way == "nowait":
                    producer.send_nowait(topic, b"x", on_delivery=plain)
                else:
                    own = awaited if way == "own" else None
                    await producer.send(topic, b"x", on_delivery=own)

    run(main())
    assert told == {number: number for number in range(10)}


@pytest.mark.parametrize("error", [asyncio.CancelledError, ZeroDivisionError])
def test_one_that_raises_does_not_stop_the_others(
    kafka: EmbeddedKafka, topic: str, error: type[BaseException]
) -> None:
    told: list[int] = []

    def callback(_: Any, metadata: RecordMetadata) -> None:
        told.append(metadata.offset)
        if metadata.offset % 2 == 0:
            raise error

    async def main() -> None:
        async with producer_of(kafka) as producer:
            for _ in range(100):
                await producer.send(topic, b"x", on_delivery=callback)
            assert await producer.flush() == 0

    run(main())
    assert told == list(range(100))


def test_one_that_ends_the_program_leaves_the_others_to_the_loop(
    kafka: EmbeddedKafka, topic: str
) -> None:
    told: list[int] = []

    def callback(_: Any, metadata: RecordMetadata) -> None:
        told.append(metadata.offset)
        if metadata.offset == 1:
            raise SystemExit(7)

    producer = producer_of(kafka)

    async def send() -> None:
        await producer.send(topic, b"x")  # so that the topic is known
        for _ in range(9):  # all of them before the loop can run a callback
            producer.send_nowait(topic, b"x", on_delivery=callback)
        await asyncio.sleep(TIMEOUT)

    loop = asyncio.new_event_loop()
    sending = loop.create_task(send())
    with pytest.raises(SystemExit, match="7"):
        loop.run_until_complete(sending)
    loop.run_until_complete(producer.close())
    sending.cancel()
    loop.run_until_complete(asyncio.wait([sending]))
    loop.close()
    assert told == list(range(1, 10))


def test_of_one_producer_in_the_loops_of_several_threads(kafka: EmbeddedKafka, topic: str) -> None:
    """Each runs in the loop that has sent its record, and that loop's flush waits for it."""
    told: dict[int, list[int]] = {}

    async def callback(error: Any, metadata: RecordMetadata) -> None:
        await asyncio.sleep(0)
        told.setdefault(threading.get_ident(), []).append(metadata.offset)

    producer = producer_of(kafka, on_delivery=callback)
    sent: list[int] = []

    async def main() -> None:
        for _ in range(10):
            for _ in range(10):
                await producer.send(topic, b"x")
            await producer.send_many(topic, [b"x"] * 10)
            assert await producer.flush() == 0
        sent.append(len(told[threading.get_ident()]))

    threads = [threading.Thread(target=run, args=[main()]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    run(producer.close())
    assert sent == [200] * 4
    assert sorted(offset for offsets in told.values() for offset in offsets) == list(range(800))


@pytest.mark.parametrize("way", ["shared", "own", "bulk"])
def test_whose_loop_was_closed_are_called_in_the_next_one(
    kafka: EmbeddedKafka, topic: str, loop: str, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    """As a program has it that calls `asyncio.run` again and again."""
    told: list[int] = []

    async def callback(error: Any, metadata: RecordMetadata) -> None:
        told.append(metadata.offset)

    producer = producer_of(kafka, on_delivery=None if way == "own" else callback)

    async def send(own: Any = callback if way == "own" else None) -> None:
        await producer.partitions_for(topic)
        kafka.pause(1)
        if way == "bulk":
            await producer.send_many(topic, [b"x"] * 3)
            return
        for _ in range(3):
            await producer.send(topic, b"x", on_delivery=own)

    run(send(), loop)
    kafka.resume(1)
    if way == "own":  # they may be due before the next loop begins, or after
        eventually(lambda: "theirs was closed" in caplog.text, "the log")
    run(producer.close(), loop)
    assert told == [0, 1, 2]


def test_of_rows_that_a_cancelled_call_has_brought_in(kafka: EmbeddedKafka, topic: str) -> None:
    told: list[int] = []

    def callback(error: Any, metadata: RecordMetadata) -> None:
        assert error is None
        told.append(metadata.offset)

    async def main() -> None:
        async with producer_of(
            kafka, buffer_memory=1 << 17, batch_size=1 << 14, on_delivery=callback
        ) as producer:
            await producer.send_and_wait(topic, b"first")
            kafka.pause(1)
            rows = [b"%03d" % number + bytes(1_000) for number in range(1_000)]
            sending = asyncio.create_task(producer.send_many(topic, rows))
            await until(lambda: producer.metrics()["blocked"])
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
            kafka.resume(1)
            await producer.flush()

    run(main())
    count = kafka.end_offset(topic, 0)
    assert 1 < count < 1_000
    assert told == list(range(count))


def test_of_a_record_that_is_lost_while_its_close_is_cancelled(
    kafka: EmbeddedKafka, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody is left to be told: the log is."""

    async def main() -> None:
        producer = producer_of(kafka)
        await producer.partitions_for(topic)
        kafka.faults.error(PRODUCE, InvalidRecord, topic=topic, count=1)
        kafka.faults.delay(0.2, api=PRODUCE, count=1)
        producer.send_nowait(topic, b"x")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(producer.close(), 0.05)
        await asyncio.to_thread(eventually, lambda: producer._core.queues.dead)

    run(main())
    eventually(lambda: any("not delivered" in line for line in caplog.messages), "the log")
