"""JoinGroup (11): enter the next generation of a classic group.

What the versions changed:
    1: rebalance timeout. 4: MEMBER_ID_REQUIRED hands out a member id. 5: static members
    (KIP-345). 7: protocol type in the answer. 8: reason (KIP-800). 9: the leader may be told to
    skip the assignment (KIP-814).
"""

from __future__ import annotations

from kafka_fast.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    bytes_,
    int16,
    int32,
    string,
)


class JoinGroupRequestProtocol(Struct):
    """An entry of `JoinGroupRequest.protocols`."""

    name: str = string("0+")
    metadata: bytes = bytes_("0+")


class JoinGroupRequest(Request, api_key=11, versions="0-9", flexible="6+"):
    """A member and the protocols that it speaks."""

    group_id: str = string("0+")
    session_timeout_ms: int = int32("0+")
    rebalance_timeout_ms: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string("0+")
    group_instance_id: str | None = string("5+", nullable="5+", default=None)
    protocol_type: str = string("0+")
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol, "0+")
    reason: str | None = string("8+", nullable="8+", default=None, ignorable=True)


class JoinGroupResponseMember(Struct):
    """An entry of `JoinGroupResponse.members`."""

    member_id: str = string("0+")
    group_instance_id: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    metadata: bytes = bytes_("0+")


class JoinGroupResponse(Response, api_key=11, versions="0-9", flexible="6+"):
    """The generation, and for its leader the members."""

    throttle_time_ms: int = int32("2+", ignorable=True)
    error_code: int = int16("0+")
    generation_id: int = int32("0+", default=-1)
    protocol_type: str | None = string("7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = string("0+", nullable="7+")
    leader: str = string("0+")
    skip_assignment: bool = bool_("9+")
    member_id: str = string("0+")
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember, "0+")
