"""Callbacks that are added to a handle in an event loop."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from typing import Any

import pytest

from kafka_fast import Producer
from tests.embedded.aio.handles import COUNT, run, send_all
from tests.embedded.producing import TIMEOUT

visitor: contextvars.ContextVar[str] = contextvars.ContextVar("visitor", default="nobody")


class TestCallbacks:
    """They are called in the loop, some of them in one handle of the loop's."""

    def test_each_has_the_context_in_which_it_was_added(
        self, producer: Producer, topic: str
    ) -> None:
        told: list[str] = []

        def note(_: object) -> None:
            told.append(visitor.get())
            visitor.set("somebody else")

        async def main() -> None:
            handle = producer.send(topic, b"x")
            for is_known in (False, True):
                assert handle.done() == is_known
                visitor.set("first")
                handle.add_done_callback(note)
                visitor.set("second")
                handle.add_done_callback(note)
                handle.add_done_callback(note, context=contextvars.Context())
                visitor.set("third")
                await asyncio.gather(handle, handle)
                await asyncio.sleep(0)
                assert visitor.get() == "third"

        run(main())
        assert told == ["first", "second", "nobody"] * 2

    @pytest.mark.parametrize("is_known", [False, True])
    def test_that_raise_do_not_stop_the_others(
        self, producer: Producer, topic: str, is_known: bool
    ) -> None:
        told: list[int] = []
        raised: list[Any] = []

        def note(number: int) -> Callable[[object], None]:
            def call(_: object) -> None:
                told.append(number)
                if number % 3 == 0:
                    raise ZeroDivisionError(number)

            return call

        async def main() -> None:
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda _, context: raised.append(context))
            handle = producer.send(topic, b"x")
            if is_known:
                await handle
            for number in range(COUNT):
                handle.add_done_callback(note(number))
            await handle
            for _ in range(COUNT):
                await asyncio.sleep(0)

        run(main())
        assert told == list(range(COUNT))
        assert [context["exception"].args for context in raised] == [
            (number,) for number in range(0, COUNT, 3)
        ]

    def test_that_end_the_loop_leave_the_others_to_its_next_run(
        self, producer: Producer, topic: str
    ) -> None:
        told: list[int] = []

        def end(_: object) -> None:
            raise SystemExit(7)

        async def main() -> None:
            handle = producer.send(topic, b"x")
            handle.add_done_callback(lambda _: told.append(1))
            handle.add_done_callback(end)
            handle.add_done_callback(lambda _: told.append(2))
            await asyncio.sleep(TIMEOUT)

        loop = asyncio.new_event_loop()
        task = loop.create_task(main())
        with pytest.raises(SystemExit, match="7"):
            loop.run_until_complete(task)
        assert told == [1]
        task.cancel()
        loop.run_until_complete(asyncio.wait([task]))
        loop.close()
        assert told == [1, 2]

    def test_whose_errors_end_the_loop_leave_the_others_to_its_next_run(
        self, producer: Producer, topic: str
    ) -> None:
        """Regression: tasks whose records were delivered slept on for good."""
        loop = asyncio.new_event_loop()
        tasks: list[asyncio.Task[int]] = []

        def stop(*_: object) -> None:
            raise KeyboardInterrupt

        def fail(_: object) -> None:
            raise ValueError

        async def one(handle: Any) -> int:
            offset: int = (await handle).offset
            return offset

        async def main() -> None:
            handles = send_all(producer, topic, COUNT)
            loop.set_exception_handler(stop)
            handles[0].add_done_callback(fail)
            tasks.extend(loop.create_task(one(handle)) for handle in handles)
            await asyncio.wait(tasks)

        waiting = loop.create_task(main())
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(waiting)
        assert loop.run_until_complete(asyncio.gather(*tasks)) == list(range(COUNT))
        loop.run_until_complete(waiting)
        loop.close()

    def test_that_add_more_do_not_keep_the_loop(self, producer: Producer, topic: str) -> None:
        """What a callback adds is called in the loop's next iteration, as by asyncio's futures."""
        calls = iterations = 0

        async def main() -> None:
            nonlocal iterations
            handle = producer.send(topic, b"x")
            await handle

            def add_another(_: object) -> None:
                nonlocal calls
                calls += 1
                if calls < COUNT:
                    handle.add_done_callback(add_another)

            handle.add_done_callback(add_another)
            while calls < COUNT:
                await asyncio.sleep(0)
                iterations += 1

        run(main())
        assert iterations == COUNT

    def test_can_be_taken_back(self, producer: Producer, topic: str) -> None:
        told: list[object] = []

        async def main() -> None:
            handle = producer.send(topic, b"x")
            waiting = asyncio.gather(handle)  # its own callback has no context
            for _ in range(2):
                handle.add_done_callback(told.append)
            assert handle.remove_done_callback(told.append) == 2
            assert handle.remove_done_callback(told.append) == 0
            await waiting

        run(main())
        assert told == []
