"""DescribeCluster (60): the brokers or the controllers of a cluster (KIP-700).

What the versions changed:
    1: controllers describe themselves, too (KIP-919). 2: brokers that are fenced (KIP-1073).
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


class DescribeClusterRequest(Request, api_key=60, versions="0-2", flexible="0+"):
    """What to describe: brokers (1) or controllers (2)."""

    include_cluster_authorized_operations: bool = bool_("0+")
    endpoint_type: int = int8("1+", default=1)
    include_fenced_brokers: bool = bool_("2+")


class DescribeClusterBroker(Struct):
    """An entry of `DescribeClusterResponse.brokers`."""

    broker_id: int = int32("0+")
    host: str = string("0+")
    port: int = int32("0+")
    rack: str | None = string("0+", nullable="0+", default=None)
    is_fenced: bool = bool_("2+")


class DescribeClusterResponse(Response, api_key=60, versions="0-2", flexible="0+"):
    """The nodes, and which of them is the controller."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    endpoint_type: int = int8("1+", default=1)
    cluster_id: str = string("0+")
    controller_id: int = int32("0+", default=-1)
    brokers: list[DescribeClusterBroker] = array(DescribeClusterBroker, "0+")
    cluster_authorized_operations: int = int32("0+", default=-2147483648)
