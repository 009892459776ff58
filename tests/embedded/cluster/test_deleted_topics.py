"""A group that reads two topics, one of which is deleted and stays away: the other goes on.

Regression: the commit for the topic that was gone was repeated for default.api.timeout.ms, a
minute. Every later commit waited behind it, and with it `close`, `unsubscribe` and rebalances.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from kafka_fast import Consumer, TopicPartition
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.embedded.consuming import MakeConsumer, fill, poll_until, read
from tests.embedded.producing import new_topic
from tests.waiting import TIMEOUT, eventually

DRIVERS = True  # every test runs with threads and with asyncio

SOON = TIMEOUT / 3


def close(consumer: Consumer, staying: TopicPartition) -> None:
    consumer.close()


def unsubscribe(consumer: Consumer, staying: TopicPartition) -> None:
    consumer.unsubscribe()


def commit(consumer: Consumer, staying: TopicPartition) -> None:
    consumer.commit()


def commit_of_the_other(consumer: Consumer, staying: TopicPartition) -> None:
    consumer.commit({staying: 10})


def resubscribe(consumer: Consumer, staying: TopicPartition) -> None:
    consumer.subscribe([staying.topic])
    poll_until([consumer], lambda: consumer.assignment() == {staying})


@pytest.fixture(params=["classic", "consumer"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def going(kafka: EmbeddedKafka, topic: str) -> str:
    """The topic that will be deleted."""
    return new_topic(kafka, f"going-{topic}")


def reader_of_both(
    kafka: EmbeddedKafka,
    make: MakeConsumer,
    topic: str,
    going: str,
    protocol: str,
    **commits: Any,
) -> Consumer:
    """Return a member that has read 10 records of each topic; then one topic is deleted."""
    consumer = make(
        group_id=topic, group_protocol=protocol, allow_auto_create_topics=False, **commits
    )
    consumer.subscribe([topic, going])
    fill(kafka, topic, 10)
    fill(kafka, going, 10)
    read(consumer, 20)
    kafka.delete_topic(going)
    return consumer


@pytest.mark.parametrize("then", [close, unsubscribe, commit, commit_of_the_other, resubscribe])
def test_what_comes_after_a_commit_for_it(
    kafka: EmbeddedKafka,
    topic: str,
    going: str,
    consumer_on: MakeConsumer,
    protocol: str,
    then: Callable[[Consumer, TopicPartition], None],
) -> None:
    staying = TopicPartition(topic, 0)
    consumer = reader_of_both(kafka, consumer_on, topic, going, protocol, enable_auto_commit=False)
    consumer.commit({staying: 10, TopicPartition(going, 0): 10}, sync=False)
    start = time.monotonic()
    then(consumer, staying)
    eventually(lambda: kafka.committed(topic).get(staying) == 10)
    assert time.monotonic() - start < SOON


def test_automatic_commits_go_on(
    kafka: EmbeddedKafka, topic: str, going: str, consumer_on: MakeConsumer, protocol: str
) -> None:
    staying = TopicPartition(topic, 0)
    consumer = reader_of_both(
        kafka, consumer_on, topic, going, protocol, auto_commit_interval_ms=100
    )
    fill(kafka, topic, 10)
    start = time.monotonic()
    read(consumer, 10)
    poll_until([consumer], lambda: kafka.committed(topic).get(staying) == 20)
    assert time.monotonic() - start < SOON
