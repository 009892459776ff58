"""ConsumerGroupDescribe: groups of KIP-848 as their coordinator has them."""

from __future__ import annotations

from collections.abc import Iterable

from kafka_fast.errors import BrokerError
from kafka_fast.protocol.apis.groups.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)
from kafka_fast.testing.broker.acls import Operation
from kafka_fast.testing.broker.groups.assignors import TopicPartition
from kafka_fast.testing.broker.groups.consumer import ConsumerGroup
from kafka_fast.testing.broker.groups.reconciliation import ConsumerMember
from kafka_fast.testing.broker.handlers.groups.describe_groups import CLIENT_HOST
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers

_CONSUMER_MEMBER = 1  # kind of a member that speaks KIP-848


@answers(ConsumerGroupDescribeRequest)
def answer(request: ReceivedRequest) -> ConsumerGroupDescribeResponse:
    """Return each group that was asked for."""
    body: ConsumerGroupDescribeRequest = request.body
    return ConsumerGroupDescribeResponse(
        groups=[_described(request, group_id) for group_id in body.group_ids]
    )


def _described(request: ReceivedRequest, group_id: str) -> DescribedGroup:
    try:
        planned = request.planned_error()
        if planned is not None:
            return DescribedGroup(group_id=group_id, error_code=planned.code)
        request.check_group(Operation.DESCRIBE, group_id)
        request.coordinator.check_named(group_id, request.now)
        described = _group(request, request.coordinator.consumer(group_id))
        for member in described.members:
            for assigned in (member.assignment, member.target_assignment):
                for topic in assigned.topic_partitions:
                    request.check_topic(Operation.DESCRIBE, topic.topic_name)
        return described
    except BrokerError as error:
        message = None if not group_id else error.args[0]
        return DescribedGroup(group_id=group_id, error_code=error.code, error_message=message)


def _group(request: ReceivedRequest, group: ConsumerGroup) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.assignment_epoch,
        assignor_name=group.assignor,
        members=[_member(request, group, one) for one in group.members.values()],
    )


def _member(request: ReceivedRequest, group: ConsumerGroup, member: ConsumerMember) -> Member:
    return Member(
        member_id=member.member_id,
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        member_epoch=member.epoch,
        client_id=member.client_id,
        client_host=CLIENT_HOST,
        subscribed_topic_names=sorted(member.topic_names),
        subscribed_topic_regex=member.topic_regex,
        assignment=_assignment(request, member.assigned),
        target_assignment=_assignment(request, group.target(member.member_id)),
        member_type=_CONSUMER_MEMBER,
    )


def _assignment(request: ReceivedRequest, partitions: Iterable[TopicPartition]) -> Assignment:
    """Return partitions by topic; those of topics that were deleted are left out."""
    topics: dict[bytes, list[int]] = {}
    for topic_id, index in sorted(partitions):
        topics.setdefault(topic_id, []).append(index)
    names = request.state.topic_names
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=names[topic_id], partitions=indexes)
            for topic_id, indexes in topics.items()
            if topic_id in names
        ]
    )
