"""StreamsGroupHeartbeat (88): membership in a streams group (KIP-1071).

Version 1 adds the broker's wish for a description of the topology (KIP-1331), a recovery lag of 64
bits, and the status 6.
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
    int64,
    string,
    struct,
    uint16,
)


class KeyValue(Struct):
    """A key and its value."""

    key: str = string("0+")
    value: str = string("0+")


class TopicInfo(Struct):
    """An internal topic, which the group's coordinator creates."""

    name: str = string("0+")
    partitions: int = int32("0+")
    replication_factor: int = int16("0+")
    topic_configs: list[KeyValue] = array(KeyValue, "0+")


class CopartitionGroup(Struct):
    """An entry of `Subtopology.copartition_groups`."""

    source_topics: list[int] = array(int16, "0+")
    source_topic_regex: list[int] = array(int16, "0+")
    repartition_source_topics: list[int] = array(int16, "0+")


class Subtopology(Struct):
    """An entry of `Topology.subtopologies`."""

    subtopology_id: str = string("0+")
    source_topics: list[str] = array(string, "0+")
    source_topic_regex: list[str] = array(string, "0+")
    state_changelog_topics: list[TopicInfo] = array(TopicInfo, "0+")
    repartition_sink_topics: list[str] = array(string, "0+")
    repartition_source_topics: list[TopicInfo] = array(TopicInfo, "0+")
    copartition_groups: list[CopartitionGroup] = array(CopartitionGroup, "0+")


class Topology(Struct):
    """What `StreamsGroupHeartbeatRequest.topology` holds."""

    epoch: int = int32("0+")
    subtopologies: list[Subtopology] = array(Subtopology, "0+")


class StreamsGroupHeartbeatRequestTaskIds(Struct):
    """Tasks of one subtopology."""

    subtopology_id: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class StreamsGroupHeartbeatRequestEndpoint(Struct):
    """What `StreamsGroupHeartbeatRequest.user_endpoint` holds."""

    host: str = string("0+")
    port: int = uint16("0+")


class TaskOffset(Struct):
    """A task, with the sum of its changelog offsets."""

    subtopology_id: str = string("0+")
    partition: int = int32("0+")
    offset: int = int64("0+")


class StreamsGroupHeartbeatRequest(Request, api_key=88, versions="0-1", flexible="0+"):
    """A sign of life with what changed; null means: as before."""

    group_id: str = string("0+")
    member_id: str = string("0+")
    member_epoch: int = int32("0+")
    endpoint_information_epoch: int = int32("0+")
    instance_id: str | None = string("0+", nullable="0+", default=None)
    rack_id: str | None = string("0+", nullable="0+", default=None)
    rebalance_timeout_ms: int = int32("0+", default=-1)
    topology: Topology | None = struct(Topology, "0+", nullable="0+", default=None)
    active_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = array(
        StreamsGroupHeartbeatRequestTaskIds, "0+", nullable="0+", default=None
    )
    standby_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = array(
        StreamsGroupHeartbeatRequestTaskIds, "0+", nullable="0+", default=None
    )
    warmup_tasks: list[StreamsGroupHeartbeatRequestTaskIds] | None = array(
        StreamsGroupHeartbeatRequestTaskIds, "0+", nullable="0+", default=None
    )
    process_id: str | None = string("0+", nullable="0+", default=None)
    user_endpoint: StreamsGroupHeartbeatRequestEndpoint | None = struct(
        StreamsGroupHeartbeatRequestEndpoint, "0+", nullable="0+", default=None
    )
    client_tags: list[KeyValue] | None = array(KeyValue, "0+", nullable="0+", default=None)
    task_offsets: list[TaskOffset] | None = array(TaskOffset, "0+", nullable="0+", default=None)
    task_end_offsets: list[TaskOffset] | None = array(TaskOffset, "0+", nullable="0+", default=None)
    shutdown_application: bool = bool_("0+")


class Status(Struct):
    """An entry of `StreamsGroupHeartbeatResponse.status`.

    The codes:
        0: the topology is older than the group's. 1: source topics are missing. 2: numbers of
        partitions do not fit. 3: internal topics are missing. 4: a member wants all members to
        stop. 5: the assignment comes later. 6: client tags are missing (KAFKA-20744).
    """

    status_code: int = int8("0+")
    status_detail: str = string("0+")


class StreamsGroupHeartbeatResponseTaskIds(Struct):
    """Tasks of one subtopology."""

    subtopology_id: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class StreamsGroupHeartbeatResponseEndpoint(Struct):
    """What `EndpointToPartitions.user_endpoint` holds."""

    host: str = string("0+")
    port: int = uint16("0+")


class TopicPartition(Struct):
    """Partitions of one topic."""

    topic: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class EndpointToPartitions(Struct):
    """An entry of `StreamsGroupHeartbeatResponse.partitions_by_user_endpoint`."""

    user_endpoint: StreamsGroupHeartbeatResponseEndpoint = struct(
        StreamsGroupHeartbeatResponseEndpoint, "0+"
    )
    active_partitions: list[TopicPartition] = array(TopicPartition, "0+")
    standby_partitions: list[TopicPartition] = array(TopicPartition, "0+")


class StreamsGroupHeartbeatResponse(Response, api_key=88, versions="0-1", flexible="0+"):
    """The member's epoch, and its tasks when they changed."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", default=None)
    member_id: str = string("0+")
    member_epoch: int = int32("0+")
    heartbeat_interval_ms: int = int32("0+")
    acceptable_recovery_lag_legacy: int = int32("0")
    task_offset_interval_ms: int = int32("0+")
    acceptable_recovery_lag: int = int64("1+", default=-1, ignorable=True)
    status: list[Status] | None = array(Status, "0+", nullable="0+")
    active_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = array(
        StreamsGroupHeartbeatResponseTaskIds, "0+", nullable="0+", default=None
    )
    standby_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = array(
        StreamsGroupHeartbeatResponseTaskIds, "0+", nullable="0+", default=None
    )
    warmup_tasks: list[StreamsGroupHeartbeatResponseTaskIds] | None = array(
        StreamsGroupHeartbeatResponseTaskIds, "0+", nullable="0+", default=None
    )
    topology_description_required: bool = bool_("1+")
    endpoint_information_epoch: int = int32("0+")
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = array(
        EndpointToPartitions, "0+", nullable="0+", default=None
    )
