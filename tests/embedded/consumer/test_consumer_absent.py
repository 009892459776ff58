"""Partitions that are assigned and do not exist: waited for, and then an error of every poll."""

from __future__ import annotations

import logging
import os

import pytest

from kafka_fast import Consumer, TopicPartition
from kafka_fast.control.consumer import absent
from kafka_fast.errors import UnknownTopicOrPartition
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.embedded.consuming import MakeConsumer, fill, partitions_of, read
from tests.embedded.producing import new_topic
from tests.waiting import TIMEOUT, eventually

DRIVERS = True  # every test runs with threads and with asyncio


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(absent, "ABSENT_PATIENCE", 0.2)


@pytest.fixture
def consumer(consumer_on: MakeConsumer) -> Consumer:
    return consumer_on(allow_auto_create_topics=False)


def add_partitions(kafka: EmbeddedKafka, topic: str, count: int) -> None:
    kafka.on_cluster(lambda cluster: cluster.add_partitions(topic, count))


def test_it_is_told_with_what_there_is_and_the_others_are_read(
    kafka: EmbeddedKafka, consumer: Consumer, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: nothing was ever said of it."""
    topic = new_topic(kafka, "three", 3)
    written = fill(kafka, topic, 10, 1)
    there, not_there = TopicPartition(topic, 1), TopicPartition(topic, 7)
    consumer.assign([there, not_there])
    assert [record.value for record in read(consumer, 10)] == written
    said = f"there is no partition {not_there}: topic '{topic}' has 3 partitions"
    for _ in range(2):
        with pytest.raises(UnknownTopicOrPartition, match=said):
            consumer.poll(TIMEOUT)
    with pytest.raises(UnknownTopicOrPartition, match=said):
        consumer.position(not_there)
    warnings = [
        record.getMessage() for record in caplog.records if record.levelno == logging.WARNING
    ]
    assert [text.partition("] ")[2] for text in warnings] == [f"{said}; waiting for it"]
    written += fill(kafka, topic, 5, 1)
    records = read(consumer, 5, passing=(UnknownTopicOrPartition,))
    assert [record.value for record in records] == written[10:]


@pytest.mark.parametrize("position", [None, 2])
def test_one_that_is_added_is_read(
    kafka: EmbeddedKafka, consumer: Consumer, topic: str, position: int | None
) -> None:
    second = TopicPartition(topic, 1)
    consumer.assign([second])
    if position is not None:
        consumer.seek(second, position)
    with pytest.raises(UnknownTopicOrPartition, match=r"has 1 partition$"):
        consumer.poll(TIMEOUT)
    add_partitions(kafka, topic, 2)
    written = fill(kafka, topic, 10, 1)[position or 0 :]
    records = read(consumer, len(written), passing=(UnknownTopicOrPartition,))
    assert [record.value for record in records] == written
    assert not consumer.poll(0.05), "nothing is the matter any more"


def test_a_topic_that_is_not_there_and_one_that_comes(
    kafka: EmbeddedKafka, consumer: Consumer
) -> None:
    name = f"late-{os.urandom(4).hex()}"
    (partition,) = partitions_of(name, 1)
    consumer.assign([partition])
    with pytest.raises(UnknownTopicOrPartition, match=f"the brokers know no topic '{name}'"):
        consumer.poll(TIMEOUT)
    with pytest.raises(UnknownTopicOrPartition, match="know no topic"):
        consumer.position(partition)
    kafka.create_topic(name, 1)
    fill(kafka, name, 10)
    assert len(read(consumer, 10, passing=(UnknownTopicOrPartition,))) == 10


def test_one_that_the_brokers_make_is_not_missed(
    kafka: EmbeddedKafka, consumer_on: MakeConsumer
) -> None:
    (partition,) = partitions_of(f"made-{os.urandom(4).hex()}", 1)
    consumer = consumer_on()  # with allow.auto.create.topics
    consumer.assign([partition])
    assert consumer.position(partition, TIMEOUT) == 0
    fill(kafka, partition.topic, 10)
    assert len(read(consumer, 10)) == 10


def test_a_subscription_waits_without_end(
    kafka: EmbeddedKafka, consumer_on: MakeConsumer, caplog: pytest.LogCaptureFixture
) -> None:
    """A topic that is subscribed may come whenever it comes, as with Java."""
    name = f"subscribed-{os.urandom(4).hex()}"
    consumer = consumer_on(group_id=name, allow_auto_create_topics=False, metadata_max_age_ms=50)
    consumer.subscribe([name])
    eventually(lambda: [consumer.poll(0.05), "(yet)" in caplog.text][1], "its denial")
    for _ in range(10):
        assert not consumer.poll(0.1)
    kafka.create_topic(name, 1)
    fill(kafka, name, 10)
    assert len(read(consumer, 10)) == 10


def test_once_it_is_assigned_no_more_it_is_not_told(
    kafka: EmbeddedKafka, consumer: Consumer, topic: str
) -> None:
    fill(kafka, topic, 10)
    consumer.assign(partitions_of(topic, 2))
    with pytest.raises(UnknownTopicOrPartition):
        read(consumer, 11)
    consumer.assign(partitions_of(topic, 1))
    consumer.seek_to_beginning()
    assert len(read(consumer, 10)) == 10
