"""LeaveGroup (13): give up membership of a classic group.

What the versions changed:
    3: several members at once (KIP-345). 5: reason (KIP-800).
"""

from __future__ import annotations

from kafka_fast.protocol.schema import Request, Response, Struct, array, int16, int32, string


class MemberIdentity(Struct):
    """An entry of `LeaveGroupRequest.members`."""

    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    reason: str | None = string("5+", nullable="5+", default=None, ignorable=True)


class LeaveGroupRequest(Request, api_key=13, versions="0-5", flexible="4+"):
    """One member (up to version 2) or several (`members`)."""

    group_id: str = string("0+")
    member_id: str = string("0-2")
    members: list[MemberIdentity] = array(MemberIdentity, "3+")


class MemberResponse(Struct):
    """An entry of `LeaveGroupResponse.members`."""

    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+")
    error_code: int = int16("3+")


class LeaveGroupResponse(Response, api_key=13, versions="0-5", flexible="4+"):
    """One error code per member since version 3."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
    members: list[MemberResponse] = array(MemberResponse, "3+")
