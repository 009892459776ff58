"""Brokers that announce a pause (KIP-219): no timer of a client runs against it."""

from __future__ import annotations

import pytest

from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import FETCH, HEARTBEAT, METADATA, PRODUCE
from tests.embedded.consuming import MakeConsumer, fill, partitions_of, poll_until, read
from tests.embedded.producing import MakeProducer
from tests.waiting import TIMEOUT, eventually

DRIVERS = True  # every test runs with threads and with asyncio

REQUEST_MS = 250
PAUSE_MS = 4 * REQUEST_MS


def closed_for_silence(client: object) -> int:
    closed: int = client.metrics()["links_closed"].get("timeout", 0)  # type: ignore[attr-defined]
    return closed


@pytest.fixture
def one_broker_topic(kafka: EmbeddedKafka, topic: str) -> str:
    """All requests go to one broker, over one connection while there is no Fetch."""
    for node in (2, 3):
        kafka.kill(node)
    eventually(lambda: kafka.leader(topic, 0) == 1)
    return topic


def test_produce_waits_for_the_end_of_a_pause_that_an_answer_to_metadata_announced(
    kafka: EmbeddedKafka, one_broker_topic: str, producer_on: MakeProducer
) -> None:
    """Regression: it went to a broker that read nothing, and timed out there."""
    producer = producer_on(request_timeout_ms=REQUEST_MS, metadata_max_age_ms=500)
    producer.send(one_broker_topic, b"first").result(TIMEOUT)
    kafka.faults.throttle(PAUSE_MS, api=METADATA, count=1)
    eventually(lambda: producer.metrics()["throttle_ms"] >= PAUSE_MS)
    producer.send(one_broker_topic, b"second").result(TIMEOUT)
    assert closed_for_silence(producer) == 0


def test_metadata_wait_for_the_end_of_a_pause_that_an_answer_to_produce_announced(
    kafka: EmbeddedKafka, one_broker_topic: str, producer_on: MakeProducer
) -> None:
    producer = producer_on(request_timeout_ms=REQUEST_MS, metadata_max_age_ms=100)
    producer.send(one_broker_topic, b"first").result(TIMEOUT)
    kafka.faults.throttle(PAUSE_MS, api=PRODUCE, count=1)
    producer.send(one_broker_topic, b"second").result(TIMEOUT)
    producer.send(one_broker_topic, b"third").result(TIMEOUT)
    assert producer.metrics()["throttle_ms"] >= PAUSE_MS
    assert closed_for_silence(producer) == 0


def test_fetches_wait_for_the_end_of_a_pause(
    kafka: EmbeddedKafka, one_broker_topic: str, consumer_on: MakeConsumer
) -> None:
    consumer = consumer_on(request_timeout_ms=REQUEST_MS, fetch_max_wait_ms=50)
    consumer.assign(partitions_of(one_broker_topic, 1))
    fill(kafka, one_broker_topic, 10)
    read(consumer, 10)
    kafka.faults.throttle(PAUSE_MS, api=FETCH, count=1)
    eventually(lambda: [consumer.poll(0.01), consumer.metrics()["throttle_ms"]][1])
    fill(kafka, one_broker_topic, 10)
    read(consumer, 10)
    assert closed_for_silence(consumer) == 0


def test_heartbeats_wait_for_the_end_of_a_pause(
    kafka: EmbeddedKafka, one_broker_topic: str, consumer_on: MakeConsumer
) -> None:
    consumer = consumer_on(
        group_id=one_broker_topic, request_timeout_ms=REQUEST_MS, heartbeat_interval_ms=50
    )
    consumer.subscribe(one_broker_topic)
    poll_until([consumer], lambda: bool(consumer.assignment()))
    kafka.faults.throttle(PAUSE_MS, api=HEARTBEAT, count=1)
    eventually(lambda: [consumer.poll(0.01), consumer.metrics()["throttle_ms"]][1])
    beats = consumer.metrics()["heartbeats"]
    eventually(lambda: [consumer.poll(0.01), consumer.metrics()["heartbeats"] > beats + 3][1])
    assert closed_for_silence(consumer) == 0
    assert consumer.group_metadata().generation == 1
