"""With many topics and partitions: work grows as they do, and comes in pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka_fast.config import consumer_settings
from kafka_fast.control.consumer.consumer_control import ConsumerControl
from kafka_fast.control.consumer.consumer_messages import (
    StartStream,
    StopStream,
    StreamRow,
    StreamsStopped,
)
from kafka_fast.control.consumer.fetch_routes import STARTS_AT_ONCE
from kafka_fast.control.consumer.partition import FetchState, Position
from kafka_fast.control.consumer.restarts import PIECE
from kafka_fast.control.requests.leader_call import PARTITIONS_PER_REQUEST
from kafka_fast.control.requests.requester import ITEMS_AT_ONCE
from kafka_fast.protocol.apis.groups.offset_fetch import OffsetFetchRequest
from kafka_fast.protocol.apis.records.list_offsets import ListOffsetsRequest
from kafka_fast.types import TopicPartition
from tests.unit.control.fake_machine import FakeMachine
from tests.unit.control.metadata.large_cluster import COMMITTED, LargeCluster
from tests.work import growth_of, work_of


def make(cluster: LargeCluster) -> FakeMachine:
    settings = consumer_settings(
        {"bootstrap.servers": "kafka:9001", "group.id": "g", "auto.offset.reset": "earliest"}
    )
    control = ConsumerControl(settings, "test", lambda: 0.5, lambda: 1_700_000_000_000)
    return FakeMachine(control, cluster.handlers)


def fetching(cluster: LargeCluster, *, committed: bool = False) -> FakeMachine:
    """Return a consumer that fetches all partitions."""
    machine = make(cluster)
    streams = [(partition, number) for number, partition in enumerate(cluster.partitions())]
    machine.control.assign(streams, machine.now, committed=committed)
    machine.run(3.0)
    assert states(machine) == {FetchState.FETCHING}
    machine.kept.clear()
    return machine


def states(machine: FakeMachine) -> set[FetchState]:
    return {partition.state for partition in machine.control.partitions}


def refresh(machine: FakeMachine) -> None:
    machine.control.cluster.request_refresh("the test")
    machine.run(3.0)


# ---- how work grows ----


def name_new_leaders(cluster: LargeCluster, machine: FakeMachine) -> None:
    """All partitions have other leaders, and the Fetch answers name them."""
    cluster.turn += 1
    links: dict[int, list[Any]] = {}
    for assigned in machine.control.partitions:
        links.setdefault(assigned.link_id, []).append(assigned)
    for link_id, streams in links.items():
        machine.event(cluster.refuse_as_not_leader(streams, link_id))
    assert {
        partition.node.id == cluster.leader(partition.partition.partition)
        for partition in fetched(machine)
    } == {True}


def fetched(machine: FakeMachine) -> list[Any]:
    return list(machine.control.partitions.in_state(FetchState.FETCHING))


def recreate(cluster: LargeCluster, machine: FakeMachine) -> None:
    """All topics are deleted and created again."""
    cluster.incarnation += 1
    refresh(machine)
    assert states(machine) == {FetchState.RECREATED}


def delete_and_bring_back(cluster: LargeCluster, machine: FakeMachine) -> None:
    """All topics are gone for a while."""
    for are_gone in (True, False):
        cluster.are_gone = are_gone
        refresh(machine)
        assert machine.control.cluster.is_absent(cluster.topics[-1]) is are_gone


def move_leaders(cluster: LargeCluster, machine: FakeMachine) -> None:
    """All partitions have other leaders, as metadata tell; the streams stop and start again."""
    cluster.turn += 1
    refresh(machine)
    rows = [
        StreamRow(partition.stream_id, partition.generation, 0, 50, -1)
        for partition in machine.control.partitions
    ]
    machine.event(StreamsStopped(tuple(rows)))
    assert states(machine) == {FetchState.FETCHING}


def find_ends(cluster: LargeCluster, machine: FakeMachine) -> None:
    """A user asks for the ends of all partitions."""
    answers: list[Any] = []
    times = dict.fromkeys(cluster.partitions(), -1)
    machine.control.lookup.look_up(times, answers.append, machine.now)
    machine.run(1.0)
    assert len(answers[0]) == len(times)


def turn_while_all_is_in_flight(cluster: LargeCluster, machine: FakeMachine) -> None:
    """Many turns go by while a node has not answered."""
    machine.handlers = {**machine.handlers, ListOffsetsRequest: lambda request, key: None}
    times = dict.fromkeys(cluster.partitions(), -1)
    machine.control.lookup.look_up(times, lambda offsets: None, machine.now)
    machine.run(1.0)
    for _ in range(len(times)):
        machine.control.tick(machine.now)
        machine.control.next_deadline()


@pytest.mark.parametrize(
    "happen",
    [
        name_new_leaders,
        recreate,
        delete_and_bring_back,
        move_leaders,
        find_ends,
        turn_while_all_is_in_flight,
    ],
)
def test_twice_the_topics_are_twice_the_work(
    happen: Callable[[LargeCluster, FakeMachine], None],
) -> None:
    def happening(topics: int) -> Callable[[], object]:
        cluster = LargeCluster(topics, 2)
        machine = fetching(cluster)
        return lambda: happen(cluster, machine)

    assert growth_of(happening, 120) < 2.4


def test_a_quiet_turn_costs_the_same_however_many_partitions_there_are() -> None:
    def turns(topics: int) -> Callable[[], object]:
        machine = fetching(LargeCluster(topics, 2))

        def turn() -> None:
            for _ in range(10):
                machine.control.tick(machine.now)
                machine.control.next_deadline()

        return turn

    assert growth_of(turns, 60) < 1.1


# ---- pieces ----


def test_many_committed_offsets_are_asked_for_in_pieces_and_each_starts_its_partitions() -> None:
    cluster = LargeCluster(300, 5)
    machine = fetching(cluster, committed=True)
    asked = [body for body, _ in machine.asked if isinstance(body, OffsetFetchRequest)]
    assert len(asked) == 3
    assert {partition.position for partition in machine.control.partitions} == {
        Position(COMMITTED, 5)
    }
    answers: list[Any] = []
    machine.control.group.committed.fetch(cluster.partitions(), answers.append)
    machine.run(1.0)
    assert [len(offsets) for offsets in answers] == [1500]
    assert {offset.offset for offset in answers[0].values()} == {COMMITTED}


def test_a_leader_is_asked_about_so_many_partitions_at_a_time() -> None:
    cluster = LargeCluster(1000, 3)
    machine = fetching(cluster)
    asked = [body for body, _ in machine.asked if isinstance(body, ListOffsetsRequest)]
    sizes = [sum(len(topic.partitions) for topic in request.topics) for request in asked]
    assert sum(sizes) == 3000
    assert max(sizes) <= min(PARTITIONS_PER_REQUEST, ITEMS_AT_ONCE)


def in_one_turn(machine: FakeMachine, kind: type[Any]) -> list[Any]:
    """Tick once, and return the commands of a kind that came of it."""
    machine.control.tick(machine.now)
    commands = []
    while (command := machine.control.poll_command()) is not None:
        commands.append(command)
    return [command for command in commands if isinstance(command, kind)]


def test_streams_that_stop_together_start_again_turn_by_turn() -> None:
    cluster = LargeCluster(3 * PIECE, 1)
    machine = fetching(cluster)
    rows = [
        StreamRow(partition.stream_id, partition.generation, 0, 50, -1)
        for partition in machine.control.partitions
    ]
    machine.control.handle_event(StreamsStopped(tuple(rows)), machine.now)
    started = [len(in_one_turn(machine, StartStream)) for _ in range(3)]
    assert started == [2 * PIECE, PIECE, 0], "one piece with the event, and one in each turn"
    assert states(machine) == {FetchState.FETCHING}


def test_what_has_happened_to_a_stream_meanwhile_counts() -> None:
    """A partition whose turn has not come is given up; another one is moved by its user."""
    cluster = LargeCluster(2 * PIECE + 2, 1)
    machine = fetching(cluster)
    control = machine.control
    streams = list(control.partitions)
    link_id = streams[0].link_id
    cluster.turn += 1
    control.handle_event(cluster.refuse_as_not_leader(streams, link_id), machine.now)
    assert control.next_deadline() <= machine.now
    moved, gone = streams[-1], streams[-2]
    control.seek(moved.partition, Position(77), 1, machine.now)
    kept = [(stream.partition, stream.stream_id) for stream in streams if stream is not gone]
    control.assign(kept, machine.now, committed=False)
    machine.run(1.0)
    stops = [
        StreamRow(stop.stream_id, stop.generation, 0, 77, -1) for stop in machine.take(StopStream)
    ]
    machine.event(StreamsStopped(tuple(stops)))
    assert states(machine) == {FetchState.FETCHING}
    assert moved.position == Position(77)
    assert gone.partition not in control.partitions
    offsets = {start.stream_id: start.offset for start in machine.take(StartStream)}
    assert offsets[moved.stream_id] == 77
    assert gone.stream_id not in offsets


def test_partitions_that_wait_for_one_link_start_turn_by_turn() -> None:
    cluster = LargeCluster(2 * STARTS_AT_ONCE + 100, 1)
    machine = fetching(cluster)
    control = machine.control
    rows = [
        StreamRow(partition.stream_id, partition.generation, 0, 50, -1)
        for partition in control.partitions
    ]
    machine.close(next(link for link in machine.links.values() if link.node_id == 1))
    for first in range(0, len(rows), PIECE):
        control.handle_event(StreamsStopped(tuple(rows[first : first + PIECE])), machine.now)
        control.tick(machine.now)
    assert states(machine) == {FetchState.AWAITS_LINK}
    machine.run(1.0)
    assert states(machine) == {FetchState.FETCHING}


def test_a_turn_that_waits_for_links_does_not_look_at_each_partition() -> None:
    def waiting(size: int) -> Callable[[], object]:
        machine = make(LargeCluster(size, 1))
        partitions = [TopicPartition(f"topic-{n:06}", 0) for n in range(size)]
        streams = [(partition, number) for number, partition in enumerate(partitions)]
        machine.hung = {9001, 9002, 9003}
        machine.control.assign(streams, machine.now, committed=False)
        machine.run(0.1)

        def turn() -> None:
            for _ in range(10):
                machine.control.fetch_routes.tick(machine.now)

        return turn

    assert work_of(waiting(50)) == work_of(waiting(200))
