"""Members by the consumer protocol (KIP-848) on real Kafka, among themselves and beside a peer."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from kafka_fast import (
    Consumer,
    Producer,
    RebalanceListener,
    TopicPartition,
)
from kafka_fast.errors import InvalidRegularExpression
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.waiting import eventually

PARTITIONS = 6
RECORDS = 600
TIMEOUT = 60.0

INTERVAL_MS = 200

QUICK = {
    "group.consumer.min.heartbeat.interval.ms": INTERVAL_MS,
    "group.consumer.heartbeat.interval.ms": INTERVAL_MS,
    "group.consumer.min.session.timeout.ms": 3_000,
    "group.consumer.session.timeout.ms": 6_000,
    "group.consumer.assignment.interval.ms": 0,
}


class Diary(RebalanceListener):
    """Counts what it hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_partitions_assigned(self, consumer: Consumer, partitions: object) -> None:
        self.heard.append("assigned")

    def on_partitions_revoked(self, consumer: Consumer, partitions: object) -> None:
        self.heard.append("revoked")

    def on_partitions_lost(self, consumer: Consumer, partitions: object) -> None:
        self.heard.append("lost")


DRIVERS = True

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def kafka() -> Iterator[RealKafka]:
    with RealKafka(1, overrides=QUICK) as cluster:
        yield cluster


@pytest.fixture
def topic(kafka: RealKafka, request: pytest.FixtureRequest) -> str:
    name = re.sub(r"\W", "-", request.node.name)
    kafka.create_topic(name, partitions=PARTITIONS)
    return name


@pytest.fixture
def member_on(
    kafka: RealKafka, topic: str, consumer_class: Any
) -> Iterator[Callable[..., Consumer]]:
    """Consumers in the topic's group; closed in the end."""
    made: list[Consumer] = []

    def make(listener: RebalanceListener | None = None, **config: object) -> Consumer:
        pattern = config.pop("pattern", None)
        one = consumer_class(
            {
                "bootstrap.servers": kafka.bootstrap,
                "group.id": f"group-of-{topic}",
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                **config,
            }
        )
        made.append(one)
        if pattern is None:
            one.subscribe([topic], listener=listener)
        else:
            one.subscribe(pattern=pattern, listener=listener)  # type: ignore[arg-type]
        return one

    yield make
    for one in made:
        one.close(5.0)


def fill(kafka: RealKafka, topic: str, *, first: int = 0) -> set[bytes]:
    """Write records to all partitions alike, numbered from `first` on; returns their values."""
    values = [b"%d" % number for number in range(first, first + RECORDS)]
    with Producer({"bootstrap.servers": kafka.bootstrap}) as producer:
        for number, value in enumerate(values):
            producer.send_nowait(topic, value, partition=number % PARTITIONS)
        producer.flush()
    return set(values)


class Peer:
    """A confluent-kafka consumer by the same protocol."""

    def __init__(self, kafka: RealKafka, topic: str) -> None:
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": kafka.bootstrap,
                "group.id": f"group-of-{topic}",
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
            }
        )
        self._consumer.subscribe([topic])

    def poll(self) -> list[bytes]:
        messages = self._consumer.consume(100, 0.05)
        return [message.value() or b"" for message in messages if message.error() is None]

    def assignment(self) -> set[TopicPartition]:
        return {
            TopicPartition(place.topic, place.partition) for place in self._consumer.assignment()
        }

    def close(self) -> None:
        self._consumer.close()


def poll_until(
    members: list[Consumer], done: Callable[[], bool], found: list[bytes], peer: Peer | None = None
) -> None:
    """Poll everybody in turn until `done`."""
    deadline = time.monotonic() + TIMEOUT
    while not done():
        assert time.monotonic() < deadline, [member.assignment() for member in members]
        for member in members:
            found += member.poll(0.02).values()
        if peer is not None:
            found += peer.poll()


def is_shared(members: list[Consumer], topic: str, peer: Peer | None = None) -> bool:
    """Whether each partition has one reader, and all readers equally many."""
    parts = [set(member.assignment()) for member in members]
    if peer is not None:
        parts.append(peer.assignment())
    every = {TopicPartition(topic, number) for number in range(PARTITIONS)}
    sizes = [len(part) for part in parts]
    return set().union(*parts) == every and sizes == [PARTITIONS // len(parts)] * len(parts)


def test_a_group_with_a_peer(
    kafka: RealKafka, topic: str, member_on: Callable[..., Consumer]
) -> None:
    """Two of ours and one of confluent-kafka share, come and go; nothing is skipped."""
    written = fill(kafka, topic)
    members, values = [member_on(), member_on()], []  # type: ignore[var-annotated]
    poll_until(members, lambda: is_shared(members, topic), values)
    peer = Peer(kafka, topic)
    try:
        poll_until(members, lambda: is_shared(members, topic, peer), values, peer)
        poll_until(members, lambda: set(values) == written, values, peer)
        more = fill(kafka, topic, first=RECORDS)
        again: list[bytes] = []
        poll_until(members, lambda: set(again) == more, again, peer)
        members.pop().close(10.0)
        poll_until(members, lambda: is_shared(members, topic, peer), again, peer)
    finally:
        peer.close()
    poll_until(members, lambda: is_shared(members, topic), again)
    assert not [value for value in members[0].poll(0.5).values() if value not in more]


def test_commits_go_from_member_to_member(
    kafka: RealKafka, topic: str, member_on: Callable[..., Consumer]
) -> None:
    written = fill(kafka, topic)
    one, values = member_on(enable_auto_commit=False), []  # type: ignore[var-annotated]
    poll_until([one], lambda: set(values) == written, values)
    one.commit()
    one.close(10.0)
    two, late = member_on(), []  # type: ignore[var-annotated]
    poll_until([two], lambda: is_shared([two], topic), late)
    late += two.poll(1.0).values()
    assert late == []
    assert {offset.offset for offset in two.committed(two.assignment()).values() if offset} == {
        RECORDS // PARTITIONS
    }


def test_a_static_member_returns_and_nobody_notices(
    topic: str, member_on: Callable[..., Consumer]
) -> None:
    diary = Diary()
    one = member_on(diary, group_instance_id="one")
    two = member_on(group_instance_id="two")
    poll_until([one, two], lambda: is_shared([one, two], topic), [])
    had, heard = two.assignment(), list(diary.heard)
    two.close(10.0)
    poll_until([one], _after(1.0), [])
    two = member_on(group_instance_id="two")
    poll_until([one, two], lambda: two.assignment() == had, [])
    poll_until([one, two], _after(2.0), [])
    assert diary.heard == heard


def test_the_group_may_wait_for_a_slow_user(topic: str, member_on: Callable[..., Consumer]) -> None:
    """Heartbeats outlast the session timeout while nobody polls."""
    diary = Diary()
    one = member_on(diary)
    poll_until([one], lambda: is_shared([one], topic), [])
    heard = list(diary.heard)  # a coordinator that learns of the topic late assigns nothing first
    known = _heartbeats(one)
    outlasted = known + 2 * QUICK["group.consumer.session.timeout.ms"] // INTERVAL_MS
    eventually(lambda: _heartbeats(one) >= outlasted, "heartbeats for two session timeouts")
    poll_until([one], _after(1.0), [])
    assert diary.heard == heard


@pytest.mark.threads_only("most of its time is the broker's, or another client's")
def test_patterns(kafka: RealKafka, topic: str, member_on: Callable[..., Consumer]) -> None:
    """The broker's RE2 and our own both find topics, also the one that is made later."""
    prefix = topic
    brokers = member_on(pattern=f"{prefix}.*", **{"group.id": f"re2-{topic}"})
    ours = member_on(
        pattern=re.compile(f"{prefix}(?=.*).*"),
        metadata_max_age_ms=2_000,
        **{"group.id": f"re-{topic}"},
    )
    poll_until([brokers, ours], lambda: len(brokers.assignment()) == PARTITIONS, [])
    kafka.create_topic(f"{prefix}-2", partitions=1)
    both = [brokers, ours]
    poll_until(
        both, lambda: all(len(consumer.assignment()) == PARTITIONS + 1 for consumer in both), []
    )


def test_what_the_broker_refuses(topic: str, member_on: Callable[..., Consumer]) -> None:
    member = member_on(pattern="in-(")
    with pytest.raises(InvalidRegularExpression, match="in-"):
        poll_until([member], lambda: False, [])


@pytest.mark.timeout(300)
def test_a_coordinator_that_dies_changes_nothing() -> None:
    """The members go on with the next one: nothing is revoked, and nothing is read twice."""
    with RealKafka(3, overrides=QUICK) as kafka:
        kafka.create_topic("t", partitions=PARTITIONS)
        diaries = [Diary(), Diary()]
        members = []
        for diary in diaries:
            member = Consumer(
                {
                    "bootstrap.servers": kafka.bootstrap,
                    "group.id": "g",
                    "group.protocol": "consumer",
                    "auto.offset.reset": "earliest",
                }
            )
            member.subscribe(["t"], listener=diary)
            members.append(member)
        try:
            poll_until(members, lambda: is_shared(members, "t"), [])
            heard = [list(diary.heard) for diary in diaries]
            coordinator = _coordinator(kafka, "g")
            kafka.node(coordinator).kill()
            written, values = fill(kafka, "t"), []  # type: ignore[var-annotated]
            poll_until(members, lambda: set(values) == written, values)
            poll_until(members, _after(3.0), values)
            assert sorted(values) == sorted(written)
            assert [diary.heard for diary in diaries] == heard
            assert _coordinator(kafka, "g") != coordinator
        finally:
            for member in members:
                member.close(5.0)


def _coordinator(kafka: RealKafka, group: str) -> int:
    """Return the node that coordinates a group, as a peer hears it."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    described = admin.describe_consumer_groups([group], request_timeout=30)[group].result()
    return int(described.coordinator.id)


def _heartbeats(member: Consumer) -> int:
    return int(member.metrics()["heartbeats"])


def _after(seconds: float) -> Callable[[], bool]:
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end
