"""A topic that is deleted and created again under running clients, with all leaders elsewhere.

A client that keeps anything of the old topic (a route, a position, the number of partitions) waits
for a broker that answers NOT_LEADER_OR_FOLLOWER forever. One broker alone cannot show this.
"""

from __future__ import annotations

import pytest

from kafka_fast import Consumer, ConsumerRecord
from kafka_fast.testing.broker.cluster import Cluster
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.embedded.consuming import (
    MakeConsumer,
    fill,
    partitions_of,
    poll_until,
    values_by_partition,
)
from tests.embedded.producing import MakeProducer, new_topic
from tests.waiting import eventually

DRIVERS = True  # every test runs with threads and with asyncio

BEFORE = 6
"""Partitions before the topic is deleted."""

SOON = 10.0
"""Seconds; it takes less than one. A client that kept a leader stood still for 25."""


def create_again(kafka: EmbeddedKafka, topic: str, count: int) -> None:
    """Delete the topic, and create it with other leaders before a client can ask for it."""
    leaders = {partition: [(partition + 1) % 3 + 1] for partition in range(count)}

    def again(cluster: Cluster) -> None:
        cluster.delete_topic(topic)
        cluster.create_topic(topic, assignment=leaders)

    kafka.on_cluster(again)


@pytest.mark.parametrize("count", [6, 3, 8], ids=["as many", "fewer", "more"])
def test_a_producer_goes_on_in_all_partitions(
    kafka: EmbeddedKafka, producer_on: MakeProducer, count: int
) -> None:
    topic = new_topic(kafka, "produced", BEFORE)
    producer = producer_on(linger_ms=0)
    for partition in range(BEFORE):
        producer.send(topic, b"old", partition=partition).result(SOON)
    create_again(kafka, topic, count)
    kept = range(min(count, BEFORE))
    futures = [producer.send(topic, b"new", partition=number) for number in kept]
    assert [future.result(SOON).partition for future in futures] == [*kept]
    eventually(lambda: len(producer.partitions_for(topic)) == count, "the new count", timeout=SOON)
    added = range(BEFORE, count)
    futures = [producer.send(topic, b"new", partition=number) for number in added]
    assert [future.result(SOON).partition for future in futures] == [*added]
    assert [record.value for record in kafka.records(topic)] == [b"new"] * count


def read_all(consumer: Consumer, count: int) -> dict[int, list[bytes]]:
    """Read 20 records of each partition."""
    records: list[ConsumerRecord] = []

    def complete() -> bool:
        records.extend(consumer.poll(0.02))
        return len(records) >= 20 * count

    eventually(complete, "the records of all partitions", timeout=SOON)
    return values_by_partition(records)


def fill_all(kafka: EmbeddedKafka, topic: str, count: int) -> dict[int, list[bytes]]:
    return {partition: fill(kafka, topic, 20, partition) for partition in range(count)}


@pytest.mark.parametrize("count", [6, 3], ids=["as many", "fewer"])
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_reads_the_new_topic_from_its_beginning(
    kafka: EmbeddedKafka, consumer_on: MakeConsumer, protocol: str, count: int
) -> None:
    topic = new_topic(kafka, "subscribed", BEFORE)
    consumer = consumer_on(group_id=topic, group_protocol=protocol)
    consumer.subscribe([topic])
    poll_until([consumer], lambda: len(consumer.assignment()) == BEFORE)
    old = fill_all(kafka, topic, BEFORE)
    assert read_all(consumer, BEFORE) == old
    create_again(kafka, topic, count)
    new = fill_all(kafka, topic, count)
    assert read_all(consumer, count) == new


def test_assigned_partitions_are_read_from_their_beginning(
    kafka: EmbeddedKafka, consumer_on: MakeConsumer
) -> None:
    topic = new_topic(kafka, "assigned", BEFORE)
    consumer = consumer_on()
    consumer.assign(partitions_of(topic, BEFORE))
    old = fill_all(kafka, topic, BEFORE)
    assert read_all(consumer, BEFORE) == old
    create_again(kafka, topic, BEFORE)
    new = fill_all(kafka, topic, BEFORE)
    assert read_all(consumer, BEFORE) == new
