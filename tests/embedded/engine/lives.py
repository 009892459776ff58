"""A consumer's user for each way to run its steps: in a thread that blocks, in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from kafka_fast.config import ConsumerSettings, consumer_settings
from kafka_fast.consumer.consumer_core import ConsumerCore
from kafka_fast.consumer.consumer_steps import ConsumerSteps
from kafka_fast.consumer.reading.record_handover import RecordHandover
from kafka_fast.control.group.member import Subscription
from kafka_fast.net.threaded_host import ThreadedHost
from kafka_fast.net.waiting.looping import LoopDriver
from kafka_fast.net.waiting.steps import Steps
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.types import TopicPartition
from tests.waiting import TIMEOUT

COUNT = 40
MOST = 15

T = TypeVar("T")


def settings_on(servers: str, group: str, **more: object) -> ConsumerSettings:
    config = {
        "bootstrap.servers": servers,
        "group.id": group,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "retry.backoff.ms": 20,
        "reconnect.backoff.ms": 20,
        **more,
    }
    return consumer_settings(config)


class Listener:
    """Takes note of what it hears; with `is_async` its methods are coroutines."""

    def __init__(self, *, is_async: bool = False) -> None:
        self.heard: list[str] = []
        self._is_async = is_async

    def _hear(self, what: str) -> Awaitable[None] | None:
        async def later() -> None:
            await asyncio.sleep(0.01)
            self.heard.append(what)

        if self._is_async:
            return later()
        self.heard.append(what)
        return None

    def on_partitions_assigned(self, _: object, partitions: Collection[TopicPartition]) -> Any:
        return self._hear(f"assigned {len(partitions)}")

    def on_partitions_revoked(self, _: object, partitions: Collection[TopicPartition]) -> Any:
        return self._hear(f"revoked {len(partitions)}")

    on_partitions_lost = on_partitions_revoked


def no_iteration(handover: RecordHandover) -> None:
    raise AssertionError("nobody iterates")


class Life:
    """A consumer's user, whoever runs its steps."""

    def __init__(self, core: ConsumerCore, settings: ConsumerSettings, listener: Any) -> None:
        self.core = core
        self.steps = ConsumerSteps(self, core, settings, no_iteration)
        self.listener = listener

    def deadline(self) -> float:
        return self.core.now() + TIMEOUT

    def subscribe(self, topic: str) -> None:
        self.steps.membership.subscribe(Subscription(frozenset({topic})), self.listener)

    def take(self, handover: RecordHandover, most: int, deadline: float) -> Steps[None]:
        self.steps.begin_poll()
        if not self.steps.try_poll(most, handover):
            yield from self.steps.poll(most, handover, deadline)

    def commit(self) -> Steps[None]:
        offsets = self.steps.cursor.handed_over()
        yield from self.steps.membership.commit(offsets, self.deadline())

    def close(self) -> Steps[None]:
        yield from self.steps.close(self.deadline(), is_interrupted=False)

    def live(self, topic: str) -> Steps[list[int]]:
        """Subscribe, poll until all is read, commit, close; return what was read."""
        self.subscribe(topic)
        offsets: list[int] = []
        while len(offsets) < COUNT:
            handover = RecordHandover()
            yield from self.take(handover, MOST, self.deadline())
            offsets += self.steps.cursor.settle(handover).offsets()
        yield from self.commit()
        yield from self.close()
        return offsets


class LoopLife(Life):
    """The same user in an event loop."""

    driver: LoopDriver

    async def run(self, steps: Steps[T]) -> T:
        return await self.driver.run(steps)

    async def poll(self, most: int = MOST, timeout: float = TIMEOUT) -> list[int]:
        """Poll as an asynchronous consumer would."""
        handover = RecordHandover()
        try:
            await self.driver.run(self.take(handover, most, self.core.now() + timeout))
            return list(self.steps.cursor.settle(handover).offsets())
        except BaseException:
            self.steps.cursor.take_back(handover)
            raise


@contextmanager
def in_loop(
    kafka: EmbeddedKafka, group: str, loop: asyncio.AbstractEventLoop, **more: object
) -> Iterator[LoopLife]:
    """Make a user in an event loop, which is closed in the end."""
    settings = settings_on(kafka.bootstrap, group, **more)
    host = ThreadedHost(settings)
    core = ConsumerCore(settings, "me", host)
    life = LoopLife(core, settings, Listener(is_async=True))

    life.driver = host.make_loop_driver(core.plane)
    try:
        yield life
    finally:
        core.close()
        loop.close()
