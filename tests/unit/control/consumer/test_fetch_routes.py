"""Over which links partitions are read, and what else goes over them."""

from __future__ import annotations

from kafka_fast.control.connections.connection_key import BOOTSTRAP, ConnectionKey, Role
from kafka_fast.control.consumer.consumer_messages import (
    ProgramFetch,
    StopStream,
    StreamRow,
    StreamsStopped,
    generation,
)
from kafka_fast.control.consumer.partition import Position
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest
from kafka_fast.protocol.apis.records.list_offsets import (
    ListOffsetsRequest,
)
from kafka_fast.protocol.apis.records.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
)
from tests.unit.control.consumer.scripted import (
    T0,
    Cluster,
    asked,
    assigned,
    starts,
)


def data(node_id: int) -> ConnectionKey:
    return ConnectionKey(Role.DATA, node_id)


def control(node_id: int) -> ConnectionKey:
    return ConnectionKey(Role.CONTROL, node_id)


def test_each_partition_starts_at_its_leader_where_the_policy_says() -> None:
    machine = assigned(Cluster())
    started = starts(machine)
    assert {start.offset for start in started.values()} == {100}
    assert started[0].link_id == machine.link_to(1)
    assert started[1].link_id == machine.link_to(2)
    assert started[0].leader_epoch == 5
    assert started[0].generation == generation(0, 1)
    programs = machine.take(ProgramFetch)
    assert {program.link_id for program in programs} == {machine.link_to(1), machine.link_to(2)}
    assert all(program.version >= 13 for program in programs)


def test_questions_go_beside_the_fetches_and_before_them_need_no_connection() -> None:
    machine = assigned(Cluster())
    assert set(asked(machine, ListOffsetsRequest)) == {data(1), data(2)}, "nothing was fetched yet"
    assert set(machine.links.values()) == {BOOTSTRAP, data(1), data(2)}
    answers: list[object] = []
    machine.control.lookup.look_up({T0: -1}, answers.append, machine.now)
    machine.run(0.1)
    assert [answer[T0].offset for answer in answers] == [900]
    assert asked(machine, ListOffsetsRequest) == [control(1)]
    assert control(2) not in machine.links.values(), "nobody asked node 2"
    machine.control.seek(T0, Position(150, 4), 1, machine.now)
    machine.run(0.1)
    assert asked(machine, OffsetForLeaderEpochRequest) == [control(1)]


def test_metadata_are_not_asked_for_behind_fetches() -> None:
    machine = assigned(Cluster())
    machine.close(BOOTSTRAP)
    asked(machine, MetadataRequest)
    machine.control.topics.want_topic("other", machine.now)
    machine.run(0.1)
    (beside,) = set(asked(machine, MetadataRequest))
    assert beside in (control(1), control(2))


def test_a_node_that_is_gone_takes_its_connection_for_questions_with_it() -> None:
    cluster = Cluster()
    machine = assigned(cluster)
    machine.control.lookup.look_up({T0: -1}, lambda offsets: None, machine.now)
    machine.run(0.1)
    links = machine.control.links
    machine.control.connections.close_node(1, "it left the cluster", machine.now)
    assert links.link_to(data(1)) is None
    assert links.link_to(control(1)) is None
    assert links.request_key(1) == data(1)


def test_topics_without_ids_are_fetched_by_name() -> None:
    cluster = Cluster()
    cluster.topic_id = bytes(16)
    machine = assigned(cluster)
    assert {program.version for program in machine.take(ProgramFetch)} == {12}


def test_a_running_stream_is_stopped_before_it_moves_and_validated_after() -> None:
    cluster = Cluster()
    machine = assigned(cluster)
    starts(machine)
    cluster.leaders[0] = (2, 6)
    cluster.epoch_ends[5] = (5, 2000)
    machine.control.cluster.request_refresh("test")
    machine.run(1.0)
    (stop,) = machine.take(StopStream)
    assert not starts(machine)
    machine.event(StreamsStopped((StreamRow(0, stop.generation, 0, 650, 5),)))
    machine.run(1.0)
    asked = [body for body, _ in machine.asked if isinstance(body, OffsetForLeaderEpochRequest)]
    assert [body.topics[0].partitions[0].leader_epoch for body in asked] == [5]
    again = starts(machine)[0]
    assert (again.offset, again.link_id) == (650, machine.link_to(2))
