"""Topics by the admin client, on real Kafka."""

from __future__ import annotations

import uuid

import pytest

from kafka_fast import Admin, Producer, TopicPartition
from kafka_fast.admin import AclOperation, NewPartitions, NewTopic
from kafka_fast.errors import (
    InvalidConfig,
    InvalidPartitions,
    OffsetOutOfRange,
    TopicAlreadyExists,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.integration.admin.admin_clients import admin
from tests.waiting import eventually

__all__ = ["admin"]

pytestmark = pytest.mark.broker


@pytest.fixture
def topic() -> str:
    return f"admin-{uuid.uuid4().hex}"


@pytest.mark.needs_kafka("3.1", "topics are described by id")
def test_a_topic_is_created_described_and_deleted(admin: Admin, topic: str) -> None:
    created = admin.create_topics([NewTopic(topic, 3, 1, configs={"retention.ms": "1000"})])
    told = created[topic]
    assert (told.partition_count, told.replication_factor) == (3, 1)
    assert told.configs is not None
    assert told.configs["retention.ms"] == "1000"
    described = admin.describe_topics([topic], include_authorized_operations=True)[topic]
    assert (described.name, described.topic_id) == (topic, told.topic_id)
    assert [one.partition for one in described.partitions] == [0, 1, 2]
    assert {(one.leader, one.replicas, one.isr) for one in described.partitions} == {
        (1, (1,), (1,))
    }
    assert described.authorized_operations is not None
    assert AclOperation.WRITE in described.authorized_operations
    assert told.topic_id is not None
    by_id = admin.describe_topics([told.topic_id], by_id=True)[told.topic_id]
    assert by_id.name == topic
    assert admin.list_topics()[topic].topic_id == told.topic_id
    assert admin.delete_topics([topic]).errors == {}
    eventually(lambda: topic not in admin.list_topics())


@pytest.mark.needs_kafka("2.4", "the cluster chooses the numbers")
def test_what_cannot_be_created_does_not_keep_the_others_away(admin: Admin, topic: str) -> None:
    other = f"{topic}-other"
    admin.create_topics([NewTopic(topic, 1, 1)]).raise_first()
    result = admin.create_topics(
        [
            NewTopic(topic, 1, 1),
            NewTopic(other),
            NewTopic("no/name"),
            NewTopic("odd", configs={"a": "b"}),
        ]
    )
    assert list(result.succeeded) == [other]
    kinds = {key: type(error) for key, error in result.errors.items()}
    assert kinds[topic] is TopicAlreadyExists
    assert kinds["odd"] is InvalidConfig
    assert list(result) == [topic, other, "no/name", "odd"]


@pytest.mark.needs_kafka("2.4", "the numbers of a new topic are told")
def test_nothing_is_created_that_is_only_validated(admin: Admin, topic: str) -> None:
    result = admin.create_topics([NewTopic(topic, 2, 1)], validate_only=True)
    assert result[topic].partition_count == 2
    assert topic not in admin.list_topics()
    assert isinstance(admin.describe_topics([topic]).errors[topic], UnknownTopicOrPartition)


def test_partitions_are_added(admin: Admin, topic: str) -> None:
    admin.create_topics([NewTopic(topic, assignments={0: [1]})]).raise_first()
    admin.create_partitions({topic: NewPartitions(3)}).raise_first()
    assert len(admin.describe_topics([topic])[topic].partitions) == 3
    refused = admin.create_partitions({topic: NewPartitions(2), "nowhere": NewPartitions(2)})
    assert isinstance(refused.errors[topic], InvalidPartitions)
    assert isinstance(refused.errors["nowhere"], UnknownTopicOrPartition)


def test_records_are_deleted(admin: Admin, topic: str, real_kafka: RealKafka) -> None:
    admin.create_topics([NewTopic(topic, 2, 1)]).raise_first()
    with Producer(bootstrap_servers=real_kafka.bootstrap) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number, partition=0)
    here, there = TopicPartition(topic, 0), TopicPartition(topic, 1)
    assert admin.delete_records({here: 4})[here] == 4
    result = admin.delete_records({here: -1, there: 3, TopicPartition(topic, 7): 0})
    assert result[here] == 10
    assert isinstance(result.errors[there], OffsetOutOfRange)
    assert "its topic has 2" in str(result.errors[TopicPartition(topic, 7)])


@pytest.mark.needs_kafka("3.0", "ids of topics, and an error about them")
def test_topics_are_deleted_by_id(admin: Admin, topic: str) -> None:
    topic_id = admin.create_topics([NewTopic(topic, 1, 1)])[topic].topic_id
    assert topic_id is not None
    assert admin.delete_topics([topic_id], by_id=True)[topic_id] is None
    error = admin.delete_topics([topic_id], by_id=True).errors[topic_id]
    assert isinstance(error, UnknownTopicId)
