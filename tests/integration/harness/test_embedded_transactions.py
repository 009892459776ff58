"""A peer's transactional producer on the embedded broker, read back by our consumer."""

from __future__ import annotations

import time
from collections.abc import Iterator

import confluent_kafka
import pytest

from kafka_fast import Admin, Consumer
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.transactions.settings import TransactionSettings
from kafka_fast.testing.broker.versions import WRITE_TXN_MARKERS
from tests.waiting import eventually

pytestmark = pytest.mark.filterwarnings("ignore")

TIMEOUT = 30.0
ROUNDS = 6
COUNT = 20  # records of a transaction
PARTITIONS = 4


@pytest.fixture(params=[0, 1, 2], ids=lambda version: f"version {version}")
def broker(request: pytest.FixtureRequest) -> Iterator[EmbeddedKafka]:
    """Three brokers."""
    settings = TransactionSettings(version=request.param, abort_interval_ms=100)
    with EmbeddedKafka(brokers=3, transactions=settings, partitions=PARTITIONS) as made:
        made.create_topic("out")
        yield made


def producer(broker: EmbeddedKafka, name: str = "x", **options: object) -> confluent_kafka.Producer:
    made = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "transactional.id": name,
            **{key.replace("_", "."): value for key, value in options.items()},
        }
    )
    made.init_transactions(TIMEOUT)
    return made


def committed_values(broker: EmbeddedKafka, count: int) -> list[bytes]:
    """Return what a reader of committed records gets: up to the end of each partition."""
    ends = {index: broker.end_offset("out", index) for index in range(PARTITIONS)}
    values = []
    config = {
        "bootstrap.servers": broker.bootstrap,
        "group.id": f"reader-{time.monotonic_ns()}",
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
    }
    with Consumer(config) as consumer:
        consumer.subscribe(["out"])
        deadline = time.monotonic() + TIMEOUT
        positions: dict[int, int] = {}
        while positions != ends or len(values) < count:
            assert time.monotonic() < deadline, (positions, ends, len(values))
            values += [record.value for record in consumer.poll(timeout=0.1)]
            positions = {tp.partition: consumer.position(tp) for tp in consumer.assignment()}
    return values


def wait_for_state(broker: EmbeddedKafka, state: str) -> None:
    eventually(
        lambda: broker.on_cluster(lambda cluster: cluster.transaction_state("x")) == state, state
    )


def test_exactly_what_was_committed_is_read(broker: EmbeddedKafka) -> None:
    made = producer(broker)
    expected = []
    for number in range(ROUNDS):
        made.begin_transaction()
        values = [b"%d-%d" % (number, one) for one in range(COUNT)]
        for value in values:
            made.produce("out", value, key=value)
        if number % 3 == 1:
            made.abort_transaction(TIMEOUT)
        else:
            made.commit_transaction(TIMEOUT)
            expected += values
        if number == 2:
            coordinator = broker.on_cluster(lambda cluster: cluster.transaction_coordinator("x"))
            broker.kill(coordinator)
            broker.restart(coordinator)
    assert sorted(committed_values(broker, len(expected))) == sorted(expected)


def test_offsets_go_with_the_records(broker: EmbeddedKafka) -> None:
    broker.create_topic("in", partitions=1)
    broker.produce("in", ["x"] * ROUNDS)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["in"])
    made = producer(broker)
    committed = 0
    for number in range(ROUNDS):
        made.begin_transaction()
        (message,) = consumer.consume(1, TIMEOUT)
        made.produce("out", message.value())
        made.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), TIMEOUT
        )
        if number % 2:
            made.abort_transaction(TIMEOUT)
        else:
            made.commit_transaction(TIMEOUT)
            committed = number + 1
        assert broker.committed("g") == {("in", 0): committed}
    consumer.close()


def test_a_newer_producer_fences_an_older(broker: EmbeddedKafka) -> None:
    old = producer(broker)
    old.begin_transaction()
    old.produce("out", b"never")
    old.flush(TIMEOUT)
    new = producer(broker)
    with pytest.raises(confluent_kafka.KafkaException) as refused:
        old.commit_transaction(TIMEOUT)
    assert refused.value.args[0].fatal()
    new.begin_transaction()
    new.produce("out", b"once")
    new.commit_transaction(TIMEOUT)
    assert committed_values(broker, 1) == [b"once"]


def test_an_administrator_fences_a_producer(broker: EmbeddedKafka) -> None:
    made = producer(broker)
    made.begin_transaction()
    made.produce("out", b"never")
    made.flush(TIMEOUT)
    with Admin({"bootstrap.servers": broker.bootstrap}) as admin:
        admin.fence_producers(["x"])
        assert admin.describe_transactions(["x"])["x"].state == "Empty"
    with pytest.raises(confluent_kafka.KafkaException) as refused:
        made.commit_transaction(TIMEOUT)
    assert refused.value.args[0].fatal()
    assert committed_values(broker, 0) == []


def test_markers_that_come_late(broker: EmbeddedKafka) -> None:
    """The next transaction waits: the coordinator answers CONCURRENT_TRANSACTIONS meanwhile."""
    made = producer(broker)
    broker.faults.delay(0.2, api=WRITE_TXN_MARKERS, probability=0.5)
    expected = [b"%d" % number for number in range(ROUNDS)]
    for value in expected:
        made.begin_transaction()
        made.produce("out", value)
        made.commit_transaction(TIMEOUT)
    wait_for_state(broker, "CompleteCommit")
    assert sorted(committed_values(broker, ROUNDS)) == expected


def test_a_transaction_times_out(broker: EmbeddedKafka) -> None:
    made = producer(broker, transaction_timeout_ms=1000)
    made.begin_transaction()
    made.produce("out", b"never")
    made.flush(TIMEOUT)
    wait_for_state(broker, "CompleteAbort")
    assert committed_values(broker, 0) == []
