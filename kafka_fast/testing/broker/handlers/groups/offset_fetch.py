"""OffsetFetch: the committed positions of groups, all of them or those asked for."""

from __future__ import annotations

from collections.abc import Iterable

from kafka_fast.errors import (
    BrokerError,
    TopicAuthorizationFailed,
    UnknownTopicId,
    UnstableOffsetCommit,
)
from kafka_fast.protocol.apis.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from kafka_fast.testing.broker.acls import Operation, ResourceType
from kafka_fast.testing.broker.groups.consumer import ConsumerGroup
from kafka_fast.testing.broker.groups.offsets import NO_ID, CommittedOffset, GroupOffsets
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers

_SEVERAL_FROM_VERSION = 8
_IDS_FROM_VERSION = 10
_GROUP_CODE_FROM_VERSION = 2  # before, an error that concerns the group is told for each partition


@answers(OffsetFetchRequest)
def answer(request: ReceivedRequest) -> OffsetFetchResponse:
    """Return the positions of each group."""
    body: OffsetFetchRequest = request.body
    if request.version >= _SEVERAL_FROM_VERSION:
        return OffsetFetchResponse(groups=[_group(request, asked) for asked in body.groups])
    topics = None
    if body.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=one.name, partition_indexes=one.partition_indexes)
            for one in body.topics
        ]
    asked = OffsetFetchRequestGroup(group_id=body.group_id, topics=topics)
    return _of_one(_group(request, asked), asked, request.version)


def _group(request: ReceivedRequest, asked: OffsetFetchRequestGroup) -> OffsetFetchResponseGroup:
    try:
        planned = request.planned_error()
        if planned is not None:
            return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=planned.code)
        request.check_group(Operation.DESCRIBE, asked.group_id)
        request.coordinator.check_coordinates(asked.group_id, request.now)
        group = request.coordinator.find(asked.group_id)
        if isinstance(group, ConsumerGroup):
            group.check_fetch(asked.member_id, asked.member_epoch)
    except BrokerError as error:
        return OffsetFetchResponseGroup(group_id=asked.group_id, error_code=error.code)
    offsets = request.coordinator.offsets(asked.group_id)
    if asked.topics is None:
        topics = _everything(request, offsets)
    else:
        topics = [_topic(request, offsets, one) for one in asked.topics]
    return OffsetFetchResponseGroup(group_id=asked.group_id, topics=topics)


def _everything(request: ReceivedRequest, offsets: GroupOffsets) -> list[OffsetFetchResponseTopics]:
    return [
        OffsetFetchResponseTopics(
            name=name,
            topic_id=request.state.topics[name].topic_id,
            partitions=[_partition(request, offsets, name, index) for index in partitions],
        )
        for name, partitions in offsets
        if name in request.state.topics
        and request.allows(Operation.DESCRIBE, ResourceType.TOPIC, name)
    ]


def _topic(
    request: ReceivedRequest, offsets: GroupOffsets, asked: OffsetFetchRequestTopics
) -> OffsetFetchResponseTopics:
    name: str | None = asked.name
    if request.version >= _IDS_FROM_VERSION:
        name = request.state.topic_names.get(asked.topic_id)
    topic_answer = OffsetFetchResponseTopics(
        name=asked.name, topic_id=asked.topic_id, partitions=[]
    )
    for index in asked.partition_indexes:
        if name is not None and not request.allows(Operation.DESCRIBE, ResourceType.TOPIC, name):
            topic_answer.partitions.append(_told(index, None, TopicAuthorizationFailed.code))
        elif name is None:
            topic_answer.partitions.append(_told(index, None, UnknownTopicId.code))
        else:
            topic_answer.partitions.append(
                _partition(request, offsets, name, index, asked.topic_id)
            )
    return topic_answer


def _partition(
    request: ReceivedRequest, offsets: GroupOffsets, name: str, index: int, topic_id: bytes = NO_ID
) -> OffsetFetchResponsePartitions:
    planned = request.planned_error(name, index, exactly=True)
    if planned is not None:
        return _told(index, None, planned.code)
    if request.body.require_stable and offsets.is_unstable(name, index):
        return _told(index, None, UnstableOffsetCommit.code)
    return _told(index, offsets.get(name, index, topic_id))


def _told(
    index: int, committed: CommittedOffset | None, code: int = 0
) -> OffsetFetchResponsePartitions:
    if committed is None:
        committed = CommittedOffset(-1, -1, "", NO_ID)
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=committed.offset,
        committed_leader_epoch=committed.leader_epoch,
        metadata=committed.metadata,
        error_code=code,
    )


def _of_one(
    group: OffsetFetchResponseGroup, asked: OffsetFetchRequestGroup, version: int
) -> OffsetFetchResponse:
    """Return the answer as it was when a request was about one group."""
    topics: Iterable[OffsetFetchResponseTopics] = group.topics
    if group.error_code and version < _GROUP_CODE_FROM_VERSION:
        topics = [
            OffsetFetchResponseTopics(
                name=one.name,
                partitions=[
                    _told(index, None, group.error_code) for index in one.partition_indexes
                ],
            )
            for one in asked.topics or ()
        ]
    return OffsetFetchResponse(
        error_code=group.error_code if version >= _GROUP_CODE_FROM_VERSION else 0,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=one.partition_index,
                        committed_offset=one.committed_offset,
                        committed_leader_epoch=one.committed_leader_epoch,
                        metadata=one.metadata,
                        error_code=one.error_code,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in topics
        ],
    )
