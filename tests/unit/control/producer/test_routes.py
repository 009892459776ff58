"""The forwarding table: which queue goes over which link."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from kafka_fast.control.connections.connection_key import ConnectionKey, Role
from kafka_fast.control.metadata.metadata import NO_TOPIC_ID
from kafka_fast.control.producer.producer_messages import (
    NameTopic,
    ProgramProduce,
    RestartTopic,
    RouteQueue,
    SetAvailable,
    SetPartitionCount,
    SetPartitions,
)
from kafka_fast.control.producer.routes import Routes
from kafka_fast.errors import UnsupportedVersionError

TOPIC_ID = bytes(range(16))


@dataclass
class Node:
    id: int


@dataclass
class Link:
    id: int
    versions: Any = None
    node_id: int = 1

    @property
    def key(self) -> ConnectionKey:
        return ConnectionKey(Role.DATA, self.node_id)


class Versions:
    """A node that takes these versions of Produce."""

    def __init__(self, first: int = 3, last: int = 13) -> None:
        self.first = first
        self.last = last

    def pick(self, request: Any, limit: int | None = None) -> int:
        version = self.last if limit is None else min(limit, self.last)
        if version < self.first:
            raise UnsupportedVersionError("no version in common")
        return version


class World:
    """Leaders and links as a test sets them; both stand for Cluster and Links."""

    def __init__(self, partitions: int = 2, topic_id: bytes = TOPIC_ID) -> None:
        self.leaders: dict[tuple[str, int], int] = {("t", n): 1 for n in range(partitions)}
        self.links: dict[int, Link] = {}
        self.count = partitions
        self.ids = {"t": topic_id}
        settings = SimpleNamespace(acks=-1, request_timeout_ms=30_000, transactional_id=None)
        context: Any = SimpleNamespace(
            cluster=self, links=self, client_id="client", settings=settings
        )
        self.routes = Routes(context)

    def partition_count(self, topic: str) -> int:
        return self.count

    def topic_id(self, topic: str) -> bytes:
        return self.ids[topic]

    @property
    def ready(self) -> list[Link]:
        return list(self.links.values())

    def leader(self, topic: str, partition: int) -> Node | None:
        node_id = self.leaders.get((topic, partition))
        return None if node_id is None else Node(node_id)

    def link_to(self, key: ConnectionKey) -> Link | None:
        assert key.role is Role.DATA
        return self.links.get(key.node_id)

    def commands(self, *kinds: type) -> list[Any]:
        commands = []
        while (command := self.routes.poll_command()) is not None:
            commands.append(command)
        return [command for command in commands if isinstance(command, kinds)]


def set_up(**how: Any) -> World:
    world = World(**how)
    world.routes.set_up("t")
    world.commands()
    return world


def test_a_topic_is_named_before_it_has_partitions_and_partitions_before_they_have_leaders() -> (
    None
):
    world = World()
    del world.leaders["t", 1]
    world.routes.set_up("t")
    commands = world.commands(NameTopic, SetPartitions, SetAvailable)
    assert [type(command) for command in commands] == [NameTopic] * 3 + [SetPartitions] + [
        SetAvailable
    ] * 2
    assert commands[3:] == [
        SetPartitions("t", 0, range(2)),
        SetAvailable(0, True),
        SetAvailable(1, False),
    ]
    assert TOPIC_ID in commands[2].field


def test_a_topic_is_named_anew_only_with_another_id() -> None:
    world = set_up()
    world.routes.set_up("t")
    assert world.commands(NameTopic, SetPartitions) == []
    world.ids["t"] = bytes(16)[:-1] + b"x"
    world.routes.set_up("t")
    assert len(world.commands(NameTopic)) == 3


def test_added_partitions_get_the_next_ids() -> None:
    world = set_up()
    world.count = 4
    world.routes.set_up("t")
    assert world.commands(SetPartitions) == [SetPartitions("t", 2, range(2, 4))]
    added = world.routes.queue_of("t", 3)
    assert added is not None
    assert added.id == 3
    assert world.routes.queue_of("t", 4) is None
    assert world.routes.queue_of("unknown", 0) is None


def test_only_queues_with_data_want_a_link() -> None:
    world = set_up()
    assert world.routes.wanted_nodes() == []
    world.routes.route_queue(1)
    assert world.routes.wanted_nodes() == [1]
    assert world.commands(RouteQueue) == []
    link = world.links[1] = Link(10)
    world.routes.handle_ready(link)  # type: ignore[arg-type]
    assert world.commands(RouteQueue) == [RouteQueue(1, 10)]
    assert world.routes.wanted_nodes() == []


def test_a_queue_that_asks_again_gets_its_route_again() -> None:
    world = set_up()
    world.links[1] = Link(10)
    world.routes.route_queue(0)
    world.routes.route_queue(0)
    assert world.commands(RouteQueue) == [RouteQueue(0, 10)] * 2


def test_a_queue_without_a_leader_waits() -> None:
    world = set_up()
    world.links[1] = Link(10)
    world.leaders.clear()
    world.routes.route_queue(0)
    assert world.commands(RouteQueue) == []
    assert world.routes.wanted_nodes() == []
    assert list(world.routes.without_link()) == [("t", 0)]
    world.leaders["t", 0] = 1
    world.routes.set_up("t")
    assert world.commands(RouteQueue) == [RouteQueue(0, 10)]
    assert list(world.routes.without_link()) == []


def test_a_queue_that_waits_follows_what_the_topic_is_now() -> None:
    """A topic made anew names its leaders, and none of them counts as moved."""
    world = set_up()
    world.routes.route_queue(0)
    assert world.routes.wanted_nodes() == [1]
    world.leaders["t", 0] = 2
    world.routes.set_up("t")
    assert world.routes.wanted_nodes() == [2]
    world.links[2] = Link(20, Versions(), node_id=2)
    world.routes.handle_ready(world.links[2])  # type: ignore[arg-type]
    assert world.commands(RouteQueue) == [RouteQueue(0, 20)]


def test_with_a_new_leader_the_queue_moves_or_is_held_until_there_is_a_link() -> None:
    world = set_up()
    world.links = {1: Link(10), 2: Link(20)}
    world.routes.route_queue(0)
    world.commands()
    world.leaders["t", 0] = 2
    world.routes.set_up("t")
    assert world.commands(RouteQueue) == [RouteQueue(0, 20)]
    world.leaders["t", 0] = 3
    world.routes.set_up("t")
    assert world.commands(RouteQueue) == [RouteQueue(0, 0)]
    assert world.routes.wanted_nodes() == [3]


def test_a_queue_on_its_way_follows_what_the_topic_is_now() -> None:
    """Regression: a topic that was created again kept the routes to its former leaders."""
    world = set_up()
    world.links = {1: Link(10), 2: Link(20, Versions(), node_id=2)}
    world.routes.route_queue(0)
    assert world.commands(RouteQueue) == [RouteQueue(0, 10)]
    world.ids["t"] = bytes(range(1, 17))
    world.leaders["t", 0] = 2
    assert world.routes.is_another("t")
    world.routes.restart("t")
    world.routes.set_up("t")
    assert world.commands(RestartTopic, RouteQueue) == [RestartTopic("t"), RouteQueue(0, 20)]
    assert not world.routes.is_another("t")


def test_a_topic_that_was_never_set_up_does_not_begin_again() -> None:
    world = World()
    assert not world.routes.is_another("t")
    world.routes.restart("t")
    assert world.commands(RestartTopic) == []


def test_records_go_to_the_partitions_that_there_are_now() -> None:
    world = set_up(partitions=3)
    world.count = 1
    del world.leaders["t", 1], world.leaders["t", 2]
    world.routes.set_up("t")
    commands = world.commands(SetPartitions, SetPartitionCount, SetAvailable)
    assert commands == [
        SetPartitionCount("t", 1),
        SetAvailable(0, True),
        SetAvailable(1, False),
        SetAvailable(2, False),
    ]
    world.count = 0  # created a moment ago: it has no partition yet
    world.routes.set_up("t")
    assert world.commands(SetPartitions, SetPartitionCount) == []
    world.count = 2
    world.routes.set_up("t")
    assert world.commands(SetPartitions, SetPartitionCount) == [SetPartitionCount("t", 2)]
    world.count = 5
    world.routes.set_up("t")
    assert world.commands(SetPartitions, SetPartitionCount) == [SetPartitions("t", 3, range(3, 5))]


def test_a_queue_that_never_had_data_is_not_moved() -> None:
    world = set_up()
    world.links = {1: Link(10)}
    world.routes.set_up("t")
    assert world.commands(RouteQueue) == []


def test_after_a_lost_link_only_what_asks_again_is_routed() -> None:
    world = set_up()
    lost = world.links[1] = Link(10)
    world.routes.route_queue(0)
    world.routes.route_queue(1)
    world.commands()
    world.routes.handle_lost(lost)  # type: ignore[arg-type]
    world.links[1] = Link(11)
    world.routes.handle_ready(world.links[1])  # type: ignore[arg-type]
    assert world.commands(RouteQueue) == []
    world.routes.route_queue(1)
    assert world.commands(RouteQueue) == [RouteQueue(1, 11)]


def test_version_13_needs_the_ids_of_all_topics() -> None:
    for topic_id, version in ((TOPIC_ID, 13), (NO_TOPIC_ID, 12)):
        world = set_up(topic_id=topic_id)
        world.routes.program(Link(10, Versions()))  # type: ignore[arg-type]
        (program,) = world.commands(ProgramProduce)
        assert (program.link_id, program.version) == (10, version)


def programs(world: World) -> list[tuple[int, int]]:
    return [(program.link_id, program.version) for program in world.commands(ProgramProduce)]


def ready(world: World, *versions: Versions) -> None:
    """Make a link for each of these nodes, numbered from 10."""
    for number, offered in enumerate(versions):
        link: Any = Link(10 + number, offered)
        world.links[number + 1] = link
        world.routes.program(link)


def test_links_follow_when_a_topic_without_an_id_appears_and_when_it_gets_one() -> None:
    """Regression: a link kept its version for life, and sent the id 0 of what has none."""
    world = set_up()
    ready(world, Versions(), Versions(last=11))
    assert programs(world) == [(10, 13), (11, 11)]
    world.ids["old"] = NO_TOPIC_ID
    assert world.routes.set_up("old") == []
    first, *others = world.commands(ProgramProduce, NameTopic)
    assert (first.link_id, first.version) == (10, 12), "before the topic is named by an id of 0"
    assert [type(command) for command in others] == [NameTopic] * 3
    world.ids["old"] = TOPIC_ID[::-1]
    world.routes.set_up("old")
    *others, last = world.commands(ProgramProduce, NameTopic)
    assert [type(command) for command in others] == [NameTopic] * 3
    assert (last.link_id, last.version) == (10, 13)


def test_links_go_back_to_ids_only_when_every_topic_has_one() -> None:
    world = set_up(topic_id=NO_TOPIC_ID)
    world.ids["u"] = NO_TOPIC_ID
    world.routes.set_up("u")
    ready(world, Versions())
    assert programs(world) == [(10, 12)]
    world.ids["t"] = TOPIC_ID
    world.routes.set_up("t")
    assert programs(world) == []
    world.ids["u"] = TOPIC_ID
    world.routes.set_up("u")
    assert programs(world) == [(10, 13)]


def test_a_link_that_cannot_follow_is_given_back_with_the_reason() -> None:
    world = set_up()
    ready(world, Versions(first=13))
    world.ids["old"] = NO_TOPIC_ID
    ((link, error),) = world.routes.set_up("old")
    assert link.id == 10
    assert isinstance(error, UnsupportedVersionError)


def test_a_link_that_is_gone_is_not_programmed() -> None:
    world = set_up()
    ready(world, Versions())
    gone: Any = world.links.pop(1)
    world.routes.handle_lost(gone)
    world.commands()
    world.ids["old"] = NO_TOPIC_ID
    world.routes.set_up("old")
    assert world.commands(ProgramProduce) == []
