"""ListConfigResources (74): what there are settings of.

Version 0 lists the subscriptions to clients' metrics only, which have the type 16 (KIP-714).
Version 1 lists the types that the request names (KIP-1142).
"""

from __future__ import annotations

from kafka_fast.protocol.schema import Request, Response, Struct, array, int8, int16, int32, string


class ListConfigResourcesRequest(Request, api_key=74, versions="0-1", flexible="0+"):
    """Types of resources; no types means all of them."""

    resource_types: list[int] = array(int8, "1+")


class ConfigResource(Struct):
    """An entry of `ListConfigResourcesResponse.config_resources`."""

    resource_name: str = string("0+")
    resource_type: int = int8("1+", default=16, ignorable=True)


class ListConfigResourcesResponse(Response, api_key=74, versions="0-1", flexible="0+"):
    """The resources."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    config_resources: list[ConfigResource] = array(ConfigResource, "0+")
