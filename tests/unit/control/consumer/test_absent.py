"""Partitions that were assigned by hand and are not there: waited for, warned of, told."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kafka_fast.control.consumer.absent import ABSENT_PATIENCE, CONFIRMATIONS
from kafka_fast.control.consumer.consumer_messages import PartitionFailed, PartitionFound
from kafka_fast.control.consumer.partition import Position
from kafka_fast.errors import ErrorCode, NoOffsetForPartitionError, UnknownTopicOrPartition
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest
from kafka_fast.types import TopicPartition
from tests.unit.control.consumer.scripted import T0, T1, Cluster, asked, make, starts
from tests.unit.control.fake_machine import FakeMachine

T9 = TopicPartition("t", 9)
LONG = ABSENT_PATIENCE + 10.0
"""Seconds after which everything was said."""


def assigned(cluster: Cluster, *partitions: TopicPartition, **given: Any) -> FakeMachine:
    machine = make(cluster, **{"auto_offset_reset": "earliest", **given})
    streams = [(partition, number) for number, partition in enumerate(partitions)]
    machine.control.assign(streams, machine.now, committed=False)
    return machine


def failed(machine: FakeMachine) -> list[TopicPartition]:
    failures = machine.take(PartitionFailed)
    assert all(
        failure.is_final and isinstance(failure.error, UnknownTopicOrPartition)
        for failure in failures
    )
    return [failure.partition for failure in failures]


def test_nothing_is_said_before_brokers_have_denied_it_for_long(
    caplog: pytest.LogCaptureFixture,
) -> None:
    machine = assigned(Cluster(), T0, T9)
    machine.run(ABSENT_PATIENCE - 0.1)
    assert not failed(machine)
    assert not caplog.records
    assert list(starts(machine)) == [0], "the other one is read"


def test_a_warning_then_two_more_answers_then_the_error(caplog: pytest.LogCaptureFixture) -> None:
    machine = assigned(Cluster(), T9)
    while not caplog.records:
        machine.run(0.1)
    assert ABSENT_PATIENCE <= machine.now - 1.0 < ABSENT_PATIENCE + 1.5
    assert not failed(machine)
    asked(machine, MetadataRequest)
    while not (news := machine.take(PartitionFailed)):
        machine.run(0.1)
    assert len(asked(machine, MetadataRequest)) == CONFIRMATIONS
    (one,) = news
    said = "there is no partition t-9: topic 't' has 2 partitions"
    assert str(one.error) == f"UNKNOWN_TOPIC_OR_PARTITION (3): {said}"
    assert (one.partition, one.is_final) == (T9, True)
    machine.run(LONG)
    assert not failed(machine), "every poll says it"
    (record,) = caplog.records
    assert (record.levelno, record.getMessage()) == (logging.WARNING, f"{said}; waiting for it")


@pytest.mark.filterwarnings("error")
def test_a_topic_that_is_not_there(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    cluster.topic_error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    machine = assigned(cluster, T0, T1)
    machine.run(LONG)
    assert [str(failure.error).partition(": ")[2] for failure in machine.take(PartitionFailed)] == [
        f"there is no partition {partition}: the brokers know no topic 't'"
        for partition in (T0, T1)
    ]
    # Regression: a line for each partition.
    assert caplog.messages == [
        "no partitions t-0, t-1: the brokers know no topic 't'; waiting for them"
    ]


@pytest.mark.parametrize(
    "error", [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION], ids=["partition", "topic"]
)
def test_what_is_made_meanwhile_is_read(error: int, caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster()
    cluster.topic_error = error
    machine = assigned(cluster, TopicPartition("t", 2))
    machine.run(ABSENT_PATIENCE - 1.0)
    cluster.topic_error = 0
    cluster.leaders.append((1, 0))
    machine.run(LONG)
    assert list(starts(machine)) == [0]
    assert not failed(machine)
    assert "there is no partition" not in caplog.text


def test_what_is_made_after_the_error_is_read_then() -> None:
    cluster = Cluster()
    third = TopicPartition("t", 2)
    machine = assigned(cluster, third)
    machine.run(LONG)
    assert failed(machine) == [third]
    cluster.leaders.append((1, 0))
    machine.run(2.0)
    assert machine.take(PartitionFound) == [PartitionFound(third, 0)]
    assert list(starts(machine)) == [0]


def test_a_topic_that_is_deleted_is_told_as_well() -> None:
    cluster = Cluster()
    machine = assigned(cluster, T0)
    machine.run(1.0)
    cluster.topic_error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    machine.control.cluster.request_refresh("test")
    machine.run(LONG)
    assert failed(machine) == [T0]


def test_a_seek_does_not_make_it_exist() -> None:
    machine = assigned(Cluster(), T9)
    machine.run(LONG)
    assert failed(machine) == [T9]
    machine.control.seek(T9, Position(7), 1, machine.now)
    machine.run(2.0)
    (again,) = machine.take(PartitionFailed)
    assert (again.partition, again.seeks) == (T9, 1)


def test_from_a_position_on_it_is_waited_for_as_well() -> None:
    """Nothing asks its leader then, so that nothing else would ask for metadata."""
    machine = assigned(Cluster(), T9)
    machine.control.seek(T9, Position(7), 1, machine.now)
    machine.run(LONG)
    assert failed(machine) == [T9]


def test_what_another_error_says_stays() -> None:
    machine = assigned(Cluster(), T9, auto_offset_reset="none")
    machine.run(LONG)
    (only,) = machine.take(PartitionFailed)
    assert isinstance(only.error, NoOffsetForPartitionError)


def test_what_is_not_denied_is_not_absent() -> None:
    """A topic without leaders, or brokers that are silent."""
    cluster = Cluster()
    cluster.topic_error = ErrorCode.LEADER_NOT_AVAILABLE
    machine = assigned(cluster, T0)
    machine.run(LONG)
    assert not failed(machine)
    cluster.topic_error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    machine = assigned(cluster, T0)
    machine.run(1.0)
    machine.hung.update(machine.ports.values())
    machine.run(LONG)
    assert not failed(machine), "no answer, no confirmation"


def test_a_groups_partitions_are_its_own_business() -> None:
    machine = make(Cluster(), auto_offset_reset="earliest")
    machine.control.assign([(T9, 0)], machine.now, committed=False, by_hand=False)
    machine.run(LONG)
    assert not machine.take(PartitionFailed)


def test_what_is_assigned_no_more_is_forgotten() -> None:
    machine = assigned(Cluster(), T0, T9)
    machine.run(ABSENT_PATIENCE - 1.0)
    machine.control.assign([(T0, 0)], machine.now, committed=False)
    machine.run(LONG)
    assert not failed(machine)
    machine.control.assign([(T0, 0), (T9, 2)], machine.now, committed=False)
    machine.run(ABSENT_PATIENCE - 1.0)
    assert not failed(machine), "it begins anew"
    machine.run(LONG)
    assert failed(machine) == [T9]
