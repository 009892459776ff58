"""SyncGroup (14): hand out the assignment of a classic group.

What the versions changed:
    3: static members (KIP-345). 5: protocol type and name.
"""

from __future__ import annotations

from kafka_fast.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bytes_,
    int16,
    int32,
    string,
)


class SyncGroupRequestAssignment(Struct):
    """An entry of `SyncGroupRequest.assignments`."""

    member_id: str = string("0+")
    assignment: bytes = bytes_("0+")


class SyncGroupRequest(Request, api_key=14, versions="0-5", flexible="4+"):
    """The leader sends every assignment, the other members none."""

    group_id: str = string("0+")
    generation_id: int = int32("0+")
    member_id: str = string("0+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment, "0+")


class SyncGroupResponse(Response, api_key=14, versions="0-5", flexible="4+"):
    """This member's assignment."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0+")
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignment: bytes = bytes_("0+")
