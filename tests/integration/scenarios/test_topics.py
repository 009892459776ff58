"""Creating, deleting and describing topics."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_fast import errors
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest, MetadataRequestTopic
from kafka_fast.protocol.apis.configs.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResult,
)
from kafka_fast.protocol.apis.topics.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
)
from kafka_fast.protocol.apis.topics.delete_topics import (
    DeleteTopicState,
)
from tests.integration.scenarios.steps import (
    NO_ID,
    UNKNOWN_ID,
    create,
    delete,
    new_topic,
    unique_name,
)
from tests.integration.scenarios.wire import (
    WireClient,
)


def test_a_topic_is_created_described_and_deleted(client: WireClient) -> None:
    name = unique_name()
    created = create(client, CreatableTopic(name=name, num_partitions=3, replication_factor=1))[0]
    assert (created.error_code, created.num_partitions, created.replication_factor) == (0, 3, 1)
    assert {config.name: config.value for config in created.configs or ()}[
        "max.message.bytes"
    ] == "1048588"
    described = client.wait_for_topic(name)
    assert described.topic_id == created.topic_id != NO_ID
    assert sorted(p.partition_index for p in described.partitions) == [0, 1, 2]
    for partition in described.partitions:
        assert (partition.leader_epoch, partition.replica_nodes) == (0, [partition.leader_id])
        assert partition.isr_nodes == partition.replica_nodes
        assert partition.offline_replicas == []
    deleted = delete(client, DeleteTopicState(name=name, topic_id=NO_ID))[0]
    assert (deleted.error_code, deleted.name, deleted.topic_id) == (0, name, created.topic_id)
    client.wait_for_topic(name, gone=True)


@pytest.mark.parametrize("version", range(2, 8))
def test_every_version_creates(client: WireClient, version: int) -> None:
    name = unique_name()
    creatable = CreatableTopic(name=name, num_partitions=2, replication_factor=1)
    assert create(client, creatable, version=version)[0].error_code == 0
    assert len(client.wait_for_topic(name).partitions) == 2


def test_validate_only_makes_nothing(client: WireClient) -> None:
    creatable = CreatableTopic(name=unique_name(), num_partitions=1, replication_factor=1)
    assert create(client, creatable, validate_only=True)[0].error_code == 0
    metadata = client.metadata(creatable.name).topics[0]
    assert metadata.error_code == errors.UnknownTopicOrPartition.code


def assignment(*replicas: tuple[int, list[int]]) -> dict[str, Any]:
    return {
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": [
            CreatableReplicaAssignment(partition_index=index, broker_ids=node_ids)
            for index, node_ids in replicas
        ],
    }


def config(name: str, value: str | None) -> dict[str, Any]:
    return {"configs": [CreatableTopicConfig(name=name, value=value)]}


@pytest.mark.parametrize(
    ("wanted", "error"),
    [
        ({"num_partitions": 0}, errors.InvalidPartitions),
        ({"num_partitions": -2}, errors.InvalidPartitions),
        ({"replication_factor": 0}, errors.InvalidReplicationFactor),
        ({"replication_factor": 2}, errors.InvalidReplicationFactor),
        ({"name": ""}, errors.InvalidTopicException),
        ({"name": ".."}, errors.InvalidTopicException),
        ({"name": "a/b"}, errors.InvalidTopicException),
        ({"name": "ä"}, errors.InvalidTopicException),
        ({"name": "x" * 250}, errors.InvalidTopicException),
        (assignment((1, [1])), errors.InvalidReplicaAssignment),
        (assignment((0, [1, 1])), errors.InvalidReplicaAssignment),
        (assignment((0, [99])), errors.InvalidReplicaAssignment),
        (assignment((0, [])), errors.InvalidReplicaAssignment),
        (assignment((0, [1]), (0, [1])), errors.InvalidReplicaAssignment),
        ({**assignment((0, [1])), "num_partitions": 1}, errors.InvalidRequest),
        (config("no.such.setting", "1"), errors.InvalidConfig),
        (config("max.message.bytes", "many"), errors.InvalidConfig),
        (config("max.message.bytes", "-1"), errors.InvalidConfig),
        (config("max.message.bytes", None), errors.InvalidConfig),
        (config("min.insync.replicas", "0"), errors.InvalidConfig),
        (config("message.timestamp.type", "Never"), errors.InvalidConfig),
    ],
)
def test_bad_topics_are_refused(
    client: WireClient, wanted: dict[str, Any], error: type[errors.BrokerError]
) -> None:
    fields: dict[str, Any] = {
        "name": unique_name(),
        "num_partitions": 1,
        "replication_factor": 1,
        **wanted,
    }
    refused = create(client, CreatableTopic(**fields))[0]
    assert refused.error_code == error.code
    assert refused.error_message


def test_a_name_is_taken_once(client: WireClient, topic: str) -> None:
    again = CreatableTopic(name=topic, num_partitions=1, replication_factor=1)
    assert create(client, again)[0].error_code == errors.TopicAlreadyExists.code
    dotted = CreatableTopic(name=topic + ".a", num_partitions=1, replication_factor=1)
    assert create(client, dotted)[0].error_code == 0
    underscored = CreatableTopic(name=topic + "_a", num_partitions=1, replication_factor=1)
    assert create(client, underscored)[0].error_code == errors.InvalidTopicException.code


def test_a_name_that_is_there_twice_is_refused_and_the_others_are_made(client: WireClient) -> None:
    twice = CreatableTopic(name=unique_name(), num_partitions=1, replication_factor=1)
    once = CreatableTopic(name=unique_name(), num_partitions=1, replication_factor=1)
    results = {one.name: one.error_code for one in create(client, twice, twice, once)}
    assert results == {twice.name: errors.InvalidRequest.code, once.name: 0}


def test_deleting_names_and_ids(client: WireClient, topic: str) -> None:
    topic_id = client.metadata(topic).topics[0].topic_id
    expected = [
        (DeleteTopicState(name=unique_name(), topic_id=NO_ID), errors.UnknownTopicOrPartition.code),
        (DeleteTopicState(name=None, topic_id=UNKNOWN_ID), errors.UnknownTopicId.code),
        (DeleteTopicState(name=topic, topic_id=topic_id), errors.InvalidRequest.code),
        (DeleteTopicState(name=None, topic_id=topic_id), 0),
    ]
    for state, code in expected:
        assert delete(client, state)[0].error_code == code
    client.wait_for_topic(topic, gone=True)


def test_deleting_twice_in_one_request(client: WireClient, topic: str) -> None:
    state = DeleteTopicState(name=topic, topic_id=NO_ID)
    assert [one.error_code for one in delete(client, state, state)] == [errors.InvalidRequest.code]


@pytest.mark.parametrize("version", range(14))
def test_every_version_of_metadata_describes(client: WireClient, topic: str, version: int) -> None:
    response = client.metadata(topic, version=version, auto_create=version < 4)
    assert [broker.node_id for broker in response.brokers] == [1]
    assert (response.cluster_id is not None) == (version >= 2)
    metadata = response.topics[0]
    assert (metadata.error_code, metadata.name, len(metadata.partitions)) == (0, topic, 3)
    assert (metadata.topic_id != NO_ID) == (version >= 10)


def test_all_topics_or_none(client: WireClient, topic: str) -> None:
    everything = client.ask(MetadataRequest(topics=[]), 0).topics
    assert topic in [one.name for one in everything]
    assert client.ask(MetadataRequest(topics=[]), 1).topics == []
    everything = client.ask(MetadataRequest(topics=None), 12).topics
    assert topic in [one.name for one in everything]


def test_metadata_by_id(client: WireClient, topic: str) -> None:
    topic_id = client.metadata(topic).topics[0].topic_id

    def ask(version: int, **fields: Any) -> tuple[object, int]:
        request = MetadataRequest(topics=[MetadataRequestTopic(**fields)])
        metadata = client.ask(request, version).topics[0]
        return metadata.name, metadata.error_code

    assert ask(12, name=None, topic_id=topic_id) == (topic, 0)
    assert ask(12, name=topic, topic_id=topic_id) == (topic, 0)
    assert ask(12, name=None, topic_id=UNKNOWN_ID) == (None, errors.UnknownTopicId.code)
    assert ask(10, name=None, topic_id=topic_id) == ("", errors.InvalidRequest.code)


def test_metadata_of_what_is_not_there(client: WireClient) -> None:
    name = unique_name()
    unknown = client.metadata(name, auto_create=True).topics[0]
    assert (unknown.name, unknown.error_code) == (name, errors.UnknownTopicOrPartition.code)
    for illegal in ("", "a/b"):
        refused = client.metadata(illegal).topics[0]
        assert refused.error_code == errors.InvalidTopicException.code


def test_metadata_of_one_topic_twice(client: WireClient, topic: str) -> None:
    assert [one.name for one in client.metadata(topic, topic).topics] == [topic]


TOPIC = 2  # a resource type
SET_FOR_THE_TOPIC, DEFAULT = 1, 5


def configs(
    client: WireClient, name: str, keys: list[str] | None, version: int = 4, kind: int = TOPIC
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )
    result: DescribeConfigsResult
    (result,) = client.ask(DescribeConfigsRequest(resources=[resource]), version).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


@pytest.mark.parametrize("version", range(1, 5))
def test_the_settings_of_a_topic(client: WireClient, version: int) -> None:
    name = new_topic(client, max_message_bytes="5000")
    result = configs(client, name, ["max.message.bytes", "cleanup.policy", "nonsense"], version)
    assert result.error_code == 0
    settings = {
        entry.name: (entry.value, entry.config_source, entry.is_sensitive)
        for entry in result.configs
    }
    assert settings == {
        "max.message.bytes": ("5000", SET_FOR_THE_TOPIC, False),
        "cleanup.policy": ("delete", DEFAULT, False),
    }
    every = {entry.name: entry.value for entry in configs(client, name, None, version).configs}
    assert every["max.message.bytes"] == "5000"
    assert every["message.timestamp.type"] == "CreateTime"


@pytest.mark.parametrize(
    ("name", "kind", "error"),
    [
        (unique_name(), TOPIC, errors.UnknownTopicOrPartition),
        ("a/b", TOPIC, errors.InvalidTopicException),
        ("x", 77, errors.InvalidRequest),
    ],
    ids=["no such topic", "no topic's name", "no such kind"],
)
def test_the_settings_of_what_is_not_there(
    client: WireClient, name: str, kind: int, error: type[errors.BrokerError]
) -> None:
    result = configs(client, name, None, kind=kind)
    assert (result.error_code, result.configs) == (error.code, [])
