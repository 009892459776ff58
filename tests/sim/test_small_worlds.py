"""Worlds that are written down: each shows one thing that a seed has found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kafka_fast.errors import CorruptMessage, NotLeaderOrFollower, Outcome
from kafka_fast.testing.broker.versions import API_VERSIONS, PRODUCE
from kafka_fast.testing.simulation import Plan, World, make_plan
from kafka_fast.testing.simulation.plan import NetworkPlan, TopicPlan

CALM = NetworkPlan(
    latency=0.005,
    jitter=0.0,
    choppiness=0,
    cut_probability=0.0,
    refuse_probability=0.0,
    hang_probability=0.0,
    lookup_failure_probability=0.0,
    hiccup_probability=0.0,
)
CONFIG = {
    "acks": "all",
    "enable.idempotence": True,
    "retries": 2**31 - 1,
    "max.in.flight.requests.per.connection": 5,
    "linger.ms": 0,
    "batch.size": 0,
    "max.request.size": 1_048_576,
    "request.coalesce.bytes": 2_097_152,
    "buffer.memory": 33_554_432,
    "compression.type": "none",
    "request.timeout.ms": 2_000,
    "delivery.timeout.ms": 12_000,
    "connections.max.idle.ms": 540_000,
}


def small_plan(*, max_message_bytes: int = 1_048_588, **config: Any) -> Plan:
    """Return a calm world with one partition, in which a user sends now and then."""
    plan = make_plan(0)
    return replace(
        plan,
        nodes=1,
        version="newest",
        topics=(TopicPlan("topic-0", 1, 1, max_message_bytes),),
        config={**plan.config, "bootstrap.servers": "node-1:9001", **CONFIG, **config},
        network=CALM,
        records=200,
        duration=0.4,
        faults=0,
        storm=0.0,
        recreates_topics=False,
        forgets_producers=False,
        closes_early=False,
        style={"kept": 1.0},
    )


def outcomes(world: World) -> set[Outcome | None]:
    return {told.outcome for sent in world.users.history.sent for told in sent.completions}


def test_no_batch_overtakes_the_first_one_of_a_producer() -> None:
    """A broker that does not know the producer takes any sequence, also that of the second."""
    world = World(small_plan())
    world.cluster.faults.error(PRODUCE, CorruptMessage, count=1)
    result = world.run()
    assert not result.anomalies, result.report()
    assert outcomes(world) == {None}


def test_a_batch_that_was_too_large_is_split_until_it_fits() -> None:
    world = World(small_plan(max_message_bytes=500))
    result = world.run()
    assert not result.anomalies, result.report()
    assert outcomes(world) == {None}
    assert world.plane.stats()["splits"] > 3


def test_a_leader_that_lost_its_place_may_have_written_the_batch() -> None:
    world = World(small_plan(**{"enable.idempotence": False, "retries": 0}))
    world.cluster.faults.error(PRODUCE, NotLeaderOrFollower, applied=True, count=1)
    result = world.run()
    assert not result.anomalies, result.report()
    assert outcomes(world) == {None, Outcome.MAYBE_WRITTEN}


def test_a_muted_link_with_data_is_no_idle_link() -> None:
    """It must neither be closed nor keep its thread busy until the mute ends."""
    world = World(small_plan(**{"connections.max.idle.ms": 100}))
    world.cluster.faults.throttle(1_000, api=PRODUCE, count=2)
    result = world.run()
    assert not result.anomalies, result.report()
    assert outcomes(world) == {None}


def test_a_link_that_is_lost_as_soon_as_it_is_ready_is_replaced() -> None:
    """The answer that makes it ready and its end arrive together: routes to it come too late."""
    for seed in range(6):
        world = World(replace(small_plan(), seed=seed))
        world.cluster.faults.cut(10_000, api=API_VERSIONS, skip=1, count=1)
        result = world.run()
        assert not result.anomalies, result.report()
        assert outcomes(world) == {None}
