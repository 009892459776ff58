"""ListOffsets by an admin client: what is asked in each version, and what answers mean."""

from __future__ import annotations

import re
from datetime import datetime, timezone

import pytest

from kafka_fast.admin import IsolationLevel, ListedOffset, OffsetSpec
from kafka_fast.control.admin.operations.offsets import ListOffsets
from kafka_fast.control.requests.call import AnswerSource
from kafka_fast.control.requests.meanings import Done, Refresh, Refused
from kafka_fast.errors import ErrorCode, UnsupportedVersionError, UsageError
from kafka_fast.protocol.apis.records.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafka_fast.types import TopicPartition

HERE, THERE = TopicPartition("t", 0), TopicPartition("t", 3)
SOURCE = AnswerSource(11, "node 1", 0.0)


@pytest.mark.parametrize("version", range(2, 12))
def test_each_version_asks_for_the_same(version: int) -> None:
    when = datetime(2024, 1, 1, tzinfo=timezone.utc)
    operation = ListOffsets(
        {HERE: OffsetSpec.LATEST, THERE: when}, isolation_level=IsolationLevel.READ_COMMITTED
    )
    operation.begin(30.0, lambda results: None)
    sent = operation.build([HERE, THERE], version).encode(version)
    request = ListOffsetsRequest.decode(sent, version)
    assert (request.replica_id, request.isolation_level) == (-1, 1)
    assert request.timeout_ms == (30_000 if version >= 10 else 0)
    (topic,) = request.topics
    assert topic.name == "t"
    assert [(one.partition_index, one.timestamp) for one in topic.partitions] == [
        (0, -1),
        (3, 1_704_067_200_000),
    ]
    assert {one.current_leader_epoch for one in topic.partitions} == {-1}


@pytest.mark.parametrize(
    ("spec", "number", "first", "release"),
    [
        (OffsetSpec.EARLIEST, -2, 1, ""),
        (OffsetSpec.MAX_TIMESTAMP, -3, 7, "3.0"),
        (OffsetSpec.EARLIEST_LOCAL, -4, 8, "3.4"),
        (OffsetSpec.LATEST_TIERED, -5, 9, "3.9"),
        (OffsetSpec.EARLIEST_PENDING_UPLOAD, -6, 11, "4.2"),
    ],
)
def test_a_broker_may_be_too_old(spec: OffsetSpec, number: int, first: int, release: str) -> None:
    operation = ListOffsets({HERE: spec})
    operation.begin(30.0, lambda results: None)
    assert operation.build([HERE], first).topics[0].partitions[0].timestamp == number
    assert operation.unsupported(HERE, first) is None
    if release:
        error = operation.unsupported(HERE, first - 1)
        assert isinstance(error, UnsupportedVersionError)
        assert str(error) == f"ListOffsets of t-0: brokers know {spec.name} since Kafka {release}"


def test_offsets_and_errors_are_told_apart() -> None:
    operation = ListOffsets({HERE: OffsetSpec.LATEST, THERE: 1_704_067_200_000})
    denied = TopicPartition("denied", 0)
    answer = ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name="t",
                partitions=[
                    ListOffsetsPartitionResponse(partition_index=0, offset=7, leader_epoch=2),
                    ListOffsetsPartitionResponse(
                        partition_index=3, offset=5, timestamp=1_704_067_200_001
                    ),
                    ListOffsetsPartitionResponse(
                        partition_index=4, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER
                    ),
                ],
            ),
            ListOffsetsTopicResponse(
                name="denied",
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=0, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED
                    )
                ],
            ),
        ]
    )
    outcomes = dict(operation.outcomes(answer, [HERE, THERE], SOURCE))
    assert outcomes[HERE] == Done(ListedOffset(7, None, 2))
    assert outcomes[THERE] == Done(ListedOffset(5, 1_704_067_200_001, None))
    assert isinstance(outcomes[TopicPartition("t", 4)], Refresh)
    refused = outcomes[denied]
    assert isinstance(refused, Refused)
    assert "ListOffsets of denied-0: " in str(refused.error)
    assert "needs DESCRIBE on the topic" in str(refused.error)


@pytest.mark.parametrize(
    ("spec", "kind", "text"),
    [
        (datetime(2024, 1, 1), UsageError, "has no time zone"),  # noqa: DTZ001  that is the case
        (1_704_067_200, UsageError, "seconds instead of milliseconds?"),
        (-1, UsageError, "no Unix time"),
        ("latest", TypeError, "the offset of t-0 is an int"),
    ],
)
def test_what_is_no_time_is_refused(spec: object, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        ListOffsets({HERE: spec})  # type: ignore[dict-item]
