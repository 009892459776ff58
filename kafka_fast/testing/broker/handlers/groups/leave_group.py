"""LeaveGroup: members of a classic group go, one by one or several at once (KIP-345)."""

from __future__ import annotations

from kafka_fast.errors import BrokerError, GroupIdNotFound, UnknownMemberId
from kafka_fast.protocol.apis.groups.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)
from kafka_fast.testing.broker.acls import Operation
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers

_SEVERAL_FROM_VERSION = 3


@answers(LeaveGroupRequest)
def answer(request: ReceivedRequest) -> LeaveGroupResponse:
    """Remove the members, and answer for each whether the group had such a member."""
    body: LeaveGroupRequest = request.body
    several = request.version >= _SEVERAL_FROM_VERSION
    leaving: list[tuple[str, str | None]] = (
        [(one.member_id, one.group_instance_id) for one in body.members]
        if several
        else [(body.member_id, None)]
    )
    try:
        planned = request.planned_error()
        if planned is not None:
            return LeaveGroupResponse(error_code=planned.code)
        request.check_group(Operation.READ, body.group_id)
        request.coordinator.check_named(body.group_id, request.now)
        codes = request.coordinator.classic(body.group_id).remove_members(leaving, request.now)
    except GroupIdNotFound:
        codes = [UnknownMemberId.code] * len(leaving)
    except BrokerError as error:
        return LeaveGroupResponse(error_code=error.code)
    if not several:
        return LeaveGroupResponse(error_code=codes[0])
    return LeaveGroupResponse(
        members=[
            MemberResponse(member_id=member_id, group_instance_id=instance_id, error_code=code)
            for (member_id, instance_id), code in zip(leaving, codes, strict=True)
        ]
    )
