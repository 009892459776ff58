"""Topics that are not there yet, not there any more, or not known for lack of a broker."""

from __future__ import annotations

import contextlib
import os
import threading

import pytest

from kafka_fast import Producer
from kafka_fast.control.metadata.metadata import ClusterChanges
from kafka_fast.errors import KafkaTimeoutError, UnknownTopicOrPartition, UsageError
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import METADATA
from kafka_fast.types import PartitionInfo
from tests.embedded.consuming import MakeConsumer
from tests.embedded.producing import MIB, TIMEOUT, MakeProducer, attempt, send_and_check, values
from tests.waiting import eventually

DRIVERS = True  # every test runs with threads and with asyncio


def test_an_unknown_topic_ends_with_max_block() -> None:
    with (
        EmbeddedKafka(auto_create=False) as kafka,
        Producer(bootstrap_servers=kafka.bootstrap, max_block_ms=300) as producer,
        pytest.raises(KafkaTimeoutError, match="UNKNOWN_TOPIC_OR_PARTITION"),
    ):
        producer.send("absent", b"x")


def test_an_unknown_topic_may_be_made_meanwhile() -> None:
    with (
        EmbeddedKafka(auto_create=False) as kafka,
        Producer(bootstrap_servers=kafka.bootstrap) as producer,
    ):
        timer = threading.Timer(0.3, kafka.create_topic, ["later", 1])
        timer.start()
        assert producer.send("later", b"x").result(TIMEOUT).offset == 0
        timer.join()


def test_a_topic_is_made_by_asking_for_it(kafka: EmbeddedKafka, producer_on: MakeProducer) -> None:
    name = f"made-{os.urandom(4).hex()}"
    assert producer_on().send(name, b"x").result(TIMEOUT).offset == 0
    assert values(kafka, name) == [b"x"]


def test_no_broker_ends_with_max_block() -> None:
    with (
        Producer(bootstrap_servers="127.0.0.1:1", max_block_ms=300) as producer,
        pytest.raises(KafkaTimeoutError, match="no metadata of topic 't'"),
    ):
        producer.send("t", b"x")


def test_a_full_buffer_ends_with_max_block(
    kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
) -> None:
    producer = producer_on(buffer_memory=MIB, max_block_ms=200)
    producer.send(topic, b"x").result(TIMEOUT)
    kafka.pause(1)
    futures = []
    while attempt(lambda: futures.append(producer.send(topic, b"x" * 1_000))):
        assert len(futures) < 2_000
    assert len(futures) > 500
    kafka.resume(1)
    for future in futures:
        future.result(TIMEOUT)
    assert kafka.end_offset(topic, 0) == len(futures) + 1


def test_a_topic_is_deleted_and_made_again(
    kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
) -> None:
    producer = producer_on(metadata_max_age_ms=500)
    producer.send(topic, b"old").result(TIMEOUT)
    kafka.faults.error(METADATA, UnknownTopicOrPartition, topic=topic, count=3)
    kafka.delete_topic(topic)
    kafka.create_topic(topic, 1)
    send_and_check(kafka, producer, topic)


def test_partitions_of_a_topic_that_nobody_used_for_long(
    kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
) -> None:
    """Regression: what metadata.max.idle.ms had dropped had no partitions, forever."""
    producer = producer_on()
    before = producer.partitions_for(topic)
    core = producer._core
    core.call(lambda now: core.control.cluster._drop_idle(now + 1e9, ClusterChanges()))
    eventually(lambda: not core.control.cluster.partitions(topic))
    assert producer.partitions_for(topic) == before != []


@pytest.mark.threads_only("a callback on the callback thread; in a loop it awaits")
def test_a_callback_may_ask_for_partitions_that_are_known(
    kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
) -> None:
    answers: list[list[PartitionInfo]] = []
    asked: list[str] = []

    def ask(error: object, metadata: object) -> None:
        for name in (topic, "not-known-yet"):
            with contextlib.suppress(UsageError):
                answers.append(producer.partitions_for(name))
            asked.append(name)

    producer = producer_on()
    producer.send_nowait(topic, b"x", on_delivery=ask)
    producer.flush()
    assert asked == [topic, "not-known-yet"]
    assert [len(answer) for answer in answers] == [1], "only waiting is forbidden"


def ids_of(infos: list[PartitionInfo]) -> dict[str, str | None]:
    return {info.topic: info.topic_id for info in infos}


def test_partitions_of_many_topics_are_asked_for_in_one_request(
    kafka: EmbeddedKafka, topic: str, consumer_on: MakeConsumer
) -> None:
    names = [f"{topic}-{number}" for number in range(5)]
    for name in names:
        kafka.create_topic(name, 2)
    consumer = consumer_on()
    consumer.partitions_for(topic)
    answers: list[list[str]] = []
    kafka.faults.script_metadata(
        lambda answer, node: answers.append(sorted(told.name for told in answer.topics))
    )
    for refresh in (False, True):
        infos = consumer.partitions_for(names, refresh=refresh)
        assert [(info.topic, info.partition) for info in infos] == [
            (name, partition) for name in names for partition in (0, 1)
        ]
        assert answers == [names]
        assert len(set(ids_of(infos).values()) - {None}) == 5
        answers.clear()
    assert len(consumer.partitions_for(names)) == 10
    assert not answers, "they are known"


def test_what_is_known_is_old_and_a_refresh_is_not(
    kafka: EmbeddedKafka, topic: str, consumer_on: MakeConsumer, producer_on: MakeProducer
) -> None:
    consumer = consumer_on(allow_auto_create_topics=False)
    first = consumer.partitions_for(topic)
    assert producer_on().partitions_for(topic) == first, "with the same id"
    kafka.delete_topic(topic)
    kafka.create_topic(topic, 4)
    assert consumer.partitions_for(topic) == first
    anew = consumer.partitions_for(topic, refresh=True)
    assert [info.partition for info in anew] == [0, 1, 2, 3]
    assert None not in ids_of(anew).values()
    assert ids_of(anew) != ids_of(first)
    assert consumer.partitions_for(topic) == anew
    kafka.delete_topic(topic)
    with pytest.raises(UnknownTopicOrPartition, match="there is no topic"):
        consumer.partitions_for(["other-" + topic, topic], refresh=True)
