"""AlterConfigs (33): replace all settings of topics, brokers and other resources.

A setting that the request does not name goes back to its default: IncrementalAlterConfigs changes
single settings. Version 2 is flexible.
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
    value: str | None = string("0+", nullable="0+", secret=True)


class AlterConfigsResource(Struct):
    """An entry of `AlterConfigsRequest.resources`."""

    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    configs: list[AlterableConfig] = array(AlterableConfig, "0+")


class AlterConfigsRequest(Request, api_key=33, versions="0-2", flexible="2+"):
    """Resources with all of their settings."""

    resources: list[AlterConfigsResource] = array(AlterConfigsResource, "0+")
    validate_only: bool = bool_("0+")


class AlterConfigsResourceResponse(Struct):
    """An entry of `AlterConfigsResponse.responses`."""

    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    resource_type: int = int8("0+")
    resource_name: str = string("0+")


class AlterConfigsResponse(Response, api_key=33, versions="0-2", flexible="2+"):
    """One error code per resource."""

    throttle_time_ms: int = int32("0+")
    responses: list[AlterConfigsResourceResponse] = array(AlterConfigsResourceResponse, "0+")
