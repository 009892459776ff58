"""What lag is: sums, gaps and ends."""

from __future__ import annotations

import pickle

from kafka_fast import OffsetAndMetadata, TopicPartition
from kafka_fast.admin import GroupLag, GroupState, GroupType, PartitionLag
from kafka_fast.errors import UnknownTopicOrPartition


def partition_lag(
    number: int,
    committed: int | None,
    *,
    topic: str = "t",
    error: UnknownTopicOrPartition | None = None,
) -> PartitionLag:
    at = None if committed is None else OffsetAndMetadata(committed)
    ends = (0, 10, 8) if error is None else (None, None, None)
    return PartitionLag(TopicPartition(topic, number), at, *ends, None, error)


def test_lag_counts_to_the_end_and_to_the_last_stable_offset() -> None:
    one = partition_lag(0, 3)
    assert (one.lag, one.stable_lag) == (7, 5)
    assert (partition_lag(0, 9).lag, partition_lag(0, 9).stable_lag) == (1, 0)
    assert partition_lag(0, 12).lag == 0
    assert (partition_lag(0, None).lag, partition_lag(0, None).stable_lag) == (None, None)


def test_a_group_sums_what_is_known() -> None:
    gone = UnknownTopicOrPartition("gone")
    group = GroupLag(
        "g",
        GroupType.CLASSIC,
        GroupState.EMPTY,
        (
            partition_lag(0, 3),
            partition_lag(1, None),
            partition_lag(2, 5, error=gone),
            partition_lag(3, None, error=gone),
            partition_lag(0, 9, topic="u"),
        ),
    )
    assert group.total_lag == 8
    assert group.lag_by_topic == {"t": 7, "u": 1}
    assert group.uncommitted == (TopicPartition("t", 1),)
    assert group.errors == {TopicPartition("t", 2): gone, TopicPartition("t", 3): gone}
    copied = pickle.loads(pickle.dumps(group))
    assert (copied.total_lag, copied.partitions[0]) == (8, group.partitions[0])
