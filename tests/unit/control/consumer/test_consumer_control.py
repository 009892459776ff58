"""What the user asks of a consumer's control plane: assignments, seeks, commits, questions."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kafka_fast.control.consumer.consumer_messages import (
    RemoveStream,
    StreamRow,
    StreamsStopped,
    generation,
)
from kafka_fast.control.consumer.partition import AWAITING_COMMITTED, Position
from kafka_fast.control.messages import Throttled
from kafka_fast.types import OffsetAndMetadata
from tests.unit.control.consumer.scripted import (
    T0,
    T1,
    Cluster,
    assigned,
    make,
    starts,
)
from tests.unit.control.metadata.metadata_answers import make_topic_id


def test_a_seek_outdates_the_stream_and_the_lookup_under_way() -> None:
    machine = assigned(Cluster())
    starts(machine)
    machine.control.seek(T0, Position(7), 1, machine.now)
    machine.run()
    again = starts(machine)[0]
    assert (again.offset, again.generation) == (7, generation(1, 1))
    # What the first start brings is of another life.
    machine.event(StreamsStopped((StreamRow(0, generation(0, 1), 0, 5000, -1),)))
    assert machine.control.partitions[T0].position == Position(7)
    assert not starts(machine)


def test_assignment_keeps_what_stays() -> None:
    machine = assigned(Cluster())
    starts(machine)
    machine.control.assign([(T1, 1)], machine.now, committed=False)
    machine.run()
    assert machine.take(RemoveStream) == [RemoveStream(0)]
    assert not starts(machine)
    assert [partition.partition for partition in machine.control.partitions] == [T1]


def test_committed_offsets_come_first_and_are_validated() -> None:
    cluster = Cluster()
    machine = make(cluster, group_id="g", auto_offset_reset="earliest")
    cluster.commit_errors = [14, 88]  # loading, then unstable
    cluster.committed[0] = (250, 4)
    cluster.epoch_ends[4] = (4, 300)
    machine.control.assign([(T0, 0), (T1, 1)], machine.now, committed=True)
    machine.run(0.05)
    assert [
        partition.partition
        for partition in machine.control.partitions.in_state(*AWAITING_COMMITTED)
    ] == [
        T0,
        T1,
    ]
    assert not starts(machine)
    machine.run(2.0)
    assert {id_: start.offset for id_, start in starts(machine).items()} == {0: 250, 1: 100}


def test_what_was_read_of_a_topic_that_is_gone_is_not_committed_for_the_next_one() -> None:
    """Regression: until the new topic had a position, the old one's was committed under its id."""
    cluster = Cluster()
    machine = assigned(cluster, group_id="g")
    commits: list[Any] = []
    group: Any = machine.control.group
    group.commits.commit = lambda offsets, done, **options: commits.append(offsets)
    both = {T0: OffsetAndMetadata(5), T1: OffsetAndMetadata(6)}

    def commit() -> Any:
        machine.control.commit(
            both, print, machine.now, deadline=machine.now + 9, as_member=True, skips_unknown=False
        )
        return commits.pop()

    assert commit() == both
    cluster.topic_id = make_topic_id(2)
    machine.control.cluster.request_refresh("test")
    machine.run(1.0)
    assert commit() == {}
    machine.control.begin_again(T1, 1, machine.now)
    assert commit() == {T1: both[T1]}
    machine.control.begin_again(T0, 1, machine.now)
    assert commit() == both


def test_the_users_question() -> None:
    cluster = Cluster()
    machine = make(cluster)
    answers: list[Any] = []
    machine.control.lookup.look_up({T0: -2, T1: -1}, answers.append, machine.now)
    machine.run(1.0)
    assert {partition: at.offset for partition, at in answers[0].items()} == {T0: 100, T1: 900}


def test_a_quota_is_told(caplog: pytest.LogCaptureFixture) -> None:
    machine = assigned(Cluster())
    with caplog.at_level(logging.INFO, "kafka_fast.consumer"):
        machine.event(Throttled(machine.link_to(2), 1500))
    (message,) = [text for text in caplog.messages if "quota" in text]
    assert message == "node 2 has this client wait for 1500 ms: a quota"
