"""Awaiting records in an event loop: handles that asyncio takes for futures of its own."""

from __future__ import annotations

import asyncio
import gc
import selectors
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kafka_fast import Producer
from kafka_fast.errors import DeliveryError, InvalidRecord, KafkaTimeoutError, UsageError
from kafka_fast.net.waiting.loop_readers import LoopReader
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import PRODUCE
from kafka_fast.types import RecordMetadata
from tests.embedded.aio.handles import COUNT, offsets, run, send_all, wait_in
from tests.embedded.producing import TIMEOUT, MakeProducer, entries, new_topic


def test_a_task_for_each_record(producer: Producer, topic: str) -> None:
    async def send(number: int) -> RecordMetadata:
        return await producer.send(topic, b"%d" % number)

    async def main() -> list[RecordMetadata]:
        return await asyncio.gather(*(send(number) for number in range(COUNT)))

    assert offsets(run(main())) == list(range(COUNT))


def test_one_after_the_other(producer: Producer, topic: str) -> None:
    async def main() -> list[RecordMetadata]:
        return [await handle for handle in send_all(producer, topic)]

    assert offsets(run(main())) == list(range(COUNT))


def test_one_in_flight(producer: Producer, topic: str) -> None:
    async def main() -> list[RecordMetadata]:
        return [await producer.send(topic, b"x") for _ in range(50)]

    assert offsets(run(main())) == list(range(50))


def test_gather_takes_handles_as_they_are(producer: Producer, topic: str) -> None:
    async def main() -> list[RecordMetadata]:
        waiting = asyncio.gather(*send_all(producer, topic))
        assert len(asyncio.all_tasks()) <= 2, "this one and that of `run`, none for a handle"
        return await waiting

    assert offsets(run(main())) == list(range(COUNT))


def test_wait_and_as_completed(producer: Producer, topic: str) -> None:
    async def main() -> None:
        done, pending = await asyncio.wait(send_all(producer, topic), timeout=TIMEOUT)
        assert not pending
        assert sorted(handle.result().offset for handle in done) == list(range(COUNT))
        results = [await one for one in asyncio.as_completed(send_all(producer, topic))]
        assert sorted(offsets(results)) == list(range(COUNT, 2 * COUNT))

    run(main())


def test_a_bulk_call(producer: Producer, topic: str) -> None:
    async def main() -> None:
        first, second = await asyncio.gather(
            producer.send_many(topic, [b"x"] * COUNT), producer.send_many(topic, [b"y"] * COUNT)
        )
        assert (first.records, first.failed, second.records) == (COUNT, 0, COUNT)
        assert (await producer.send_many(topic, [])).records == 0

    run(main())


def test_wait_for_bulk_calls(producer: Producer, topic: str) -> None:
    """Their futures look enough like asyncio's own; callbacks run in the loop."""
    told: list[threading.Thread] = []

    async def main() -> None:
        calls = [producer.send_many(topic, [b"x"] * COUNT) for _ in range(3)]
        calls[0].add_done_callback(lambda _: told.append(threading.current_thread()))
        calls[1].add_done_callback(told.append)
        assert calls[1].remove_done_callback(told.append) == 1
        assert calls[1].remove_done_callback(told.append) == 0
        done, pending = await asyncio.wait(calls, timeout=TIMEOUT)
        assert (len(done), len(pending)) == (3, 0)
        done, _ = await asyncio.wait(calls, timeout=TIMEOUT)
        assert len(done) == 3, "known already"

    run(main())
    assert told == [threading.current_thread()]


def test_several_wait_for_one_record(producer: Producer, topic: str) -> None:
    async def main() -> None:
        handle = producer.send(topic, b"x")
        told: list[object] = []
        handle.add_done_callback(told.append)
        handle.add_done_callback(told.append)
        results = await asyncio.gather(handle, asyncio.shield(handle), wait_in(handle))
        assert offsets(list(results)) == [0, 0, 0]
        await asyncio.sleep(0)
        assert told == [handle, handle]
        handle.add_done_callback(told.append)  # known already
        await asyncio.sleep(0)
        assert told == [handle] * 3

    run(main())


def test_yield_from(producer: Producer, topic: str) -> None:
    """For classes with an `__await__` of their own, and coroutines of the old kind."""

    class Wrapper:
        def __init__(self, handle: Any) -> None:
            self._handle = handle

        def __await__(self) -> Any:
            offset = (yield from self._handle).offset
            assert (yield from self._handle.__await__()).offset == offset
            return offset

    async def main() -> None:
        handles = [producer.send(topic, b"x") for _ in range(COUNT)]
        assert [await Wrapper(handle) for handle in handles] == list(range(COUNT))

    asyncio.run(main())


def test_a_handle_is_no_list(kafka: EmbeddedKafka, producer: Producer, topic: str) -> None:
    """Regression: `gather(*handle)`, for `*handles`, made lists until the broker had answered."""

    async def main() -> None:
        kafka.pause(1)
        handle = producer.send(topic, b"x")
        for mistake in (list, tuple, lambda handles: asyncio.gather(*handles)):
            with pytest.raises(RuntimeError, match="await wasn't used with future"):
                mistake(handle)
        kafka.resume(1)
        assert (await handle).offset == 0

    producer.partitions_for(topic)
    asyncio.run(main())


def test_failures(kafka: EmbeddedKafka, producer: Producer, topic: str) -> None:
    async def main() -> None:
        kafka.faults.error(PRODUCE, InvalidRecord, topic=topic, count=3)
        with pytest.raises(DeliveryError):
            await producer.send(topic, b"x")
        with pytest.raises(DeliveryError):
            await asyncio.gather(producer.send(topic, b"x"))
        (failed,) = await asyncio.gather(producer.send(topic, b"x"), return_exceptions=True)
        assert isinstance(failed.first, InvalidRecord)

    run(main())
    assert producer.flush(TIMEOUT) == 0, "all failures were observed"


class TestCancellation:
    """Who gives up waiting ends only its own wait; records go their way."""

    def test_of_one_task_of_two(self, kafka: EmbeddedKafka, producer: Producer, topic: str) -> None:
        async def main() -> None:
            await producer.send(topic, b"first")
            kafka.pause(1)
            handle = producer.send(topic, b"x")
            given_up, patient = [asyncio.create_task(wait_in(handle)) for _ in range(2)]
            await asyncio.sleep(0)
            given_up.cancel()
            with pytest.raises(asyncio.CancelledError):
                await given_up
            assert not patient.done()
            assert not handle.cancelled()
            kafka.resume(1)
            assert (await patient).offset == 1

        run(main())

    @pytest.mark.parametrize(
        "wrap",
        [lambda handle: handle, asyncio.gather, asyncio.shield, wait_in],
        ids=["handle", "gather", "shield", "coroutine"],
    )
    def test_by_a_timeout(
        self,
        kafka: EmbeddedKafka,
        producer: Producer,
        topic: str,
        wrap: Callable[[Any], Awaitable[Any]],
    ) -> None:
        async def main() -> None:
            await producer.send(topic, b"first")
            kafka.pause(1)
            handle = producer.send(topic, b"x")
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(wrap(handle), 0.05)
            assert not handle.done()
            kafka.resume(1)
            assert (await handle).offset == 1
            assert not handle.cancelled(), "its fate is known after all"

        run(main())

    def test_of_a_handle(self, kafka: EmbeddedKafka, producer: Producer, topic: str) -> None:
        async def main() -> None:
            await producer.send(topic, b"first")
            kafka.pause(1)
            handle = producer.send(topic, b"x")
            told: list[bool] = []
            assert not handle.cancel(), "nobody waits"
            handle.add_done_callback(lambda handle: told.append(handle.cancelled()))
            assert handle.remove_done_callback(print) == 0
            assert handle.cancel()
            assert handle.cancelled()
            with pytest.raises(asyncio.CancelledError):
                handle.result()
            await asyncio.sleep(0)
            assert told == [True]
            kafka.resume(1)
            assert (await handle).offset == 1

        run(main())


def test_a_ctrl_c_in_the_loops_reader_leaves_nobody_asleep(
    producer: Producer, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    interruptions = [KeyboardInterrupt()]
    leave_if_idle = LoopReader.leave_if_idle

    def leave(reader: LoopReader) -> None:
        if interruptions:
            raise interruptions.pop()
        leave_if_idle(reader)

    monkeypatch.setattr(LoopReader, "leave_if_idle", leave)
    loop = asyncio.new_event_loop()

    async def main() -> list[RecordMetadata]:
        return await asyncio.gather(*map(wait_in, send_all(producer, topic)))

    waiting = loop.create_task(main())
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(waiting)
    assert offsets(loop.run_until_complete(waiting)) == list(range(COUNT))
    loop.close()


class CountingSelector(selectors.DefaultSelector):
    """Counts the loop's iterations, and those in which something other than time woke it."""

    looks = 0
    wakes = 0

    def select(self, timeout: float | None = None) -> Any:
        self.looks += 1
        events = super().select(timeout)
        self.wakes += bool(events)
        return events


def test_the_loop_is_woken_once_for_many_batches(
    kafka: EmbeddedKafka, producer_on: MakeProducer, topic: str
) -> None:
    producer = producer_on(batch_size=100, max_in_flight_requests_per_connection=5)
    producer.partitions_for(topic)
    selector = CountingSelector()
    loop = asyncio.SelectorEventLoop(selector)

    async def main() -> None:
        await producer.send(topic, b"first")
        kafka.pause(1)
        handles = send_all(producer, topic, 5_000)
        waiting = asyncio.gather(*handles)
        await asyncio.sleep(0)
        before = selector.wakes
        kafka.resume(1)
        await waiting
        requests = producer.metrics()["requests"]
        assert selector.wakes - before <= requests, "a record does not wake the loop"

    loop.run_until_complete(main())
    loop.close()


def test_a_task_goes_on_in_the_iteration_that_is_woken(producer: Producer, topic: str) -> None:
    producer.partitions_for(topic)
    selector = CountingSelector()
    loop = asyncio.SelectorEventLoop(selector)

    async def main() -> None:
        await producer.send(topic, b"first")
        before = selector.looks
        for _ in range(COUNT):
            await producer.send(topic, b"x")
        assert selector.looks - before < 1.5 * COUNT, "another look for each wake"

    loop.run_until_complete(main())
    loop.close()


def test_threads_with_loops_of_their_own(producer: Producer, topic: str) -> None:
    """Any of them may take note of another's batches."""
    results: list[int] = []

    async def main() -> None:
        for _ in range(20):
            results.extend(offsets(await asyncio.gather(*send_all(producer, topic, 20))))

    threads = [threading.Thread(target=run, args=[main()]) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        producer.flush(0.01)  # takes note of them too
    assert sorted(results) == list(range(4 * 20 * 20))


def test_nothing_is_left_of_loops_that_are_closed(producer: Producer, topic: str) -> None:
    async def main() -> None:
        await producer.send(topic, b"x")

    run(main())
    gc.collect()
    fds = entries("/proc/self/fd")
    for _ in range(10):
        run(main())
    gc.collect()
    assert entries("/proc/self/fd") <= fds


def test_a_producer_that_is_closed_leaves_the_loop(kafka: EmbeddedKafka, topic: str) -> None:
    async def main() -> None:
        with Producer(bootstrap_servers=kafka.bootstrap) as producer:
            await asyncio.to_thread(producer.partitions_for, topic)
            await producer.send(topic, b"x")
            pending = producer.send(topic, b"y")
            waiting = asyncio.ensure_future(wait_in(pending))
            await asyncio.sleep(0)
        assert (await waiting).offset == 1
        told: list[object] = []
        pending.add_done_callback(told.append)
        loop: Any = asyncio.get_running_loop()
        for _ in range(1000):
            await asyncio.sleep(0)
            if told and len(loop._selector.get_map()) == 1:
                break
        assert told == [pending]
        assert len(loop._selector.get_map()) == 1, "the loop's own"

    run(main())


class TestSendsThatWait:
    """A send that waits holds up the whole event loop: its author hears of it, once."""

    @pytest.fixture
    def cold(self, producer_on: MakeProducer) -> Producer:
        """One that has no metadata yet."""
        return producer_on()

    def test_for_metadata(self, kafka: EmbeddedKafka, cold: Producer, topic: str) -> None:
        other = new_topic(kafka, "other")

        async def main() -> None:
            with pytest.warns(RuntimeWarning, match=f"metadata of topic '{topic}'") as told:
                cold.send(topic, b"x")
            (one,) = told
            assert one.filename == __file__, "the line that sends"
            assert "asyncio.to_thread(producer.partitions_for" in str(one.message)
            assert "asyncio.to_thread(producer.send" in str(one.message)
            cold.send_many(other, [b"x"])  # waits as well, and has been told

        run(main())
        assert cold.flush(TIMEOUT) == 0

    def test_for_memory(self, kafka: EmbeddedKafka, producer_on: MakeProducer, topic: str) -> None:
        full = producer_on(buffer_memory=100_000, linger_ms=0)
        full.partitions_for(topic)

        async def main() -> None:
            kafka.pause(1)
            threading.Timer(0.2, kafka.resume, [1]).start()
            with pytest.warns(RuntimeWarning, match=r"room in buffer\.memory.*to_thread"):
                _ = [full.send(topic, bytes(1_000)) for _ in range(300)]

        run(main())
        assert full.flush() == 0

    def test_one_that_is_not_to_wait_is_told_otherwise(
        self, producer_on: MakeProducer, topic: str
    ) -> None:
        impatient = producer_on(max_block_ms=0)

        async def main() -> None:
            with pytest.raises(KafkaTimeoutError):
                impatient.send(topic, b"x")

        run(main())

    @pytest.mark.parametrize("way", ["beside the loop", "without one", "prepared"])
    def test_what_holds_up_nobody_is_told_nothing(
        self, cold: Producer, topic: str, way: str
    ) -> None:
        async def main() -> None:
            if way == "prepared":
                await asyncio.to_thread(cold.partitions_for, topic)
                await cold.send(topic, b"x")
            else:
                await asyncio.to_thread(cold.send, topic, b"x")

        if way == "without one":
            cold.send(topic, b"x")
        else:
            run(main())
        assert cold.flush(TIMEOUT) == 0


def test_outside_of_an_event_loop(producer: Producer, topic: str) -> None:
    handle = producer.send(topic, b"x")
    called: list[str] = []
    handle.add_done_callback(lambda _: called.append(threading.current_thread().name))
    assert not handle.cancel()
    with pytest.raises(RuntimeError, match="no running event loop"):
        handle.get_loop()
    with pytest.raises(RuntimeError, match="no running event loop"):
        next(iter(handle.__await__()))
    producer.flush()
    assert called == ["kf-callback"]
    producer.close()
    handle.add_done_callback(lambda _: called.append(threading.current_thread().name))
    assert called[1:] == ["MainThread"], "the callback thread is gone"
    with pytest.raises(UsageError):
        producer.send(topic, b"x")
