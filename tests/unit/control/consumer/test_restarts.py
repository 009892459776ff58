"""How partitions go on whose streams stand still: leaders, replicas, errors, topics made anew."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_fast.control.connections.connection_key import ConnectionKey, Role
from kafka_fast.control.consumer.consumer_messages import (
    PartitionFailed,
    Recreated,
    Reposition,
    StartStream,
    StopStream,
    StreamRow,
    StreamsStopped,
    generation,
)
from kafka_fast.control.consumer.partition import FetchState, Position
from kafka_fast.control.diagnosis.troubles import SETTLING
from kafka_fast.errors import (
    ErrorCode,
    PositionOutOfRangeError,
    TopicAuthorizationFailed,
)
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest
from kafka_fast.protocol.apis.records.fetch import (
    EpochEndOffset,
    LeaderIdAndEpoch,
    NodeEndpoint,
)
from tests.unit.control.consumer.scripted import (
    NOT_LEADER,
    OUT_OF_RANGE,
    T0,
    T1,
    Cluster,
    assigned,
    punt,
    starts,
)
from tests.unit.control.fake_machine import FakeMachine
from tests.unit.control.metadata.metadata_answers import make_topic_id


def test_a_new_leader_is_read_from_where_the_old_one_ended() -> None:
    cluster = Cluster()
    machine = assigned(cluster)
    first = starts(machine)[0]
    cluster.leaders[0] = (2, 6)
    cluster.epoch_ends[5] = (5, 2000)
    punt(machine, first, 400, NOT_LEADER)
    machine.run(2.0)
    again = starts(machine)[0]
    assert again.link_id == machine.link_to(2)
    assert (again.offset, again.leader_epoch) == (400, 6)


def test_leader_hints_save_a_metadata_request() -> None:
    cluster = Cluster()
    machine = assigned(cluster)
    first = starts(machine)[0]
    before = len([body for body, _ in machine.asked if isinstance(body, MetadataRequest)])
    cluster.leaders[0] = (2, 6)
    punt(
        machine,
        first,
        400,
        NOT_LEADER,
        current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=6),
        node_endpoints=[NodeEndpoint(node_id=2, host="kafka", port=9092)],
    )
    again = starts(machine)[0]
    assert (again.offset, again.link_id) == (400, machine.link_to(2))
    after = len([body for body, _ in machine.asked if isinstance(body, MetadataRequest)])
    assert after == before


def test_a_lost_link_is_begun_anew() -> None:
    machine = assigned(Cluster())
    first = starts(machine)[0]
    machine.event(StreamsStopped((StreamRow(0, first.generation, 0, 333, -1),)))
    machine.close(ConnectionKey(Role.DATA, 1))
    machine.run(3.0)
    again = starts(machine)[0]
    assert (again.offset, again.generation) == (333, generation(0, again.generation & 0xFFFF))
    assert again.generation > first.generation


def test_the_preferred_replica_serves_until_it_fails() -> None:
    machine = assigned(Cluster())
    first = starts(machine)[0]
    punt(machine, first, 100, preferred_read_replica=2)
    at_replica = starts(machine)[0]
    assert (at_replica.link_id, at_replica.offset) == (machine.link_to(2), 100)
    punt(machine, at_replica, 120, OUT_OF_RANGE)
    at_leader = starts(machine)[0]
    assert (at_leader.link_id, at_leader.offset) == (machine.link_to(1), 120)


def test_a_replica_is_preferred_for_a_while_only() -> None:
    """Regression: one that its leader had cut off, and that brought nothing, was read forever."""
    machine = assigned(Cluster(), metadata_max_age_ms=60_000)
    first = starts(machine)[0]
    punt(machine, first, 100, preferred_read_replica=2)
    at_replica = starts(machine)[0]
    machine.run(59.0)
    assert machine.take(StopStream) == []
    machine.run(2.0)
    assert machine.take(StopStream) == [StopStream(at_replica.stream_id, at_replica.generation)]
    row = StreamRow(at_replica.stream_id, at_replica.generation, 0, 120, -1)
    machine.event(StreamsStopped((row,)))
    at_leader = starts(machine)[0]
    assert (at_leader.link_id, at_leader.offset) == (machine.link_to(1), 120)
    punt(machine, at_leader, 130, preferred_read_replica=2)
    assert starts(machine)[0].link_id == machine.link_to(2)


def test_out_of_range_at_the_leader_follows_the_policy() -> None:
    machine = assigned(Cluster())
    first = starts(machine)[0]
    punt(machine, first, 5000, OUT_OF_RANGE)
    machine.run(1.0)
    assert starts(machine)[0].offset == 100
    machine = assigned(Cluster(), auto_offset_reset="none")
    machine.control.seek(T0, Position(5000), 1, machine.now)
    machine.run()
    machine.take(PartitionFailed)
    punt(machine, starts(machine)[0], 5000, OUT_OF_RANGE)
    (failed,) = machine.take(PartitionFailed)
    assert isinstance(failed.error, PositionOutOfRangeError)
    assert (failed.error.offset, failed.seeks) == (5000, 1)
    assert machine.control.partitions[T0].state is FetchState.FAILED


def test_a_diverging_epoch_is_a_truncation() -> None:
    machine = assigned(Cluster())
    first = starts(machine)[0]
    punt(machine, first, 400, diverging_epoch=EpochEndOffset(epoch=4, end_offset=350))
    assert machine.take(Reposition) == [Reposition(T0, 0, 350, 4)]


@pytest.mark.parametrize(
    "answer",
    [{"diverging_epoch": EpochEndOffset(epoch=4, end_offset=350)}, {"code": OUT_OF_RANGE}],
    ids=["truncated", "out of range"],
)
def test_a_broker_that_always_says_the_log_does_not_hold_the_position_is_asked_slowly(
    answer: dict[str, Any],
) -> None:
    """Regression: asked anew at once each time, without end."""
    machine = assigned(Cluster())
    partition = machine.control.partitions[T0]
    times = []
    for _ in range(5):
        before = machine.now
        punt(machine, starts(machine)[0], 400, **answer)
        while not any(isinstance(command, StartStream) for command in machine.kept):
            for news in machine.take(Reposition):  # the user's thread seeks there
                place = Position(news.offset, news.epoch)
                machine.control.seek(T0, place, partition.seeks + 1, machine.now)
            machine.run(0.01)
        times.append(machine.now - before)
    assert times[0] < 0.05
    assert times[-1] > 3 * times[1] > 0.05


@pytest.mark.parametrize(
    "answer",
    [{"diverging_epoch": EpochEndOffset(epoch=4, end_offset=350)}, {"code": OUT_OF_RANGE}],
    ids=["truncated", "out of range"],
)
def test_a_new_leader_does_not_start_what_is_about_to_be_moved(answer: dict[str, Any]) -> None:
    """Regression: it was fetched from where it could not be read, and then moved while it ran."""
    cluster = Cluster()
    machine = assigned(cluster)
    seeks = 0
    for _ in range(5):
        punt(machine, starts(machine)[0], 400, **answer)
        while not any(isinstance(command, StartStream) for command in machine.kept):
            for news in machine.take(Reposition):  # the user's thread seeks there
                seeks += 1
                place = Position(news.offset, news.epoch)
                machine.control.seek(T0, place, seeks, machine.now)
            machine.run(0.01)
    punt(machine, starts(machine)[0], 400, **answer)
    cluster.leaders[0] = (2, 6)
    machine.control.cluster.request_refresh("test")
    machine.run(0.5)
    assert machine.control.cluster.leader_epoch(*T0) == 6
    assert not starts(machine), "its backoff is not over"
    machine.run(2.0)
    if "code" in answer:
        assert starts(machine)[0].offset == 100
    else:
        assert machine.take(Reposition) == [Reposition(T0, seeks, 350, 4)]
        assert not starts(machine), "the user's thread seeks there, which drops what it has"


def test_a_refused_topic_is_told_and_tried_again() -> None:
    machine = assigned(Cluster())
    punt(machine, starts(machine)[0], 100, 29)
    (failed,) = machine.take(PartitionFailed)
    assert isinstance(failed.error, TopicAuthorizationFailed)
    machine.run(2.0)
    assert starts(machine)[0].offset == 100


def test_errors_in_a_row_are_paced() -> None:
    machine = assigned(Cluster())
    times = []
    for _ in range(5):
        before = machine.now
        punt(machine, starts(machine)[0], 100, 78)
        while not any(isinstance(command, StartStream) for command in machine.kept):
            machine.run(0.01)
        times.append(machine.now - before)
    assert times[-1] > 3 * times[0] > 0.05


@pytest.mark.parametrize(("policy", "offset"), [("earliest", 3), ("latest", 3)])
def test_a_topic_made_anew_loses_no_record(policy: str, offset: int) -> None:
    cluster = Cluster()
    machine = assigned(cluster, auto_offset_reset=policy)
    first = starts(machine)
    cluster.topic_id = make_topic_id(2)
    cluster.leaders = [(1, 0), (2, 0)]
    cluster.offsets = {-2: 3, -1: 9}
    machine.control.cluster.request_refresh("test")
    machine.run(1.0)
    told = machine.take(Recreated)
    assert [event.partition for event in told] == [T0, T1]
    for recreated in told:
        machine.control.begin_again(recreated.partition, recreated.seeks + 1, machine.now)
    machine.run(1.0)
    again = starts(machine)
    assert {start.offset for start in again.values()} == {offset}
    assert all(again[id_].generation > first[id_].generation for id_ in again)


def test_a_topic_made_anew_is_read_at_its_leaders() -> None:
    """Regression: the replica that was near the old topic's partition held no copy of the new."""
    cluster = Cluster()
    machine = assigned(cluster)
    punt(machine, starts(machine)[0], 100, preferred_read_replica=2)
    assert starts(machine)[0].link_id == machine.link_to(2)
    cluster.topic_id = make_topic_id(2)
    cluster.leaders = [(1, 0), (1, 0)]
    machine.control.cluster.request_refresh("test")
    machine.run(1.0)
    for recreated in machine.take(Recreated):
        machine.control.begin_again(recreated.partition, recreated.seeks + 1, machine.now)
    machine.run(1.0)
    assert {start.link_id for start in starts(machine).values()} == {machine.link_to(1)}


def test_the_end_of_a_replica_s_time_stops_no_partition_that_has_left_it() -> None:
    """Regression: a stream at its leader was stopped, and started again, for nothing."""
    cluster = Cluster()
    machine = assigned(cluster, metadata_max_age_ms=60_000)
    punt(machine, starts(machine)[0], 100, preferred_read_replica=2)
    cluster.topic_id = make_topic_id(2)
    cluster.leaders = [(1, 0), (1, 0)]
    machine.control.cluster.request_refresh("test")
    machine.run(1.0)
    for recreated in machine.take(Recreated):
        machine.control.begin_again(recreated.partition, recreated.seeks + 1, machine.now)
    machine.run(1.0)
    machine.take(StopStream)
    machine.run(70.0)
    assert machine.take(StopStream) == []


def test_a_topic_made_anew_is_one_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    machine = assigned(cluster)
    starts(machine)
    cluster.topic_id = make_topic_id(2)
    caplog.clear()
    machine.control.cluster.request_refresh("test")
    machine.run(1.0)
    assert [record.getMessage() for record in caplog.records if record.levelname == "WARNING"] == [
        "topic 't' was deleted and created again; read here: t-0, t-1"
    ]


def refuse_each(machine: FakeMachine, seconds: float) -> None:
    """Let all streams of a deleted topic be refused, as often as they start, for some time."""
    until = machine.now + seconds
    running = starts(machine)
    while machine.now < until:
        for stream in running.values():
            punt(machine, stream, 400, ErrorCode.UNKNOWN_TOPIC_ID)
        machine.run(0.5)
        running = starts(machine)


def test_a_topic_that_is_deleted_is_no_warning_of_each_partition(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Regression: one for each partition, beside the one that says that there is no topic."""
    cluster = Cluster()
    machine = assigned(cluster)
    cluster.topic_error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    machine.control.cluster.request_refresh("test")
    refuse_each(machine, 2 * SETTLING)
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert not [text for text in told if "UNKNOWN_TOPIC_ID" in text]
    trouble = machine.control.troubles.last_of(T0)
    assert "UNKNOWN_TOPIC_ID" in str(trouble), "waits give it as a reason"


def test_a_topic_that_is_there_and_refused_for_long_is_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    machine = assigned(Cluster())
    refuse_each(machine, 2 * SETTLING)
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [text.partition(":")[0] for text in told] == ["UNKNOWN_TOPIC_ID (100)"] * 2


def test_a_partition_that_comes_back_is_not_blamed_for_its_former_life() -> None:
    """Regression: the backoff of a partition that was given up was kept, forever and for it."""
    machine = assigned(Cluster())
    for _ in range(4):
        punt(machine, starts(machine)[0], 400, OUT_OF_RANGE)
        while not any(isinstance(command, StartStream) for command in machine.kept):
            machine.run(0.01)
    machine.control.assign([(T1, 1)], machine.now, committed=False)
    machine.control.assign([(T0, 0), (T1, 1)], machine.now, committed=False)
    machine.run(0.01)
    punt(machine, starts(machine)[0], 400, OUT_OF_RANGE)
    machine.run(0.01)
    assert starts(machine)[0].offset == 100


def test_a_topic_made_anew_is_not_read_from_where_the_old_one_was() -> None:
    """Regression: the end of the backoff that its errors had begun started the stream again."""
    cluster = Cluster()
    machine = assigned(cluster)
    first = starts(machine)
    cluster.topic_id = make_topic_id(2)
    punt(machine, first[0], 400, ErrorCode.UNKNOWN_TOPIC_ID)
    machine.run(5.0)
    assert {recreated.partition for recreated in machine.take(Recreated)} == {T0, T1}
    assert not starts(machine)
    machine.control.begin_again(T0, 1, machine.now)
    machine.run(1.0)
    assert starts(machine)[0].offset == 100
