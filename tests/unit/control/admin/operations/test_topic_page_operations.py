"""Topics page by page, and as each node sees them: requests, and what answers mean."""

from __future__ import annotations

import pytest

from kafka_fast import TopicPartition
from kafka_fast.admin import AclOperation, TopicPartitionInfo
from kafka_fast.control.admin.operation import ONLY
from kafka_fast.control.admin.operations.topic_pages import (
    AwaitTopics,
    DescribeTopicPage,
    TopicPage,
)
from kafka_fast.control.requests.meanings import Done, Retry
from kafka_fast.errors import (
    ErrorCode,
    InvalidTopicException,
    TopicAuthorizationFailed,
    UnknownServerError,
)
from kafka_fast.protocol.apis.cluster.metadata import (
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafka_fast.protocol.apis.topics.describe_topic_partitions import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from tests.unit.control.admin.operations.trying import meanings, refused, sent, values


def page_of(*, operations: bool = False, cursor: TopicPartition | None = None) -> DescribeTopicPage:
    return DescribeTopicPage(
        ["a", "b"], cursor=cursor, partition_limit=7, include_authorized_operations=operations
    )


def test_a_page_is_asked_for() -> None:
    request = sent(page_of(), 0)
    assert [one.name for one in request.topics] == ["a", "b"]
    assert (request.response_partition_limit, request.cursor) == (7, None)
    cursor = sent(page_of(cursor=TopicPartition("a", 5)), 0).cursor
    assert (cursor.topic_name, cursor.partition_index) == ("a", 5)


def test_a_page_is_read() -> None:
    partitions = [
        DescribeTopicPartitionsResponsePartition(
            partition_index=1,
            leader_id=-1,
            replica_nodes=[1, 2],
            isr_nodes=[],
            eligible_leader_replicas=[1],
            last_known_elr=[2],
            offline_replicas=[1, 2],
        ),
        DescribeTopicPartitionsResponsePartition(
            partition_index=0, leader_id=1, leader_epoch=4, replica_nodes=[1], isr_nodes=[1]
        ),
    ]
    whole = DescribeTopicPartitionsResponseTopic(
        name="a",
        topic_id=bytes(range(16)),
        is_internal=True,
        partitions=partitions,
        topic_authorized_operations=1 << AclOperation.READ,
    )
    codes = {
        "b": ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        "c": ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        "d": ErrorCode.LEADER_NOT_AVAILABLE,
        None: ErrorCode.UNKNOWN_TOPIC_ID,
    }
    answer = DescribeTopicPartitionsResponse(
        topics=[
            whole,
            *(
                DescribeTopicPartitionsResponseTopic(name=name, error_code=code)
                for name, code in codes.items()
            ),
        ],
        next_cursor=DescribeTopicPartitionsResponseCursor(topic_name="e", partition_index=0),
    )
    page: TopicPage = values(page_of(operations=True), answer, 0)[ONLY]
    (topic,) = page.topics
    assert topic.partitions == (
        TopicPartitionInfo(0, 1, 4, (1,), (1,), ()),
        TopicPartitionInfo(1, None, -1, (1, 2), (), (1, 2), (1,), (2,)),
    )
    assert (topic.name, topic.topic_id, topic.is_internal) == ("a", "AAECAwQFBgcICQoLDA0ODw", True)
    assert topic.authorized_operations == frozenset({AclOperation.READ})
    assert list(page.refused) == ["b", "c"]
    assert "of topic 'b': there is no such topic" in str(page.refused["b"])
    assert "needs DESCRIBE on the topic" in str(page.refused["c"])
    assert page.unsettled == {"d"}
    assert page.cursor == TopicPartition("e", 0)
    plain: TopicPage = values(page_of(), answer, 0)[ONLY]
    assert plain.topics[0].authorized_operations is None
    last: TopicPage = values(page_of(), DescribeTopicPartitionsResponse(), 0)[ONLY]
    assert last == TopicPage((), {}, frozenset(), None)


# ---- topics that every node is to know ----


def topic(name: str, *leaders: int, code: int = 0) -> MetadataResponseTopic:
    partitions = [
        MetadataResponsePartition(partition_index=number, leader_id=leader)
        for number, leader in enumerate(leaders)
    ]
    return MetadataResponseTopic(name=name, error_code=code, partitions=partitions)


@pytest.mark.parametrize("version", range(7, 14))
def test_a_node_is_asked_for_topics(version: int) -> None:
    operation = AwaitTopics(["a", "b", "a"])
    assert operation.items is None
    request = sent(operation, version, [2])
    assert [one.name for one in request.topics] == ["a", "b"]
    assert not request.allow_auto_topic_creation
    answer = MetadataResponse(topics=[topic("a", 1), topic("b", 1, 2), topic("foreign", -1)])
    assert meanings(operation, answer, version, [2]) == {2: Done(None)}


@pytest.mark.parametrize(
    "late",
    [
        None,
        topic("a"),
        topic("a", 1, -1),
        topic("a", code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        topic("a", code=ErrorCode.LEADER_NOT_AVAILABLE),
    ],
)
def test_a_node_does_not_know_a_topic_yet(late: MetadataResponseTopic | None) -> None:
    answer = MetadataResponse(topics=[topic("b", 1)] + ([late] if late else []))
    meaning = meanings(AwaitTopics(["a", "b"]), answer, 13, [2])[2]
    assert isinstance(meaning, Retry)
    assert "node 2 does not know all leaders yet of 'a'" in str(meaning.error)


def test_a_topic_that_cannot_become_visible() -> None:
    operation = AwaitTopics(["a"])
    denied = MetadataResponse(topics=[topic("a", code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)])
    error = refused(meanings(operation, denied, 13, [2])[2])
    assert isinstance(error, TopicAuthorizationFailed)
    assert "of node 2: topic 'a': not authorized" in str(error)
    assert "needs DESCRIBE on the topic" in str(error)
    invalid = MetadataResponse(topics=[topic("a", code=ErrorCode.INVALID_TOPIC_EXCEPTION)])
    assert isinstance(refused(meanings(operation, invalid, 13, [2])[2]), InvalidTopicException)
    strange = MetadataResponse(topics=[topic("a", code=999)])
    assert "topic 'a'" in str(refused(meanings(operation, strange, 13, [2])[2]))
    whole = MetadataResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    assert isinstance(refused(meanings(operation, whole, 13, [2])[2]), UnknownServerError)
