"""DeleteGroups (42): delete groups without members, with their offsets.

What the versions changed:
    2: flexible. 3: error messages.
"""

from __future__ import annotations

from kafka_fast.protocol.schema import Request, Response, Struct, array, int16, int32, string


class DeleteGroupsRequest(Request, api_key=42, versions="0-3", flexible="2+"):
    """Ids of groups that the asked broker coordinates."""

    groups_names: list[str] = array(string, "0+")


class DeletableGroupResult(Struct):
    """An entry of `DeleteGroupsResponse.results`."""

    group_id: str = string("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("3+", nullable="3+", default=None, ignorable=True)


class DeleteGroupsResponse(Response, api_key=42, versions="0-3", flexible="2+"):
    """One error code per group."""

    throttle_time_ms: int = int32("0+")
    results: list[DeletableGroupResult] = array(DeletableGroupResult, "0+")
