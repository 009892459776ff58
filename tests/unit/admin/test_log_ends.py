"""Which partitions have offsets to look up, by the metadata."""

from __future__ import annotations

from kafka_fast import TopicPartition
from kafka_fast.admin import TopicDescription, TopicPartitionInfo
from kafka_fast.admin.workflows.log_ends import KnownTopics
from kafka_fast.errors import (
    LeaderNotAvailable,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)


def info(number: int, leader: int | None) -> TopicPartitionInfo:
    return TopicPartitionInfo(number, leader, 0, (1,), (1,), ())


def test_partitions_without_a_leader_are_not_waited_for() -> None:
    denied = TopicAuthorizationFailed("denied")
    topic = TopicDescription("t", None, False, (info(0, 1), info(1, None)))
    known = KnownTopics({"t": topic}, {"u": denied})
    led, leaderless, beyond = (TopicPartition("t", number) for number in range(3))
    hidden, unasked = TopicPartition("u", 0), TopicPartition("v", 0)
    assert known.partitions_of("t") == [led, leaderless]
    assert known.partitions_of("u") == []
    absences = known.absences([led, leaderless, beyond, hidden, unasked])
    assert led not in absences
    assert isinstance(absences[leaderless], LeaderNotAvailable)
    assert isinstance(absences[beyond], UnknownTopicOrPartition)
    assert absences[hidden] is denied
    assert isinstance(absences[unasked], UnknownTopicOrPartition)
