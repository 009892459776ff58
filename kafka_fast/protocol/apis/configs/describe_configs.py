"""DescribeConfigs (32): the settings of topics and brokers.

What the versions changed:
    1: synonyms and sources. 3: types and documentation. 4: flexible.
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


class DescribeConfigsResource(Struct):
    """An entry of `DescribeConfigsRequest.resources`."""

    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    configuration_keys: list[str] | None = array(string, "0+", nullable="0+")


class DescribeConfigsRequest(Request, api_key=32, versions="1-4", flexible="4+"):
    """Resources, and which of their settings."""

    resources: list[DescribeConfigsResource] = array(DescribeConfigsResource, "0+")
    include_synonyms: bool = bool_("1+", default=False)
    include_documentation: bool = bool_("3+", default=False)


class DescribeConfigsSynonym(Struct):
    """An entry of `DescribeConfigsResourceResult.synonyms`."""

    name: str = string("1+")
    value: str | None = string("1+", nullable="0+")
    source: int = int8("1+")


class DescribeConfigsResourceResult(Struct):
    """An entry of `DescribeConfigsResult.configs`."""

    name: str = string("0+")
    value: str | None = string("0+", nullable="0+")
    read_only: bool = bool_("0+")
    config_source: int = int8("1+", default=-1, ignorable=True)
    is_sensitive: bool = bool_("0+")
    synonyms: list[DescribeConfigsSynonym] = array(DescribeConfigsSynonym, "1+", ignorable=True)
    config_type: int = int8("3+", default=0, ignorable=True)
    documentation: str | None = string("3+", nullable="0+", ignorable=True)


class DescribeConfigsResult(Struct):
    """An entry of `DescribeConfigsResponse.results`."""

    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    resource_type: int = int8("0+")
    resource_name: str = string("0+")
    configs: list[DescribeConfigsResourceResult] = array(DescribeConfigsResourceResult, "0+")


class DescribeConfigsResponse(Response, api_key=32, versions="1-4", flexible="4+"):
    """The settings of each resource."""

    throttle_time_ms: int = int32("0+")
    results: list[DescribeConfigsResult] = array(DescribeConfigsResult, "0+")
