"""Consumers while brokers die, return, stand still, and partitions change their leaders."""

from __future__ import annotations

import threading
import time

import pytest

from kafka_fast import Consumer, KafkaTimeoutError, TopicPartition
from kafka_fast.errors import (
    LogTruncationError,
    NotLeaderOrFollower,
    OffsetNotAvailable,
    UnknownLeaderEpoch,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from kafka_fast.protocol.apis.cluster.metadata import MetadataResponse
from kafka_fast.protocol.apis.records.offset_for_leader_epoch import OffsetForLeaderEpochResponse
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import FETCH, LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH
from tests.embedded.consuming import MakeConsumer, fill, partitions_of, read, values_by_partition
from tests.embedded.producing import new_topic
from tests.waiting import eventually

DRIVERS = True  # every test runs with threads and with asyncio


@pytest.fixture
def partition(topic: str) -> TopicPartition:
    return TopicPartition(topic, 0)


@pytest.fixture
def consumer(consumer_on: MakeConsumer, partition: TopicPartition) -> Consumer:
    one = consumer_on()
    one.assign([partition])
    return one


def read_all(kafka: EmbeddedKafka, consumer: Consumer, topic: str, count: int) -> None:
    """Append and read: nothing is lost, doubled or out of order, nor waits for a timeout."""
    written = fill(kafka, topic, count)
    assert [record.value for record in read(consumer, count, timeout=8)] == written


def test_a_leader_that_moves_and_moves(
    kafka: EmbeddedKafka, topic: str, consumer: Consumer
) -> None:
    for leader in (2, 3, 1, 2):
        read_all(kafka, consumer, topic, 50)
        kafka.move_leader(topic, 0, leader)
    read_all(kafka, consumer, topic, 50)


def test_leaders_that_move_while_much_is_read(
    kafka: EmbeddedKafka, consumer_on: MakeConsumer
) -> None:
    topic = new_topic(kafka, "moving", 3)
    written = {number: fill(kafka, topic, 5_000, number, batch=50) for number in range(3)}
    consumer = consumer_on(max_partition_fetch_bytes=10_000, fetch_buffer_bytes=100_000)
    consumer.assign(partitions_of(topic, 3))
    done = threading.Event()

    def move() -> None:
        for step in range(300):  # with no end, a slow machine is always asked at the wrong node
            if done.wait(0.02):
                return
            kafka.move_leader(topic, step % 3, step % 2 + 1)

    mover = threading.Thread(target=move)
    mover.start()
    try:
        records = read(consumer, 15_000, max_records=100)
    finally:
        done.set()
        mover.join()
    assert values_by_partition(records) == written


@pytest.mark.parametrize(
    "error",
    [NotLeaderOrFollower, OffsetNotAvailable, UnknownServerError, UnknownTopicOrPartition],
)
@pytest.mark.parametrize("api", [FETCH, LIST_OFFSETS], ids=["fetch", "offsets"])
def test_errors_that_pass(
    kafka: EmbeddedKafka, topic: str, consumer: Consumer, error: type, api: int
) -> None:
    kafka.faults.error(api, error, topic=topic, count=3)
    read_all(kafka, consumer, topic, 50)
    kafka.faults.error(api, error, topic=topic, count=3)
    read_all(kafka, consumer, topic, 50)


def test_a_broker_that_dies_and_returns(
    kafka: EmbeddedKafka, topic: str, consumer: Consumer
) -> None:
    for _ in range(2):
        read_all(kafka, consumer, topic, 50)
        node = kafka.leader(topic, 0)
        kafka.kill(node)
        read_all(kafka, consumer, topic, 50)
        kafka.restart(node)
        read_all(kafka, consumer, topic, 50)


def test_all_brokers_die_and_return(
    kafka: EmbeddedKafka, topic: str, partition: TopicPartition, consumer: Consumer
) -> None:
    read_all(kafka, consumer, topic, 50)
    for node in (1, 2, 3):
        kafka.kill(node)
    assert not consumer.poll(0.3)
    with pytest.raises(KafkaTimeoutError):
        consumer.end_offsets([partition], timeout=0.3)
    for node in (1, 2, 3):
        kafka.restart(node)
    eventually(lambda: kafka.leader(topic, 0) > 0)
    read_all(kafka, consumer, topic, 50)


def test_a_cluster_that_comes_up_later(kafka: EmbeddedKafka, consumer_on: MakeConsumer) -> None:
    topic = new_topic(kafka, "later")
    for node in (1, 2, 3):
        kafka.kill(node)
    consumer = consumer_on()
    consumer.assign(partitions_of(topic, 1))
    assert not consumer.poll(0.2)
    for node in (1, 2, 3):
        kafka.restart(node)
    read_all(kafka, consumer, topic, 10)


@pytest.mark.parametrize("cut", [3, 50, 500])
def test_an_answer_that_breaks_off(
    kafka: EmbeddedKafka, topic: str, consumer: Consumer, cut: int
) -> None:
    kafka.faults.cut(cut, api=FETCH, count=3)
    read_all(kafka, consumer, topic, 200)


class TestLeaderEpochs:
    @pytest.fixture(name="consumer")
    def reader_that_asks_often(
        self, kafka: EmbeddedKafka, topic: str, consumer_on: MakeConsumer
    ) -> Consumer:
        consumer = consumer_on(metadata_max_age_ms=50)
        consumer.assign(partitions_of(topic, 1))
        read_all(kafka, consumer, topic, 10)
        return consumer

    def test_an_older_one_is_old_news(
        self, kafka: EmbeddedKafka, topic: str, consumer: Consumer
    ) -> None:
        """A broker that is behind names the leader of before: nobody asks that one."""
        former = kafka.leader(topic, 0)
        epoch = consumer.partitions_for(topic)[0].leader_epoch
        kafka.move_leader(topic, 0, former % 3 + 1)
        read_all(kafka, consumer, topic, 10)
        told: list[int] = []
        asked: list[int] = []

        def be_behind(response: MetadataResponse, node: int) -> None:
            for topic_told in response.topics:
                if topic_told.name == topic:
                    topic_told.partitions[0].leader_id, topic_told.partitions[0].leader_epoch = (
                        former,
                        epoch,
                    )
                    told.append(node)

        kafka.faults.script_metadata(be_behind)
        kafka.faults.script(FETCH, lambda response, node: asked.append(node))
        eventually(lambda: consumer.poll(0.02) is not None and len(told) >= 3, "old news")
        read_all(kafka, consumer, topic, 100)
        assert asked
        assert former not in asked

    def test_a_newer_one_is_waited_for(
        self, kafka: EmbeddedKafka, topic: str, consumer: Consumer
    ) -> None:
        """The leader itself has not heard yet that it was elected again."""
        leader = kafka.leader(topic, 0)
        refused: list[int] = []

        def be_ahead(response: MetadataResponse, node: int) -> None:
            for told in response.topics:
                if told.name == topic:
                    told.partitions[0].leader_epoch += 2

        def count(response: OffsetForLeaderEpochResponse, node: int) -> None:
            refused.extend(part.error_code for told in response.topics for part in told.partitions)

        kafka.faults.script_metadata(be_ahead)
        kafka.faults.script(OFFSET_FOR_LEADER_EPOCH, count)  # a position is validated first
        eventually(lambda: consumer.poll(0.02) is not None and len(refused) >= 3, "refusals")
        assert set(refused) == {UnknownLeaderEpoch.code}
        before = time.monotonic(), len(refused)
        while time.monotonic() < before[0] + 0.5:
            assert not consumer.poll(0.02)
        assert len(refused) - before[1] <= 50, "0.5 s, at 20 ms from one try to the next"
        kafka.heal()
        for node in (leader % 3 + 1, leader):
            kafka.move_leader(topic, 0, node)
        read_all(kafka, consumer, topic, 10)


def test_a_fetch_session_that_is_forgotten(
    kafka: EmbeddedKafka, topic: str, consumer: Consumer
) -> None:
    for _ in range(5):
        read_all(kafka, consumer, topic, 20)
        kafka.on_cluster(lambda cluster: cluster.forget_fetch_sessions(1))


class TestTruncation:
    def test_reading_goes_on_where_the_logs_part(
        self, kafka: EmbeddedKafka, topic: str, consumer: Consumer
    ) -> None:
        fill(kafka, topic, 100)
        read(consumer, 100)
        kafka.on_cluster(lambda cluster: cluster.lose_records(topic, 0, 60, leader=2))
        anew = fill(kafka, topic, 70)
        assert [record.value for record in read(consumer, 70)] == anew

    def test_policy_none_says_what_was_lost(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer, partition: TopicPartition
    ) -> None:
        fill(kafka, partition.topic, 100)
        consumer = consumer_on(auto_offset_reset="none")
        consumer.assign([partition])
        consumer.seek(partition, 0)
        read(consumer, 100)
        kafka.on_cluster(lambda cluster: cluster.lose_records(partition.topic, 0, 60, leader=2))
        fill(kafka, partition.topic, 70)
        with pytest.raises(LogTruncationError) as caught:
            read(consumer, 1)
        assert (caught.value.offset, caught.value.position) == (60, 100)
        consumer.seek(partition, caught.value.offset)
        assert read(consumer, 70)[0].offset == 60


class TestTransactions:
    @pytest.mark.parametrize("level", ["read_committed", "read_uncommitted"])
    def test_what_is_handed_out(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer, partition: TopicPartition, level: str
    ) -> None:
        topic = partition.topic

        def plant(producer_id: int, value: bytes, commit: bool | None) -> None:
            kafka.on_cluster(
                lambda cluster: cluster.plant_transaction(
                    topic, 0, producer_id, [value] * 5, commit=commit
                )
            )

        plant(1, b"committed", True)
        plant(2, b"aborted", False)
        plant(3, b"open", None)
        plant(1, b"behind", True)
        consumer = consumer_on(isolation_level=level)
        consumer.assign([partition])
        if level == "read_uncommitted":
            values = [record.value for record in read(consumer, 20)]
            assert set(values) == {b"committed", b"aborted", b"open", b"behind"}
            return
        assert {record.value for record in read(consumer, 5)} == {b"committed"}
        assert not consumer.poll(0.2)
        assert consumer.end_offsets([partition]) == {partition: 12}
        eventually(lambda: consumer.poll(0) is not None and consumer.position(partition) == 12)
        assert consumer.current_lag(partition) == 0
        kafka.on_cluster(lambda cluster: cluster.end_transaction(topic, 0, 3, commit=True))
        assert [record.value for record in read(consumer, 10)] == [b"open"] * 5 + [b"behind"] * 5

    def test_gaps_and_empty_batches_are_passed(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer, partition: TopicPartition
    ) -> None:
        fill(kafka, partition.topic, 100)
        gone = {*range(5, 37), *range(90, 100)}
        kafka.on_cluster(lambda cluster: cluster.compact(partition.topic, 0, gone, keep_empty=True))
        consumer = consumer_on()  # only now: what it fetched before, it would hand out
        consumer.assign([partition])
        offsets = [record.offset for record in read(consumer, 58)]
        assert offsets == [offset for offset in range(100) if offset not in gone]
        eventually(lambda: not consumer.poll(0.01) and consumer.position(partition) == 100)
