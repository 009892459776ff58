"""ConsumerGroupHeartbeat: all that a member of a KIP-848 group says to its coordinator."""

from __future__ import annotations

from kafka_fast.errors import BrokerError, InvalidRequest, UnsupportedAssignor
from kafka_fast.protocol.apis.groups.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseTopicPartitions,
)
from kafka_fast.testing.broker.acls import Operation
from kafka_fast.testing.broker.groups.assignors import ASSIGNORS
from kafka_fast.testing.broker.groups.beat import (
    JOINING,
    LEFT,
    LEFT_FOR_A_WHILE,
    Beat,
)
from kafka_fast.testing.broker.groups.reconciliation import Epochs
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers

_OWN_IDS_FROM_VERSION = 1  # members make their ids themselves (KIP-1082)
_AS_BEFORE = -1  # of the rebalance timeout


@answers(ConsumerGroupHeartbeatRequest)
def answer(request: ReceivedRequest) -> ConsumerGroupHeartbeatResponse:
    """Take the heartbeat and tell the member its epoch and, if that changed, its assignment."""
    body: ConsumerGroupHeartbeatRequest = request.body
    planned = request.planned_error()
    if planned is not None:
        return ConsumerGroupHeartbeatResponse(error_code=planned.code)
    try:
        request.check_group(Operation.READ, body.group_id)
        for name in body.subscribed_topic_names or ():
            request.check_topic(Operation.DESCRIBE, name)
        _check(body, request.version)
        request.coordinator.check_coordinates(body.group_id, request.now)
        group = request.coordinator.consumer(body.group_id, create=body.member_epoch == JOINING)
        told = group.beat(_beat(body, request.header.client_id or ""), request.now)
        request.coordinator.keep_group(group)
    except BrokerError as error:
        return ConsumerGroupHeartbeatResponse(error_code=error.code, error_message=error.args[0])
    interval = request.coordinator.settings.consumer_heartbeat_interval_ms
    return ConsumerGroupHeartbeatResponse(
        member_id=told.member_id,
        member_epoch=told.epoch,
        heartbeat_interval_ms=0 if body.member_epoch < 0 else interval,
        assignment=None if told.assigned is None else _assignment(told.assigned),
    )


def _check(body: ConsumerGroupHeartbeatRequest, version: int) -> None:
    """Refuse what contradicts itself.

    Raises:
        InvalidRequest, UnsupportedAssignor
    """
    epoch = body.member_epoch
    if version >= _OWN_IDS_FROM_VERSION or epoch > 0 or epoch == LEFT:
        _check_not_blank("MemberId", body.member_id)
    _check_not_blank("GroupId", body.group_id)
    _check_not_blank("InstanceId", body.instance_id)
    _check_not_blank("RackId", body.rack_id)
    if epoch == JOINING:
        if body.rebalance_timeout_ms == _AS_BEFORE:
            raise InvalidRequest("RebalanceTimeoutMs must be provided in first request.")
        if body.topic_partitions is None or body.topic_partitions:
            raise InvalidRequest("TopicPartitions must be empty when (re-)joining.")
        if body.subscribed_topic_names is None and body.subscribed_topic_regex is None:
            raise InvalidRequest("Either names or a regex must be subscribed when (re-)joining.")
    elif epoch == LEFT_FOR_A_WHILE and body.instance_id is None:
        raise InvalidRequest("InstanceId can't be null.")
    elif epoch < LEFT_FOR_A_WHILE:
        raise InvalidRequest("MemberEpoch is invalid.")
    if body.server_assignor is not None and body.server_assignor not in ASSIGNORS:
        raise UnsupportedAssignor(
            f"ServerAssignor {body.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(ASSIGNORS)}."
        )


def _check_not_blank(name: str, value: str | None) -> None:
    if value is not None and not value.strip():
        raise InvalidRequest(f"{name} can't be empty.")


def _beat(body: ConsumerGroupHeartbeatRequest, client_id: str) -> Beat:
    names, owned, timeout = (
        body.subscribed_topic_names,
        body.topic_partitions,
        body.rebalance_timeout_ms,
    )
    return Beat(
        member_id=body.member_id,
        epoch=body.member_epoch,
        instance_id=body.instance_id,
        rack_id=body.rack_id,
        client_id=client_id,
        rebalance_timeout_ms=None if timeout == _AS_BEFORE else timeout,
        topic_names=None if names is None else frozenset(names),
        topic_regex=body.subscribed_topic_regex,
        assignor=body.server_assignor,
        owned=None
        if owned is None
        else [(topic.topic_id, index) for topic in owned for index in topic.partitions],
    )


def _assignment(assigned: Epochs) -> Assignment:
    topics: dict[bytes, list[int]] = {}
    for topic_id, index in sorted(assigned):
        topics.setdefault(topic_id, []).append(index)
    return Assignment(
        topic_partitions=[
            ConsumerGroupHeartbeatResponseTopicPartitions(topic_id=topic_id, partitions=indexes)
            for topic_id, indexes in topics.items()
        ]
    )
