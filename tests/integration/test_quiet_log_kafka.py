"""What the log says while brokers do what they are meant to do: close idle connections, restart."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from kafka_fast import Consumer, Producer
from kafka_fast.testing.real_kafka import RealKafka
from tests.conftest import started
from tests.integration.producing import TIMEOUT, new_topic
from tests.waiting import eventually

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

IDLE_MS = 500


@pytest.fixture(scope="module")
def impatient_kafka(request: pytest.FixtureRequest) -> Iterator[RealKafka]:
    """A broker that closes a connection on which nothing was asked for half a second."""
    overrides = {"connections.max.idle.ms": IDLE_MS, "group.initial.rebalance.delay.ms": 0}
    with started(1, request.config.getoption("--kafka-version"), overrides) as kafka:
        yield kafka


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="kafka_fast")
    return caplog


def problems(log: pytest.LogCaptureFixture) -> list[str]:
    return [it.getMessage() for it in log.records if it.levelno >= logging.WARNING]


def test_a_broker_that_closes_idle_connections_is_no_news(
    impatient_kafka: RealKafka, log: pytest.LogCaptureFixture
) -> None:
    """Regression: ten WARNINGs in fifteen seconds."""
    kafka = impatient_kafka
    topic = new_topic(kafka)
    properties = {"bootstrap.servers": kafka.bootstrap}
    member = {"group.id": topic, "auto.offset.reset": "earliest", "fetch.max.wait.ms": 100}
    with Producer(properties) as producer, Consumer(properties, **member) as consumer:
        consumer.subscribe([topic])
        found = 0
        for number in range(1, 6):
            producer.send(topic, b"%d" % number).result(TIMEOUT)
            while found < number:
                found += len(consumer.poll(1.0))
            consumer.commit(timeout=TIMEOUT)
            ended = producer.metrics()["links_closed"].get("eof", 0)
            eventually(lambda ended=ended: producer.metrics()["links_closed"].get("eof", 0) > ended)
        eventually(lambda: consumer.metrics()["links_closed"].get("eof", 0) >= 3)
        generation = consumer.group_metadata().generation
    assert problems(log) == []
    assert not [it for it in log.records if "coordinator is lost" in it.getMessage()]
    assert generation == 1
