"""Where partitions are read from: resets, look-ups, validation, truncation."""

from __future__ import annotations

from kafka_fast.control.consumer.consumer_messages import (
    PartitionFailed,
    Reposition,
)
from kafka_fast.control.consumer.partition import Position
from kafka_fast.errors import (
    LogTruncationError,
    TopicAuthorizationFailed,
)
from tests.unit.control.consumer.scripted import (
    NOT_LEADER,
    T0,
    T1,
    WALL_MS,
    Cluster,
    assigned,
    make,
    starts,
)


def test_by_duration_counts_back_from_now_and_falls_back_to_the_end() -> None:
    cluster = Cluster()
    cluster.offsets[WALL_MS - 60_000] = 500
    started = starts(assigned(cluster, auto_offset_reset="by_duration:PT1M"))
    assert {start.offset for start in started.values()} == {500}
    started = starts(assigned(cluster, auto_offset_reset="by_duration:PT2M"))
    assert {start.offset for start in started.values()} == {900}


def test_policy_none_is_an_error_until_the_user_seeks() -> None:
    machine = assigned(Cluster(), auto_offset_reset="none")
    assert not starts(machine)
    failed = machine.take(PartitionFailed)
    assert {failure.partition for failure in failed} == {T0, T1}
    machine.control.seek(T0, Position(42), 1, machine.now)
    machine.run()
    assert starts(machine)[0].offset == 42


def test_a_lookup_is_asked_again_after_errors() -> None:
    cluster = Cluster()
    cluster.offset_errors = [NOT_LEADER, 78, NOT_LEADER]
    assert set(starts(assigned(cluster))) == {0, 1}


def test_a_refused_lookup_fails_its_partition_only() -> None:
    cluster = Cluster()
    cluster.offset_errors = [29]
    machine = assigned(cluster)
    (failed,) = machine.take(PartitionFailed)
    assert isinstance(failed.error, TopicAuthorizationFailed)
    assert len(starts(machine)) == 1


def test_a_truncated_log_is_read_from_where_it_was_cut() -> None:
    cluster = Cluster()
    cluster.epoch_ends[4] = (3, 180)
    cluster.committed[0] = (250, 4)
    machine = make(cluster, group_id="g", auto_offset_reset="earliest")
    machine.control.assign([(T0, 0)], machine.now, committed=True)
    machine.run(1.0)
    assert machine.take(Reposition) == [Reposition(T0, 0, 180, 3)]
    assert not starts(machine)  # the user's thread seeks there, which drops what it has


def test_truncation_with_policy_none_is_the_users_to_decide() -> None:
    cluster = Cluster()
    cluster.epoch_ends[4] = (3, 180)
    cluster.committed[0] = (250, 4)
    machine = make(cluster, group_id="g", auto_offset_reset="none")
    machine.control.assign([(T0, 0)], machine.now, committed=True)
    machine.run(1.0)
    (failed,) = machine.take(PartitionFailed)
    assert isinstance(failed.error, LogTruncationError)
    assert (failed.error.offset, failed.error.position) == (180, 250)


def test_an_epoch_that_the_leader_does_not_know_is_no_truncation() -> None:
    cluster = Cluster()
    cluster.committed[0] = (250, 4)
    machine = make(cluster, group_id="g")
    machine.control.assign([(T0, 0)], machine.now, committed=True)
    machine.run(1.0)
    assert starts(machine)[0].offset == 250
