"""Consumers on three real brokers: near replicas, logs that are cut off, topics made anew."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from kafka_fast import Consumer, Producer, TopicPartition
from kafka_fast.errors import LogTruncationError
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.conftest import started
from tests.integration.consuming import (
    PROTOCOLS,
    MakeConsumer,
    consumers_on,
    makers,
    partitions_of,
    poll_until,
    read,
    write,
)
from tests.integration.producing import TIMEOUT, create_again, new_topic
from tests.waiting import eventually

pytestmark = [pytest.mark.broker, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def consumer_on(real_kafka_cluster: RealKafka) -> Iterator[MakeConsumer]:
    """Consumers that begin with the first record and are closed in the end."""
    yield from makers(real_kafka_cluster)


# ---- near replicas (KIP-392) ----


def bytes_from(consumer: Consumer, node: int) -> int:
    counters = consumer.metrics()["nodes"].get(node)
    return 0 if counters is None else int(counters["bytes_in"])


def write_much(kafka: RealKafka, topic: str) -> None:
    """Append a thousand records of a thousand bytes."""
    with Producer(bootstrap_servers=kafka.bootstrap) as producer:
        producer.send_many(topic, [b"x" * 1_000] * 1_000).result(TIMEOUT)


@pytest.mark.needs_kafka("2.4", "reading from replicas (KIP-392)")
@pytest.mark.timeout(300)
def test_the_replica_of_our_rack_is_read_and_the_leader_when_it_is_gone(
    real_kafka_cluster: RealKafka, consumer_on: MakeConsumer
) -> None:
    kafka = real_kafka_cluster
    topic = new_topic(kafka)
    kafka.wait_isr(topic)
    (partition,) = partitions_of(topic, 1)
    leader = kafka.leader(topic, 0)
    near, other = (node.node_id for node in kafka.nodes if node.node_id != leader)
    consumer = consumer_on(client_rack=f"rack{near}")
    consumer.assign([partition])
    consumer.poll(0.1)
    write_much(kafka, topic)
    read(consumer, 1_000)
    assert bytes_from(consumer, near) > 1_000_000
    assert bytes_from(consumer, leader) < 50_000, "all but the answer that names the replica"
    assert bytes_from(consumer, other) < 50_000
    kafka.node(near).kill()
    write_much(kafka, topic)
    read(consumer, 1_000)
    assert bytes_from(consumer, kafka.leader(topic, 0)) > 1_000_000


def test_without_a_rack_the_leader_is_read(
    real_kafka_cluster: RealKafka, consumer_on: MakeConsumer
) -> None:
    kafka = real_kafka_cluster
    topic = new_topic(kafka)
    leader = kafka.leader(topic, 0)
    write_much(kafka, topic)
    consumer = consumer_on()
    consumer.assign(partitions_of(topic, 1))
    read(consumer, 1_000)
    assert bytes_from(consumer, leader) > 1_000_000


# ---- logs that are cut off (KIP-320) ----


def committed_offset(consumer: Consumer, partition: TopicPartition) -> int | None:
    at = consumer.committed([partition])[partition]
    return None if at is None else at.offset


@pytest.mark.slow
@pytest.mark.needs_kafka("2.4", "leader epochs in Metadata that can be compared (v9)")
@pytest.mark.timeout(300)
def test_a_log_that_lost_its_end_is_read_from_where_it_was_cut(
    request: pytest.FixtureRequest,
) -> None:
    """A replica that has missed the last records becomes the leader, because nobody else is there.

    Whoever has read those records stands beyond the new leader's log, or, as soon as it has grown,
    in the middle of records that it has never seen.
    """
    version = request.config.getoption("--kafka-version")
    with started(3, version) as kafka:
        topic = new_topic(
            kafka,
            replication=2,
            min_insync_replicas="1",
            unclean_leader_election_enable="true",
        )
        (partition,) = partitions_of(topic, 1)
        kafka.wait_isr(topic)
        leader = kafka.node(kafka.leader(topic, 0))
        (behind,) = (
            kafka.node(node_id)
            for node_id in kafka.partitions(topic)[0].replicas
            if node_id != leader.node_id
        )
        kept = write(kafka, topic, 100)
        group = uuid.uuid4().hex
        with consumers_on(kafka) as make:
            consumer, strict = make(), make(auto_offset_reset="none", group_id=group)
            consumer.assign([partition])
            strict.assign([partition])
            strict.seek(partition, 0)
            # Kafka 2.8 makes the topic of offsets, three replicas of it, only while all three run.
            assert strict.committed([partition]) == {partition: None}
            assert [record.value for record in read(consumer, 100)] == kept
            behind.kill()
            lost = write(kafka, topic, 50, first=100)
            assert [record.value for record in read(consumer, 50)] == lost
            assert [record.value for record in read(strict, 150)] == kept + lost
            strict.commit()
            leader.kill()
            behind.start()
            eventually(lambda: kafka.leader(topic, 0) == behind.node_id, "the unclean election")
            anew = write(kafka, topic, 80, first=1_000)
            assert [record.value for record in read(consumer, 80)] == anew, (
                "from the cut on, none skipped"
            )
            assert consumer.position(partition) == 180
            with pytest.raises(LogTruncationError) as caught:
                read(strict, 1)
            assert (caught.value.offset, caught.value.position) == (100, 150)
            returning = make(auto_offset_reset="none", group_id=group)
            # Until a second replica is in sync, the new coordinator tells what it knew before.
            eventually(lambda: committed_offset(returning, partition) == 150, "the commit")
            returning.assign([partition])
            with pytest.raises(LogTruncationError):
                read(returning, 1)


# ---- topics that are made anew ----


@pytest.mark.needs_kafka("3.1", "Fetch by topic id (KIP-516); by name some records come twice")
@pytest.mark.parametrize("reset", ["latest", "earliest"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_topic_made_anew_under_a_member(real_kafka: RealKafka, protocol: str, reset: str) -> None:
    """Nothing that was written to the new topic is skipped, whatever the reset policy says."""
    topic = new_topic(real_kafka)
    with consumers_on(real_kafka) as make:
        consumer = make(
            group_id=uuid.uuid4().hex,
            group_protocol=protocol,
            auto_offset_reset=reset,
            metadata_max_age_ms=1_000,
        )
        consumer.subscribe([topic])
        every = set(partitions_of(topic, 1))
        poll_until([consumer], lambda: consumer.assignment() == every, [])
        assert consumer.position(TopicPartition(topic, 0)) == 0
        written = write(real_kafka, topic, 100)
        assert [record.value for record in read(consumer, 100)] == written
        real_kafka.delete_topic(topic)
        create_again(real_kafka, topic)
        anew = write(real_kafka, topic, 120, first=500)
        assert [record.value for record in read(consumer, 120)] == anew
