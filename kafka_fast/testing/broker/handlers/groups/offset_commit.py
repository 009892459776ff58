"""OffsetCommit: store the positions of a group, by topic name or id."""

from __future__ import annotations

from kafka_fast.errors import (
    BrokerError,
    GroupAuthorizationFailed,
    GroupIdNotFound,
    IllegalGeneration,
    OffsetMetadataTooLarge,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from kafka_fast.protocol.apis.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafka_fast.testing.broker.acls import Operation, ResourceType
from kafka_fast.testing.broker.groups.consumer import ConsumerGroup
from kafka_fast.testing.broker.groups.offsets import CommittedOffset
from kafka_fast.testing.broker.partitions.cluster_topics import Topic
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers

_IDS_FROM_VERSION = 10
_NOT_FOUND_FROM_VERSION = 9  # before, a group that does not exist has another generation


@answers(OffsetCommitRequest)
def answer(request: ReceivedRequest) -> OffsetCommitResponse:
    """Store what may be stored and say so, partition by partition."""
    body: OffsetCommitRequest = request.body
    topics = [(asked, _find(request, asked)) for asked in body.topics]
    if not request.allows(Operation.READ, ResourceType.GROUP, body.group_id):
        return _all_refused(body, GroupAuthorizationFailed.code)
    refused = None
    if any(
        _exists(topic, one.partition_index) for asked, topic in topics for one in asked.partitions
    ):
        try:
            _check(request, topics)
        except BrokerError as error:
            refused = error.code
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=asked.name,
                topic_id=asked.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=one.partition_index,
                        error_code=_commit(request, asked, topic, one, refused),
                    )
                    for one in asked.partitions
                ],
            )
            for asked, topic in topics
        ]
    )


def _find(request: ReceivedRequest, asked: OffsetCommitRequestTopic) -> Topic | None:
    if request.version < _IDS_FROM_VERSION:
        return request.state.topics.get(asked.name)
    name = request.state.topic_names.get(asked.topic_id)
    return None if name is None else request.state.topics[name]


def _exists(topic: Topic | None, index: int) -> bool:
    return topic is not None and 0 <= index < len(topic.partitions)


def _check(
    request: ReceivedRequest, topics: list[tuple[OffsetCommitRequestTopic, Topic | None]]
) -> None:
    """Refuse a member that may not commit; a commit without a generation may create the group."""
    body: OffsetCommitRequest = request.body
    coordinator = request.coordinator
    coordinator.check_coordinates(body.group_id, request.now)
    generation = body.generation_id_or_member_epoch
    try:
        group = coordinator.group(body.group_id, create=generation < 0)
    except GroupIdNotFound as error:
        if request.version >= _NOT_FOUND_FROM_VERSION:
            raise
        raise IllegalGeneration(f"no group {body.group_id!r}") from error
    if isinstance(group, ConsumerGroup):
        committed = [
            (topic.topic_id, one.partition_index)
            for asked, topic in topics
            for one in asked.partitions
            if topic is not None and _exists(topic, one.partition_index)
        ]
        group.check_commit(generation, body.member_id, request.version, committed)
    else:
        group.check_commit(generation, body.member_id, body.group_instance_id, request.now)


def _all_refused(body: OffsetCommitRequest, code: int) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=one.partition_index, error_code=code
                    )
                    for one in topic.partitions
                ],
            )
            for topic in body.topics
        ]
    )


def _commit(
    request: ReceivedRequest,
    asked: OffsetCommitRequestTopic,
    topic: Topic | None,
    one: OffsetCommitRequestPartition,
    refused: int | None,
) -> int:
    """Store one position and return the error code."""
    index = one.partition_index
    if topic is None and request.version >= _IDS_FROM_VERSION:
        return UnknownTopicId.code
    name = asked.name if topic is None else topic.name
    if not request.allows(Operation.READ, ResourceType.TOPIC, name):
        return TopicAuthorizationFailed.code
    if topic is None or not _exists(topic, index):
        return UnknownTopicOrPartition.code
    planned = request.planned_error(topic.name, index)
    if planned is not None and not planned.applied:
        return planned.code
    if refused is not None:
        return refused
    if len(one.committed_metadata or "") > request.coordinator.settings.offset_metadata_max:
        return OffsetMetadataTooLarge.code
    committed = CommittedOffset(
        one.committed_offset,
        one.committed_leader_epoch,
        one.committed_metadata or "",
        topic.topic_id,
    )
    request.coordinator.offsets(request.body.group_id).commit(topic.name, index, committed)
    return 0 if planned is None else planned.code
