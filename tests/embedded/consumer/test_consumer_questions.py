"""Questions of a consumer do not wait for a Fetch that its broker holds back.

A broker answers one request of a connection after the other. Here it would hold a Fetch for longer
than any test lasts: whatever is answered was answered before the Fetch.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from kafka_fast import Consumer, OffsetAndMetadata, TopicPartition
from kafka_fast.control.connections.connection_key import ConnectionKey, Role
from kafka_fast.control.connections.links import Link
from kafka_fast.errors import KafkaTimeoutError, NotLeaderOrFollower
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import (
    FETCH,
    LIST_OFFSETS,
    OFFSET_COMMIT,
    OFFSET_FOR_LEADER_EPOCH,
)
from tests.embedded.consuming import FIRST_TIMESTAMP_MS, MakeConsumer, fill, read
from tests.embedded.producing import new_topic
from tests.waiting import TIMEOUT, eventually

DRIVERS = True  # every test runs with threads and with asyncio

HOUR_MS = 3_600_000


class Held:
    """A consumer that has read all there is, so that the leader holds its Fetch."""

    def __init__(self, kafka: EmbeddedKafka, consumer: Consumer, partition: TopicPartition) -> None:
        self.kafka = kafka
        self.consumer = consumer
        self.partition = partition
        self.node = kafka.leader(*partition)
        self.answered = 0
        fill(kafka, partition.topic, 10)
        consumer.assign([partition])
        read(consumer, 10)
        eventually(lambda: consumer.metrics()["fetches"] >= 2, "the Fetch that finds nothing")
        kafka.faults.script(FETCH, self._count)
        self.fetched_over = self.link(Role.DATA)
        assert self.fetched_over is not None

    def _count(self, response: object, node: int) -> None:
        self.answered += 1

    def link(self, role: Role) -> Link | None:
        """Return the link to the leader for this purpose."""
        return self.consumer._core.control.links.link_to(ConnectionKey(role, self.node))

    def links_made(self) -> int:
        """How many links were made to the leader, for whatever purpose."""
        return int(self.consumer.metrics()["nodes"][self.node]["links"])


@pytest.fixture
def held(kafka: EmbeddedKafka, topic: str, consumer_on: MakeConsumer) -> Held:
    consumer = consumer_on(
        fetch_max_wait_ms=HOUR_MS, group_id=topic, default_api_timeout_ms=int(TIMEOUT * 1000)
    )
    return Held(kafka, consumer, TopicPartition(topic, 0))


def position_after(consumer: Consumer, move: Callable[[], None], partition: TopicPartition) -> int:
    move()
    return consumer.position(partition)


QUESTIONS: dict[str, tuple[Callable[[Consumer, TopicPartition], object], object]] = {
    "beginning_offsets": (lambda c, p: c.beginning_offsets([p])[p], 0),
    "end_offsets": (lambda c, p: c.end_offsets([p])[p], 10),
    "offsets_for_times": (
        lambda c, p: c.offsets_for_times({p: FIRST_TIMESTAMP_MS + 3000})[p].offset,  # type: ignore[union-attr]
        3,
    ),
    "lag": (lambda c, p: c.lag()[p], 0),
    "seek_to_beginning": (lambda c, p: position_after(c, c.seek_to_beginning, p), 0),
    "seek_to_end": (lambda c, p: position_after(c, c.seek_to_end, p), 10),
    "seek_to_timestamp": (
        lambda c, p: position_after(c, lambda: c.seek_to_timestamp(FIRST_TIMESTAMP_MS + 5000), p),
        5,
    ),
    "commit": (lambda c, p: c.commit(), None),
    "committed": (lambda c, p: c.committed([p])[p], None),
    "topics": (lambda c, p: p.topic in c.topics(), True),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_answer_comes_before_the_fetchs(held: Held, question: str) -> None:
    ask, expected = QUESTIONS[question]
    asked_over = set()
    for _ in range(2):  # over a new connection, and over one that is there
        assert ask(held.consumer, held.partition) == expected
        asked_over.add(held.link(Role.CONTROL))
    assert held.answered == 0, "the broker still holds the Fetch"
    assert held.link(Role.DATA) is held.fetched_over
    assert len(asked_over) == 1


def test_a_topic_that_nobody_has_named_yet(held: Held) -> None:
    other = new_topic(held.kafka, "other", 3)
    assert len(held.consumer.partitions_for(other)) == 3
    assert held.answered == 0


def test_a_position_whose_epoch_is_to_be_validated(held: Held) -> None:
    validated: list[int] = []
    held.kafka.faults.script(OFFSET_FOR_LEADER_EPOCH, lambda body, node: validated.append(node))
    held.consumer.seek(held.partition, OffsetAndMetadata(5, leader_epoch=0))
    eventually(lambda: validated, "the validation")
    assert validated == [held.node]
    assert held.answered == 0


def test_another_partition_on_the_same_node(held: Held, topic: str) -> None:
    other = new_topic(held.kafka, "beside")
    fill(held.kafka, other, 7)
    assert held.kafka.leader(other, 0) == held.node
    held.consumer.assign([held.partition, TopicPartition(other, 0)])
    assert held.consumer.position(TopicPartition(other, 0)) == 0
    assert held.answered == 0


def test_who_asks_nothing_has_no_second_connection(held: Held) -> None:
    fill(held.kafka, held.partition.topic, 5)
    assert len(read(held.consumer, 5)) == 5
    assert held.link(Role.CONTROL) is None


def test_the_second_connection_closes_when_it_was_idle(
    kafka: EmbeddedKafka, topic: str, consumer_on: MakeConsumer
) -> None:
    consumer = consumer_on(fetch_max_wait_ms=50, connections_max_idle_ms=200)
    held = Held(kafka, consumer, TopicPartition(topic, 0))
    for made in (1, 2):
        assert consumer.end_offsets([held.partition]) == {held.partition: 10}
        assert held.links_made() == 1 + made
        eventually(lambda: held.link(Role.CONTROL) is None, "the idle link to be closed")
    assert held.link(Role.DATA) is held.fetched_over


def test_a_broker_may_hold_a_fetch_for_longer_than_any_other_request(
    kafka: EmbeddedKafka, topic: str, consumer_on: MakeConsumer
) -> None:
    """Regression: with request.timeout.ms below fetch.max.wait.ms each Fetch cost its link."""
    consumer = consumer_on(fetch_max_wait_ms=900, request_timeout_ms=300)
    held = Held(kafka, consumer, TopicPartition(topic, 0))
    eventually(lambda: held.answered >= 2, "two Fetches that found nothing")
    assert held.links_made() == 1
    fill(kafka, topic, 5)
    assert len(read(consumer, 5)) == 5


def test_how_long_an_answer_takes_is_counted_from_its_question(
    kafka: EmbeddedKafka, topic: str, consumer_on: MakeConsumer
) -> None:
    """Regression: after an idle hour, a commit had "not been answered for 3600 s"."""
    consumer = consumer_on(group_id=f"group-of-{topic}")
    offsets = {TopicPartition(topic, 0): OffsetAndMetadata(0)}
    consumer.commit(offsets)
    requests = consumer._core.control.connections.requests
    eventually(lambda: time.monotonic() - requests.now > 0.3, "the control thread sleeps")
    kafka.faults.drop(api=OFFSET_COMMIT)
    began = time.monotonic()
    consumer.commit(offsets, sync=False)
    ((what, seconds),) = eventually(lambda: requests.under_way(time.monotonic()), "the request")
    assert "has not answered OffsetCommit" in what
    assert seconds <= time.monotonic() - began


def test_what_a_leader_answered_explains_nothing_once_it_is_gone() -> None:
    """Regression: "its leader answers NOT_LEADER_OR_FOLLOWER", of one that nobody could reach."""
    where = TopicPartition("t", 0)
    with EmbeddedKafka(1) as kafka, Consumer(bootstrap_servers=kafka.bootstrap) as consumer:
        kafka.create_topic("t")
        kafka.faults.error(LIST_OFFSETS, NotLeaderOrFollower)
        troubles = consumer._core.control.troubles

        def kill() -> None:
            eventually(lambda: troubles.last_of(where) is not None)
            kafka.kill(1)

        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(KafkaTimeoutError) as caught:
            consumer.end_offsets([where], timeout=1.0)
        killer.join()
    assert "its leader answers" not in str(caught.value)
    assert "no connection to its leader: node 1 at" in str(caught.value)
