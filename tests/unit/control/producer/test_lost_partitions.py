"""Records of partitions that their topic does not have any more fail, but not for one answer."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from kafka_fast.config import producer_settings
from kafka_fast.control.producer.causes import FailedBatch
from kafka_fast.control.producer.lost_partitions import CONFIRMATIONS, LOST_PATIENCE
from kafka_fast.control.producer.producer_control import ProducerControl
from kafka_fast.control.producer.producer_messages import FailQueue, RouteQueue, RouteWanted
from kafka_fast.control.producer.verdicts import ProducerIdentity
from kafka_fast.errors import ErrorCode
from kafka_fast.types import TopicPartition
from tests.unit.control.metadata.metadata_answers import answer, make_topic_id, topic

GONE = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class World:
    """A producer with records for partitions 0 to 3 of a topic that has them all at first."""

    def __init__(self) -> None:
        settings = producer_settings({"bootstrap.servers": "one:9092"})
        self.control = ProducerControl(settings, "test", lambda: 0.5, lambda: 0)
        self.control.want_topic("t", 0.0)
        self.control.cluster.poll_request(0.0)
        self.tell(4, 1, 0.0)
        self.control.handle_event(RouteWanted((0, 1, 2, 3)), 0.0)
        self.take(FailQueue)

    def tell(self, count: int, number: int, now: float, error: int = 0) -> None:
        """Let the answer to a Metadata request be that the topic has so many partitions."""
        self.control.cluster.request_refresh("test")
        self.control.cluster.poll_request(now)
        metadata = answer(topic("t", [(1, 0)] * count, topic_id=make_topic_id(number), error=error))
        self.control.discovery.apply(self.control.cluster.handle_response(metadata, now, 13), now)

    def take(self, *kinds: type) -> list[object]:
        commands = iter(self.control.poll_command, None)
        return [command for command in commands if isinstance(command, kinds)]


@pytest.fixture
def world() -> World:
    return World()


def test_records_of_a_lost_partition_fail_after_answers_that_agree(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    world.tell(2, 2, 1.0)
    for number in range(5):
        world.tell(2, 2, 1.0 + LOST_PATIENCE * (number + 1) / 6)
    assert world.take(FailQueue) == [], "the brokers may hear of the topic one after the other"
    for number in range(CONFIRMATIONS):
        assert world.take(FailQueue) == []
        world.tell(2, 2, 11.0 + 10 * number)
    failed = world.take(FailQueue, RouteQueue)
    assert failed == [FailQueue(2, GONE), FailQueue(3, GONE), RouteQueue(2, 0), RouteQueue(3, 0)]
    assert [record.getMessage() for record in caplog.records] == [
        "topic 't' has 2 partitions now: records of t-2, t-3 fail"
    ]
    batch = FailedBatch(
        partition=TopicPartition("t", 3),
        code=GONE,
        records=1,
        size=100,
        began=0.0,
        failed_at=0.0,
        is_sent=False,
    )
    error = world.control.causes.of_answer(batch)
    assert str(error).endswith("topic 't' has 2 partitions now, and none for a record of t-3")


def lose(world: World) -> None:
    for number in range(CONFIRMATIONS + 1):
        world.tell(2, 2, 10.0 * (number + 1))
    assert len(world.take(FailQueue)) == 2


def test_what_still_comes_for_a_lost_partition_fails_at_once(world: World) -> None:
    """A call with many records may be under way, and has chosen their partitions."""
    lose(world)
    world.control.handle_event(RouteWanted((0, 3)), 50.0)
    assert world.take(FailQueue) == [FailQueue(3, GONE)]


def come_back(world: World, now: float) -> None:
    world.tell(4, 3, now)


def be_gone(world: World, now: float) -> None:
    world.tell(0, 2, now, error=GONE)


@pytest.mark.parametrize("happens", [come_back, be_gone])
def test_news_begin_the_count_again(world: World, happens: Callable[[World, float], None]) -> None:
    world.tell(2, 2, 10.0)
    world.tell(2, 2, 20.0)
    happens(world, 30.0)
    world.tell(2, 4, 40.0)
    world.tell(2, 4, 50.0)
    assert world.take(FailQueue) == []
    world.tell(2, 4, 60.0)
    assert len(world.take(FailQueue)) == 2


def test_a_partition_that_is_back_takes_records(world: World) -> None:
    lose(world)
    come_back(world, 40.0)
    world.control.handle_event(RouteWanted((3,)), 50.0)
    world.tell(4, 3, 60.0)
    assert world.take(FailQueue) == []
    assert TopicPartition("t", 3) in list(world.control.routes.without_link())


def test_metadata_are_asked_for_until_it_is_clear(world: World) -> None:
    world.tell(2, 2, 10.0)
    assert world.control.cluster.request_deadline() < 20.0
    lose(world)
    world.tell(2, 2, 40.0)
    assert world.control.cluster.request_deadline() > 100.0


def test_the_log_says_nothing_else_of_such_records(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: it said that they fail after delivery.timeout.ms."""
    caplog.set_level(logging.WARNING, "kafka_fast.producer")
    for partition in (0, 1):
        world.control.routes.release(world.control.routes.queue(partition))
    world.tell(2, 2, 1.0)
    world.control.identity.handle_done("", ProducerIdentity(7, 0), 1.0)
    for now in range(1, 9):
        world.control.tick(float(now))
    assert caplog.records == []
