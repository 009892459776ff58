"""The three drivers: each takes the same steps of a consumer from `subscribe` to `close`.

The steps are those that `Consumer` runs; here a blocking thread, a task of an event loop and an
actor in virtual time run them against an embedded broker.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

import pytest

from kafka_fast.consumer.consumer_core import ConsumerCore
from kafka_fast.errors import KafkaTimeoutError, WakeupError
from kafka_fast.net.threaded_host import ThreadedHost
from kafka_fast.net.waiting.steps import Invoke, Steps, Wait
from kafka_fast.record import RecordBatchBuilder
from kafka_fast.testing.broker.cluster import Cluster
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.state import Node, Settings
from kafka_fast.types import TopicPartition
from tests.embedded.consuming import committed, fill
from tests.embedded.engine.lives import COUNT, MOST, Life, Listener, LoopLife, in_loop, settings_on
from tests.sim.worlds.actors import Actor
from tests.sim.worlds.clock import Clock
from tests.sim.worlds.network import Network
from tests.sim.worlds.plan import NetworkPlan
from tests.sim.worlds.virtual_consumer import VirtualConsumerHost, Waiter
from tests.waiting import TIMEOUT, eventually

EXPECTED = ["assigned 1", "revoked 1"]

T = TypeVar("T")


# ---- a thread that blocks ----


def test_a_thread_that_blocks(kafka: EmbeddedKafka, topic: str) -> None:
    fill(kafka, topic, COUNT)
    settings = settings_on(kafka.bootstrap, topic)
    core = ConsumerCore(settings, "me", ThreadedHost(settings))
    life = Life(core, settings, Listener())
    assert core.driver.run(life.live(topic)) == list(range(COUNT))
    assert life.listener.heard == EXPECTED
    assert committed(kafka, topic) == {(topic, 0): COUNT}


# ---- an event loop ----


def in_a_loop(
    kafka: EmbeddedKafka,
    topic: str,
    play: Callable[[LoopLife], Coroutine[Any, Any, T]],
    **more: object,
) -> T:
    """Let a user play in an event loop."""
    loop = asyncio.new_event_loop()
    with in_loop(kafka, topic, loop, **more) as life:
        return loop.run_until_complete(asyncio.wait_for(play(life), TIMEOUT))


def test_an_event_loop(kafka: EmbeddedKafka, topic: str) -> None:
    """Its other tasks run meanwhile, and listeners are awaited."""
    fill(kafka, topic, COUNT)
    ticks = []

    async def tick() -> None:
        while True:
            ticks.append(1)
            await asyncio.sleep(0.001)

    async def play(life: LoopLife) -> list[int]:
        ticking = asyncio.create_task(tick())
        offsets = await life.run(life.live(topic))
        ticking.cancel()
        assert life.listener.heard == EXPECTED
        return offsets

    assert in_a_loop(kafka, topic, play) == list(range(COUNT))
    assert len(ticks) > 1
    assert committed(kafka, topic) == {(topic, 0): COUNT}


def test_a_task_that_is_cancelled_in_a_poll_goes_on_later(kafka: EmbeddedKafka, topic: str) -> None:
    async def play(life: LoopLife) -> list[int]:
        life.core.reading.assign([TopicPartition(topic, 0)])
        polling = asyncio.create_task(life.poll())
        await asyncio.sleep(0.05)
        polling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await polling
        await asyncio.to_thread(fill, kafka, topic, 3)
        return await life.poll()

    assert in_a_loop(kafka, topic, play) == [0, 1, 2]


def test_a_wakeup_and_a_deadline_end_a_wait_of_a_task(kafka: EmbeddedKafka, topic: str) -> None:
    async def play(life: LoopLife) -> None:
        life.core.reading.assign([TopicPartition(topic, 0)])
        assert await life.poll(timeout=0.05) == []
        asyncio.get_running_loop().call_later(0.05, life.core.wakeup)
        with pytest.raises(WakeupError):
            await life.poll()

    in_a_loop(kafka, topic, play)


def test_a_cancelled_close_still_leaves_the_group(kafka: EmbeddedKafka, topic: str) -> None:
    """What must finish is shielded for a moment; the cancellation is raised after it."""
    fill(kafka, topic, COUNT)

    async def play(life: LoopLife) -> None:
        life.subscribe(topic)
        while not await life.poll():
            pass
        await life.poll()  # covers the records of the one before
        closing = asyncio.create_task(life.driver.run(life.close()))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert life.core.closed

    in_a_loop(kafka, topic, play, **{"enable.auto.commit": True})
    assert committed(kafka, topic) == {(topic, 0): MOST}
    eventually(lambda: members_of(kafka, topic) == 0, "the member's goodbye")


def members_of(kafka: EmbeddedKafka, group: str) -> int:
    return kafka.on_cluster(lambda cluster: len(cluster.state.groups[group].members))


# ---- virtual time ----

CALM = NetworkPlan(
    latency=0.0005,
    jitter=0.5,
    choppiness=0,
    cut_probability=0.0,
    refuse_probability=0.0,
    hang_probability=0.0,
    lookup_failure_probability=0.0,
    hiccup_probability=0.0,
)


def batch() -> bytes:
    builder = RecordBatchBuilder()
    for number in range(COUNT):
        builder.append(None, b"%d" % number, 0)
    return builder.build()


def test_virtual_time() -> None:
    """A simulation's actor: no thread sleeps, however long the waits are."""
    clock = Clock()
    cluster = Cluster([Node(1, "node-1", 9001)], Settings(), random.Random(1))
    cluster.create_topic("t", 1, 1)
    cluster.plant("t", 0, batch())
    network = Network(clock, cluster, CALM, random.Random(2), lambda line: None)
    network.healthy = True
    host = VirtualConsumerHost(
        clock,
        network,
        random.Random(3),
        hiccup_probability=0.0,
        lookup_failure_probability=0.0,
        unix_ms_at_zero=0,
    )
    settings = settings_on("node-1:9001", "g")
    offsets: list[int] = []
    listener = Listener()

    def play() -> None:
        core = ConsumerCore(settings, "me", host)
        offsets.extend(core.driver.run(Life(core, settings, listener).live("t")))

    actor = Actor("me", play)
    Waiter(host, actor)
    actor.resume()
    host.settle()
    while not actor.is_over:
        clock.take()()
    assert actor.error is None
    assert offsets == list(range(COUNT))
    assert listener.heard == EXPECTED
    assert cluster.committed("g") == {("t", 0): COUNT}


# ---- steps that are run by hand ----


def invoking(function: Callable[..., object], *args: object) -> Steps[object]:
    return (yield Invoke(function, args))


@pytest.fixture
def core(kafka: EmbeddedKafka) -> Iterator[ConsumerCore]:
    settings = settings_on(kafka.bootstrap, "g")
    core = ConsumerCore(settings, "me", ThreadedHost(settings))
    yield core
    core.close()


def test_what_a_callback_returns_or_raises_reaches_the_steps(core: ConsumerCore) -> None:
    assert core.driver.run(invoking(divmod, 7, 2)) == (3, 1)
    for error in (ZeroDivisionError(), StopIteration(5), KeyboardInterrupt()):

        def fail(error: BaseException = error) -> None:
            raise error

        with pytest.raises((type(error), RuntimeError)) as caught:
            core.driver.run(invoking(fail))
        assert error in (caught.value, caught.value.__cause__)


def test_a_wait_ends_when_it_is_over_or_its_time_is_up(core: ConsumerCore) -> None:
    told: list[int] = []

    def wait(deadline: float) -> Steps[bool]:
        yield Wait(lambda: bool(told), deadline, "a word")
        return bool(told)

    assert core.driver.run(wait(core.now() + 0.02)) is False
    core.call(lambda now: told.append(1))  # each turn of the control thread wakes who waits
    assert core.driver.run(wait(core.now() + TIMEOUT)) is True
    assert core.driver.run(wait(0.0)) is True


def test_a_deadline_raises_in_the_steps(core: ConsumerCore) -> None:
    partition = TopicPartition("t", 0)
    core.reading.assign([partition])
    with pytest.raises(KafkaTimeoutError, match="position of t-0"):
        core.driver.run(core.reading.await_position(partition, core.now()))
