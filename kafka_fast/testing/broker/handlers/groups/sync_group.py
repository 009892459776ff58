"""SyncGroup: a member's assignment, when the leader has sent it."""

from __future__ import annotations

from kafka_fast.errors import (
    BrokerError,
    GroupIdNotFound,
    InconsistentGroupProtocol,
    UnknownMemberId,
)
from kafka_fast.protocol.apis.groups.sync_group import SyncGroupRequest, SyncGroupResponse
from kafka_fast.testing.broker.acls import Operation
from kafka_fast.testing.broker.groups.host import Reply
from kafka_fast.testing.broker.received_request import ReceivedRequest, Waiting
from kafka_fast.testing.broker.registry import answers

_PROTOCOL_FROM_VERSION = 5  # since then it must be named


@answers(SyncGroupRequest)
def answer(request: ReceivedRequest) -> SyncGroupResponse | Waiting:
    """Return the assignment; members wait for their leader."""
    planned = request.planned_error()
    if planned is not None:
        return SyncGroupResponse(error_code=planned.code)
    try:
        reply = _sync(request)
    except BrokerError as error:
        return SyncGroupResponse(error_code=error.code)
    return reply.response or Waiting(None, lambda now, last_chance: reply.response)


def _sync(request: ReceivedRequest) -> Reply[SyncGroupResponse]:
    body: SyncGroupRequest = request.body
    request.check_group(Operation.READ, body.group_id)
    protocol = (body.protocol_type, body.protocol_name)
    if request.version >= _PROTOCOL_FROM_VERSION and None in protocol:
        raise InconsistentGroupProtocol("the protocol's type and name have to be told")
    request.coordinator.check_named(body.group_id, request.now)
    try:
        group = request.coordinator.classic(body.group_id)
    except GroupIdNotFound as error:
        raise UnknownMemberId(f"no group {body.group_id!r}") from error
    return group.sync(
        body.generation_id,
        body.member_id,
        body.group_instance_id,
        protocol,
        {one.member_id: one.assignment for one in body.assignments},
        request.now,
    )
