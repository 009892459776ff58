"""Asynchronous clients in their loops: who may call them, which loops there are, what is left."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import threading
import warnings
import weakref
from collections.abc import Collection
from typing import Any

import pytest

from kafka_fast import TopicPartition, aio
from kafka_fast.errors import (
    UsageError,
    WakeupError,
)
from kafka_fast.net.process import process_life
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.embedded.consuming import committed, fill
from tests.embedded.looped import LOOPS, consumer_of, producer_of, run, until
from tests.embedded.producing import entries, values
from tests.waiting import TIMEOUT, eventually


async def round_trip(kafka: EmbeddedKafka, topic: str, count: int = 100) -> None:
    """Send, await each handle, and read all of it in a group."""
    async with producer_of(kafka) as producer:
        handles = [await producer.send(topic, b"%d" % number) for number in range(count)]
        assert [(await one).offset for one in handles] == list(range(count))
    async with consumer_of(kafka, group_id=topic) as consumer:
        consumer.subscribe([topic])
        values_read = []
        async for record in consumer:
            values_read.append(record.value)
            if len(values_read) == count:
                break
        await consumer.commit()
    assert values_read == [b"%d" % number for number in range(count)]
    assert committed(kafka, topic) == {(topic, 0): count}


# ---- loops ----


def test_each_kind_of_loop(kafka: EmbeddedKafka, topic: str, loop: str) -> None:
    run(round_trip(kafka, topic), loop)


def test_debug_mode_has_nothing_to_say(
    kafka: EmbeddedKafka, topic: str, loop: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither slow callbacks nor coroutines that nobody awaits; warnings are errors here."""

    async def main() -> None:
        asyncio.get_running_loop().slow_callback_duration = 0.5  # other tests run beside this one
        await round_trip(kafka, topic)

    with caplog.at_level(logging.WARNING, logger="asyncio"):
        run(main(), loop, debug=True)
        gc.collect()
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


def test_one_client_in_a_loop_after_the_other(kafka: EmbeddedKafka, topic: str, loop: str) -> None:
    """As programs do that call `asyncio.run` again and again."""
    fill(kafka, topic, 5)
    producer, consumer = producer_of(kafka), consumer_of(kafka)
    consumer.assign([TopicPartition(topic, 0)])

    async def main(number: int) -> None:
        assert (await producer.send_and_wait(topic, b"x")).offset == 5 + number
        assert len(await consumer.poll(TIMEOUT, 1)) == 1

    for number in range(5):
        run(main(number), loop)
    run(producer.close(), loop)
    run(consumer.close(), loop)


def test_loops_of_several_threads_share_a_producer(
    kafka: EmbeddedKafka, topic: str, loop: str
) -> None:
    producer = producer_of(kafka)
    offsets: list[int] = []

    async def main() -> None:
        for _ in range(20):
            handles = [await producer.send(topic, b"x") for _ in range(20)]
            offsets.extend(one.offset for one in await asyncio.gather(*handles))

    threads = [threading.Thread(target=run, args=[main(), loop]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    run(producer.close(), loop)
    assert sorted(offsets) == list(range(4 * 20 * 20))


def test_a_loop_that_is_closed_under_its_clients(
    kafka: EmbeddedKafka, topic: str, loop: str
) -> None:
    """What was accepted is accepted; another loop goes on with the clients."""
    producer = producer_of(kafka, linger_ms=60_000)
    consumer = consumer_of(kafka)
    consumer.assign([TopicPartition(topic, 0)])
    polling: list[asyncio.Task[Any]] = []

    async def main() -> None:
        await producer.send(topic, b"x")
        polling.append(asyncio.create_task(consumer.poll(TIMEOUT)))
        await until(lambda: consumer._caller_lock.holder is polling[0])

    made = LOOPS[loop]()
    made.run_until_complete(main())
    for task in polling:  # as `asyncio.run` does
        task.cancel()
    made.run_until_complete(asyncio.gather(*polling, return_exceptions=True))
    made.close()
    run(producer.close(), loop)

    async def go_on() -> None:
        assert (await consumer.poll(TIMEOUT)).values() == [b"x"]
        await consumer.close()

    run(go_on(), loop)


def test_what_is_not_closed_is_told_of(kafka: EmbeddedKafka, topic: str) -> None:
    async def main() -> None:
        producer, consumer = producer_of(kafka), consumer_of(kafka)
        await producer.send(topic, b"x")
        consumer.assign([TopicPartition(topic, 0)])
        await consumer.poll(0)

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        run(main())
        gc.collect()
    said = sorted(str(one.message) for one in told)
    assert ["was collected before it was closed" in said[0], "was not closed" in said[1]] == [
        True,
        True,
    ]
    eventually(lambda: values(kafka, topic) == [b"x"], "what was accepted")


def test_a_dropped_producer_is_freed_at_once(kafka: EmbeddedKafka, topic: str) -> None:
    """Not with the next garbage collection: its threads would go on until then."""
    left: list[weakref.ref[aio.Producer]] = []

    async def main() -> None:
        producer = producer_of(kafka)
        handle = await producer.send(topic, b"x", on_delivery=print)
        await producer.send_many(topic, [b"x"])
        await producer.flush()
        del handle
        left.append(weakref.ref(producer))

    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            run(main())
        assert left[0]() is None
    finally:
        gc.enable()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="asyncio.TaskGroup came with Python 3.11")
def test_task_groups_and_timeouts(kafka: EmbeddedKafka, topic: str, loop: str) -> None:
    async def main() -> None:
        async with producer_of(kafka) as producer, asyncio.TaskGroup() as tasks:
            for _ in range(20):
                tasks.create_task(producer.send_and_wait(topic, b"x"))
                tasks.create_task(producer.send(topic, b"y"))
        async with consumer_of(kafka) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            offsets: list[int] = []

            async def read() -> None:
                async with asyncio.timeout(0.01):
                    while True:
                        offsets.extend((await consumer.poll(10)).offsets())

            while len(offsets) < 40:
                with pytest.raises(TimeoutError):
                    await read()
            assert offsets == list(range(40))

    run(main(), loop)


# ---- who may call ----


def test_a_second_task_is_told_who_is_the_first(kafka: EmbeddedKafka, topic: str) -> None:
    async def main() -> None:
        async with consumer_of(kafka) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            first = asyncio.create_task(consumer.poll(TIMEOUT), name="the first")
            await until(lambda: consumer._caller_lock.holder is first)
            for call in (
                lambda: consumer.poll(0),
                lambda: consumer.position(TopicPartition(topic, 0)),
                consumer.lag,
            ):
                with pytest.raises(UsageError, match="task 'the first' uses this consumer"):
                    await call()
            with pytest.raises(UsageError, match="task 'the first' uses this consumer"):
                consumer.assignment()
            consumer.wakeup()
            with pytest.raises(WakeupError):
                await first
            assert await consumer.poll(0) is not None

    run(main())


def test_a_close_ends_another_tasks_poll(kafka: EmbeddedKafka, topic: str) -> None:
    async def main() -> None:
        consumer = consumer_of(kafka, group_id=topic)
        consumer.subscribe([topic])
        polling = asyncio.create_task(consumer.poll(TIMEOUT))
        await until(lambda: consumer._caller_lock.holder is polling)
        await asyncio.gather(consumer.close(), consumer.close())
        with pytest.raises(WakeupError, match="closes this consumer"):
            await polling
        with pytest.raises(UsageError, match="closed"):
            await consumer.poll()

    run(main())


class Listener(aio.RebalanceListener):
    """Commits what was read, in the task that polls."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_partitions_assigned(
        self, consumer: aio.Consumer, partitions: Collection[TopicPartition]
    ) -> None:
        self.heard.append(f"assigned {len(partitions)}")

    async def on_partitions_revoked(
        self, consumer: aio.Consumer, partitions: Collection[TopicPartition]
    ) -> None:
        await asyncio.sleep(0.01)
        await consumer.commit()
        self.heard.append(f"revoked {len(partitions)}")


def test_listeners_are_functions_or_coroutines(kafka: EmbeddedKafka, topic: str) -> None:
    fill(kafka, topic, 10)
    listener = Listener()

    async def main() -> None:
        async with consumer_of(kafka, group_id=topic, enable_auto_commit=False) as consumer:
            consumer.subscribe([topic], listener=listener)
            assert len(await consumer.poll(TIMEOUT)) == 10
            told: list[object] = []

            async def tell(offsets: object, error: object) -> None:
                await asyncio.sleep(0)
                told.append(error)

            await consumer.commit(sync=False, callback=tell)
            await consumer.commit(callback=tell)
            assert told == [None, None]

    run(main())
    assert listener.heard == ["assigned 1", "revoked 1"]
    assert committed(kafka, topic) == {(topic, 0): 10}


def test_a_lost_partition_is_revoked_unless_the_listener_says_otherwise() -> None:
    listener = Listener()

    class Plain(aio.RebalanceListener):
        def on_partitions_revoked(self, consumer: Any, partitions: Any) -> None:
            listener.heard.append("plain")

    run(Plain().on_partitions_lost(None, []))  # type: ignore[arg-type]
    run(aio.RebalanceListener().on_partitions_lost(None, []))  # type: ignore[arg-type]
    assert listener.heard == ["plain"]


def test_no_topics_are_a_mistake_here(kafka: EmbeddedKafka) -> None:
    async def main() -> None:
        async with consumer_of(kafka, group_id="g") as consumer:
            with pytest.raises(UsageError, match=r"await consumer.unsubscribe\(\)"):
                consumer.subscribe([])

    run(main())


# ---- reading a range ----


def test_a_range(kafka: EmbeddedKafka, topic: str, loop: str) -> None:
    fill(kafka, topic, 100)

    async def main() -> None:
        offsets: list[int] = []
        config = {"bootstrap.servers": kafka.bootstrap}
        async for records in aio.read_range(topic, 10, 90, max_records=7, config=config):
            offsets += records.offsets()
        assert offsets == list(range(10, 90))
        async with aio.read_range(topic, config=config) as steps:
            assert repr(steps) == "RecordRange(not begun)"
            assert await steps.ranges() == {TopicPartition(topic, 0): range(100)}
            assert repr(steps) == "RecordRange(1 partition, 100 offsets)"
        pa = pytest.importorskip("pyarrow")
        whole = await aio.read_range(topic, config=config).to_arrow(views=True, columns=["value"])
        assert (whole.num_rows, whole.schema.types) == (100, [pa.binary_view()])
        assert (await aio.read_range(topic, 100, config=config).to_arrow()).num_rows == 0
        tables = [
            table async for table in aio.read_range(topic, max_records=40, config=config).tables()
        ]
        assert sum(table.num_rows for table in tables) == 100

    run(main(), loop)


def test_a_range_that_cannot_be_read(kafka: EmbeddedKafka) -> None:
    async def main() -> None:
        before = len(process_life.living)
        steps = aio.read_range("absent", bootstrap_servers=kafka.bootstrap)
        with pytest.raises(Exception, match="absent"):
            await steps.__anext__()
        assert len(process_life.living) == before, "its consumer was closed"
        with pytest.raises(StopAsyncIteration):
            await steps.__anext__()
        steps = aio.read_range("absent", bootstrap_servers=kafka.bootstrap)
        with pytest.raises(Exception, match="absent"):
            await steps.ranges()
        assert len(process_life.living) == before, "this one, too"
        with pytest.raises(UsageError, match="without a group"):
            aio.read_range("t", bootstrap_servers=kafka.bootstrap, group_id="g")

    run(main())


def test_a_range_that_is_broken_off(kafka: EmbeddedKafka, topic: str) -> None:
    """It has no group to leave, and nothing to commit: no warning, as of a blocking one."""
    fill(kafka, topic, 100)

    async def main() -> None:
        before = len(process_life.living)
        async for records in aio.read_range(
            topic, max_records=10, bootstrap_servers=kafka.bootstrap
        ):
            assert len(records) == 10
            break
        gc.collect()
        await until(lambda: len(process_life.living) == before)  # nobody waited for its end

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(main())


# ---- what is left ----


def gone_to(fds: int, threads: int) -> None:
    """Wait until so many are left: the broker, in this process, closes its ends a little later."""
    eventually(lambda: len(entries("/proc/self/fd")) <= fds, "the descriptors' end")
    eventually(lambda: threading.active_count() <= threads, "the threads' end")


def test_nothing_is_left_of_cancelled_polls(kafka: EmbeddedKafka, topic: str, loop: str) -> None:
    async def main() -> None:
        async with consumer_of(kafka) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            await consumer.poll(0.05)
            reader = weakref.ref(consumer._driver._readers.reader_of(asyncio.get_running_loop()))
            gc.collect()
            fds, tasks = entries("/proc/self/fd"), len(asyncio.all_tasks())
            for _ in range(3_000):
                polling = asyncio.ensure_future(consumer.poll(TIMEOUT))
                await asyncio.sleep(0)
                polling.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await polling
            assert entries("/proc/self/fd") <= fds
            assert len(asyncio.all_tasks()) == tasks
            reading = reader()
            assert reading is not None
            assert not reading.waiting
            fill(kafka, topic, 3)
            assert (await consumer.poll(TIMEOUT)).offsets() == [0, 1, 2]

    run(main(), loop)


def test_nothing_is_left_of_clients_that_are_closed(
    kafka: EmbeddedKafka, topic: str, loop: str
) -> None:
    async def main() -> None:
        async def open_and_close() -> None:
            async with producer_of(kafka) as producer, consumer_of(kafka) as consumer:
                consumer.assign([TopicPartition(topic, 0)])
                await producer.send_and_wait(topic, b"x")
                assert await consumer.poll(TIMEOUT)

        await open_and_close()
        gc.collect()
        fds, threads = len(entries("/proc/self/fd")), threading.active_count()
        for _ in range(100):
            await open_and_close()
        gc.collect()
        await asyncio.to_thread(gone_to, fds, threads + 1)  # `to_thread` has one of its own
        assert len(asyncio.all_tasks()) <= 2

    run(main(), loop)


@pytest.mark.long
def test_nothing_is_left_in_the_long_run(kafka: EmbeddedKafka, topic: str) -> None:
    """10,000 cancelled polls, and 1,000 producers and consumers."""

    async def main() -> None:
        async with producer_of(kafka) as producer:
            await producer.send_and_wait(topic, b"x")
        async with consumer_of(kafka) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            assert await consumer.poll(TIMEOUT)
            gc.collect()
            fds, threads = len(entries("/proc/self/fd")), threading.active_count()
            for _ in range(10_000):
                polling = asyncio.ensure_future(consumer.poll(TIMEOUT))
                await asyncio.sleep(0)
                polling.cancel()
                await asyncio.wait([polling])
                assert polling.cancelled()
            for _ in range(1_000):
                async with producer_of(kafka) as producer:
                    await producer.send_and_wait(topic, b"x")
                async with consumer_of(kafka) as other:
                    other.assign([TopicPartition(topic, 0)])
                    assert await other.poll(TIMEOUT)
            del producer, other
            gc.collect()
            await asyncio.to_thread(gone_to, fds, threads + 1)
            assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
