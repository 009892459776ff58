"""Worlds that are written down: each shows one thing that a seed has found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kafka_fast.control.producer.producer_control import ProducerControl
from kafka_fast.errors import CorruptMessage, NotLeaderOrFollower, Outcome, UnknownProducerId
from kafka_fast.testing.broker.versions import API_VERSIONS, PRODUCE
from tests.sim.worlds import Plan, World, make_plan
from tests.sim.worlds.plan import NetworkPlan, TopicPlan

IN_FLIGHT = 5
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
    "max.in.flight.requests.per.connection": IN_FLIGHT,
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
        first_epoch=0,
        first_sequence=0,
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
    assert world.queues.stats()["splits"] > 0


@pytest.mark.parametrize("told", [True, False])
def test_a_refused_size_is_learnt_and_what_follows_from_a_refusal_costs_no_time(
    told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If nobody is told of it, each large batch is refused; still none of the others waits."""
    if not told:
        monkeypatch.setattr(ProducerControl, "_limit_batches", lambda self, topic: None)
    long_pause = {"retry.backoff.ms": 1_000}
    world = World(
        small_plan(max_message_bytes=1_200, **{"batch.size": 16_384, "linger.ms": 5}, **long_pause)
    )
    result = world.run()
    assert not result.anomalies, result.report()
    assert outcomes(world) == {None}
    refusals = world.queues.stats()["punts"]
    assert (refusals <= IN_FLIGHT) is told
    for sent in world.users.history.sent:
        assert sent.completions[0].at - sent.at < 0.5, "no pause was made"


def test_a_leader_that_lost_its_place_may_have_written_the_batch() -> None:
    world = World(small_plan(**{"enable.idempotence": False, "retries": 0}))
    world.cluster.faults.error(PRODUCE, NotLeaderOrFollower, applied=True, count=1)
    result = world.run()
    assert not result.anomalies, result.report()
    assert outcomes(world) == {None, Outcome.MAYBE_WRITTEN}


def test_a_throttled_link_with_data_is_no_idle_link() -> None:
    """It must neither be closed nor keep its thread busy until the throttle ends."""
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


def test_answers_about_a_topic_that_was_made_anew_meanwhile_do_not_cost_the_link() -> None:
    """They name the topic as their request did, by the id of the old one."""
    config = {"metadata.max.age.ms": 30}
    topics = tuple(TopicPlan(f"topic-{number}", 4, 2, 1_048_588) for number in range(2))
    for seed in range(6):
        plan = replace(
            small_plan(**config), seed=seed, nodes=2, topics=topics, recreates_topics=True
        )
        world = World(plan)
        world.cluster.faults.delay(0.1, api=PRODUCE, probability=0.3)
        result = world.run()
        assert not result.anomalies, result.report()
        assert any("deleted" in kind for kind in world.faults.kinds)
        closed = [line for line in result.log if "event LinkClosed" in line]
        assert closed == [], result.report()


def test_sequences_begin_again_at_0_after_the_last_one() -> None:
    world = World(replace(small_plan(), first_sequence=2**31 - 20))
    result = world.run()
    assert not result.anomalies, result.report()
    assert outcomes(world) == {None}
    batches = list(world.cluster.batches("topic-0", 0))
    assert {(batch.producer_id, batch.producer_epoch) for batch in batches} == {
        (batches[0].producer_id, 0)
    }
    after = 0
    for batch in batches:
        assert batch.base_sequence in (after, 2**31 - 20)
        after = (batch.base_sequence + batch.record_count) % 2**31
    assert batches[0].base_sequence == 2**31 - 20
    assert after == world.plan.records - 20


@pytest.mark.parametrize("first_epoch", [32_765, 32_766])
def test_after_the_last_epoch_comes_a_new_producer_id(first_epoch: int) -> None:
    """Regression: who had waited for the new id bumped its epoch at once, and used that up, too."""
    world = World(replace(small_plan(), first_epoch=first_epoch))
    for skip in (3, 6, 9):
        world.cluster.faults.error(PRODUCE, UnknownProducerId, count=1, skip=skip)
    result = world.run()
    assert not result.anomalies, result.report()
    assert outcomes(world) == {None}
    who = [
        (batch.producer_id, batch.producer_epoch) for batch in world.cluster.batches("topic-0", 0)
    ]
    ids = list(dict.fromkeys(producer_id for producer_id, _ in who))
    assert len(ids) >= 2
    assert {epoch for _, epoch in who} == set(range(first_epoch, 32_767))
    assert who == sorted(who), "each id after the last epoch of the one before"


def test_records_of_bulk_calls_keep_every_promise() -> None:
    for seed in range(8):
        plan = replace(small_plan(), seed=seed, style={"many": 1.0, "columns": 1.0, "kept": 1.0})
        world = World(plan)
        world.cluster.faults.error(PRODUCE, NotLeaderOrFollower, applied=True, probability=0.1)
        world.cluster.faults.drop(api=PRODUCE, applied=True, close=True, probability=0.1)
        result = world.run()
        assert not result.anomalies, result.report()
        assert any("in one call" in line for line in result.log)


def test_a_bulk_call_that_finds_no_room_says_which_records_were_not_sent() -> None:
    style = {"many": 1.0, "columns": 1.0}
    config = {"buffer.memory": 20_000, "max.request.size": 2_000, "linger.ms": 50}
    plan = replace(small_plan(**config), style=style, records=2_000, duration=0.05)
    world = World(plan)
    result = world.run()
    assert not result.anomalies, result.report()
    assert outcomes(world) == {None, Outcome.NOT_SENT}
