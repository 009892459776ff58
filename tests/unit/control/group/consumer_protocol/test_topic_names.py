"""Names of topics whose ids nobody here knows."""

from __future__ import annotations

import itertools

from kafka_fast.control.group.consumer_protocol.topic_names import TopicNames
from kafka_fast.protocol.apis.cluster.metadata import MetadataResponse
from tests.unit.control.group.world import Member, World


def make(**given: object) -> tuple[World, Member, TopicNames, list[float]]:
    """Return a world, one client in it, and that client's names."""
    world = World(**given)  # type: ignore[arg-type]
    world.cluster.create_topic("t", 1)
    member = world.join("a", ["t"])
    control, times = member.control, []  # type: ignore[var-annotated]
    names = TopicNames(control.context, on_found=times.append)
    world.run(1.0)
    return world, member, names, times


def topic_id(world: World, topic: str) -> bytes:
    return world.cluster.state.topics[topic].topic_id


def run_until_found(world: World, found: list[float]) -> None:
    world.run_until(lambda: bool(found), 10.0)


def test_most_are_in_the_metadata() -> None:
    world, _, names, times = make()
    assert names.name(topic_id(world, "t")) == "t"
    assert times == []


def test_others_are_asked_for_and_followed() -> None:
    world, member, names, times = make()
    world.cluster.create_topic("u", 3)
    unknown_id = topic_id(world, "u")
    assert names.name(unknown_id) is None
    names.want_names([unknown_id])
    run_until_found(world, times)
    assert names.name(unknown_id) == "u"
    world.run(1.0)
    assert member.control.cluster.partition_count("u") == 3


def test_a_topic_that_brokers_do_not_know_yet_is_asked_for_again_and_slower() -> None:
    world, _, names, times = make()
    strange, asked = bytes(range(16)), []

    def name(response: MetadataResponse, node: int) -> None:
        for topic in response.topics:
            if topic.topic_id == strange:
                asked.append(world.now)
                if len(asked) == 5:
                    topic.error_code, topic.name = 0, "late"

    world.cluster.faults.script_metadata(name)
    names.want_names([strange])
    run_until_found(world, times)
    assert names.name(strange) == "late"
    waits = [after - before for before, after in itertools.pairwise(asked)]
    assert waits == sorted(waits)
    assert waits[-1] > 3 * waits[0]


def test_a_link_that_breaks_is_asked_beside() -> None:
    world, _, names, times = make(nodes=2)
    world.cluster.create_topic("u", 1)
    world.cluster.faults.drop(api=3, close=True, count=1)
    names.want_names([topic_id(world, "u")])
    run_until_found(world, times)
    assert names.name(topic_id(world, "u")) == "u"


def test_a_node_that_stays_silent_is_asked_beside() -> None:
    """Regression: it kept the names until request.timeout.ms."""
    world, _, names, times = make(nodes=2)
    world.cluster.create_topic("u", 1)
    world.cluster.faults.drop(api=3, count=1)
    names.want_names([topic_id(world, "u")])
    run_until_found(world, times)
    assert names.name(topic_id(world, "u")) == "u"


def test_a_name_outlives_its_topic_while_it_is_kept() -> None:
    world, member, names, times = make()
    old = topic_id(world, "t")
    assert names.name(old) == "t"
    world.cluster.delete_topic("t")
    world.cluster.create_topic("t", 2)
    new = topic_id(world, "t")
    names.want_names([new])
    run_until_found(world, times)
    assert names.name(new) == names.name(old) == "t"
    world.run(1.0)
    assert member.control.cluster.topic_id("t") == new
    names.forget_others([new])
    assert names.name(old) is None
    assert names.name(new) == "t"
