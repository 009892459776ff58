"""The consumer on real Kafka, old releases included: positions, transactions, classic groups."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from kafka_fast import Consumer, TopicPartition
from kafka_fast.control.consumer import absent
from kafka_fast.errors import (
    InvalidSessionTimeout,
    PositionOutOfRangeError,
    UnknownTopicOrPartition,
)
from kafka_fast.records._consumer_record import ConsumerRecord
from kafka_fast.testing._kafka.real_kafka import RealKafka
from kafka_fast.types import OffsetAndMetadata
from tests.conftest import started
from tests.integration.consuming import (
    FIRST_TIMESTAMP_MS,
    MakeConsumer,
    delete_records,
    makers,
    partitions_of,
    poll_until,
    read,
    write,
    write_transactions,
)
from tests.integration.peers import CODECS, RECORDS, rows, write_rows
from tests.integration.producing import create_again, new_topic
from tests.waiting import TIMEOUT, eventually

# The peers' own warnings are theirs; kafka-python warns already when it is imported.
DRIVERS = True

pytestmark = [pytest.mark.broker, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def consumer_on(real_kafka: RealKafka, consumer_class: Any) -> Iterator[MakeConsumer]:
    """Consumers that begin with the first record and are closed in the end."""
    yield from makers(real_kafka, consumer_class)


@pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
def test_aborted_transactions(real_kafka: RealKafka, consumer_on: MakeConsumer, level: str) -> None:
    topic = new_topic(real_kafka)
    kept = write_transactions(real_kafka, topic, 20, 10, is_kept=lambda number: number % 3 > 0)
    consumer = consumer_on(isolation_level=level)
    (partition,) = partitions_of(topic, 1)
    consumer.assign([partition])
    if level == "read_uncommitted":
        read(consumer, 200)
    else:
        assert [one.value for one in read(consumer, len(kept))] == kept
    # The last transaction has ended before its marker is in the log.
    eventually(lambda: consumer.end_offsets([partition])[partition] == 220, "a marker for each")
    poll_until([consumer], lambda: consumer.position(partition) == 220, [])


# ---- positions ----


def check_positions(kafka: RealKafka, make: MakeConsumer) -> None:
    """Seeks, ends, times, out of range, a start that moves, a topic made anew."""
    topic = new_topic(kafka)
    (partition,) = partitions_of(topic, 1)
    written = write(kafka, topic, 100)
    consumer = make(metadata_max_age_ms=1_000)
    consumer.assign([partition])
    assert [one.value for one in read(consumer, 100)] == written
    consumer.seek(partition, 42)
    assert [one.offset for one in read(consumer, 58)] == list(range(42, 100))
    consumer.seek_to_beginning()
    assert read(consumer, 100)[0].offset == 0
    consumer.seek_to_timestamp(FIRST_TIMESTAMP_MS + 90)
    assert [one.offset for one in read(consumer, 10)] == list(range(90, 100))
    consumer.seek_to_end()
    assert consumer.position(partition) == 100
    assert consumer.beginning_offsets([partition]) == {partition: 0}
    assert consumer.end_offsets([partition]) == {partition: 100}
    at = consumer.offsets_for_times({partition: FIRST_TIMESTAMP_MS + 17})[partition]
    assert at is not None
    assert (at.offset, at.timestamp_ms) == (17, FIRST_TIMESTAMP_MS + 17)
    assert consumer.offsets_for_times({partition: FIRST_TIMESTAMP_MS + 1_000_000}) == {
        partition: None
    }
    assert consumer.lag() == {partition: 0}
    assert topic in consumer.topics()
    delete_records(kafka, topic, 60)
    consumer.seek(partition, 10)
    assert [one.offset for one in read(consumer, 40)] == list(range(60, 100))
    strict = make(auto_offset_reset="none")
    strict.assign([partition])
    strict.seek(partition, 10)
    with pytest.raises(PositionOutOfRangeError):
        read(strict, 1)
    if consumer._core.control.cluster.topic_id(topic) is None:
        return  # before 2.8: nobody can tell a topic from a later one of its name
    kafka.delete_topic(topic)
    create_again(kafka, topic)
    anew = write(kafka, topic, 120)
    records: list[ConsumerRecord] = []
    poll_until([consumer], lambda: [one.value for one in records[-120:]] == anew, records)
    # Before Fetch 13, which names topics by id, it may have read on at 100 until metadata told.
    again = [one.offset for one in records[:-120]]
    assert again == list(range(100, 100 + len(again)))


def test_positions(real_kafka: RealKafka, consumer_on: MakeConsumer) -> None:
    check_positions(real_kafka, consumer_on)


def test_what_does_not_exist_is_told_until_it_does(
    real_kafka: RealKafka, consumer_on: MakeConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(absent, "ABSENT_PATIENCE", 0.5)
    topic, other = new_topic(real_kafka, partitions=3), f"absent-{uuid.uuid4()}"
    first, fourth = TopicPartition(topic, 0), TopicPartition(topic, 3)
    write(real_kafka, topic, 10)
    consumer = consumer_on(allow_auto_create_topics=False, retry_backoff_max_ms=200)
    consumer.assign([first, fourth])
    assert len(read(consumer, 10)) == 10
    with pytest.raises(UnknownTopicOrPartition, match=f"{fourth}: topic '{topic}' has 3 part"):
        read(consumer, 1)
    consumer.assign([TopicPartition(other, 0)])
    with pytest.raises(UnknownTopicOrPartition, match=f"no topic '{other}'"):
        read(consumer, 1)
    consumer.assign([first, fourth])
    with pytest.raises(UnknownTopicOrPartition):
        consumer.position(fourth)
    admin = AdminClient({"bootstrap.servers": real_kafka.bootstrap})
    (made,) = admin.create_partitions([NewPartitions(topic, 4)]).values()
    made.result(TIMEOUT)

    def is_there() -> bool:
        try:
            return consumer.position(fourth) == 0
        except UnknownTopicOrPartition:
            return False

    eventually(is_there, "the partition")
    write(real_kafka, topic, 10, 3)
    consumer.assign([fourth])
    assert len(read(consumer, 10)) == 10


def test_who_reads_nothing_commits_the_epoch_that_was_committed(
    real_kafka: RealKafka, consumer_on: MakeConsumer, group: str
) -> None:
    """Without it the next one could not tell that the log was truncated meanwhile."""
    topic = new_topic(real_kafka)
    (partition,) = partitions_of(topic, 1)
    write(real_kafka, topic, 10)
    expected = OffsetAndMetadata(10, 0)
    reader, idle, third = (consumer_on(group_id=group) for _ in range(3))
    reader.assign([partition])
    read(reader, 10)
    reader.commit()
    reader.close()
    idle.assign([partition])
    assert idle.committed([partition]) == {partition: expected}
    assert idle.position(partition) == 10
    idle.commit()
    assert third.committed([partition]) == {partition: expected}


@pytest.mark.needs_kafka("4.1", "commits by topic id (KIP-848)")
def test_a_commit_for_a_topic_that_is_gone_is_not_for_the_new_one(
    real_kafka: RealKafka, consumer_on: MakeConsumer, group: str
) -> None:
    topic = new_topic(real_kafka)
    (partition,) = partitions_of(topic, 1)
    write(real_kafka, topic, 10)
    consumer = consumer_on(group_id=group, enable_auto_commit=False)
    consumer.assign([partition])
    read(consumer, 10)
    consumer.assign([])  # so that no Fetch tells of what follows, not even one in flight
    real_kafka.delete_topic(topic)
    create_again(real_kafka, topic)
    consumer.commit({partition: 10})
    assert consumer.committed([partition]) == {partition: None}


# ---- groups ----


def check_group(kafka: RealKafka, make: MakeConsumer, group: str, strategy: str) -> None:
    """Two members share, one leaves, the other goes on; every record is read, none is lost."""
    topic = new_topic(kafka, 4)
    every = set(partitions_of(topic, 4))
    for number in range(4):
        write(kafka, topic, 50, number)

    def member() -> Consumer:
        one = make(
            group_id=group,
            partition_assignment_strategy=strategy,
            session_timeout_ms=10_000,
            heartbeat_interval_ms=200,
        )
        one.subscribe([topic])
        return one

    records: list[ConsumerRecord] = []
    members = [member()]
    poll_until(members, lambda: members[0].assignment() == every, records)
    members.append(member())
    poll_until(members, lambda: [len(one.assignment()) for one in members] == [2, 2], records)
    poll_until(members, lambda: len(records) >= 200, records)
    members[0].commit()  # what its last poll returned: a close does not commit that
    members.pop(0).close()
    poll_until(members, lambda: members[0].assignment() == every, records)
    for number in range(4):
        write(kafka, topic, 50, number)
    poll_until(members, lambda: len(records) >= 400, records)
    assert len({(one.partition, one.offset) for one in records}) == len(records) == 400
    members[0].commit()
    assert {at.offset for at in members[0].committed(every).values() if at} == {100}


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_a_group(
    real_kafka: RealKafka, consumer_on: MakeConsumer, group: str, strategy: str
) -> None:
    check_group(real_kafka, consumer_on, group, strategy)


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_a_group_with_a_member_of_confluent_kafka(
    real_kafka: RealKafka, consumer_on: MakeConsumer, group: str, strategy: str
) -> None:
    """They share what there is, and each goes on where the other has committed."""
    topic = new_topic(real_kafka, 4)
    every = set(partitions_of(topic, 4))
    written = {value for number in range(4) for value in write(real_kafka, topic, 50, number)}
    ours = consumer_on(
        group_id=group, partition_assignment_strategy=strategy, heartbeat_interval_ms=200
    )
    ours.subscribe([topic])
    theirs = confluent_kafka.Consumer(
        {
            "bootstrap.servers": real_kafka.bootstrap,
            "group.id": group,
            "partition.assignment.strategy": strategy,
            "heartbeat.interval.ms": 200,
            "auto.offset.reset": "earliest",
        }
    )
    theirs.subscribe([topic])
    read_by_them: list[bytes] = []

    def of_theirs() -> set[TopicPartition]:
        for message in theirs.consume(100, 0.05):
            assert message.error() is None
            read_by_them.append(message.value() or b"")
        return {TopicPartition(place.topic, place.partition) for place in theirs.assignment()}

    records: list[ConsumerRecord] = []

    def are_sharing() -> bool:
        own, other = ours.assignment(), of_theirs()
        return len(own) == len(other) == 2 and own | other == every

    poll_until([ours], are_sharing, records)
    for number in range(4):
        written.update(write(real_kafka, topic, 50, number, first=50))

    def values() -> set[bytes]:
        of_theirs()
        return {*read_by_them, *(one.value or b"" for one in records)}

    poll_until([ours], lambda: values() == written, records)
    assert sum(value in written for value in read_by_them) >= 100, "the second half of theirs"
    theirs.close()
    poll_until([ours], lambda: ours.assignment() == every, records)
    before = len(records)
    written = {
        value for number in range(4) for value in write(real_kafka, topic, 9, number, first=100)
    }
    poll_until([ours], lambda: len(records) - before >= len(written), records)
    assert {one.value for one in records[before:]} == written, "they have committed what they read"


def test_a_session_timeout_that_the_broker_does_not_take(
    consumer_on: MakeConsumer, group: str
) -> None:
    consumer = consumer_on(group_id=group, session_timeout_ms=2_000, heartbeat_interval_ms=500)
    consumer.subscribe(["t"])
    text = r"\(2000\) is not within the brokers' group\.min\.session\.timeout\.ms and group\.max"
    with pytest.raises(InvalidSessionTimeout, match=text):
        read(consumer, 1)


@pytest.mark.needs_kafka("2.3", "static members (KIP-345)")
def test_a_static_member_is_not_missed_while_it_restarts(
    real_kafka: RealKafka, consumer_on: MakeConsumer, group: str
) -> None:
    topic = new_topic(real_kafka, 4)

    def member(name: str) -> Consumer:
        one = consumer_on(group_id=group, group_instance_id=name, heartbeat_interval_ms=200)
        one.subscribe([topic])
        return one

    members = [member("a"), member("b")]
    poll_until(members, lambda: [len(one.assignment()) for one in members] == [2, 2], [])
    had = members[1].assignment()
    events = len(members[0].metrics()["rebalances"])
    members[1].close()
    members[1] = member("b")
    poll_until(members, lambda: members[1].assignment() == had, [])
    assert len(members[0].metrics()["rebalances"]) == events


# ---- old brokers ----


@pytest.fixture(scope="module", params=["2.8.2", "2.1.1"])
def older_kafka(request: pytest.FixtureRequest) -> Iterator[RealKafka]:
    """Releases without topic ids, and without much else."""
    with started(1, request.param) as kafka:
        yield kafka


@pytest.fixture
def older_consumer_on(older_kafka: RealKafka) -> Iterator[MakeConsumer]:
    yield from makers(older_kafka)


def test_records_of_older_brokers(older_kafka: RealKafka, older_consumer_on: MakeConsumer) -> None:
    topic = new_topic(older_kafka)
    for codec in CODECS:
        write_rows(older_kafka.bootstrap, topic, codec)
    consumer = older_consumer_on()
    consumer.assign(partitions_of(topic, 1))
    records = read(consumer, RECORDS * len(CODECS))
    expected = rows() * len(CODECS)
    assert [(one.timestamp_ms, one.key, one.value, one.headers) for one in records] == expected


def test_positions_on_older_brokers(
    older_kafka: RealKafka, older_consumer_on: MakeConsumer
) -> None:
    check_positions(older_kafka, older_consumer_on)


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_groups_on_older_brokers(
    older_kafka: RealKafka, older_consumer_on: MakeConsumer, group: str, strategy: str
) -> None:
    check_group(older_kafka, older_consumer_on, group, strategy)
