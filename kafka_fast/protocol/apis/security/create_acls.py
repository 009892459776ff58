"""CreateAcls (30): who may do what.

What the versions changed:
    1: the pattern's type, literal or prefixed (KIP-290). 2: flexible. 3: users as resources.
"""

from __future__ import annotations

from kafka_fast.protocol.schema import Request, Response, Struct, array, int8, int16, int32, string


class AclCreation(Struct):
    """An entry of `CreateAclsRequest.creations`."""

    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    resource_pattern_type: int = int8("1+", default=3)
    principal: str = string("0+")
    host: str = string("0+")
    operation: int = int8("0+")
    permission_type: int = int8("0+")


class CreateAclsRequest(Request, api_key=30, versions="1-3", flexible="2+"):
    """The rules to add."""

    creations: list[AclCreation] = array(AclCreation, "0+")


class AclCreationResult(Struct):
    """An entry of `CreateAclsResponse.results`."""

    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")


class CreateAclsResponse(Response, api_key=30, versions="1-3", flexible="2+"):
    """One result for each rule, in their order."""

    throttle_time_ms: int = int32("0+")
    results: list[AclCreationResult] = array(AclCreationResult, "0+")
