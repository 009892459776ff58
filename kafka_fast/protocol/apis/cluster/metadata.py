"""Metadata (3): brokers, topics, partitions and their leaders.

What the versions changed:
    1: null means all topics, an empty list none. 4: topic creation can be refused. 5: offline
    replicas. 7: leader epochs. 8: authorized operations. 10 and 12: topic ids (KIP-516).
    13: an error of the whole answer, REBOOTSTRAP_REQUIRED (KIP-1102).
"""

from __future__ import annotations

from kafka_fast.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    int16,
    int32,
    string,
    uuid,
)


class MetadataRequestTopic(Struct):
    """An entry of `MetadataRequest.topics`."""

    topic_id: bytes = uuid("10+", ignorable=True)
    name: str | None = string("0+", nullable="10+")


class MetadataRequest(Request, api_key=3, versions="0-13", flexible="9+"):
    """The topics to describe; in version 0 an empty list means all of them."""

    topics: list[MetadataRequestTopic] | None = array(MetadataRequestTopic, "0+", nullable="1+")
    allow_auto_topic_creation: bool = bool_("4+", default=True)
    include_cluster_authorized_operations: bool = bool_("8-10")
    include_topic_authorized_operations: bool = bool_("8+")


class MetadataResponseBroker(Struct):
    """An entry of `MetadataResponse.brokers`."""

    node_id: int = int32("0+")
    host: str = string("0+")
    port: int = int32("0+")
    rack: str | None = string("1+", nullable="1+", default=None, ignorable=True)


class MetadataResponsePartition(Struct):
    """An entry of `MetadataResponseTopic.partitions`."""

    error_code: int = int16("0+")
    partition_index: int = int32("0+")
    leader_id: int = int32("0+")
    leader_epoch: int = int32("7+", default=-1, ignorable=True)
    replica_nodes: list[int] = array(int32, "0+")
    isr_nodes: list[int] = array(int32, "0+")
    offline_replicas: list[int] = array(int32, "5+", ignorable=True)


class MetadataResponseTopic(Struct):
    """An entry of `MetadataResponse.topics`."""

    error_code: int = int16("0+")
    name: str | None = string("0+", nullable="12+")
    topic_id: bytes = uuid("10+", ignorable=True)
    is_internal: bool = bool_("1+", ignorable=True)
    partitions: list[MetadataResponsePartition] = array(MetadataResponsePartition, "0+")
    topic_authorized_operations: int = int32("8+", default=-2147483648)


class MetadataResponse(Response, api_key=3, versions="0-13", flexible="9+"):
    """The cluster as this broker sees it."""

    throttle_time_ms: int = int32("3+", ignorable=True)
    brokers: list[MetadataResponseBroker] = array(MetadataResponseBroker, "0+")
    cluster_id: str | None = string("2+", nullable="2+", default=None, ignorable=True)
    controller_id: int = int32("1+", default=-1, ignorable=True)
    topics: list[MetadataResponseTopic] = array(MetadataResponseTopic, "0+")
    cluster_authorized_operations: int = int32("8-10", default=-2147483648)
    error_code: int = int16("13+", ignorable=True)
