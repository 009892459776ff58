"""IncrementalAlterConfigs (44): change single settings of resources (KIP-339).

Version 1 is flexible.
"""

from __future__ import annotations

from kafka_fast.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    int8,
    int16,
    int32,
    string,
)


class AlterableConfig(Struct):
    """An entry of `AlterConfigsResource.configs`."""

    name: str = string("0+")
    config_operation: int = int8("0+")
    value: str | None = string("0+", nullable="0+", secret=True)


class AlterConfigsResource(Struct):
    """An entry of `IncrementalAlterConfigsRequest.resources`."""

    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    configs: list[AlterableConfig] = array(AlterableConfig, "0+")


class IncrementalAlterConfigsRequest(Request, api_key=44, versions="0-1", flexible="1+"):
    """Settings to set (0), delete (1), append to (2) or subtract from (3)."""

    resources: list[AlterConfigsResource] = array(AlterConfigsResource, "0+")
    validate_only: bool = bool_("0+")


class AlterConfigsResourceResponse(Struct):
    """An entry of `IncrementalAlterConfigsResponse.responses`."""

    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    resource_type: int = int8("0+")
    resource_name: str = string("0+")


class IncrementalAlterConfigsResponse(Response, api_key=44, versions="0-1", flexible="1+"):
    """One error code per resource."""

    throttle_time_ms: int = int32("0+")
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse, "0+")
