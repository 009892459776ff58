"""A broker says the same forever, well formed: a consumer asks slowly, and recovers."""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka_fast import Consumer, OffsetAndMetadata, TopicPartition
from kafka_fast.errors import (
    BrokerError,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    FencedLeaderEpoch,
    FencedMemberEpoch,
    IllegalGeneration,
    KafkaError,
    MalformedError,
    NotCoordinator,
    NotLeaderOrFollower,
    OffsetOutOfRange,
    RebalanceInProgress,
    StaleMemberEpoch,
    UnknownLeaderEpoch,
    UnknownMemberId,
    UnknownTopicId,
    UnknownTopicOrPartition,
    UnreleasedInstanceId,
    UnsupportedVersionError,
)
from kafka_fast.protocol.apis.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatResponseTopicPartitions as AssignedIds,
)
from kafka_fast.protocol.apis.groups.join_group import JoinGroupResponseMember
from kafka_fast.protocol.consumer import ConsumerProtocolAssignment
from kafka_fast.protocol.consumer import ConsumerProtocolAssignmentTopicPartition as AssignedTopic
from kafka_fast.protocol.schema import encode_versioned
from kafka_fast.testing.broker.handlers import OFFERED
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import (
    CONSUMER_GROUP_HEARTBEAT,
    FETCH,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FETCH,
    OFFSET_FOR_LEADER_EPOCH,
    SYNC_GROUP,
)
from tests.embedded.consuming import fill, partitions_of, read, values_by_partition
from tests.waiting import TIMEOUT

RECORDS = 20
HOSTILE = 0.5
"""Seconds."""

BACK_OFF = 0.02
MOST = 5 * HOSTILE / BACK_OFF
"""Requests in that time; without a backoff there are thousands."""


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    """One broker with a topic of two partitions."""
    with EmbeddedKafka() as kafka:
        kafka.create_topic("t", 2)
        yield kafka


def make(kafka: EmbeddedKafka, *, reset: str = "earliest", **config: Any) -> Consumer:
    return Consumer(
        bootstrap_servers=kafka.bootstrap,
        auto_offset_reset=reset,
        retry_backoff_ms=int(BACK_OFF * 1000),
        retry_backoff_max_ms=500,
        reconnect_backoff_ms=int(BACK_OFF * 1000),
        reconnect_backoff_max_ms=500,
        fetch_max_wait_ms=50,
        **config,
    )


def member(kafka: EmbeddedKafka, **config: Any) -> Consumer:
    consumer = make(kafka, group_id="g", **config)
    consumer.subscribe(["t"])
    return consumer


def reader(kafka: EmbeddedKafka) -> Consumer:
    consumer = make(kafka)
    consumer.assign(partitions_of("t", 2))
    return consumer


class Counter:
    """Counts the answers of some APIs that a broker gives."""

    def __init__(self, kafka: EmbeddedKafka, *apis: int) -> None:
        self.count = 0
        for api in apis:
            kafka.faults.script(api, self.add)

    def add(self, response: Any, node: int) -> None:
        self.count += 1


def poll_on(
    consumer: Consumer,
    seconds: float,
    until: Callable[[list[KafkaError]], object] = lambda raised: True,
) -> list[KafkaError]:
    """Poll for some seconds, and further until something holds; return what that raised.

    Args:
        consumer: to poll.
        seconds: for which the broker is hostile.
        until: tells of what was raised whether that is all; a busy machine needs longer.
    """
    raised: list[KafkaError] = []
    began = time.monotonic()
    while (passed := time.monotonic() - began) < seconds or not until(raised):
        assert passed < TIMEOUT, raised
        try:
            consumer.poll(0.02)
        except KafkaError as error:
            raised.append(error)
    return raised


def check_recovery(kafka: EmbeddedKafka, consumer: Consumer) -> None:
    """All is well now: every record comes, and comes once."""
    kafka.heal()
    written = {number: fill(kafka, "t", RECORDS, number) for number in range(2)}
    records = read(consumer, 2 * RECORDS, passing=(KafkaError,))  # of before
    assert values_by_partition(records) == written


GROUP_ERRORS = pytest.mark.repeats("what a code means to a member is decided in Python")


@GROUP_ERRORS
@pytest.mark.parametrize(
    ("api", "error"),
    [
        (api, error)
        for apis, errors in (
            (
                (FIND_COORDINATOR, JOIN_GROUP, SYNC_GROUP, HEARTBEAT, OFFSET_FETCH),
                (NotCoordinator, CoordinatorLoadInProgress, CoordinatorNotAvailable),
            ),
            (
                (JOIN_GROUP, SYNC_GROUP, HEARTBEAT),
                (UnknownMemberId, IllegalGeneration, RebalanceInProgress),
            ),
        )
        for api in apis
        for error in errors
    ],
)
def test_a_classic_group(kafka: EmbeddedKafka, api: int, error: type[BrokerError]) -> None:
    asked = Counter(kafka, FIND_COORDINATOR, JOIN_GROUP, SYNC_GROUP, HEARTBEAT, OFFSET_FETCH)
    kafka.faults.error(api, error)
    # The broker keeps each id under which it has let the member in until its session ends.
    with member(kafka, heartbeat_interval_ms=50, session_timeout_ms=6_000) as consumer:
        poll_on(consumer, HOSTILE)
        assert asked.count <= MOST
        check_recovery(kafka, consumer)


@GROUP_ERRORS
@pytest.mark.parametrize(
    "error",
    [
        NotCoordinator,
        CoordinatorLoadInProgress,
        UnknownMemberId,
        FencedMemberEpoch,
        StaleMemberEpoch,
        UnreleasedInstanceId,
    ],
)
def test_a_group_of_the_newer_protocol(kafka: EmbeddedKafka, error: type[BrokerError]) -> None:
    asked = Counter(kafka, FIND_COORDINATOR, CONSUMER_GROUP_HEARTBEAT, OFFSET_FETCH)
    kafka.faults.error(CONSUMER_GROUP_HEARTBEAT, error)
    with member(kafka, group_protocol="consumer") as consumer:
        poll_on(consumer, HOSTILE)
        assert asked.count <= MOST
        check_recovery(kafka, consumer)


OF_PARTITIONS = [FencedLeaderEpoch, UnknownLeaderEpoch, NotLeaderOrFollower, UnknownTopicId]


@pytest.mark.parametrize(
    ("api", "error"),
    [*itertools.product([FETCH, LIST_OFFSETS], OF_PARTITIONS), (FETCH, OffsetOutOfRange)],
)
def test_partitions(kafka: EmbeddedKafka, api: int, error: type[BrokerError]) -> None:
    asked = Counter(kafka, FETCH, LIST_OFFSETS, METADATA)
    kafka.faults.error(api, error)
    with reader(kafka) as consumer:
        poll_on(consumer, HOSTILE)
        assert asked.count <= MOST
        if api == LIST_OFFSETS and not error.retriable:
            return  # the partitions have failed, until a seek
        check_recovery(kafka, consumer)


def nonsense(response: Any, node: int) -> None:
    """Name a replica that nobody knows as nearer."""
    for topic in response.responses:
        for part in topic.partitions:
            part.preferred_read_replica = 77


def tyranny(response: Any, node: int) -> None:
    response.throttle_time_ms = 2**31 - 1


def emptiness(response: Any, node: int) -> None:
    response.brokers = []


def nowhere(response: Any, node: int) -> None:
    for broker in response.brokers:
        broker.host, broker.port = "", 70_000


def leaderless(response: Any, node: int) -> None:
    for topic in response.topics:
        for part in topic.partitions:
            part.leader_id = 99


def shrunk(response: Any, node: int) -> None:
    for topic in response.topics:
        topic.partitions = topic.partitions[:1]


def divergence(response: Any, node: int) -> None:
    """Say of every position that the log does not hold it."""
    for topic in response.responses:
        for part in topic.partitions:
            part.diverging_epoch.epoch, part.diverging_epoch.end_offset = 0, 0


@pytest.mark.parametrize(
    ("api", "script"),
    [
        (FETCH, nonsense),
        (FETCH, divergence),
        (METADATA, emptiness),
        (METADATA, nowhere),
        (METADATA, leaderless),
        (METADATA, shrunk),
    ],
)
def test_answers_that_make_no_sense(kafka: EmbeddedKafka, api: int, script: Any) -> None:
    asked = Counter(kafka, FETCH, LIST_OFFSETS, METADATA)
    kafka.faults.script(api, script)
    with reader(kafka) as consumer:
        assert poll_on(consumer, HOSTILE) == []
        assert asked.count <= MOST
        check_recovery(kafka, consumer)


def vanished(response: Any, node: int) -> None:
    for topic in response.topics:
        topic.error_code, topic.partitions = UnknownTopicOrPartition.code, []


def undefined(response: Any, node: int) -> None:
    """Know no epoch: that is no news about records."""
    for topic in response.topics:
        for part in topic.partitions:
            part.leader_epoch, part.end_offset = -1, -1


@pytest.mark.parametrize(
    ("api", "script"), [(METADATA, vanished), (OFFSET_FOR_LEADER_EPOCH, undefined)]
)
def test_a_position_outlives_what_says_nothing_of_it(
    kafka: EmbeddedKafka, api: int, script: Any
) -> None:
    """The topic is the one that it was, and policy none would tell of a reset."""
    fill(kafka, "t", RECORDS, 0)
    with make(kafka, reset="none", metadata_max_age_ms=100) as consumer:
        partition = TopicPartition("t", 0)
        consumer.assign([partition])
        consumer.seek(partition, 7)
        read(consumer, RECORDS - 7)
        asked = Counter(kafka, api)
        kafka.faults.script(api, script)
        if api == OFFSET_FOR_LEADER_EPOCH:
            consumer.seek(partition, OffsetAndMetadata(RECORDS, leader_epoch=0))
        assert poll_on(consumer, HOSTILE, until=lambda _: asked.count) == []
        assert asked.count <= MOST
        kafka.heal()
        written = fill(kafka, "t", RECORDS, 0)
        assert [record.value for record in read(consumer, RECORDS)] == written


NO_METADATA = (b"", b"\0", b"\0\0\x7f\xff\xff\xff", b"\xff" * 40)
"""Where a member or the leader of a group is to say something."""


@pytest.mark.parametrize("metadata", NO_METADATA, ids=repr)
def test_a_member_that_talks_nonsense_to_its_leader(kafka: EmbeddedKafka, metadata: bytes) -> None:
    """Whoever assigns for all is told which member it is; without that one the group goes on."""

    def join(response: Any, node: int) -> None:
        if response.leader == response.member_id and not response.error_code:
            response.members.append(JoinGroupResponseMember(member_id="x", metadata=metadata))

    asked = Counter(kafka, JOIN_GROUP, SYNC_GROUP)
    kafka.faults.script(JOIN_GROUP, join)
    with member(kafka) as consumer:
        raised = poll_on(consumer, HOSTILE, until=bool)
        for error in raised:
            assert isinstance(error, MalformedError)
            assert "member 'x'" in str(error)
        assert asked.count <= MOST
        kafka.heal()
        consumer.subscribe(["t"])
        check_recovery(kafka, consumer)


@pytest.mark.parametrize("data", NO_METADATA[1:], ids=repr)
def test_a_leader_that_talks_nonsense(kafka: EmbeddedKafka, data: bytes) -> None:
    def sync(response: Any, node: int) -> None:
        response.assignment = data

    asked = Counter(kafka, JOIN_GROUP, SYNC_GROUP)
    kafka.faults.script(SYNC_GROUP, sync)
    with member(kafka) as consumer:
        raised = poll_on(consumer, HOSTILE, until=bool)
        assert all(isinstance(error, MalformedError) for error in raised), raised
        assert consumer.assignment() == set()
        assert asked.count <= MOST
        kafka.heal()
        consumer.subscribe(["t"])
        check_recovery(kafka, consumer)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_what_is_assigned_and_does_not_exist(kafka: EmbeddedKafka, protocol: str) -> None:
    """It is waited for; what exists is read meanwhile."""
    more = ConsumerProtocolAssignment(
        assigned_partitions=[
            AssignedTopic(topic="t", partitions=[0, 1, 77]),
            AssignedTopic(topic="nowhere", partitions=[0]),
        ]
    )

    def sync(response: Any, node: int) -> None:
        response.assignment = encode_versioned(more, 1)

    def beat(response: Any, node: int) -> None:
        if response.assignment is not None:
            assigned = response.assignment.topic_partitions
            for topic in assigned:
                topic.partitions = [*topic.partitions, 77]
            assigned.append(AssignedIds(topic_id=b"\x5a" * 16, partitions=[0]))

    asked = Counter(kafka, FETCH, LIST_OFFSETS, METADATA, OFFSET_FETCH)
    kafka.faults.script(SYNC_GROUP, sync)
    kafka.faults.script(CONSUMER_GROUP_HEARTBEAT, beat)
    with member(kafka, group_protocol=protocol) as consumer:
        absent = TopicPartition("t", 77)
        raised = poll_on(consumer, HOSTILE, until=lambda _: absent in consumer.assignment())
        assert all("t-77" in str(error) or "nowhere" in str(error) for error in raised), raised
        assert asked.count <= MOST
        written = {number: fill(kafka, "t", RECORDS, number) for number in range(2)}
        records = read(consumer, 2 * RECORDS, passing=(KafkaError,))
        assert values_by_partition(records) == written


def test_nobody_is_silenced_for_longer_than_a_minute(
    kafka: EmbeddedKafka, caplog: pytest.LogCaptureFixture
) -> None:
    kafka.faults.script(FETCH, tyranny)
    with caplog.at_level(logging.INFO, "kafka_fast.consumer"), reader(kafka) as consumer:
        poll_on(consumer, HOSTILE, until=lambda _: any("quota" in text for text in caplog.messages))
    (told,) = [text for text in caplog.messages if "quota" in text]
    assert "wait for 60000 ms" in told


@pytest.mark.parametrize(
    "api",
    [
        FETCH,
        METADATA,
        LIST_OFFSETS,
        FIND_COORDINATOR,
        JOIN_GROUP,
        SYNC_GROUP,
        HEARTBEAT,
        OFFSET_FETCH,
    ],
)
def test_an_api_that_the_broker_lacks(kafka: EmbeddedKafka, api: int) -> None:
    """The user hears which, again and again; a broker that has it is all that is needed."""
    kafka.faults.limit_versions({key: versions for key, versions in OFFERED.items() if key != api})
    with member(kafka) as consumer:
        raised = poll_on(consumer, HOSTILE, until=bool)
        assert all(isinstance(error, UnsupportedVersionError) for error in raised), raised
