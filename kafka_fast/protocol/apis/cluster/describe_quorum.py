"""DescribeQuorum (55): who replicates the cluster's metadata, and how far (KIP-595).

What the versions changed:
    1: when a replica last fetched, and last had caught up (KIP-836). 2: directory ids, addresses of
    the controllers, error messages (KIP-853).
"""

from __future__ import annotations

from kafka_fast.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)


class DescribeQuorumRequestPartitionData(Struct):
    """An entry of `DescribeQuorumRequestTopicData.partitions`."""

    partition_index: int = int32("0+")


class DescribeQuorumRequestTopicData(Struct):
    """An entry of `DescribeQuorumRequest.topics`."""

    topic_name: str = string("0+")
    partitions: list[DescribeQuorumRequestPartitionData] = array(
        DescribeQuorumRequestPartitionData, "0+"
    )


class DescribeQuorumRequest(Request, api_key=55, versions="0-2", flexible="0+"):
    """The partitions to describe: the one of `__cluster_metadata`."""

    topics: list[DescribeQuorumRequestTopicData] = array(DescribeQuorumRequestTopicData, "0+")


class ReplicaState(Struct):
    """A voter or an observer."""

    replica_id: int = int32("0+")
    replica_directory_id: bytes = uuid("2+")
    log_end_offset: int = int64("0+")
    last_fetch_timestamp: int = int64("1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = int64("1+", default=-1, ignorable=True)


class DescribeQuorumResponsePartitionData(Struct):
    """An entry of `DescribeQuorumResponseTopicData.partitions`."""

    partition_index: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("2+", nullable="2+", ignorable=True)
    leader_id: int = int32("0+")
    leader_epoch: int = int32("0+")
    high_watermark: int = int64("0+")
    current_voters: list[ReplicaState] = array(ReplicaState, "0+")
    observers: list[ReplicaState] = array(ReplicaState, "0+")


class DescribeQuorumResponseTopicData(Struct):
    """An entry of `DescribeQuorumResponse.topics`."""

    topic_name: str = string("0+")
    partitions: list[DescribeQuorumResponsePartitionData] = array(
        DescribeQuorumResponsePartitionData, "0+"
    )


class Listener(Struct):
    """An entry of `Node.listeners`."""

    name: str = string("2+")
    host: str = string("2+")
    port: int = uint16("2+")


class Node(Struct):
    """An entry of `DescribeQuorumResponse.nodes`."""

    node_id: int = int32("2+")
    listeners: list[Listener] = array(Listener, "2+")


class DescribeQuorumResponse(Response, api_key=55, versions="0-2", flexible="0+"):
    """Leader, voters and observers of each partition."""

    error_code: int = int16("0+")
    error_message: str | None = string("2+", nullable="2+", ignorable=True)
    topics: list[DescribeQuorumResponseTopicData] = array(DescribeQuorumResponseTopicData, "0+")
    nodes: list[Node] = array(Node, "2+")
