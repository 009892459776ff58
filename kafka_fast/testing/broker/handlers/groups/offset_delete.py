"""OffsetDelete: what a group has committed for topics that its members do not read (KIP-496)."""

from __future__ import annotations

from kafka_fast.errors import (
    BrokerError,
    GroupSubscribedToTopic,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from kafka_fast.protocol.apis.groups.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kafka_fast.testing.broker.acls import Operation, ResourceType
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers


@answers(OffsetDeleteRequest)
def answer(request: ReceivedRequest) -> OffsetDeleteResponse:
    """Delete what may be deleted, and answer for each partition."""
    body: OffsetDeleteRequest = request.body
    planned = request.planned_error()
    if planned is not None:
        return OffsetDeleteResponse(error_code=planned.code)
    try:
        request.check_group(Operation.DELETE, body.group_id)
        request.coordinator.check_named(body.group_id, request.now)
        group = request.coordinator.group(body.group_id)
        subscribed = group.subscribed_topics()
    except BrokerError as error:
        return OffsetDeleteResponse(error_code=error.code)
    return OffsetDeleteResponse(topics=[_topic(request, one, subscribed) for one in body.topics])


def _topic(
    request: ReceivedRequest, asked: OffsetDeleteRequestTopic, subscribed: frozenset[str]
) -> OffsetDeleteResponseTopic:
    code = 0
    if not request.allows(Operation.READ, ResourceType.TOPIC, asked.name):
        code = TopicAuthorizationFailed.code
    elif asked.name not in request.state.topics:
        code = UnknownTopicOrPartition.code
    elif asked.name in subscribed:
        code = GroupSubscribedToTopic.code
    offsets = request.coordinator.offsets(request.body.group_id)
    for one in asked.partitions:
        if not code:
            offsets.forget_partition(asked.name, one.partition_index)
    return OffsetDeleteResponseTopic(
        name=asked.name,
        partitions=[
            OffsetDeleteResponsePartition(partition_index=one.partition_index, error_code=code)
            for one in asked.partitions
        ],
    )
