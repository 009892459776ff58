"""Where reading goes on: seeks, pauses, resets, lag, and offsets that the brokers tell."""

from __future__ import annotations

import itertools
import re
import time

import pytest

from kafka_fast import (
    Consumer,
    KafkaTimeoutError,
    OffsetAndMetadata,
    TopicPartition,
    UsageError,
    read_range,
)
from kafka_fast.control.consumer import lookup
from kafka_fast.control.consumer.partition import FetchState
from kafka_fast.errors import (
    CoordinatorLoadInProgress,
    NoOffsetForPartitionError,
    OffsetNotAvailable,
    PositionOutOfRangeError,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from kafka_fast.record import RecordBatchBuilder
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import (
    FETCH,
    KAFKA_3_9,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FETCH,
)
from kafka_fast.types import OffsetAndTimestamp
from tests.embedded.consuming import FIRST_TIMESTAMP_MS, MakeConsumer, fill, partitions_of, read
from tests.embedded.producing import new_topic
from tests.waiting import TIMEOUT, eventually

DRIVERS = True  # every test runs with threads and with asyncio


@pytest.fixture
def partition(topic: str) -> TopicPartition:
    return TopicPartition(topic, 0)


def offsets(consumer: Consumer, count: int) -> list[int]:
    return [record.offset for record in read(consumer, count)]


class TestSeeking:
    @pytest.fixture
    def consumer(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer, partition: TopicPartition
    ) -> Consumer:
        """Has read all of 100 records."""
        fill(kafka, partition.topic, 100)
        one = consumer_on()
        one.assign([partition])
        read(one, 100)
        return one

    def test_to_an_offset(self, consumer: Consumer, partition: TopicPartition) -> None:
        consumer.seek(partition, 42)
        assert consumer.position(partition) == 42
        assert offsets(consumer, 58) == list(range(42, 100))
        consumer.seek(partition, OffsetAndMetadata(99, leader_epoch=1))
        assert offsets(consumer, 1) == [99]

    def test_to_both_ends(
        self, kafka: EmbeddedKafka, consumer: Consumer, partition: TopicPartition
    ) -> None:
        consumer.seek_to_beginning(partition)
        assert consumer.position(partition) == 0
        assert offsets(consumer, 100) == list(range(100))
        consumer.seek_to_beginning()
        consumer.seek_to_end()
        assert consumer.position(partition) == 100
        fill(kafka, partition.topic, 3)
        assert offsets(consumer, 3) == [100, 101, 102]

    def test_to_a_time(
        self, kafka: EmbeddedKafka, consumer: Consumer, partition: TopicPartition
    ) -> None:
        consumer.seek_to_timestamp(FIRST_TIMESTAMP_MS + 69_001)
        assert consumer.position(partition) == 70
        assert offsets(consumer, 30) == list(range(70, 100))
        consumer.seek_to_timestamp(FIRST_TIMESTAMP_MS + 1_000_000, partition)
        assert consumer.position(partition) == 100
        with pytest.raises(UsageError, match="Unix time"):
            consumer.seek_to_timestamp(-1)

    def test_the_last_of_many_seeks_counts(
        self, consumer: Consumer, partition: TopicPartition
    ) -> None:
        for number in range(50):
            consumer.seek(partition, number)
            if number % 7 == 0:
                consumer.poll(0)
        assert offsets(consumer, 51) == list(range(49, 100))

    def test_what_cannot_be(self, consumer: Consumer, partition: TopicPartition) -> None:
        with pytest.raises(UsageError, match="not assigned"):
            consumer.seek(TopicPartition("elsewhere", 0), 0)
        with pytest.raises(UsageError, match="-5"):
            consumer.seek(partition, -5)


class TestPausing:
    def test_what_was_fetched_stays(self, kafka: EmbeddedKafka, consumer_on: MakeConsumer) -> None:
        topic = new_topic(kafka, "pause", 2)
        one, other = partitions_of(topic, 2)
        fill(kafka, topic, 1_000, 0)
        consumer = consumer_on()
        consumer.assign([one, other])
        read(consumer, 10, max_records=10)
        chunks = consumer.metrics()["chunks"]
        consumer.pause(one)
        assert consumer.paused() == {one}
        assert not consumer.poll(0.2)
        fill(kafka, topic, 10, 1)
        assert {record.partition for record in read(consumer, 10)} == {1}
        kafka.faults.drop(api=FETCH)  # what comes now was here
        consumer.resume(one)
        assert consumer.paused() == set()
        assert offsets(consumer, 990) == list(range(10, 1_000))
        assert consumer.metrics()["chunks"] >= chunks

    def test_nothing_is_fetched_meanwhile(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer, partition: TopicPartition
    ) -> None:
        consumer = consumer_on()
        consumer.assign([partition])
        consumer.pause(partition)
        fill(kafka, partition.topic, 10)
        assert not consumer.poll(0.2)
        assert consumer.metrics()["fetched_bytes"] == 0
        consumer.resume(partition)
        assert offsets(consumer, 10) == list(range(10))


class TestAssigning:
    def test_what_stays_goes_on_and_what_returns_begins_anew(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer
    ) -> None:
        topic = new_topic(kafka, "assign", 2)
        one, other = partitions_of(topic, 2)
        for number in range(2):
            fill(kafka, topic, 50, number)
        consumer = consumer_on()
        consumer.assign([one])
        assert consumer.assignment() == {one}
        assert offsets(consumer, 50) == list(range(50))
        consumer.assign([one, other])
        assert {record.partition for record in read(consumer, 50)} == {1}
        assert consumer.position(one) == 50
        consumer.assign([other])
        consumer.assign([one, other])
        assert {record.partition for record in read(consumer, 50)} == {0}
        consumer.unsubscribe()
        assert consumer.assignment() == set()
        with pytest.raises(UsageError, match="nothing to read"):
            consumer.poll(0.1)

    def test_a_topic_that_does_not_exist_yet(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer
    ) -> None:
        consumer = consumer_on(allow_auto_create_topics=False)
        partition = TopicPartition(f"later-{time.monotonic_ns()}", 0)
        consumer.assign([partition])
        assert not consumer.poll(0.2)
        kafka.create_topic(partition.topic, 1)
        fill(kafka, partition.topic, 5)
        assert offsets(consumer, 5) == list(range(5))


class TestResetting:
    """What `auto.offset.reset` says, for a consumer without and beyond an offset."""

    @pytest.mark.parametrize(
        ("policy", "first"),
        [
            ("earliest", 0),
            ("latest", 10),
            ("by_duration:PT1H", 6),
            ("by_duration:P99999D", 0),  # before 1970
        ],
    )
    def test_where_reading_begins(
        self,
        kafka: EmbeddedKafka,
        consumer_on: MakeConsumer,
        partition: TopicPartition,
        policy: str,
        first: int,
    ) -> None:
        fill(kafka, partition.topic, 6)  # years ago
        with_now = [int(time.time() * 1000) - age for age in (3_000_000, 2_000_000, 1_000, 0)]
        plant_at(kafka, partition.topic, with_now)
        consumer = consumer_on(auto_offset_reset=policy)
        consumer.assign([partition])
        assert consumer.position(partition) == first
        assert offsets(consumer, 10 - first) == list(range(first, 10))
        consumer.seek(partition, 1_000)
        assert offsets(consumer, 10 - first) == list(range(first, 10))
        eventually(lambda: not consumer.poll(0.05) and at(consumer, partition) == 10, "the reset")

    def test_none_is_an_error_until_a_seek(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer
    ) -> None:
        topic = new_topic(kafka, "none", 2)
        one, other = partitions_of(topic, 2)
        for number in range(2):
            fill(kafka, topic, 10, number)
        consumer = consumer_on(auto_offset_reset="none")
        consumer.assign([one, other])
        consumer.seek(other, 0)
        records, refused = [], []
        deadline = time.monotonic() + TIMEOUT
        while len(records) < 10 or len(refused) < 3:
            assert time.monotonic() < deadline
            try:
                records += consumer.poll(0.1, 3)
            except NoOffsetForPartitionError as error:
                refused.append(error)
        assert {(error.topic, error.partition) for error in refused} == {one}
        with pytest.raises(NoOffsetForPartitionError):
            consumer.position(one)
        consumer.seek(one, 3)
        assert offsets(consumer, 7) == list(range(3, 10))
        consumer.seek(one, 99)
        for _ in range(2):
            with pytest.raises(PositionOutOfRangeError) as caught:
                consumer.poll(TIMEOUT)
            assert (caught.value.partition, caught.value.offset) == (0, 99)
        consumer.seek_to_beginning(one)
        assert offsets(consumer, 10) == list(range(10))

    def test_records_that_are_deleted_under_the_position(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer, partition: TopicPartition
    ) -> None:
        fill(kafka, partition.topic, 100)
        consumer = consumer_on()
        consumer.assign([partition])
        read(consumer, 10, max_records=10)
        consumer.pause(partition)
        consumer.seek(partition, 20)
        kafka.delete_records(partition.topic, 0, 60)
        consumer.resume(partition)
        assert offsets(consumer, 40) == list(range(60, 100))

    def test_a_topic_made_anew_is_read_from_its_first_record(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer, partition: TopicPartition
    ) -> None:
        fill(kafka, partition.topic, 10)
        # Asking for the topic while it is gone must not make the broker create it.
        consumer = consumer_on(
            auto_offset_reset="latest", metadata_max_age_ms=300, allow_auto_create_topics=False
        )
        consumer.assign([partition])
        consumer.seek_to_beginning()
        assert offsets(consumer, 10) == list(range(10))
        kafka.delete_topic(partition.topic)
        kafka.create_topic(partition.topic, 1)
        fill(kafka, partition.topic, 15)
        assert offsets(consumer, 15) == list(range(15))

    def test_what_a_loop_has_left_of_a_topic_that_is_gone_is_not_read(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer, partition: TopicPartition
    ) -> None:
        """Regression: it was, and its offsets were committed for the new topic."""
        fill(kafka, partition.topic, 10)
        consumer = consumer_on(
            group_id="g",
            enable_auto_commit=False,
            metadata_max_age_ms=300,
            allow_auto_create_topics=False,
        )
        consumer.assign([partition])
        assert next(iter(consumer)).offset == 0
        kafka.delete_topic(partition.topic)
        kafka.create_topic(partition.topic, 1)
        anew = fill(kafka, partition.topic, 3)
        eventually(lambda: consumer._reading._news, "the news of the topic")
        assert next(iter(consumer)).value == anew[0]
        assert consumer._cursor.handed_over()[partition].offset == 1
        consumer.commit()
        assert consumer.committed([partition]) == {partition: OffsetAndMetadata(1, 0)}

    @pytest.mark.parametrize("is_old_broker", [False, True])
    def test_a_topic_made_anew_before_its_committed_offset_is_asked_for(
        self,
        kafka: EmbeddedKafka,
        consumer_on: MakeConsumer,
        partition: TopicPartition,
        *,
        is_old_broker: bool,
    ) -> None:
        """By its id it is found where the group left off; by its name read from its beginning."""
        if is_old_broker:
            kafka.faults.limit_versions(KAFKA_3_9)
        consumer, group = self.member(kafka, consumer_on, partition)
        kafka.delete_topic(partition.topic)
        kafka.create_topic(partition.topic, 1)
        fill(kafka, partition.topic, 10)
        consumer_on(group_id=group).commit({partition: 7})
        consumer.assign([partition])
        assert offsets(consumer, 10 if is_old_broker else 3)[-1] == 9

    @pytest.mark.parametrize("is_old_broker", [False, True])
    @pytest.mark.parametrize("committed", [None, 7])
    def test_a_topic_made_anew_while_its_committed_offset_is_asked_for(
        self,
        kafka: EmbeddedKafka,
        consumer_on: MakeConsumer,
        partition: TopicPartition,
        committed: int | None,
        *,
        is_old_broker: bool,
    ) -> None:
        if is_old_broker:
            kafka.faults.limit_versions(KAFKA_3_9)
        consumer, group = self.member(kafka, consumer_on, partition, metadata_max_age_ms=300)
        loads = kafka.faults.error(OFFSET_FETCH, CoordinatorLoadInProgress.code)
        consumer.assign([partition])
        eventually(lambda: loads.strikes, "the question")
        kafka.delete_topic(partition.topic)
        kafka.create_topic(partition.topic, 1)
        fill(kafka, partition.topic, 10)
        if committed is not None:
            consumer_on(group_id=group).commit({partition: committed})
        assigned = consumer._core.control.partitions[partition]
        eventually(lambda: assigned.state is not FetchState.AWAITS_COMMITTED, "the new topic's id")
        loads.cancel()
        first = 7 if committed and not is_old_broker else 0
        assert offsets(consumer, 10 - first) == list(range(first, 10))

    def test_the_offsets_of_a_topic_that_is_gone_keep_nobody_waiting(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer, partition: TopicPartition
    ) -> None:
        other = TopicPartition(new_topic(kafka, "stays"), 0)
        fill(kafka, other.topic, 10)
        consumer, _ = self.member(kafka, consumer_on, partition)
        consumer.commit({other: 7})
        kafka.delete_topic(partition.topic)
        assert consumer.committed([partition, other]) == {
            partition: None,
            other: OffsetAndMetadata(7),
        }
        consumer.assign([partition, other])
        consumer.seek_to_beginning(partition)
        assert offsets(consumer, 3) == [7, 8, 9]

    def member(
        self,
        kafka: EmbeddedKafka,
        consumer_on: MakeConsumer,
        partition: TopicPartition,
        **config: object,
    ) -> tuple[Consumer, str]:
        """Return a consumer that knows the topic, and its group, which has read 5 records of it."""
        group = f"group-of-{partition.topic}"
        fill(kafka, partition.topic, 10)
        consumer = consumer_on(
            group_id=group,
            enable_auto_commit=False,
            auto_offset_reset="latest",
            allow_auto_create_topics=False,
            **config,
        )
        consumer.partitions_for(partition.topic)
        consumer.commit({partition: 5})
        return consumer, group


class TestAsking:
    def test_ends_and_times(self, kafka: EmbeddedKafka, consumer_on: MakeConsumer) -> None:
        topic = new_topic(kafka, "ask", 3)
        a, b, c = partitions_of(topic, 3)
        fill(kafka, topic, 100)
        fill(kafka, topic, 10, 1)
        kafka.delete_records(topic, 0, 40)
        consumer = consumer_on()
        assert consumer.beginning_offsets([a, b, c]) == {a: 40, b: 0, c: 0}
        assert consumer.end_offsets([a, b, c]) == {a: 100, b: 10, c: 0}
        when = FIRST_TIMESTAMP_MS + 50_500
        assert consumer.offsets_for_times({a: when, b: when, c: 0}) == {
            a: OffsetAndTimestamp(51, FIRST_TIMESTAMP_MS + 51_000, leader_epoch=1),
            b: None,
            c: None,
        }
        assert consumer.end_offsets([]) == {}
        with pytest.raises(UsageError, match="Unix time"):
            consumer.offsets_for_times({a: -1})

    def test_lag(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer, partition: TopicPartition
    ) -> None:
        fill(kafka, partition.topic, 100)
        consumer = consumer_on()
        consumer.assign([partition])
        assert consumer.current_lag(partition) is None
        assert consumer.lag() == {partition: 100}
        read(consumer, 30, max_records=30)
        assert consumer.current_lag(partition) == 70
        assert consumer.lag() == {partition: 70}

    def test_what_a_loop_has_not_reached_is_behind(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer, partition: TopicPartition
    ) -> None:
        fill(kafka, partition.topic, 100)
        consumer = consumer_on()
        consumer.assign([partition])
        assert len(list(itertools.islice(consumer, 30))) == 30
        for change in (consumer.pause, consumer.resume):
            assert consumer.position(partition) == 30
            assert consumer.current_lag(partition) == 70
            assert consumer.lag() == {partition: 70}
            change(partition)

    def test_a_question_ends_at_its_timeout(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer, partition: TopicPartition
    ) -> None:
        consumer = consumer_on()
        consumer.assign([partition])
        consumer.end_offsets([partition])
        kafka.faults.drop(api=LIST_OFFSETS)
        asks = [
            lambda: consumer.end_offsets([partition], timeout=0.2),
            lambda: consumer.offsets_for_times({partition: 0}, timeout=0.2),
            lambda: consumer.lag(timeout=0.2),
        ]
        for ask in asks:
            start = time.monotonic()
            with pytest.raises(KafkaTimeoutError):
                ask()
            assert time.monotonic() - start < TIMEOUT / 2

    def test_what_does_not_exist_is_told_soon(
        self,
        kafka: EmbeddedKafka,
        consumer_on: MakeConsumer,
        partition: TopicPartition,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Also by one that knew the topic before, and though other partitions do answer."""
        monkeypatch.setattr(lookup, "GETS_ROUND", 0.3)
        gone = partitions_of(new_topic(kafka, "gone", 2), 2)
        fill(kafka, gone[1].topic, 5, 1)
        consumer = consumer_on(default_api_timeout_ms=3_600_000, allow_auto_create_topics=False)
        consumer.assign(gone)
        read(consumer, 5)
        kafka.delete_topic(gone[0].topic)
        beyond = TopicPartition(partition.topic, 7)
        for ask in (
            lambda: consumer.end_offsets([partition, beyond, *gone]),
            consumer.lag,
        ):
            with pytest.raises(UnknownTopicOrPartition, match="there is no ") as caught:
                ask()
            assert f"topic {gone[0].topic!r}" in str(caught.value)
        with pytest.raises(UnknownTopicOrPartition, match=f"there is no partition {beyond}"):
            consumer.beginning_offsets([partition, beyond])
        kafka.create_topic(gone[0].topic, 2)
        assert consumer.end_offsets(gone) == dict.fromkeys(gone, 0)

    def test_a_topic_that_may_not_be_read_is_told_at_once(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer, partition: TopicPartition
    ) -> None:
        consumer = consumer_on()
        refused = kafka.faults.error(METADATA, TopicAuthorizationFailed, topic=partition.topic)
        for _ in range(2):
            with pytest.raises(TopicAuthorizationFailed, match=partition.topic):
                consumer.end_offsets([partition], timeout=TIMEOUT)
        refused.cancel()
        assert consumer.end_offsets([partition]) == {partition: 0}

    def test_a_timeout_names_the_partitions_and_what_they_lack(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer
    ) -> None:
        topic = new_topic(kafka, "leaderless", 9)
        partitions = partitions_of(topic, 9)
        led = [tp for tp in partitions if kafka.leader(*tp) != 2]
        orphans = [tp for tp in partitions if tp not in led]
        for orphan in orphans:
            kafka.set_in_sync(*orphan, [2])
        kafka.kill(2)
        consumer = consumer_on()
        consumer.assign(partitions)
        lacking = ", ".join(f"{tp} (it has no leader)" for tp in orphans)
        for ask in (
            lambda: consumer.beginning_offsets(partitions, timeout=0.3),
            lambda: consumer.end_offsets(partitions, timeout=0.3),
            lambda: consumer.offsets_for_times(dict.fromkeys(partitions, 0), timeout=0.3),
            lambda: consumer.lag(timeout=0.3),
        ):
            with pytest.raises(KafkaTimeoutError) as caught:
                ask()
            # A wait has what its call has left: a little less than its timeout.
            said = rf"looking up offsets: no answer within 0\.[23]\d* s; {re.escape(lacking)}"
            assert re.match(said, str(caught.value))
            assert not any(str(tp) in str(caught.value) for tp in led)
        with pytest.raises(KafkaTimeoutError, match="to start, but it has no leader"):
            consumer.position(orphans[0], timeout=0.3)
        with pytest.raises(KafkaTimeoutError, match=rf"{orphans[0]} \(it has no leader\)"):
            read_range(topic, bootstrap_servers=kafka.bootstrap, default_api_timeout_ms=300)

    def test_a_timeout_names_the_node_that_does_not_answer(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer
    ) -> None:
        many = partitions_of(new_topic(kafka, "many", 30), 30)
        (mine,) = [tp for tp in many if tp.partition == 3]
        node = kafka.leader(*mine)
        consumer = consumer_on()
        consumer.end_offsets(many)
        kafka.pause(node)
        try:
            with pytest.raises(KafkaTimeoutError, match="and 5 more") as caught:
                consumer.end_offsets(many, timeout=0.3)
        finally:
            kafka.resume(node)
        said = rf"{mine} \(its leader, node {node} at 127\.0\.0\.1:\d+, does not answer\)"
        assert re.search(said, str(caught.value))
        kafka.faults.error(LIST_OFFSETS, OffsetNotAvailable)
        with pytest.raises(KafkaTimeoutError, match=r"its leader answers OFFSET_NOT_AVAILABLE"):
            consumer.end_offsets([mine], timeout=0.3)

    @pytest.mark.parametrize("is_given", [True, False], ids=["timeout", "default"])
    def test_every_question_ends_when_no_broker_answers(
        self,
        kafka: EmbeddedKafka,
        consumer_on: MakeConsumer,
        partition: TopicPartition,
        *,
        is_given: bool,
    ) -> None:
        timeout = 0.2 if is_given else None
        consumer = consumer_on(
            group_id="questions", **({} if is_given else {"default_api_timeout_ms": 200})
        )
        consumer.assign([partition])
        for node in (1, 2, 3):
            kafka.pause(node)
        questions = [
            lambda: consumer.position(partition, timeout),
            lambda: consumer.beginning_offsets([partition], timeout),
            lambda: consumer.end_offsets([partition], timeout),
            lambda: consumer.offsets_for_times({partition: 0}, timeout),
            lambda: consumer.lag(timeout),
            lambda: consumer.partitions_for("absent", timeout),
            lambda: consumer.topics(timeout),
            lambda: consumer.committed([partition], timeout),
            lambda: consumer.commit({partition: 1}, timeout=timeout),
        ]
        try:
            for ask in questions:
                with pytest.raises(KafkaTimeoutError):
                    ask()
        finally:
            for node in (1, 2, 3):
                kafka.resume(node)

    def test_topics_and_partitions(self, consumer_on: MakeConsumer, topic: str) -> None:
        consumer = consumer_on()
        assert topic in consumer.topics()
        # A group's coordinator is found by its offsets, for which there must be a topic.
        consumer_on(group_id="any").committed([TopicPartition(topic, 0)])
        hidden = consumer.topics(internal=True) - consumer.topics()
        assert hidden == {"__consumer_offsets"}
        (info,) = consumer.partitions_for(topic)
        assert (info.topic, info.partition, info.leader) == (topic, 0, 1)
        assert set(info.replicas) == {1, 2, 3}


def plant_at(kafka: EmbeddedKafka, topic: str, timestamps_ms: list[int]) -> None:
    """Append one record at each of these times."""
    builder = RecordBatchBuilder()
    for timestamp_ms in timestamps_ms:
        builder.append(None, b"now", timestamp_ms)
    data = builder.build()
    kafka.on_cluster(lambda cluster: cluster.plant(topic, 0, data))


def at(consumer: Consumer, partition: TopicPartition) -> int | None:
    """Return the position if it is known."""
    try:
        return consumer.position(partition, timeout=0)
    except KafkaTimeoutError:
        return None
