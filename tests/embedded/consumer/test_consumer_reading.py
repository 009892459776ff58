"""Records through sockets: poll, iteration, batches, and what ends a wait."""

from __future__ import annotations

import itertools
import pickle
import threading
import time
from collections.abc import Callable

import pytest

from kafka_fast import Consumer, TopicPartition, UsageError, WakeupError
from kafka_fast.errors import (
    RecordDeserializationError,
    TopicAuthorizationFailed,
    UnreadableBatchError,
)
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import FETCH
from tests.embedded.consuming import MakeConsumer, fill, partitions_of, read, values_by_partition
from tests.embedded.producing import new_topic
from tests.waiting import TIMEOUT, eventually

DRIVERS = True  # every test runs with threads and with asyncio


@pytest.fixture
def consumer(kafka: EmbeddedKafka, consumer_on: MakeConsumer, topic: str) -> Consumer:
    """Reads the test's topic."""
    one = consumer_on()
    one.assign(partitions_of(topic, 1))
    return one


class TestPolling:
    def test_every_record_of_every_partition_comes_once_and_in_order(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer
    ) -> None:
        topic = new_topic(kafka, "many", 5)
        written = {number: fill(kafka, topic, 300 + number, number) for number in range(5)}
        consumer = consumer_on()
        consumer.assign(partitions_of(topic, 5))
        records = read(consumer, sum(map(len, written.values())), max_records=70)
        assert values_by_partition(records) == written
        assert not consumer.poll(0.05)

    def test_a_record_is_told_whole(
        self, kafka: EmbeddedKafka, topic: str, consumer: Consumer
    ) -> None:
        fill(kafka, topic, 3)
        record = read(consumer, 3)[1]
        assert (record.topic, record.partition, record.offset) == (topic, 0, 1)
        assert (record.key, record.value, record.headers) == (b"k1", b"0:1", ())
        assert record.timestamp_ms == 1_700_000_001_000

    def test_no_poll_returns_more_than_it_may(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer, topic: str
    ) -> None:
        fill(kafka, topic, 100)
        consumer = consumer_on(max_poll_records=30)
        consumer.assign(partitions_of(topic, 1))
        sizes = [len(consumer.poll(TIMEOUT)), len(consumer.poll(TIMEOUT, 7))]
        assert sizes == [30, 7]
        with pytest.raises(UsageError, match="max_records"):
            consumer.poll(0, 0)

    def test_one_poll_takes_from_several_partitions(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer
    ) -> None:
        topic = new_topic(kafka, "several", 3)
        for number in range(3):
            fill(kafka, topic, 10, number)
        consumer = consumer_on()
        consumer.assign(partitions_of(topic, 3))
        read(consumer, 30)
        before = consumer.metrics()["chunks"]
        consumer.seek_to_beginning()
        eventually(lambda: consumer.metrics()["chunks"] >= before + 3, "all three")
        assert len(consumer.poll(TIMEOUT)) == 30

    def test_an_empty_poll_returns_at_once_or_at_its_timeout(self, consumer: Consumer) -> None:
        consumer.poll(1.0)  # until connected
        for timeout in (0.0, 0.3):
            start = time.monotonic()
            assert len(consumer.poll(timeout)) == 0
            assert timeout - 0.01 <= time.monotonic() - start < timeout + TIMEOUT / 2

    def test_a_poll_that_waits_lets_other_threads_run(
        self, kafka: EmbeddedKafka, topic: str, consumer: Consumer
    ) -> None:
        consumer.poll(0.1)
        threading.Timer(0.3, fill, (kafka, topic, 5)).start()
        start = time.monotonic()
        assert len(consumer.poll(TIMEOUT)) == 5
        assert time.monotonic() - start < 3

    def test_a_record_larger_than_every_limit_still_comes(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer, topic: str
    ) -> None:
        consumer = consumer_on(
            max_partition_fetch_bytes=1_000, fetch_max_bytes=1_000, fetch_buffer_bytes=2_000
        )
        consumer.assign(partitions_of(topic, 1))
        fill(kafka, topic, 500, batch=100)
        assert len(read(consumer, 500)) == 500

    def test_much_that_waits_stays_with_the_broker(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer
    ) -> None:
        topic = new_topic(kafka, "much", 4)
        for number in range(4):
            fill(kafka, topic, 20_000, number, batch=1_000)
        consumer = consumer_on(fetch_buffer_bytes=100_000, max_partition_fetch_bytes=30_000)
        consumer.assign(partitions_of(topic, 4))
        count = len(read(consumer, 1, max_records=1))
        eventually(lambda: consumer.metrics()["buffered_bytes"] >= 50_000, "half of the budget")
        while count < 80_000:
            metrics = consumer.metrics()
            assert metrics["buffered_bytes"] <= 250_000, metrics
            records = consumer.poll(TIMEOUT, 500)
            assert records
            count += len(records)
        assert count == 80_000


class TestIterating:
    def test_a_loop_goes_on_where_another_was_left(
        self, kafka: EmbeddedKafka, topic: str, consumer: Consumer
    ) -> None:
        written = fill(kafka, topic, 100)
        values = [record.value for record in itertools.islice(consumer, 10)]
        for record in consumer:
            values.append(record.value)
            if len(values) == 30:
                break
        values += consumer.poll(TIMEOUT, 20).values()
        assert consumer.position(partitions_of(topic, 1)[0]) == 50
        values += [record.value for record in itertools.islice(consumer, 50)]
        assert values == written

    def test_two_loops_share_the_records(
        self, kafka: EmbeddedKafka, topic: str, consumer: Consumer
    ) -> None:
        fill(kafka, topic, 100)
        one, two = iter(consumer), iter(consumer)
        offsets = [next(loop).offset for _ in range(50) for loop in (one, two)]
        assert offsets == list(range(100))

    def test_batches_are_polls_that_found_something(
        self, kafka: EmbeddedKafka, topic: str, consumer: Consumer
    ) -> None:
        written = fill(kafka, topic, 100)
        values: list[bytes] = []
        for records in consumer.batches(max_records=33):
            assert 0 < len(records) <= 33
            values += records.values()
            if len(values) == 100:
                break
        assert values == written

    def test_a_seek_in_a_loop_takes_effect_with_the_next_record(
        self, kafka: EmbeddedKafka, topic: str, consumer: Consumer
    ) -> None:
        fill(kafka, topic, 100)
        offsets = []
        for record in consumer:
            offsets.append(record.offset)
            if len(offsets) == 3:
                consumer.seek(partitions_of(topic, 1)[0], 90)
            if len(offsets) == 6:
                break
        assert offsets == [0, 1, 2, 90, 91, 92]

    def test_a_pause_in_a_loop_holds_what_it_had_not_reached(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer
    ) -> None:
        topic = new_topic(kafka, "paused", 2)
        first, second = partitions_of(topic, 2)
        written = {number: fill(kafka, topic, 50, number) for number in range(2)}
        consumer = consumer_on()
        consumer.assign([first, second])
        records = [next(iter(consumer)) for _ in range(5)]
        paused = partitions_of(topic, 2)[records[-1].partition]
        (other,) = {first, second} - {paused}
        consumer.pause(paused)
        records += itertools.islice(consumer, 50 - sum(r.partition == other[1] for r in records))
        assert {record.partition for record in records[5:]} == {other.partition}
        assert not consumer.poll(0.1)
        assert consumer.position(paused) == sum(r.partition == paused[1] for r in records)
        consumer.resume(paused)
        records += read(consumer, 100 - len(records))
        assert values_by_partition(records) == written


def public_methods() -> set[str]:
    return {name for name in dir(Consumer) if not name.startswith("_")}


def calls_of(consumer: Consumer) -> dict[str, Callable[[], object]]:
    """Return a call of each public method."""
    partition = TopicPartition("t", 0)
    return {
        "assign": lambda: consumer.assign([partition]),
        "assignment": consumer.assignment,
        "batches": lambda: next(consumer.batches()),
        "beginning_offsets": lambda: consumer.beginning_offsets([partition]),
        "close": consumer.close,
        "commit": lambda: consumer.commit({partition: 1}),
        "committed": lambda: consumer.committed([partition]),
        "current_lag": lambda: consumer.current_lag(partition),
        "end_offsets": lambda: consumer.end_offsets([partition]),
        "enforce_rebalance": consumer.enforce_rebalance,
        "group_metadata": consumer.group_metadata,
        "lag": consumer.lag,
        "offsets_for_times": lambda: consumer.offsets_for_times({partition: 0}),
        "partitions_for": lambda: consumer.partitions_for("absent"),
        "pause": lambda: consumer.pause(partition),
        "paused": consumer.paused,
        "poll": consumer.poll,
        "position": lambda: consumer.position(*consumer.assignment()),
        "resume": lambda: consumer.resume(partition),
        "seek": lambda: consumer.seek(partition, 0),
        "seek_to_beginning": consumer.seek_to_beginning,
        "seek_to_end": consumer.seek_to_end,
        "seek_to_timestamp": lambda: consumer.seek_to_timestamp(0),
        "subscribe": lambda: consumer.subscribe(["t"]),
        "subscription": consumer.subscription,
        "topics": consumer.topics,
        "unsubscribe": consumer.unsubscribe,
    }


class TestWaits:
    def test_wakeup_ends_a_wait_and_nothing_else(
        self, kafka: EmbeddedKafka, topic: str, consumer: Consumer
    ) -> None:
        threading.Timer(0.2, consumer.wakeup).start()
        start = time.monotonic()
        with pytest.raises(WakeupError):
            consumer.poll(TIMEOUT)
        assert time.monotonic() - start < 5
        fill(kafka, topic, 5)
        assert len(read(consumer, 5)) == 5

    def test_a_wakeup_before_the_wait_counts(self, consumer: Consumer) -> None:
        consumer.wakeup()
        with pytest.raises(WakeupError):
            consumer.poll(TIMEOUT)

    def test_a_wakeup_counts_where_there_is_always_something(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer, topic: str
    ) -> None:
        fill(kafka, topic, 100)
        consumer = consumer_on(max_poll_records=10)
        consumer.assign(partitions_of(topic, 1))
        offsets = [record.offset for record in read(consumer, 10)]
        consumer.wakeup()
        with pytest.raises(WakeupError):
            consumer.poll(TIMEOUT)
        offsets += [record.offset for record in itertools.islice(consumer, 15)]
        consumer.wakeup()
        with pytest.raises(WakeupError):
            next(iter(consumer))
        offsets += [record.offset for record in read(consumer, 75)]
        assert offsets == list(range(100))

    def test_a_wakeup_ends_a_loop_after_the_current_record(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer, topic: str
    ) -> None:
        """Regression: it ended after the records of the last poll."""
        fill(kafka, topic, 100)
        consumer = consumer_on()
        consumer.assign(partitions_of(topic, 1))
        offsets: list[int] = []

        def read_on() -> None:
            for record in consumer:
                offsets.append(record.offset)
                if record.offset == 30:
                    thread = threading.Thread(target=consumer.wakeup)
                    thread.start()
                    thread.join()

        with pytest.raises(WakeupError):
            read_on()
        assert offsets == list(range(31))
        assert next(iter(consumer)).offset == 31

    def test_a_loop_goes_on_after_a_wakeup(
        self, kafka: EmbeddedKafka, topic: str, consumer: Consumer
    ) -> None:
        records = iter(consumer)
        consumer.wakeup()
        with pytest.raises(WakeupError):
            next(records)
        fill(kafka, topic, 1)
        assert next(records).offset == 0

    def test_another_thread_is_told_to_keep_out(self, consumer: Consumer) -> None:
        ended = threading.Event()

        def wait() -> None:
            with pytest.raises(WakeupError):
                consumer.poll(TIMEOUT)
            ended.set()

        thread = threading.Thread(target=wait)
        thread.start()
        lock = consumer._caller_lock  # looked at without taking it: the other one's poll would fail
        eventually(lambda: lock.holder is not None, "the other thread's poll")
        calls = calls_of(consumer)
        assert calls.keys() == public_methods() - {"wakeup", "debug_dump", "metrics"}
        assert consumer.metrics()["client_id"] == consumer.client_id
        for name, call in calls.items():
            if name != "close":  # see test_consumer_closing
                with pytest.raises(
                    UsageError, match=r"another thread|^task '.*' uses this consumer"
                ):
                    call()
        consumer.wakeup()
        thread.join(TIMEOUT)
        assert ended.is_set()
        assert not consumer.poll(0)

    def test_a_closed_consumer_says_so(self, consumer: Consumer) -> None:
        consumer.close()
        consumer.close()
        for name, call in calls_of(consumer).items():
            if name != "close":
                with pytest.raises(UsageError, match="closed"):
                    call()
        assert consumer.metrics()["client_id"] == consumer.client_id

    def test_a_loop_ends_when_its_consumer_closes(
        self, kafka: EmbeddedKafka, topic: str, consumer: Consumer
    ) -> None:
        fill(kafka, topic, 10)
        records = iter(consumer)
        assert next(records).offset == 0
        consumer.close()
        with pytest.raises(UsageError, match="closed"):
            next(records)

    def test_a_consumer_is_not_pickled(self, consumer: Consumer) -> None:
        with pytest.raises(TypeError, match="make one in each process"):
            pickle.dumps(consumer)

    @pytest.mark.parametrize(
        "wait", ["commit", "committed", "position", "end_offsets", "partitions_for", "topics"]
    )
    def test_wakeup_ends_every_wait(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer, topic: str, wait: str
    ) -> None:
        consumer = consumer_on(group_id="woken")
        consumer.assign([TopicPartition(topic, 0)])
        read_nothing = consumer.poll(0)
        assert not read_nothing
        for node in (1, 2, 3):
            kafka.pause(node)
        consumer.wakeup()
        consumer.seek_to_end()
        try:
            with pytest.raises(WakeupError):
                calls_of(consumer)[wait]()
        finally:
            for node in (1, 2, 3):
                kafka.resume(node)


class TestBadRecords:
    def test_a_bad_batch_fails_its_partition_and_a_seek_passes_it(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer
    ) -> None:
        topic = new_topic(kafka, "bad", 2)
        bad, good = partitions_of(topic, 2)
        fill(kafka, topic, 10)
        batch = bytearray(
            kafka.on_cluster(lambda cluster: next(iter(cluster.batches(topic, 0))).data)
        )
        batch[0:8] = (10).to_bytes(8, "big")
        batch[-1] ^= 1  # the CRC is wrong now
        kafka.on_cluster(lambda cluster: cluster.plant_bytes(topic, 0, bytes(batch), count=10))
        after = fill(kafka, topic, 10)
        consumer = consumer_on()
        consumer.assign([bad, good])
        assert [record.offset for record in read(consumer, 10)] == list(range(10))
        caught = []
        for _ in range(3):
            with pytest.raises(UnreadableBatchError) as raised:
                consumer.poll(TIMEOUT)
            caught.append(raised.value)
        for error in caught:
            assert (error.topic, error.partition, error.offset) == (topic, 0, 10)
            assert error.next_offset == 20
            assert topic in str(error)
            assert "seek" in str(error)
        written = fill(kafka, topic, 200, 1)
        values = []
        deadline = time.monotonic() + TIMEOUT
        while len(values) < 200:
            assert time.monotonic() < deadline
            try:
                values += consumer.poll(0.1, 30).values()
            except UnreadableBatchError:
                pass
        assert values == written
        consumer.seek(bad, 20)
        assert [record.value for record in read(consumer, 10)] == after

    def test_a_deserializer_that_refuses_names_the_record(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer, topic: str
    ) -> None:
        def parse(data: bytes) -> int:
            number = int(data.split(b":")[1])
            if number == 4:
                raise ValueError("no fours")
            return number

        fill(kafka, topic, 10)
        consumer = consumer_on(value_deserializer=parse, key_deserializer="StringDeserializer")
        (partition,) = partitions_of(topic, 1)
        consumer.assign([partition])
        records = read(consumer, 4)
        assert [(record.key, record.value) for record in records] == [
            (f"k{number}", number) for number in range(4)
        ]
        for _ in range(2):
            with pytest.raises(RecordDeserializationError, match="no fours") as caught:
                consumer.poll(TIMEOUT)
        error = caught.value
        assert (error.topic, error.partition, error.offset) == (topic, 0, 4)
        assert (error.part, error.record.value) == ("value", b"0:4")
        consumer.seek(partition, error.next_offset)
        assert [record.value for record in read(consumer, 5)] == [5, 6, 7, 8, 9]

    def test_a_partition_that_may_not_be_read_leaves_the_others_alone(
        self, kafka: EmbeddedKafka, consumer_on: MakeConsumer
    ) -> None:
        topic = new_topic(kafka, "secret", 2)
        for number in range(2):
            fill(kafka, topic, 10, number)
        kafka.faults.error(FETCH, TopicAuthorizationFailed, topic=topic, partition=0)
        consumer = consumer_on()
        consumer.assign(partitions_of(topic, 2))
        records, refused = [], []
        deadline = time.monotonic() + TIMEOUT
        while len(records) < 10 or len(refused) < 2:
            assert time.monotonic() < deadline
            try:
                records += consumer.poll(0.1)
            except TopicAuthorizationFailed as error:
                refused.append(error)
        assert all(f"{topic}-0" in str(error) for error in refused)
        assert {record.partition for record in records} == {1}
        kafka.heal()
        while len(records) < 20:
            assert time.monotonic() < deadline
            try:
                records += consumer.poll(0.1)
            except TopicAuthorizationFailed:
                pass
        assert len({(record.partition, record.offset) for record in records}) == 20
