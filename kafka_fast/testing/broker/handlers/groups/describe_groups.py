"""DescribeGroups: classic groups as their coordinator has them."""

from __future__ import annotations

from kafka_fast.errors import BrokerError, GroupIdNotFound
from kafka_fast.protocol.apis.groups.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafka_fast.testing.broker.acls import Operation
from kafka_fast.testing.broker.groups.classic import ClassicGroup
from kafka_fast.testing.broker.groups.generations import State
from kafka_fast.testing.broker.groups.members import Member
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.registry import answers

CLIENT_HOST = "/127.0.0.1"  # of every member: the core does not know connections' addresses

_NOT_FOUND_FROM_VERSION = 6  # KIP-1043
_DEAD = "Dead"


@answers(DescribeGroupsRequest)
def answer(request: ReceivedRequest) -> DescribeGroupsResponse:
    """Return each group that was asked for."""
    body: DescribeGroupsRequest = request.body
    return DescribeGroupsResponse(
        groups=[_described(request, group_id) for group_id in body.groups]
    )


def _described(request: ReceivedRequest, group_id: str) -> DescribedGroup:
    try:
        planned = request.planned_error()
        if planned is not None:
            return DescribedGroup(group_id=group_id, error_code=planned.code)
        request.check_group(Operation.DESCRIBE, group_id)
        request.coordinator.check_coordinates(group_id, request.now)
        return _group(request.coordinator.classic(group_id))
    except GroupIdNotFound as error:
        dead = DescribedGroup(group_id=group_id, group_state=_DEAD)
        if request.version >= _NOT_FOUND_FROM_VERSION:
            dead.error_code, dead.error_message = error.code, error.args[0]
        return dead
    except BrokerError as error:
        return DescribedGroup(group_id=group_id, error_code=error.code)


def _group(group: ClassicGroup) -> DescribedGroup:
    is_stable = group.state == State.STABLE
    protocol = group.protocol or ""
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol if is_stable else "",
        members=[_member(one, protocol, is_stable) for one in group.members],
    )


def _member(member: Member, protocol: str, is_stable: bool) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=CLIENT_HOST,
        member_metadata=member.metadata(protocol) if is_stable else b"",
        member_assignment=member.assignment if is_stable else b"",
    )
