"""Which settings of topics are taken, with which values, and what a compacted topic refuses."""

from __future__ import annotations

import time

import pytest

from kafka_fast import errors
from kafka_fast.protocol.apis.configs.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kafka_fast.protocol.apis.topics.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
)
from kafka_fast.protocol.apis.topics.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka_fast.record import RecordBatchBuilder
from tests.integration.scenarios.steps import create, new_topic, unique_name
from tests.integration.scenarios.wire import WireClient, batch

TOPIC = 2  # a resource type
LARGEST = 2**63 - 1


def validated(client: WireClient, **settings: str) -> CreatableTopicResult:
    """Have a topic checked, but not made."""
    configs = [CreatableTopicConfig(name=name, value=value) for name, value in settings.items()]
    topic = CreatableTopic(
        name=unique_name(), num_partitions=1, replication_factor=1, configs=configs
    )
    result: CreatableTopicResult = create(client, topic, validate_only=True)[0]
    return result


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("cleanup.policy", ["compact", "compact,delete", " compact , delete ", "delete", ""]),
        ("compression.gzip.level", ["-1", "1", "9"]),
        ("compression.lz4.level", ["1", "17"]),
        ("compression.type", ["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]),
        ("compression.zstd.level", ["-131072", "0", "22"]),
        ("delete.retention.ms", ["0"]),
        ("flush.messages", ["1"]),
        ("follower.replication.throttled.replicas", ["", "*", "0:1,1:2"]),
        ("local.retention.bytes", ["-2"]),
        ("max.message.bytes", ["0", str(2**31 - 1)]),
        ("message.timestamp.before.max.ms", ["0", str(LARGEST)]),
        ("min.cleanable.dirty.ratio", ["0", "0.25", "1"]),
        ("preallocate", ["true", "FALSE"]),
        ("remote.log.copy.disable", ["true"]),
        ("remote.storage.enable", ["false"]),
        ("retention.bytes", ["-1", "-2", "1000"]),
        ("retention.ms", ["-1", " 5 ", "+5", str(LARGEST)]),
        ("segment.bytes", ["1048576"]),
        ("segment.ms", ["1"]),
        ("unclean.leader.election.enable", ["true"]),
    ],
)
def test_values_that_are_taken(client: WireClient, name: str, values: list[str]) -> None:
    for value in values:
        assert (value, validated(client, **{name: value}).error_code) == (value, 0)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("cleanup.policy", ["x", "compact,x", "Compact"]),
        ("compression.gzip.level", ["-2", "0", "10"]),
        ("compression.lz4.level", ["0", "18"]),
        ("compression.type", ["none", "GZIP", ""]),
        ("compression.zstd.level", ["-131073", "23"]),
        ("delete.retention.ms", ["-1"]),
        ("file.delete.delay.ms", ["-1"]),
        ("flush.messages", ["0"]),
        ("flush.ms", ["-1"]),
        ("index.interval.bytes", ["-1"]),
        ("leader.replication.throttled.replicas", ["x", "0:x"]),
        ("local.retention.bytes", ["-3"]),
        ("local.retention.ms", ["-3"]),
        ("max.compaction.lag.ms", ["0"]),
        ("max.message.bytes", [str(2**31), "1.5", "0x10", "1_0"]),
        ("message.timestamp.before.max.ms", ["-1"]),
        ("min.cleanable.dirty.ratio", ["-0.1", "1.1", "half"]),
        ("min.compaction.lag.ms", ["-1"]),
        ("preallocate", ["yes", "1", ""]),
        ("remote.copy.lag.ms", ["-2"]),
        ("remote.storage.enable", ["true"]),
        ("retention.ms", ["-2", str(LARGEST + 1), ""]),
        ("segment.bytes", ["1048575"]),
        ("segment.index.bytes", ["3"]),
        ("segment.jitter.ms", ["-1"]),
        ("segment.ms", ["0"]),
        ("message.format.version", ["3.0"]),
        ("message.timestamp.difference.max.ms", ["1"]),
    ],
)
def test_values_that_are_refused(client: WireClient, name: str, values: list[str]) -> None:
    for value in values:
        refused = validated(client, **{name: value})
        assert (value, refused.error_code) == (value, errors.InvalidConfig.code)


def test_settings_that_contradict_each_other(client: WireClient) -> None:
    lags = {"min.compaction.lag.ms": "6", "max.compaction.lag.ms": "5"}
    assert validated(client, **lags).error_code == errors.InvalidConfig.code


def test_all_settings_have_kafkas_types_and_defaults(client: WireClient) -> None:
    topic = new_topic(client)
    resource = DescribeConfigsResource(
        resource_type=TOPIC, resource_name=topic, configuration_keys=None
    )
    (result,) = client.ask(DescribeConfigsRequest(resources=[resource]), 4).results
    settings = {entry.name: (entry.value, entry.config_type) for entry in result.configs}
    assert len(settings) == 37
    assert settings.pop("retention.ms")[1] == 5
    assert settings["segment.bytes"] == ("1073741824", 3)
    assert settings["cleanup.policy"] == ("delete", 7)
    assert settings["compression.lz4.level"] == ("9", 3)
    assert settings["max.decompressed.message.bytes"] == ("2147483639", 3)
    assert settings["min.cleanable.dirty.ratio"] == ("0.5", 6)
    assert settings["preallocate"] == ("false", 1)
    assert settings["flush.ms"] == (str(LARGEST), 5)


def keyless(*indexes: int, count: int, timestamp: int | None = None) -> bytes:
    """Return a batch whose records have keys, but for some."""
    builder = RecordBatchBuilder()
    now = int(time.time() * 1000) if timestamp is None else timestamp
    for number in range(count):
        builder.append(None if number in indexes else b"key", b"value", now)
    return builder.build()


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_compacted_topic_takes_no_record_without_a_key(client: WireClient, policy: str) -> None:
    topic = new_topic(client, cleanup_policy=policy)
    refused = client.produce(topic, keyless(1, 3, count=4))
    assert refused.error_code == errors.InvalidRecord.code
    assert [error.batch_index for error in refused.record_errors] == [1, 3]
    assert client.produce(topic, batch()).error_code == 0


def test_a_record_may_lack_its_key_and_have_a_wrong_time(client: WireClient) -> None:
    topic = new_topic(client, cleanup_policy="compact", message_timestamp_before_max_ms="1000")
    refused = client.produce(topic, keyless(1, count=3, timestamp=5))
    assert refused.error_code == errors.InvalidTimestamp.code
    assert [error.batch_index for error in refused.record_errors] == [0, 1, 2]


@pytest.mark.parametrize(
    ("policy", "error_code"),
    [("compact", errors.PolicyViolation.code), ("compact,delete", 0), ("delete", 0)],
)
def test_records_of_a_compacted_topic_cannot_be_deleted(
    client: WireClient, policy: str, error_code: int
) -> None:
    topic = new_topic(client, cleanup_policy=policy)
    assert client.produce(topic, batch(3)).error_code == 0
    partition = DeleteRecordsPartition(partition_index=0, offset=2)
    asked = DeleteRecordsTopic(name=topic, partitions=[partition])
    answer = client.ask(DeleteRecordsRequest(topics=[asked], timeout_ms=5000), 2)
    assert answer.topics[0].partitions[0].error_code == error_code
