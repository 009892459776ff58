"""DescribeGroups (15): state, members and assignments of classic groups.

What the versions changed:
    3: authorized operations. 4: instance ids of static members (KIP-345). 6: GROUP_ID_NOT_FOUND
    where there is no such classic group (KIP-1043), which before is one in the state Dead.
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


class DescribeGroupsRequest(Request, api_key=15, versions="0-6", flexible="5+"):
    """Ids of groups that the asked broker coordinates."""

    groups: list[str] = array(string, "0+")
    include_authorized_operations: bool = bool_("3+")


class DescribedGroupMember(Struct):
    """An entry of `DescribedGroup.members`; metadata and assignment only of a stable group."""

    member_id: str = string("0+")
    group_instance_id: str | None = string("4+", nullable="4+", default=None, ignorable=True)
    client_id: str = string("0+")
    client_host: str = string("0+")
    member_metadata: bytes = bytes_("0+")
    member_assignment: bytes = bytes_("0+")


class DescribedGroup(Struct):
    """An entry of `DescribeGroupsResponse.groups`."""

    error_code: int = int16("0+")
    error_message: str | None = string("6+", nullable="6+", default=None)
    group_id: str = string("0+")
    group_state: str = string("0+")
    protocol_type: str = string("0+")
    protocol_data: str = string("0+")
    members: list[DescribedGroupMember] = array(DescribedGroupMember, "0+")
    authorized_operations: int = int32("3+", default=-2147483648)


class DescribeGroupsResponse(Response, api_key=15, versions="0-6", flexible="5+"):
    """The groups as their coordinator has them."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    groups: list[DescribedGroup] = array(DescribedGroup, "0+")
