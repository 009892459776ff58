"""CreateTopics (19).

What the versions changed:
    4: -1 asks for the broker's defaults (KIP-464). 5: configuration in the answer (KIP-525).
    6: quota on changes (KIP-599). 7: topic id in the answer.
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
    uuid,
)


class CreatableReplicaAssignment(Struct):
    """An entry of `CreatableTopic.assignments`."""

    partition_index: int = int32("0+")
    broker_ids: list[int] = array(int32, "0+")


class CreatableTopicConfig(Struct):
    """An entry of `CreatableTopic.configs`."""

    name: str = string("0+")
    value: str | None = string("0+", nullable="0+")


class CreatableTopic(Struct):
    """An entry of `CreateTopicsRequest.topics`."""

    name: str = string("0+")
    num_partitions: int = int32("0+")
    replication_factor: int = int16("0+")
    assignments: list[CreatableReplicaAssignment] = array(CreatableReplicaAssignment, "0+")
    configs: list[CreatableTopicConfig] = array(CreatableTopicConfig, "0+")


class CreateTopicsRequest(Request, api_key=19, versions="2-7", flexible="5+"):
    """Topics with partitions or assignments, and configuration."""

    topics: list[CreatableTopic] = array(CreatableTopic, "0+")
    timeout_ms: int = int32("0+", default=60000)
    validate_only: bool = bool_("1+")


class CreatableTopicConfigs(Struct):
    """An entry of `CreatableTopicResult.configs`."""

    name: str = string("5+")
    value: str | None = string("5+", nullable="5+")
    read_only: bool = bool_("5+")
    config_source: int = int8("5+", default=-1, ignorable=True)
    is_sensitive: bool = bool_("5+")


class CreatableTopicResult(Struct):
    """An entry of `CreateTopicsResponse.topics`."""

    name: str = string("0+")
    topic_id: bytes = uuid("7+", ignorable=True)
    error_code: int = int16("0+")
    error_message: str | None = string("1+", nullable="0+", ignorable=True)
    topic_config_error_code: int = int16("5+", ignorable=True, tag=0, tagged="5+")
    num_partitions: int = int32("5+", default=-1, ignorable=True)
    replication_factor: int = int16("5+", default=-1, ignorable=True)
    configs: list[CreatableTopicConfigs] | None = array(
        CreatableTopicConfigs, "5+", nullable="5+", ignorable=True
    )


class CreateTopicsResponse(Response, api_key=19, versions="2-7", flexible="5+"):
    """One error code per topic."""

    throttle_time_ms: int = int32("2+", ignorable=True)
    topics: list[CreatableTopicResult] = array(CreatableTopicResult, "0+")
