"""Transactions on real brokers, in both versions of the protocol, read by another client.

Level 0 and 1 of the feature `transaction.version` are version 1 of the protocol, 2 is version 2.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import confluent_kafka
import pytest

import kafka_fast.aio
from kafka_fast import (
    AbortableTransactionError,
    Admin,
    Consumer,
    DeliveryError,
    Producer,
    ProducerFencedError,
    TransactionError,
    UsageError,
)
from kafka_fast.producer.transactional import Transaction
from kafka_fast.testing._kafka.real_kafka import RealKafka
from kafka_fast.types import GroupMetadata, TopicPartition
from tests.conftest import start_or_skip
from tests.integration.producing import new_topic
from tests.waiting import eventually

pytestmark = pytest.mark.broker

PARTITIONS = 3

QUICK = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 100,
    "transaction.max.timeout.ms": 120_000,
}
"""Of the broker: a transaction whose time is up is aborted a moment later."""


@pytest.fixture(scope="module", params=["2", "0", pytest.param("1", marks=pytest.mark.long)])
def kafka(request: pytest.FixtureRequest) -> Iterator[RealKafka]:
    """A broker with this level of `transaction.version`."""
    level = ["--feature", f"transaction.version={request.param}"]
    real = RealKafka(overrides=QUICK, format_options=level)
    start_or_skip(real)
    with real:
        yield real


@pytest.fixture
def topic(kafka: RealKafka) -> str:
    return new_topic(kafka, PARTITIONS)


def config(kafka: RealKafka, **more: Any) -> dict[str, Any]:
    """Return the configuration of a producer with a transactional id of its own."""
    own = {"bootstrap.servers": kafka.bootstrap, "transactional.id": f"id-{uuid.uuid4().hex}"}
    return {**own, **{name.replace("_", "."): value for name, value in more.items()}}


def committed(kafka: RealKafka, topic: str) -> list[bytes]:
    """Return what librdkafka reads of a topic with isolation.level=read_committed, in order.

    It comes to the end of the log, which is there when no transaction is open any more.
    """
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": uuid.uuid4().hex,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
    )
    beginning = confluent_kafka.OFFSET_BEGINNING
    consumer.assign(
        [confluent_kafka.TopicPartition(topic, number, beginning) for number in range(PARTITIONS)]
    )
    unread, values = set(range(PARTITIONS)), []
    try:
        while unread:
            message = consumer.poll(10.0)
            assert message is not None, f"the log of {topic} does not end: {unread}"
            if message.error() is None:
                values.append(message.value())
            else:
                assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
                unread.discard(message.partition())
    finally:
        consumer.close()
    return sorted(values)


def is_ended(kafka: RealKafka, transactional_id: str) -> bool:
    """Tell whether the coordinator has ended the transaction of an id, its markers included."""
    with Admin({"bootstrap.servers": kafka.bootstrap}) as admin:
        state = admin.describe_transactions([transactional_id])[transactional_id].state
    return state.value in ("CompleteAbort", "CompleteCommit", "Empty")


class BlockError(Exception):
    """What a block of a test raises."""


def raise_in_block(producer: Producer, body: Callable[[Transaction], object]) -> Transaction:
    """Raise in a transaction's block, behind `body`; return the transaction."""
    transaction = producer.transaction()

    def leave_by_error() -> None:
        with transaction:
            body(transaction)
            raise BlockError

    with pytest.raises(BlockError):
        leave_by_error()
    return transaction


class TestABlock:
    def test_commits_at_its_end(self, kafka: RealKafka, topic: str) -> None:
        with Producer(config(kafka)) as producer:
            with producer.transaction() as transaction:
                for number in range(100):
                    producer.send(topic, b"%03d" % number, key=b"%d" % number)
                assert transaction.outcome.value == "open"
            assert transaction.committed
        assert committed(kafka, topic) == [b"%03d" % number for number in range(100)]

    def test_aborts_when_it_raises_and_passes_the_exception_on(
        self, kafka: RealKafka, topic: str
    ) -> None:
        with Producer(config(kafka)) as producer:

            def send_two(transaction: Transaction) -> None:
                producer.send(topic, b"sent", partition=0).result()
                producer.send(topic, b"perhaps sent", partition=1)

            transaction = raise_in_block(producer, send_two)
            assert transaction.outcome.value == "aborted"
            with producer.transaction():
                producer.send(topic, b"next", partition=0)
        assert committed(kafka, topic) == [b"next"]

    def test_that_ends_its_transaction_itself_is_left_alone(
        self, kafka: RealKafka, topic: str
    ) -> None:
        with Producer(config(kafka)) as producer:
            with producer.transaction() as transaction:
                producer.send(topic, b"aborted")
                producer.abort_transaction()
            assert transaction.outcome.value == "aborted"
            with producer.transaction() as transaction:
                producer.send(topic, b"committed")
                producer.commit_transaction()
            assert transaction.committed
        assert committed(kafka, topic) == [b"committed"]


class TestCalls:
    def test_nothing_is_sent_outside_of_a_transaction(self, kafka: RealKafka, topic: str) -> None:
        with Producer(config(kafka)) as producer:
            for _ in range(2):
                with pytest.raises(UsageError, match=r"begin_transaction\(\) first"):
                    producer.send(topic, b"no")
                with pytest.raises(UsageError, match=r"begin_transaction\(\) first"):
                    producer.send_many(topic, [b"no"])
                with pytest.raises(UsageError, match=r"begin_transaction\(\) first"):
                    producer.commit_transaction()
                with producer.transaction():
                    producer.send(topic, b"yes")
        assert committed(kafka, topic) == [b"yes"] * 2

    def test_a_second_begin_is_refused(self, kafka: RealKafka) -> None:
        with (
            Producer(config(kafka)) as producer,
            producer.transaction(),
            pytest.raises(UsageError, match="commit or abort it first"),
        ):
            producer.begin_transaction()

    def test_an_empty_transaction_needs_no_broker(self, kafka: RealKafka) -> None:
        with Producer(config(kafka)) as producer:
            producer.init_transactions()
            before = producer.metrics()["requests"]
            for _ in range(5):
                with producer.transaction() as transaction:
                    pass
                assert transaction.committed
                producer.begin_transaction()
                producer.abort_transaction()
            assert producer.metrics()["requests"] == before

    def test_bulk_calls_and_callbacks_belong_to_it(self, kafka: RealKafka, topic: str) -> None:
        told: list[Any] = []
        values = [b"%05d" % number for number in range(20_000)]
        with Producer(config(kafka), on_delivery=lambda error, _: told.append(error)) as producer:
            with producer.transaction():
                producer.send_many(topic, values)
            assert told == [None] * len(values), "a commit waits for the callbacks, too"
        assert committed(kafka, topic) == values

    def test_records_of_all_threads_belong_to_the_open_transaction(
        self, kafka: RealKafka, topic: str
    ) -> None:
        """What `send` has accepted before the end is of this transaction, what it refuses of none.

        Every third one is aborted.
        """
        accepted: list[tuple[int, bytes]] = []
        stop = threading.Event()

        def sends(name: int) -> None:
            count = 0
            while not stop.is_set():
                value = b"%d-%06d" % (name, count)
                before = current[0]
                try:
                    producer.send_nowait(topic, value)
                except UsageError:
                    stop.wait(0.0005)
                    continue
                if current[0] == before:  # else it is one or the other's
                    accepted.append((before, value))
                count += 1

        current = [0]
        with Producer(config(kafka)) as producer:
            threads = [threading.Thread(target=sends, args=(name,)) for name in range(3)]
            for thread in threads:
                thread.start()
            try:
                for number in range(1, 13):
                    producer.begin_transaction()
                    current[0] = number
                    least = number * 300
                    eventually(lambda: len(accepted) > least, "records")  # noqa: B023  at once
                    if number % 3:
                        producer.commit_transaction()
                    else:
                        producer.abort_transaction()
            finally:
                stop.set()
                for thread in threads:
                    thread.join()
        read = committed(kafka, topic)
        assert len(read) == len(set(read))
        visible = set(read)
        assert all((value in visible) == bool(number % 3) for number, value in accepted)

    def test_two_callers_do_not_end_it_at_the_same_time(self, kafka: RealKafka, topic: str) -> None:
        outcomes: list[Any] = []

        def commits() -> None:
            try:
                producer.commit_transaction()
                outcomes.append("committed")
            except UsageError as error:
                outcomes.append(error)

        with Producer(config(kafka)) as producer:
            producer.begin_transaction()
            producer.send(topic, b"once")
            threads = [threading.Thread(target=commits) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert outcomes.count("committed") == 1
        assert committed(kafka, topic) == [b"once"]


class TestFailures:
    def test_a_record_that_is_not_delivered_keeps_it_from_being_committed(
        self, kafka: RealKafka
    ) -> None:
        small = new_topic(kafka, PARTITIONS, max_message_bytes="2000")
        with Producer(config(kafka)) as producer:
            producer.begin_transaction()
            producer.send_nowait(small, b"small")
            producer.send_nowait(small, b"x" * 5_000)
            with pytest.raises(AbortableTransactionError, match=r"not delivered"):
                producer.commit_transaction()
            with pytest.raises((AbortableTransactionError, UsageError)):
                producer.send(small, b"more")
            with pytest.raises(AbortableTransactionError):
                producer.commit_transaction()
            producer.abort_transaction()
            with producer.transaction():
                producer.send(small, b"next")
        assert committed(kafka, small) == [b"next"]

    def test_a_record_that_send_refuses_leaves_it_usable(
        self, kafka: RealKafka, topic: str
    ) -> None:
        with Producer(config(kafka)) as producer, producer.transaction():
            producer.send(topic, b"good")
            with pytest.raises(DeliveryError, match=r"max\.request\.size"):
                producer.send(topic, b"x" * 2_000_000)
        assert committed(kafka, topic) == [b"good"]

    def test_what_is_aborted_before_it_was_sent_fails_as_aborted(
        self, kafka: RealKafka, topic: str
    ) -> None:
        with Producer(config(kafka, linger_ms=60_000, delivery_timeout_ms=120_000)) as producer:
            producer.begin_transaction()
            future = producer.send(topic, b"never sent")
            producer.abort_transaction()
            error = future.exception()
            assert isinstance(error, DeliveryError)
            assert isinstance(error.__cause__, TransactionError)
            assert "its transaction was aborted" in str(error)
            with producer.transaction():
                producer.send(topic, b"next")
        assert committed(kafka, topic) == [b"next"]

    def test_after_its_time_it_says_so_and_the_next_one_works(
        self, kafka: RealKafka, topic: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        own = config(kafka, transaction_timeout_ms=1_000)
        with caplog.at_level(logging.WARNING), Producer(own) as producer:
            producer.begin_transaction()
            producer.send(topic, b"too late").result()
            eventually(lambda: is_ended(kafka, own["transactional.id"]), "the timeout")
            eventually(lambda: "transaction.timeout.ms (1000)" in caplog.text, "the warning")
            with pytest.raises(TransactionError, match=r"transaction\.timeout\.ms") as caught:
                producer.commit_transaction()
            is_fenced = isinstance(caught.value, ProducerFencedError)  # by version 1, as a zombie
            if not is_fenced:
                producer.abort_transaction()
                with producer.transaction():
                    producer.send(topic, b"in time")
        with Producer({**own, "transaction.timeout.ms": 60_000}) as another, another.transaction():
            another.send(topic, b"of another")
        assert committed(kafka, topic) == [b"in time"] * (not is_fenced) + [b"of another"]

    def test_a_timeout_above_the_brokers_is_refused_with_the_number(self, kafka: RealKafka) -> None:
        with (
            Producer(config(kafka, transaction_timeout_ms=130_000)) as producer,
            pytest.raises(kafka_fast.KafkaError, match=r"transaction\.timeout\.ms \(130000\)"),
        ):
            producer.init_transactions()

    def test_one_that_is_open_at_the_close_is_aborted(
        self, kafka: RealKafka, topic: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        own = config(kafka)
        with Producer(own) as producer:
            producer.begin_transaction()
            producer.send(topic, b"open").result()
        assert "closed with a transaction open" in caplog.text
        eventually(lambda: is_ended(kafka, own["transactional.id"]), "its end")
        assert committed(kafka, topic) == []

    @pytest.mark.filterwarnings("ignore::ResourceWarning")
    def test_one_whose_producer_is_collected_is_aborted(self, kafka: RealKafka, topic: str) -> None:
        own = config(kafka)
        producer = Producer(own)
        producer.begin_transaction()
        producer.send(topic, b"open").result()
        del producer
        gc.collect()
        eventually(lambda: is_ended(kafka, own["transactional.id"]), "its end")
        assert committed(kafka, topic) == []


class TestOffsets:
    def offset(self, kafka: RealKafka, group: str, partition: TopicPartition) -> int | None:
        with Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group}) as consumer:
            at = consumer.committed([partition])[partition]
        return None if at is None else at.offset

    def test_are_committed_with_the_records(self, kafka: RealKafka, topic: str) -> None:
        group, place = f"group-{uuid.uuid4().hex}", TopicPartition(topic, 1)
        with Producer(config(kafka)) as producer:
            with producer.transaction() as transaction:
                producer.send(topic, b"record")
                transaction.send_offsets({place: 5}, group)
            assert self.offset(kafka, group, place) == 5
            raise_in_block(producer, lambda block: block.send_offsets({place: 6}, group))
            assert self.offset(kafka, group, place) == 5
            with producer.transaction() as transaction:  # offsets alone are a transaction
                transaction.send_offsets({place: 7}, group)
            assert self.offset(kafka, group, place) == 7

    @pytest.mark.parametrize("protocol", ["classic", "consumer"])
    def test_of_records_are_those_behind_them(
        self, kafka: RealKafka, topic: str, protocol: str
    ) -> None:
        group = f"group-{uuid.uuid4().hex}"
        reads = {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        place = TopicPartition(topic, 2)
        with Producer(config(kafka)) as producer, Consumer(reads) as consumer:
            with producer.transaction():
                for value in (b"1", b"2", b"3"):
                    producer.send(topic, value, partition=2)
            consumer.subscribe([topic])
            records = eventually(lambda: consumer.poll(1.0), "records")
            assert len(records) == 3
            with producer.transaction() as transaction:
                producer.send(topic, b"4", partition=0)
                transaction.send_offsets(records, consumer.group_metadata())
            committed_at = consumer.committed([place])[place]
            assert committed_at is not None
            assert committed_at.offset in (3, 4)  # with or without the marker

    def test_of_a_member_that_was_expelled_are_refused(self, kafka: RealKafka, topic: str) -> None:
        group, place = f"group-{uuid.uuid4().hex}", TopicPartition(topic, 0)
        reads = {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
        }
        with Producer(config(kafka)) as producer, Consumer(reads) as consumer:
            consumer.subscribe([topic])
            eventually(lambda: consumer.poll(0.1) is not None and consumer.assignment(), "it")
            member = consumer.group_metadata()
            stale = GroupMetadata(group, member.generation - 1, member.member_id, None)
            producer.begin_transaction()
            producer.send(topic, b"of a zombie")
            with pytest.raises(AbortableTransactionError, match=group):
                producer.send_offsets_to_transaction({place: 1}, stale)
            with pytest.raises(AbortableTransactionError):
                producer.commit_transaction()
            producer.abort_transaction()
        assert self.offset(kafka, group, place) is None
        assert committed(kafka, topic) == []


class TestFencing:
    def test_a_successor_ends_the_open_transaction_and_fences(
        self, kafka: RealKafka, topic: str
    ) -> None:
        own = config(kafka)
        with Producer(own) as zombie, Producer(own) as successor:
            zombie.begin_transaction()
            zombie.send(topic, b"zombie").result()
            with successor.transaction():
                successor.send(topic, b"successor")
            zombie.send(topic, b"late")
            with pytest.raises(TransactionError):
                zombie.commit_transaction()
            with suppress(ProducerFencedError, UsageError):  # in version 1 the commit has found out
                zombie.abort_transaction()
            with pytest.raises(ProducerFencedError, match="newer producer"):
                zombie.begin_transaction()
            with successor.transaction():
                successor.send(topic, b"again")
        assert committed(kafka, topic) == [b"again", b"successor"]

    def test_librdkafka_and_kafka_fast_fence_each_other(self, kafka: RealKafka, topic: str) -> None:
        own = config(kafka)
        theirs = confluent_kafka.Producer(own)
        theirs.init_transactions(30)
        theirs.begin_transaction()
        theirs.produce(topic, b"theirs, fenced")
        theirs.flush()
        with Producer(own) as ours:
            with ours.transaction():
                ours.send(topic, b"ours")
            with pytest.raises(confluent_kafka.KafkaException):
                theirs.commit_transaction(30)
            ours.begin_transaction()
            ours.send(topic, b"ours, fenced").result()
            another = confluent_kafka.Producer(own)
            another.init_transactions(30)
            with pytest.raises(TransactionError):
                ours.commit_transaction()
            another.begin_transaction()
            another.produce(topic, b"theirs")
            another.commit_transaction(30)
        assert committed(kafka, topic) == [b"ours", b"theirs"]

    def test_an_operator_fences_too(self, kafka: RealKafka, topic: str) -> None:
        own = config(kafka)
        with Producer(own) as producer, Admin({"bootstrap.servers": kafka.bootstrap}) as admin:
            producer.begin_transaction()
            producer.send(topic, b"fenced").result()
            admin.fence_producers([own["transactional.id"]]).raise_first()
            with pytest.raises(TransactionError):
                producer.commit_transaction()
        assert committed(kafka, topic) == []


class TestAsyncio:
    def test_the_same_as_coroutines(self, kafka: RealKafka, topic: str) -> None:
        async def main() -> None:
            async with kafka_fast.aio.Producer(config(kafka)) as producer:
                async with producer.transaction() as transaction:
                    await producer.send(topic, b"committed")
                    await transaction.send_offsets({TopicPartition(topic, 0): 3}, "aio")
                assert transaction.committed
                transaction = producer.transaction()

                async def leave_by_error() -> None:
                    async with transaction:
                        await producer.send_and_wait(topic, b"aborted")
                        raise BlockError

                with pytest.raises(BlockError):
                    await leave_by_error()
                assert transaction.outcome.value == "aborted"
                with pytest.raises(UsageError):
                    await producer.send(topic, b"outside")

        asyncio.run(main())
        assert committed(kafka, topic) == [b"committed"]

    @pytest.mark.parametrize("steps", [0, 1, 2, 5, 20])
    def test_a_commit_that_is_cancelled_is_repeated(
        self, kafka: RealKafka, topic: str, steps: int
    ) -> None:
        """It leaves a transaction that is open, or being committed: never silence."""

        async def main() -> None:
            async with kafka_fast.aio.Producer(config(kafka)) as producer:
                await producer.begin_transaction()
                await producer.send(topic, b"once")
                commit = asyncio.ensure_future(producer.commit_transaction())
                for _ in range(steps):
                    await asyncio.sleep(0)
                commit.cancel()
                try:
                    await commit
                except asyncio.CancelledError:
                    await producer.commit_transaction()

        asyncio.run(main())
        assert committed(kafka, topic) == [b"once"]
