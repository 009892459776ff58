"""Heartbeat: a sign of life of a member of a classic group."""

from __future__ import annotations

from kafka_fast.errors import BrokerError, GroupIdNotFound, UnknownMemberId
from kafka_fast.protocol.apis.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafka_fast.testing.broker.acls import Operation
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers


@answers(HeartbeatRequest)
def answer(request: ReceivedRequest) -> HeartbeatResponse:
    """Put the member's expiry off and say whether its generation still stands."""
    body: HeartbeatRequest = request.body
    planned = request.planned_error()
    if planned is not None:
        return HeartbeatResponse(error_code=planned.code)
    try:
        request.check_group(Operation.READ, body.group_id)
        request.coordinator.check_named(body.group_id, request.now)
        group = request.coordinator.classic(body.group_id)
        group.heartbeat(body.generation_id, body.member_id, body.group_instance_id, request.now)
    except GroupIdNotFound:
        return HeartbeatResponse(error_code=UnknownMemberId.code)
    except BrokerError as error:
        return HeartbeatResponse(error_code=error.code)
    return HeartbeatResponse()
