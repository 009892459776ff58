"""News that waited for a poll: the user is told what is true then, not what was."""

from __future__ import annotations

import pytest

from kafka_fast import Consumer, TopicPartition
from kafka_fast.consumer import RebalanceListener
from kafka_fast.errors import TopicAuthorizationFailed
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import FETCH, METADATA
from tests.embedded.consuming import MakeConsumer, fill, partitions_of, poll_until, read
from tests.embedded.producing import new_topic
from tests.waiting import TIMEOUT, eventually

DRIVERS = True  # every test runs with threads and with asyncio

POLL_MS = 700


class Heard(RebalanceListener):
    """Writes down what it hears."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, set[TopicPartition]]] = []
        self.is_interrupted = False  # by a Ctrl-C, the next time that it hears of a loss

    def on_partitions_assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.calls.append(("assigned", set(partitions)))

    def on_partitions_revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.calls.append(("revoked", set(partitions)))

    def on_partitions_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.calls.append(("lost", set(partitions)))
        if self.is_interrupted:
            self.is_interrupted = False
            raise KeyboardInterrupt


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_a_revocation_that_nobody_polled_for_in_time_is_a_loss(
    kafka: EmbeddedKafka, consumer_on: MakeConsumer, is_interrupted: bool
) -> None:
    """Regression: the listener heard of a revocation, and committed what others own by then."""
    topic = new_topic(kafka, "two", 2)
    both = set(partitions_of(topic, 2))
    group = {"group_id": topic, "partition_assignment_strategy": "range"}
    heard = Heard()
    slow = consumer_on(**group, max_poll_interval_ms=POLL_MS, heartbeat_interval_ms=50)
    slow.subscribe(topic, listener=heard)
    poll_until([slow], lambda: slow.assignment() == both)
    other = consumer_on(**group)
    other.subscribe(topic)
    other.poll(0.01)
    waiting = slow._core.reading._group_news
    eventually(lambda: waiting and not waiting[0].lost)  # its heartbeat told of the rebalance
    poll_until([other], lambda: other.assignment() == both)  # until then, `slow` does not poll
    assert waiting[0].lost is False
    heard.calls.clear()
    heard.is_interrupted = is_interrupted
    if is_interrupted:
        with pytest.raises(KeyboardInterrupt):
            poll_until([slow], lambda: bool(heard.calls))
    poll_until([slow], lambda: bool(heard.calls))
    assert heard.calls[0] == ("lost", both)
    poll_until([slow, other], lambda: len(slow.assignment()) == len(other.assignment()) == 1)
    assert slow._core.control.group.member._ownership._unanswered == 0


def test_an_assignment_that_was_lost_before_anybody_polled_is_not_told(
    kafka: EmbeddedKafka, consumer_on: MakeConsumer
) -> None:
    """Regression: it was told as assigned, its positions were asked for, and then it was lost."""
    topic = new_topic(kafka, "one", 1)
    heard = Heard()
    slow = consumer_on(group_id=topic, max_poll_interval_ms=POLL_MS)
    slow.subscribe(topic, listener=heard)
    slow.poll(0.01)
    core = slow._core
    eventually(lambda: core.reading.has_group_news)
    member = core.control.group.member
    eventually(lambda: member.is_paused)
    poll_until([slow], lambda: bool(slow.assignment()))
    assert heard.calls == [("assigned", {TopicPartition(topic, 0)})]


def test_a_topic_that_can_be_used_again_is_not_complained_of(
    kafka: EmbeddedKafka, consumer_on: MakeConsumer
) -> None:
    """Regression: a poll raised that the topic was denied, long after it was allowed."""
    topic = new_topic(kafka, "allowed")
    kafka.faults.error(METADATA, TopicAuthorizationFailed, topic=topic)
    consumer = consumer_on(group_id=topic, metadata_max_age_ms=50)
    consumer.subscribe(topic)
    reading, cluster = consumer._core.reading, consumer._core.control.cluster
    eventually(lambda: reading.has_group_news)
    kafka.faults.clear()
    eventually(lambda: cluster.partition_count(topic) and not cluster.error(topic))
    written = fill(kafka, topic, 5)
    assert [record.value for record in read(consumer, 5)] == written


def test_a_topic_that_is_still_denied_is_complained_of(
    kafka: EmbeddedKafka, consumer_on: MakeConsumer
) -> None:
    topic = new_topic(kafka, "denied")
    kafka.faults.error(METADATA, TopicAuthorizationFailed, topic=topic)
    consumer = consumer_on(group_id=topic, metadata_max_age_ms=50)
    consumer.subscribe(topic)
    eventually(lambda: consumer._core.reading.has_group_news)
    with pytest.raises(TopicAuthorizationFailed):
        consumer.poll(TIMEOUT)


class TestAPartitionThatFailed:
    @pytest.fixture
    def topic(self, kafka: EmbeddedKafka) -> str:
        return new_topic(kafka, "failed")

    @pytest.fixture
    def consumer(self, consumer_on: MakeConsumer, kafka: EmbeddedKafka, topic: str) -> Consumer:
        one = consumer_on(fetch_max_wait_ms=20)
        one.assign(partitions_of(topic, 1))
        fill(kafka, topic, 5)
        read(one, 5)
        return one

    def test_one_that_works_again_is_not_complained_of(
        self, kafka: EmbeddedKafka, topic: str, consumer: Consumer
    ) -> None:
        """Regression: each failure was kept for a poll of its own, however long ago it was."""
        kafka.faults.error(FETCH, TopicAuthorizationFailed, topic=topic, count=5)
        core, partition = consumer._core, TopicPartition(topic, 0)
        eventually(lambda: core.reading._news)
        eventually(lambda: core.control.view.is_well(partition, core.now()))
        written = fill(kafka, topic, 5)
        assert [record.value for record in read(consumer, 5)] == written
        assert not consumer.poll(0.2)

    def test_one_that_still_fails_is_complained_of_once_for_each_poll(
        self, kafka: EmbeddedKafka, topic: str, consumer: Consumer
    ) -> None:
        kafka.faults.error(FETCH, TopicAuthorizationFailed, topic=topic)
        core = consumer._core
        eventually(lambda: core.reading._news)
        before = core.plane.stats()["requests"]
        eventually(lambda: core.plane.stats()["requests"] > before + 10)  # it fails and fails
        with pytest.raises(TopicAuthorizationFailed):
            consumer.poll(TIMEOUT)
        kafka.faults.clear()
        written = fill(kafka, topic, 5)
        records = read(consumer, 5, passing=(TopicAuthorizationFailed,))
        assert [record.value for record in records] == written
