"""Transactions when brokers fail: what was committed is there once, what was aborted never is.

Each test runs with both versions of the protocol, in threads and in tasks.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from kafka_fast import Consumer
from kafka_fast.errors import (
    AbortableTransactionError,
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    DeliveryError,
    KafkaTimeoutError,
    NotCoordinator,
    NotLeaderOrFollower,
    ProducerFencedError,
    TransactionError,
    TransactionOutcomeUnknownError,
    UsageError,
)
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.transactions.settings import TransactionSettings
from kafka_fast.testing.broker.versions import (
    ADD_PARTITIONS_TO_TXN,
    DESCRIBE_CONFIGS,
    END_TXN,
    INIT_PRODUCER_ID,
    PRODUCE,
    TXN_OFFSET_COMMIT,
)
from kafka_fast.types import TopicPartition
from tests.embedded.looped import Cancelled, producer_of, run
from tests.embedded.producing import MakeProducer, new_topic
from tests.waiting import TIMEOUT, eventually

DRIVERS = True  # every test runs with threads and with asyncio

QUICK = {"retry.backoff.ms": 20, "reconnect.backoff.ms": 20}


@pytest.fixture(params=[2, 1], ids=["version 2", "version 1"])
def kafka(request: pytest.FixtureRequest) -> Iterator[EmbeddedKafka]:
    """Three brokers whose transactions are of this version."""
    level = {2: 2, 1: 0}[request.param]
    settings = TransactionSettings(version=level, abort_interval_ms=100)
    with EmbeddedKafka(3, transactions=settings, groups=None) as broker:
        yield broker


@pytest.fixture
def topic(kafka: EmbeddedKafka, request: pytest.FixtureRequest) -> str:
    return new_topic(kafka, request.node.name, 3)


@pytest.fixture
def make(kafka: EmbeddedKafka, producer_class: Any) -> Iterator[MakeProducer]:
    """Make producers with a transactional id, which are closed at the end."""
    made: list[Any] = []

    def make_one(**config: Any) -> Any:
        own = {"transactional_id": "id", "bootstrap_servers": kafka.bootstrap, **config}
        made.append(producer_class(QUICK, **own))
        return made[-1]

    yield make_one
    kafka.heal()
    kafka.faults.clear()
    for producer in made:
        producer.close(TIMEOUT)


def committed(kafka: EmbeddedKafka, topic: str) -> list[bytes]:
    """Return what a consumer reads with isolation.level=read_committed, to the end of the log."""
    places = [TopicPartition(topic, number) for number in range(3)]
    values: list[bytes] = []
    with Consumer(
        QUICK, bootstrap_servers=kafka.bootstrap, isolation_level="read_committed"
    ) as consumer:
        consumer.assign(places)
        consumer.seek_to_beginning(*places)

        def is_at_end() -> bool:
            values.extend(consumer.poll(0.05).values())
            return all(
                consumer.position(place) >= kafka.end_offset(topic, place.partition)
                for place in places
            )

        eventually(is_at_end, "the end of the log: no transaction is open")
    return sorted(values)


def send_all(producer: Any, topic: str, *values: bytes) -> None:
    for number, value in enumerate(values):
        producer.send(topic, value, partition=number % 3)


class TestLostAnswers:
    @pytest.mark.parametrize("applied", [True, False], ids=["after", "before"])
    @pytest.mark.parametrize("api", [PRODUCE, END_TXN, INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN])
    def test_a_commit_is_made_once(
        self, kafka: EmbeddedKafka, topic: str, make: MakeProducer, api: int, applied: bool
    ) -> None:
        """Connections break with and without the request having been carried out."""
        kafka.faults.drop(api=api, applied=applied, close=True, count=2)
        producer = make()
        for number in range(4):
            producer.begin_transaction()
            send_all(producer, topic, b"%d-a" % number, b"%d-b" % number, b"%d-c" % number)
            producer.commit_transaction()
        wanted = [b"%d-%s" % (number, part) for number in range(4) for part in (b"a", b"b", b"c")]
        assert committed(kafka, topic) == wanted

    @pytest.mark.parametrize("applied", [True, False], ids=["after", "before"])
    def test_an_abort_is_made(
        self, kafka: EmbeddedKafka, topic: str, make: MakeProducer, applied: bool
    ) -> None:
        kafka.faults.drop(api=END_TXN, applied=applied, close=True, count=2)
        producer = make()
        producer.begin_transaction()
        send_all(producer, topic, b"no", b"no", b"no")
        producer.abort_transaction()
        producer.begin_transaction()
        send_all(producer, topic, b"yes")
        producer.commit_transaction()
        assert committed(kafka, topic) == [b"yes"]

    def test_an_outcome_that_is_not_known_is_asked_for_again(
        self, kafka: EmbeddedKafka, topic: str, make: MakeProducer
    ) -> None:
        silence = kafka.faults.drop(api=END_TXN)  # carried out, never answered
        producer = make(request_timeout_ms=500)
        producer.begin_transaction()
        send_all(producer, topic, b"once")
        with pytest.raises(TransactionOutcomeUnknownError, match="may have been committed"):
            producer.commit_transaction(0.3)
        with pytest.raises(UsageError, match="commit_transaction"):
            producer.abort_transaction()
        with pytest.raises(UsageError, match="commit is under way"):
            producer.send(topic, b"no")
        silence.cancel()
        producer.commit_transaction()
        producer.begin_transaction()
        send_all(producer, topic, b"next")
        producer.commit_transaction()
        assert committed(kafka, topic) == [b"next", b"once"]


class TestCoordinators:
    @pytest.mark.parametrize(
        "error", [NotCoordinator, CoordinatorLoadInProgress, ConcurrentTransactions]
    )
    @pytest.mark.parametrize(
        "api", [INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, TXN_OFFSET_COMMIT, END_TXN]
    )
    def test_are_asked_again(
        self, kafka: EmbeddedKafka, topic: str, make: MakeProducer, api: int, error: Any
    ) -> None:
        kafka.faults.error(api, error, count=3)
        producer = make()
        producer.begin_transaction()
        send_all(producer, topic, b"1")
        producer.send_offsets_to_transaction({TopicPartition(topic, 0): 7}, "group")
        producer.commit_transaction()
        assert committed(kafka, topic) == [b"1"]
        assert kafka.committed("group") == {(topic, 0): 7}

    def test_that_move_are_found_again(
        self, kafka: EmbeddedKafka, topic: str, make: MakeProducer
    ) -> None:
        producer = make()
        wanted = []
        for number in range(9):
            producer.begin_transaction()
            send_all(producer, topic, b"%d" % number)
            node = number % 3 + 1
            kafka.on_cluster(lambda it, node=node: it.move_transaction_coordinator("id", node))
            if number % 3 == 2:
                producer.abort_transaction()
            else:
                producer.commit_transaction()
                wanted.append(b"%d" % number)
        assert committed(kafka, topic) == wanted

    def test_that_are_away_keep_a_commit_waiting_and_lose_nothing(
        self, kafka: EmbeddedKafka, topic: str, make: MakeProducer
    ) -> None:
        producer = make()
        producer.begin_transaction()
        futures = [producer.send(topic, b"x", partition=number) for number in range(3)]
        assert all(future.result(TIMEOUT) for future in futures)
        node = kafka.on_cluster(lambda it: it.transaction_coordinator("id"))
        kafka.pause(node)
        with pytest.raises(KafkaTimeoutError):
            producer.commit_transaction(0.3)
        kafka.resume(node)
        producer.commit_transaction()
        assert committed(kafka, topic) == [b"x"] * 3

    @pytest.mark.threads_only("what is checked is the control plane's")
    def test_a_commit_that_was_in_no_request_can_be_aborted(
        self, kafka: EmbeddedKafka, topic: str, make: MakeProducer
    ) -> None:
        """Regression: it went on in the background, and was made when the coordinator was back."""
        producer = make()
        producer.begin_transaction()
        futures = [producer.send(topic, b"x", partition=number) for number in range(3)]
        assert all(future.result(TIMEOUT) for future in futures)
        for node in (1, 2, 3):
            kafka.kill(node)
        eventually(lambda: not [*producer._core.control.links.ready], "the ends of all links")
        with pytest.raises(KafkaTimeoutError) as caught:
            producer.commit_transaction(0.5)
        assert not isinstance(caught.value, TransactionOutcomeUnknownError)
        for node in (1, 2, 3):
            kafka.restart(node)
        producer.abort_transaction()
        producer.begin_transaction()
        send_all(producer, topic, b"next")
        producer.commit_transaction()
        assert committed(kafka, topic) == [b"next"]

    def test_a_begin_that_is_given_up_opens_nothing(
        self, kafka: EmbeddedKafka, topic: str, make: MakeProducer
    ) -> None:
        """Regression: the transaction was open, and took no record."""
        producer = make()
        producer.init_transactions()
        for _ in range(20):
            with suppress(KafkaTimeoutError):
                producer.begin_transaction(0.0)
                producer.abort_transaction()
        producer.begin_transaction()
        send_all(producer, topic, b"x")
        producer.commit_transaction()
        assert committed(kafka, topic) == [b"x"]

    def test_a_commit_given_up_and_aborted_is_never_both(
        self, kafka: EmbeddedKafka, topic: str, make: MakeProducer
    ) -> None:
        """Regression: the abort returned, and the commit was made."""
        producer = make()
        wanted = []
        for number in range(20):
            producer.begin_transaction()
            producer.send(topic, b"%02d" % number).result(TIMEOUT)
            is_committed = False
            try:
                producer.commit_transaction(0.0)
                is_committed = True
            except KafkaTimeoutError:
                try:
                    producer.abort_transaction()
                except (TransactionOutcomeUnknownError, UsageError):
                    producer.commit_transaction()
                    is_committed = True
            if is_committed:
                wanted.append(b"%02d" % number)
        assert committed(kafka, topic) == wanted


class TestBlocks:
    @pytest.mark.threads_only("tasks have `async with`")
    def test_one_whose_producer_was_fenced_in_it_raises(
        self, kafka: EmbeddedKafka, topic: str, make: MakeProducer
    ) -> None:
        """Regression: it ended without an error, and nothing was committed."""
        zombie, successor = make(), make()
        zombie.init_transactions()
        successor.init_transactions()
        block = zombie.transaction()

        def leave() -> None:
            with block:
                zombie.send_nowait(topic, b"zombie")
                eventually(lambda: zombie._core.control.transactions.transaction.error, "an error")

        with pytest.raises(TransactionError):
            leave()
        assert not block.committed
        assert committed(kafka, topic) == []


class TestFailedRecords:
    def test_are_never_committed(
        self, kafka: EmbeddedKafka, topic: str, make: MakeProducer
    ) -> None:
        """A record that expires is nobody's who sent it with send_nowait: the commit tells."""
        producer = make(
            delivery_timeout_ms=400,
            request_timeout_ms=300,
            linger_ms=0,
            transaction_timeout_ms=60_000,
        )
        producer.begin_transaction()
        send_all(producer, topic, b"good")
        producer.flush()
        struck = kafka.faults.error(PRODUCE, NotLeaderOrFollower)
        producer.send_nowait(topic, b"bad", partition=1)
        with pytest.raises(AbortableTransactionError, match="1 record of it not delivered"):
            producer.commit_transaction()
        struck.cancel()
        producer.abort_transaction()
        producer.begin_transaction()
        send_all(producer, topic, b"next")
        producer.commit_transaction()
        assert committed(kafka, topic) == [b"next"]

    def test_an_abort_does_not_wait_for_what_was_not_sent(
        self, kafka: EmbeddedKafka, topic: str, make: MakeProducer
    ) -> None:
        producer = make(linger_ms=50_000, delivery_timeout_ms=200_000)
        producer.begin_transaction()
        kafka.faults.error(PRODUCE, NotLeaderOrFollower)
        future = producer.send(topic, b"held")
        producer.abort_transaction()
        error = future.exception(TIMEOUT)
        assert isinstance(error, DeliveryError)
        assert "its transaction was aborted" in str(error)

    def test_one_that_waits_for_its_topics_limit_is_not_the_next_transactions_failure(
        self, kafka: EmbeddedKafka, make: MakeProducer
    ) -> None:
        small = new_topic(kafka, "small", 3, max_message_bytes="2000")
        kafka.faults.delay(0.5, api=DESCRIBE_CONFIGS)
        producer = make()
        producer.begin_transaction()
        producer.send_nowait(small, bytes(5_000), partition=0)
        eventually(lambda: producer.metrics()["punts"], "the refusal")
        producer.abort_transaction()
        producer.begin_transaction()
        for number in range(20):
            producer.send(small, b"%02d" % number, partition=0).result(TIMEOUT)
        producer.commit_transaction()
        assert committed(kafka, small) == [b"%02d" % number for number in range(20)]

    def test_a_leader_that_moves_in_the_middle_is_no_failure(
        self, kafka: EmbeddedKafka, topic: str, make: MakeProducer
    ) -> None:
        producer = make()
        wanted = []
        for number in range(6):
            producer.begin_transaction()
            send_all(producer, topic, b"%d-a" % number)
            producer.flush()
            kafka.move_leader(topic, 0, number % 3 + 1)
            send_all(producer, topic, b"%d-b" % number)
            producer.commit_transaction()
            wanted += [b"%d-a" % number, b"%d-b" % number]
        assert committed(kafka, topic) == wanted


class TestFencing:
    def test_an_earlier_producer_can_write_no_more(
        self, kafka: EmbeddedKafka, topic: str, make: MakeProducer
    ) -> None:
        zombie, successor = make(), make()
        zombie.begin_transaction()
        send_all(zombie, topic, b"zombie")
        zombie.flush()
        successor.init_transactions()
        send_all(zombie, topic, b"late")
        with pytest.raises((AbortableTransactionError, ProducerFencedError)):
            zombie.commit_transaction()
        with pytest.raises(ProducerFencedError, match="belongs to a newer producer"):
            zombie.abort_transaction()
        with pytest.raises(ProducerFencedError):
            zombie.begin_transaction()
        successor.begin_transaction()
        send_all(successor, topic, b"successor")
        successor.commit_transaction()
        assert committed(kafka, topic) == [b"successor"]

    def test_what_took_too_long_is_no_fencing(
        self,
        kafka: EmbeddedKafka,
        topic: str,
        make: MakeProducer,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        producer = make(transaction_timeout_ms=300)
        with caplog.at_level(logging.WARNING):
            producer.begin_transaction()
            send_all(producer, topic, b"too late")
            producer.flush()
            ended = {"CompleteAbort", "Empty"}
            eventually(
                lambda: kafka.on_cluster(lambda it: it.transaction_state("id")) in ended, "its end"
            )
            with pytest.raises(TransactionError, match=r"timeout\.ms \(300\)") as caught:
                producer.commit_transaction()
        assert "after transaction.timeout.ms (300) the coordinator aborts it" in caplog.text
        if isinstance(caught.value, ProducerFencedError):  # by version 1, as a zombie would be
            producer = make(transaction_timeout_ms=60_000)
        else:
            producer.abort_transaction()
        producer.begin_transaction()
        send_all(producer, topic, b"in time")
        producer.commit_transaction()
        assert committed(kafka, topic) == [b"in time"]


class TestVersions:
    def test_a_change_under_a_living_producer_costs_at_most_aborts(
        self, kafka: EmbeddedKafka, topic: str, make: MakeProducer
    ) -> None:
        """Nothing is fatal, and whatever is committed is there.

        Below level 1 Kafka's coordinator gets stuck over an id with version 2: not tried.
        """
        producer = make()
        wanted, aborts = [], 0
        for number in range(30):
            if number % 5 == 4:
                kafka.set_transaction_version(2 - number // 5 % 2)
            producer.begin_transaction()
            try:
                send_all(producer, topic, b"%02d" % number)
                producer.commit_transaction()
                wanted.append(b"%02d" % number)
            except AbortableTransactionError:
                producer.abort_transaction()
                aborts += 1
        assert committed(kafka, topic) == wanted
        assert aborts <= 2 * 6


class TestThreads:
    @pytest.mark.threads_only("tasks of one loop take turns")
    def test_a_send_that_waits_for_memory_is_of_no_transaction_after_its_end(
        self, kafka: EmbeddedKafka, topic: str, make: MakeProducer
    ) -> None:
        """It was refused room, and the transaction has ended meanwhile."""
        producer = make(buffer_memory=40_000, batch_size=16_384, linger_ms=0)
        producer.begin_transaction()
        hang = kafka.faults.drop(api=PRODUCE, applied=False)
        raised: list[Exception] = []

        def fills() -> None:
            try:
                for _ in range(100):
                    producer.send_nowait(topic, bytes(8_000), partition=0)
            except UsageError as error:
                raised.append(error)

        thread = threading.Thread(target=fills)
        thread.start()
        eventually(lambda: producer.metrics()["blocked"], "a send that waits for room")
        abort = threading.Thread(target=producer.abort_transaction)
        abort.start()
        eventually(lambda: raised, "the refusal of the send that waits")
        hang.cancel()
        kafka.heal()
        thread.join()
        assert "abort is under way" in str(raised[0])
        abort.join()


@pytest.mark.parametrize("place", range(1, 12))
def test_a_cancelled_commit_is_repeated_wherever_it_was(
    kafka: EmbeddedKafka, topic: str, place: int
) -> None:
    """It leaves a transaction that is open, or being committed: never silence."""

    async def main() -> None:
        producer = producer_of(kafka, transactional_id="id")
        async with producer:
            await producer.begin_transaction()
            await producer.send(topic, b"once")
            cancelled = Cancelled(producer.commit_transaction(), place)
            try:
                await cancelled
            except BaseException:  # noqa: BLE001  a cancellation in the middle of a task
                await producer.commit_transaction()

    run(main())
    assert committed(kafka, topic) == [b"once"]
