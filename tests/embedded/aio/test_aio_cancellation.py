"""A cancelled call leaves an asynchronous client consistent, wherever it waited."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kafka_fast import TopicPartition, aio
from kafka_fast.errors import TopicAuthorizationFailed, WakeupError
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import OFFSET_COMMIT, PRODUCE
from tests.embedded.consuming import committed, fill
from tests.embedded.looped import Cancelled, consumer_of, producer_of, run, until
from tests.embedded.producing import new_topic, values
from tests.waiting import TIMEOUT, eventually

COUNT = 40


class Interrupted:
    """Calls of which one is cancelled: where they are suspended for the nth time in all."""

    def __init__(self, place: int) -> None:
        self.left = place

    async def call(self, awaitable: Awaitable[Any]) -> tuple[bool, Any]:
        """Return whether the call has ended, and its result; False: it was cancelled."""
        if self.left <= 0:
            return True, await awaitable
        one = Cancelled(awaitable, self.left)
        try:
            result = await one
        except asyncio.CancelledError:
            return False, None
        finally:
            self.left = one.left
        return True, result


def test_anywhere_in_the_life_of_a_member(kafka: EmbeddedKafka, topic: str) -> None:
    """Every record comes once, and what was committed in the end is all of them."""
    fill(kafka, topic, COUNT)

    async def live(place: int, group: str) -> bool:
        interrupted = Interrupted(place)
        consumer = consumer_of(kafka, group_id=group, max_poll_records=15)
        consumer.subscribe([topic])
        offsets: list[int] = []
        while len(offsets) < COUNT:
            _, records = await interrupted.call(consumer.poll(TIMEOUT))
            offsets += records.offsets() if records else []
        assert offsets == list(range(COUNT))
        while not (await interrupted.call(consumer.commit()))[0]:
            pass
        await interrupted.call(consumer.close())
        await asyncio.to_thread(eventually, lambda: consumer._core.has_ended)
        assert committed(kafka, group) == {(topic, 0): COUNT}
        await asyncio.to_thread(eventually, lambda: members_of(kafka, group) == 0)
        return interrupted.left <= 0

    for place in itertools.count(1):
        if not run(live(place, f"{topic}-{place}")):
            break
    assert place > 5, "there are more places than that"


def members_of(kafka: EmbeddedKafka, group: str) -> int:
    return kafka.on_cluster(lambda cluster: len(cluster.state.groups[group].members))


def test_a_commit_that_was_begun_goes_on(kafka: EmbeddedKafka, topic: str) -> None:
    fill(kafka, topic, COUNT)

    async def main() -> None:
        async with consumer_of(kafka, group_id=topic, enable_auto_commit=False) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            await consumer.poll(TIMEOUT)
            kafka.faults.delay(0.2, api=OFFSET_COMMIT, count=1)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(consumer.commit(), 0.05)
            await asyncio.to_thread(
                eventually, lambda: committed(kafka, topic) == {(topic, 0): COUNT}
            )

    run(main())


def test_a_commit_in_the_background_that_fails_is_logged(
    kafka: EmbeddedKafka, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    fill(kafka, topic, COUNT)

    async def main() -> None:
        async with consumer_of(kafka, group_id=topic, enable_auto_commit=False) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            await consumer.poll(TIMEOUT)
            kafka.faults.delay(0.2, api=OFFSET_COMMIT, count=1)
            kafka.faults.error(OFFSET_COMMIT, TopicAuthorizationFailed, count=1)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(consumer.commit(), 0.05)
            await asyncio.to_thread(
                eventually,
                lambda: any("commit of 1 partition failed" in text for text in caplog.messages),
            )
            assert committed(kafka, topic) == {}

    run(main())


def test_a_commit_that_fails_as_it_is_cancelled_is_logged(
    kafka: EmbeddedKafka,
    topic: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The answer and the cancellation come in one iteration of the loop."""
    fill(kafka, topic, COUNT)

    async def main() -> None:
        async with consumer_of(kafka, group_id=topic, enable_auto_commit=False) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            await consumer.poll(TIMEOUT)
            is_answered = threading.Event()
            queries = consumer._core.queries
            commit = queries.commit

            def commit_and_tell(offsets: Any, done: Any, *rest: Any, **more: Any) -> None:
                def tell(error: Any) -> None:
                    done(error)
                    is_answered.set()

                commit(offsets, tell, *rest, **more)

            monkeypatch.setattr(queries, "commit", commit_and_tell)
            kafka.faults.error(OFFSET_COMMIT, TopicAuthorizationFailed, count=1)
            committing = asyncio.create_task(consumer.commit())
            await asyncio.sleep(0)
            assert is_answered.wait(TIMEOUT)  # while the loop stands still
            committing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await committing
            await until(lambda: caplog.messages)

    run(main())
    assert [text for text in caplog.messages if "commit of 1 partition failed" in text]


def test_a_listener_that_was_cancelled_is_told_again(kafka: EmbeddedKafka, topic: str) -> None:
    """Else it would not have set the positions from which to read."""
    fill(kafka, topic, COUNT)
    heard: list[set[TopicPartition]] = []

    class Slow(aio.RebalanceListener):
        async def on_partitions_assigned(self, consumer: Any, partitions: Any) -> None:
            heard.append(set(partitions))
            await asyncio.sleep(TIMEOUT if len(heard) == 1 else 0)
            for partition in partitions:
                consumer.seek(partition, 25)

    async def main() -> None:
        async with consumer_of(kafka, group_id=topic) as consumer:
            consumer.subscribe([topic], listener=Slow())
            polling = asyncio.create_task(consumer.poll(TIMEOUT))
            await until(lambda: heard)
            polling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await polling
            assert (await consumer.poll(TIMEOUT)).offsets() == list(range(25, COUNT))

    run(main())
    assert heard == [{TopicPartition(topic, 0)}] * 2


class TestWhereOnlyOtherTasksAreLetIn:
    """A busy reader is suspended nowhere else. It has come back for more: its work is done."""

    @pytest.mark.parametrize("way", ["batches", "poll", "records"])
    def test_a_cancellation_interrupts_no_work(
        self, kafka: EmbeddedKafka, topic: str, way: str
    ) -> None:
        fill(kafka, topic, 1_000, batch=100)
        done = 0

        def work(last: int) -> None:
            nonlocal done
            time.sleep(0.002)  # holds the loop, so that the next call lets others in
            done = last + 1

        async def read() -> None:
            async with consumer_of(kafka, group_id=topic, max_poll_records=20) as consumer:
                consumer.subscribe([topic])
                if way == "batches":
                    async for records in consumer.batches():
                        work(records.offsets()[-1])
                elif way == "records":
                    async for record in consumer:
                        work(record.offset)
                while True:
                    for offset in (await consumer.poll(TIMEOUT)).offsets()[-1:]:
                        work(offset)

        async def main() -> None:
            reading = asyncio.create_task(read())
            await until(lambda: done > 60)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading

        run(main())
        assert committed(kafka, topic) == {(topic, 0): done}


def test_a_close_in_the_background_that_fails_is_logged(
    kafka: EmbeddedKafka, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Another task does not come out of its call, so nothing is closed."""

    async def main() -> None:
        consumer = consumer_of(kafka, group_id=topic)
        may_go_on = asyncio.Event()

        class Slow(aio.RebalanceListener):
            async def on_partitions_assigned(self, consumer: Any, partitions: Any) -> None:
                await may_go_on.wait()

        consumer.subscribe([topic], listener=Slow())
        polling = asyncio.create_task(consumer.poll(TIMEOUT))
        await until(lambda: consumer._reading.buffer.partitions)
        closing = asyncio.create_task(consumer.close(0.1))
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        await until(lambda: caplog.messages)
        assert "the close of this consumer has failed" in caplog.messages[-1]
        assert not consumer._core.closed
        may_go_on.set()
        consumer.wakeup()
        with pytest.raises(WakeupError):
            await polling
        await consumer.close()

    run(main())


def test_a_close_that_was_begun_goes_on(kafka: EmbeddedKafka, topic: str) -> None:
    """Longer than the moment for which a blocking close goes on after Ctrl-C."""
    fill(kafka, topic, COUNT)

    async def main() -> None:
        consumer = consumer_of(kafka, group_id=topic)
        consumer.subscribe([topic])
        assert len(await consumer.poll(TIMEOUT)) == COUNT
        await consumer.poll(0)  # covers them
        kafka.faults.delay(0.5, api=OFFSET_COMMIT, count=1)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(consumer.close(), 0.05)
        await asyncio.to_thread(eventually, lambda: consumer._core.has_ended)
        assert committed(kafka, topic) == {(topic, 0): COUNT}
        assert members_of(kafka, topic) == 0

    run(main())


def test_anywhere_in_a_loop_over_records(kafka: EmbeddedKafka, topic: str) -> None:
    async def main(place: int) -> bool:
        interrupted = Interrupted(place)
        async with consumer_of(kafka) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            records = consumer.__aiter__()
            offsets: list[int] = []
            while len(offsets) < COUNT:
                if len(offsets) == kafka.end_offset(topic, 0):
                    asyncio.get_running_loop().call_later(0.01, fill, kafka, topic, 10)
                has_ended, record = await interrupted.call(records.__anext__())
                offsets += [record.offset] if has_ended else []
            assert offsets == list(range(COUNT))
        return interrupted.left <= 0

    for place in itertools.count(1):
        if not run(main(place)):
            break
    assert place > 3, "there are more places than that"


Sending = Callable[[aio.Producer, str, bytes], Awaitable[Any]]


async def send_bulk(producer: aio.Producer, topic: str, value: bytes) -> Any:
    return await producer.send_many(topic, [value])


@pytest.mark.parametrize("send", [aio.Producer.send, send_bulk], ids=["send", "send_many"])
class TestSends:
    def test_that_wait_for_metadata_take_nothing(
        self, kafka: EmbeddedKafka, topic: str, send: Sending
    ) -> None:
        async def main(place: int, to: str) -> bool:
            async with producer_of(kafka) as producer:
                one = Cancelled(send(producer, to, b"first"), place)
                sent = [b"first"]
                try:
                    await one
                except asyncio.CancelledError:
                    sent = []
                await send(producer, to, b"second")
                await producer.flush()
                assert values(kafka, to) == [*sent, b"second"]
                return one.left <= 0

        for place in itertools.count(1):
            if not run(main(place, new_topic(kafka, topic))):
                break
        assert place > 1, "it had to wait"

    def test_that_wait_for_room_take_nothing(
        self, kafka: EmbeddedKafka, topic: str, send: Sending
    ) -> None:
        async def main() -> None:
            big = bytes(60_000)
            async with producer_of(
                kafka, buffer_memory=1 << 17, batch_size=1 << 16, max_block_ms=60_000
            ) as producer:
                await send(producer, topic, b"first")
                await producer.flush()
                kafka.pause(1)
                sent = 1
                for _ in range(10):
                    sending = asyncio.ensure_future(send(producer, topic, big))
                    done, _ = await asyncio.wait([sending], timeout=0.1)
                    if not done:
                        break
                    sent += 1
                sending.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await sending
                kafka.resume(1)
                await send(producer, topic, b"last")
                await producer.flush()
            assert len(values(kafka, topic)) == sent + 1

        run(main())

    def test_that_have_returned_are_not_undone(
        self, kafka: EmbeddedKafka, topic: str, send: Sending
    ) -> None:
        async def main() -> None:
            async with producer_of(kafka) as producer:
                await producer.partitions_for(topic)
                kafka.faults.delay(0.1, api=PRODUCE, count=1)
                delivery = await send(producer, topic, b"x")
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(delivery, 0.02)
                await delivery

        run(main())
        assert values(kafka, topic) == [b"x"]


def test_a_flush_may_be_cancelled_anywhere(kafka: EmbeddedKafka, topic: str) -> None:
    async def main() -> None:
        async with producer_of(kafka, linger_ms=60_000) as producer:
            await producer.partitions_for(topic)
            for place in itertools.count(1):
                await producer.send(topic, b"%d" % place)
                one = Cancelled(producer.flush(), place)
                try:
                    assert await one == 0
                except asyncio.CancelledError:
                    continue
                break
            assert place > 1, "it had to wait"
            assert values(kafka, topic) == [b"%d" % number for number in range(1, place + 1)]

    run(main())


def test_a_close_of_a_producer_goes_on(kafka: EmbeddedKafka, topic: str) -> None:
    async def main(place: int) -> bool:
        producer = producer_of(kafka, linger_ms=60_000)
        await producer.partitions_for(topic)
        await producer.send(topic, b"%d" % place)
        one = Cancelled(producer.close(), place)
        try:
            await one
        except asyncio.CancelledError:
            pass
        await asyncio.to_thread(eventually, lambda: producer._core.queues.dead)
        return one.left <= 0

    for place in itertools.count(1):
        if not run(main(place)):
            break
    assert place > 2, "it waits for deliveries, and for threads"
    assert values(kafka, topic) == [b"%d" % number for number in range(1, place + 1)]
