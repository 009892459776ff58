"""What is committed: by hand, in every form; by itself, never more than what is done."""

from __future__ import annotations

import gc
import itertools
import threading
import time
import warnings
from collections.abc import Callable, Mapping

import pytest

from kafka_fast import (
    CommitFailedError,
    Consumer,
    KafkaError,
    KafkaTimeoutError,
    OffsetAndMetadata,
    TopicPartition,
    UsageError,
    WakeupError,
)
from kafka_fast.consumer import ConsumerRecords
from kafka_fast.errors import (
    CoordinatorLoadInProgress,
    NotCoordinator,
    OffsetMetadataTooLarge,
    RebalanceInProgress,
)
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import OFFSET_COMMIT, OFFSET_FETCH
from tests.embedded.consuming import (
    MakeConsumer,
    committed,
    fill,
    partitions_of,
    poll_until,
    read,
)
from tests.embedded.producing import new_topic
from tests.waiting import TIMEOUT, eventually

DRIVERS = True  # every test runs with threads and with asyncio


@pytest.fixture
def group(topic: str) -> str:
    return f"group-of-{topic}"


@pytest.fixture
def partition(kafka: EmbeddedKafka, topic: str) -> TopicPartition:
    """Holds 100 records."""
    fill(kafka, topic, 100)
    return TopicPartition(topic, 0)


@pytest.fixture
def consumer(consumer_on: MakeConsumer, partition: TopicPartition, group: str) -> Consumer:
    """Reads the partition, and commits when it is told to."""
    one = consumer_on(group_id=group, enable_auto_commit=False)
    one.assign([partition])
    return one


class TestByHand:
    def test_everything_that_was_handed_over(
        self, kafka: EmbeddedKafka, consumer: Consumer, partition: TopicPartition, group: str
    ) -> None:
        assert consumer.committed([partition]) == {partition: None}
        read(consumer, 30, max_records=30)
        consumer.commit()
        assert consumer.committed([partition]) == {partition: OffsetAndMetadata(30, 1)}
        for _ in itertools.islice(consumer, 10):
            pass
        consumer.commit()
        assert committed(kafka, group) == {partition: 40}

    def test_records_one_record_and_a_mapping(
        self, kafka: EmbeddedKafka, consumer: Consumer, partition: TopicPartition, group: str
    ) -> None:
        records = consumer.poll(TIMEOUT, 20)
        assert len(records) == 20
        consumer.poll(TIMEOUT, 20)
        for upto, offset in [
            (records, 20),
            (records[:7], 7),
            (records[9], 10),
            ({partition: 3}, 3),
            ({partition: OffsetAndMetadata(33, 1, "a note")}, 33),
        ]:
            consumer.commit(upto)
            assert committed(kafka, group) == {partition: offset}
        assert consumer.committed([partition])[partition] == OffsetAndMetadata(33, 1, "a note")
        consumer.commit({})
        consumer.commit(records[:0])
        for wrong in ({partition: -1}, 17, "t"):
            with pytest.raises(UsageError):
                consumer.commit(wrong)  # type: ignore[arg-type]

    def test_the_next_consumer_begins_there(
        self, consumer: Consumer, consumer_on: MakeConsumer, partition: TopicPartition, group: str
    ) -> None:
        consumer.commit({partition: 77})
        other = consumer_on(group_id=group)
        other.assign([partition])
        assert read(other, 23)[0].offset == 77

    def test_without_waiting(
        self, kafka: EmbeddedKafka, consumer: Consumer, partition: TopicPartition, group: str
    ) -> None:
        told: list[tuple[Mapping[TopicPartition, OffsetAndMetadata], KafkaError | None]] = []
        thread = []

        def tell(
            offsets: Mapping[TopicPartition, OffsetAndMetadata], error: KafkaError | None
        ) -> None:
            told.append((offsets, error))
            thread.append(threading.current_thread())

        consumer.pause(partition)
        kafka.faults.error(OFFSET_COMMIT, CoordinatorLoadInProgress, count=2)
        for number in range(5):
            consumer.commit({partition: number}, sync=False, callback=tell)
        eventually(lambda: consumer.poll(0.01) or len(told) == 5)
        assert [offsets[partition].offset for offsets, _ in told] == list(range(5))
        assert {error for _, error in told} == {None}
        assert set(thread) == {threading.current_thread()}
        assert committed(kafka, group) == {partition: 4}

    def test_a_commit_without_waiting_is_not_overtaken(
        self, kafka: EmbeddedKafka, consumer: Consumer, partition: TopicPartition, group: str
    ) -> None:
        kafka.faults.error(OFFSET_COMMIT, NotCoordinator, count=2)
        told: list[KafkaError | None] = []
        consumer.commit({partition: 10}, sync=False, callback=lambda _, error: told.append(error))
        consumer.commit({partition: 20})
        eventually(lambda: consumer.poll(0.01) is None or told, "the first commit's answer")
        assert told == [None]
        assert committed(kafka, group) == {partition: 20}

    def test_a_refused_commit_is_raised_or_told(
        self, consumer: Consumer, partition: TopicPartition
    ) -> None:
        note = OffsetAndMetadata(1, -1, "x" * 5_000)
        with pytest.raises(OffsetMetadataTooLarge, match=str(partition)):
            consumer.commit({partition: note})
        told: list[KafkaError | None] = []
        consumer.commit({partition: note}, sync=False, callback=lambda _, error: told.append(error))
        eventually(lambda: consumer.poll(0.01) is None or told)
        assert isinstance(told[0], OffsetMetadataTooLarge)

    def test_a_group_that_has_moved_on(
        self, kafka: EmbeddedKafka, consumer: Consumer, partition: TopicPartition
    ) -> None:
        kafka.faults.error(OFFSET_COMMIT, RebalanceInProgress, count=1)
        with pytest.raises(CommitFailedError, match="rebalanced"):
            consumer.commit({partition: 1})

    @pytest.mark.parametrize("sync", [True, False])
    def test_before_the_first_assignment(
        self, consumer_on: MakeConsumer, partition: TopicPartition, group: str, *, sync: bool
    ) -> None:
        member = consumer_on(group_id=group)
        member.subscribe([partition.topic])
        with pytest.raises(CommitFailedError, match=r"not assigned .* yet: the first polls"):
            member.commit({partition: 1}, sync=sync)
        poll_until([member], lambda: member.assignment() == {partition})
        elsewhere = TopicPartition("elsewhere", 3)
        with pytest.raises(CommitFailedError, match=f"{elsewhere}: not assigned .* now: whoever"):
            member.commit({partition: 1, elsewhere: 1}, sync=sync)
        member.unsubscribe()
        member.subscribe([partition.topic])
        with pytest.raises(CommitFailedError, match="yet"):
            member.commit({partition: 1}, sync=sync)

    def test_a_timeout(
        self, kafka: EmbeddedKafka, consumer: Consumer, partition: TopicPartition
    ) -> None:
        consumer.committed([partition])
        kafka.faults.drop(api=OFFSET_COMMIT)
        kafka.faults.drop(api=OFFSET_FETCH)
        for ask in (
            lambda: consumer.commit({partition: 1}, timeout=0.2),
            lambda: consumer.committed([partition], timeout=0.2),
        ):
            start = time.monotonic()
            with pytest.raises(KafkaTimeoutError):
                ask()
            assert time.monotonic() - start < TIMEOUT / 2

    def test_offsets_that_a_transaction_holds_are_waited_for(
        self,
        kafka: EmbeddedKafka,
        consumer_on: MakeConsumer,
        consumer: Consumer,
        partition: TopicPartition,
        group: str,
    ) -> None:
        consumer.commit({partition: 50})
        kafka.on_cluster(lambda cluster: cluster.set_unstable(group, *partition))
        careful = consumer_on(group_id=group, isolation_level="read_committed")
        careful.assign([partition])
        assert not careful.poll(0.3)
        kafka.on_cluster(lambda cluster: cluster.set_unstable(group, *partition, False))
        assert read(careful, 50)[0].offset == 50

    @pytest.mark.parametrize("protocol", ["classic", "consumer"])
    def test_all_that_a_group_has(
        self,
        kafka: EmbeddedKafka,
        consumer_on: MakeConsumer,
        topic: str,
        group: str,
        protocol: str,
    ) -> None:
        stranger = consumer_on(group_id=group, group_protocol=protocol)
        assert stranger.committed() == {}
        assert stranger.committed([]) == {}
        other = new_topic(kafka, "other", 3)
        member = consumer_on(group_id=group, group_protocol=protocol)
        member.subscribe([topic, other])
        poll_until([member], lambda: len(member.assignment()) == 4)
        done = {TopicPartition(topic, 0): 7, TopicPartition(other, 2): 9}
        member.commit(done)
        of_group = stranger.committed()
        assert {tp: at.offset for tp, at in of_group.items() if at is not None} == done
        assert member.committed() == of_group

    def test_without_a_group(self, consumer_on: MakeConsumer, partition: TopicPartition) -> None:
        alone = consumer_on()
        alone.assign([partition])
        for use in (
            alone.commit,
            lambda: alone.committed([partition]),
            alone.group_metadata,
            lambda: alone.unsubscribe() or alone.subscribe(["t"]),  # type: ignore[func-returns-value]
        ):
            with pytest.raises(
                UsageError, match=r"group\.id; without a group use assign\(\), or read_range"
            ):
                use()


def poll_thrice(consumer: Consumer) -> ConsumerRecords:
    """Return records 20 to 29."""
    for _ in range(3):
        records = consumer.poll(TIMEOUT, 10)
    return records


def loop_up_to(consumer: Consumer, last: int) -> None:
    for record in consumer:
        if record.offset == last:
            break


def take_batches(consumer: Consumer) -> None:
    for number, _ in enumerate(consumer.batches(10), 1):
        if number == 3:
            break


# What is done with a consumer, and what is committed when an exception follows.
WORK: dict[str, tuple[Callable[[Consumer, TopicPartition], object], int]] = {
    "poll": (lambda c, p: poll_thrice(c), 20),
    "poll, commit a record": (lambda c, p: c.commit(poll_thrice(c)[3]), 24),
    "poll, commit all": (lambda c, p: (poll_thrice(c), c.commit(sync=False)), 30),
    "poll, commit less": (lambda c, p: (poll_thrice(c), c.commit({p: 3})), 20),
    "poll, seek": (lambda c, p: (poll_thrice(c), c.seek(p, 77)), 20),
    "poll, seek back": (lambda c, p: (poll_thrice(c), c.seek(p, 7)), 7),
    "poll, be woken": (lambda c, p: (poll_thrice(c), c.wakeup(), c.poll()), 30),
    "batches": (lambda c, p: take_batches(c), 20),
    "loop": (lambda c, p: loop_up_to(c, 42), 42),
    "loop, commit all": (lambda c, p: (loop_up_to(c, 42), c.commit()), 43),
    "loop, commit, loop": (lambda c, p: (loop_up_to(c, 42), c.commit(), loop_up_to(c, 50)), 50),
    "loop, seek": (lambda c, p: (loop_up_to(c, 42), c.seek(p, 77)), 42),
    "loop, seek to the end": (
        lambda c, p: (loop_up_to(c, 42), c.seek_to_end(), c.position(p)),
        42,
    ),
    "loop, pause": (lambda c, p: (loop_up_to(c, 42), c.pause(p)), 42),
    "loop, poll": (lambda c, p: (loop_up_to(c, 42), c.poll(TIMEOUT, 5)), 43),
    "loop, poll, loop": (lambda c, p: (loop_up_to(c, 42), c.poll(0, 5), loop_up_to(c, 48)), 48),
}


class TestByItself:
    @pytest.fixture
    def auto(self, consumer_on: MakeConsumer, topic: str, group: str) -> Consumer:
        """Commits at every poll."""
        one = consumer_on(group_id=group, auto_commit_interval_ms=0)
        one.subscribe([topic])
        return one

    def test_the_last_poll_is_done_with_the_next(
        self, kafka: EmbeddedKafka, partition: TopicPartition, auto: Consumer, group: str
    ) -> None:
        read(auto, 10, max_records=10)
        auto.committed([partition])  # behind a commit, had one been sent
        assert committed(kafka, group).get(partition, 0) == 0
        auto.poll(TIMEOUT, 10)
        eventually(lambda: committed(kafka, group).get(partition) == 10)
        auto.close()
        assert committed(kafka, group) == {partition: 10}, "nobody has asked for the next ones"

    def test_a_loop_that_is_left(
        self, kafka: EmbeddedKafka, partition: TopicPartition, auto: Consumer, group: str
    ) -> None:
        for record in auto:
            assert committed(kafka, group).get(partition, 0) == 0
            if record.offset == 42:
                break
        auto.poll(TIMEOUT, 5)  # 43 to 47
        eventually(lambda: committed(kafka, group).get(partition) == 43)
        known = auto.committed([partition])[partition]
        assert known is not None
        assert known.leader_epoch == record.leader_epoch >= 0, (
            "who begins there looks whether the log is still the same"
        )
        auto.close()
        assert committed(kafka, group) == {partition: 43}

    def test_batches(
        self, kafka: EmbeddedKafka, partition: TopicPartition, auto: Consumer, group: str
    ) -> None:
        for number, records in enumerate(auto.batches(10)):
            assert len(records) == 10
            assert committed(kafka, group).get(partition, 0) <= number * 10
            if number == 3:
                auto.commit(upto=records[4])
                break
        auto.close()
        assert committed(kafka, group) == {partition: 35}

    @pytest.mark.parametrize("work", WORK)
    @pytest.mark.parametrize("is_member", [True, False], ids=["subscribed", "assigned"])
    def test_an_exception_leaves_what_was_worked_on_undone(
        self,
        kafka: EmbeddedKafka,
        partition: TopicPartition,
        group: str,
        work: str,
        *,
        is_member: bool,
    ) -> None:
        config = {"group_id": group, "auto_offset_reset": "earliest"}
        do, done = WORK[work]

        def run() -> None:
            with Consumer(bootstrap_servers=kafka.bootstrap, **config) as consumer:
                if is_member:
                    consumer.subscribe([partition.topic])
                else:
                    consumer.assign([partition])
                do(consumer, partition)
                raise ZeroDivisionError

        with pytest.raises((ZeroDivisionError, WakeupError)):
            run()
        assert committed(kafka, group) == {partition: done}

    def test_what_was_dropped_was_not_committed(
        self, kafka: EmbeddedKafka, partition: TopicPartition, consumer_on: MakeConsumer, group: str
    ) -> None:
        one = Consumer(
            bootstrap_servers=kafka.bootstrap, group_id=group, auto_offset_reset="earliest"
        )
        one.assign([partition])
        read(one, 30, max_records=30)
        del one
        with pytest.warns(ResourceWarning, match="before it was closed"):
            gc.collect()
        assert committed(kafka, group).get(partition, 0) == 0
        other = consumer_on(group_id=group)
        other.assign([partition])
        assert read(other, 100)[0].offset == 0

    def test_assigning_something_else_commits_what_is_covered(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer, partition: TopicPartition, group: str
    ) -> None:
        consumer = consumer_on(group_id=group)
        consumer.assign([partition])
        read(consumer, 30, max_records=30)
        assert len(consumer.poll(TIMEOUT, 5)) == 5
        consumer.assign(partitions_of(new_topic(kafka, "else"), 1))
        eventually(lambda: committed(kafka, group).get(partition) == 30)

    def test_a_consumer_without_a_group_commits_nothing(
        self, consumer_on: MakeConsumer, partition: TopicPartition
    ) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            alone = consumer_on()
            alone.assign([partition])
            read(alone, 100)
            alone.close()
