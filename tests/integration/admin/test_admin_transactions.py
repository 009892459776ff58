"""Transactions by the admin client, on real Kafka."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest

from kafka_fast import Admin, TopicPartition
from kafka_fast.admin import ProducerIdAndEpoch, TransactionState
from kafka_fast.errors import (
    InvalidProducerEpoch,
    InvalidRegularExpression,
    TransactionalIdNotFound,
    UnknownTopicOrPartition,
)
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.conftest import started
from tests.integration.scenarios.wire import batch, connected, produce_request
from tests.waiting import eventually

pytestmark = [pytest.mark.broker, pytest.mark.needs_kafka("3.0", "transactions are described")]

TIMEOUT = 30.0
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def kafka(request: pytest.FixtureRequest) -> Iterator[RealKafka]:
    """A broker that takes records of transactions that no coordinator knows."""
    overrides = {"transaction.partition.verification.enable": False}
    with started(1, request.config.getoption("--kafka-version"), overrides) as made:
        yield made


@pytest.fixture(scope="module")
def admin(kafka: RealKafka) -> Iterator[Admin]:
    with Admin(bootstrap_servers=kafka.bootstrap) as made:
        yield made


@pytest.fixture
def name() -> str:
    """The name of a topic and of a transactional id."""
    return f"transactions-{uuid.uuid4().hex}"


@pytest.fixture
def partition(kafka: RealKafka, name: str) -> TopicPartition:
    kafka.create_topic(name, 2)
    return TopicPartition(name, 1)


@pytest.fixture
def producer(kafka: RealKafka, name: str, partition: TopicPartition) -> Any:
    """A producer with an open transaction."""
    made = confluent_kafka.Producer(
        {
            "bootstrap.servers": kafka.bootstrap,
            "transactional.id": name,
            "transaction.timeout.ms": 60000,
        }
    )
    made.init_transactions(TIMEOUT)
    made.begin_transaction()
    made.produce(name, b"x", partition=partition.partition)
    assert made.flush(TIMEOUT) == 0
    return made


def test_transactions_are_listed(admin: Admin, producer: Any, name: str) -> None:
    listed = admin.list_transactions()
    assert listed.errors == {}
    mine = listed[name]
    assert (mine.transactional_id, mine.state) == (name, TransactionState.ONGOING)
    assert name in admin.list_transactions(states=[TransactionState.ONGOING])
    assert name not in admin.list_transactions(states=["CompleteCommit", "Newest"])
    assert list(admin.list_transactions(producer_ids=[mine.producer_id])) == [name]
    producer.commit_transaction(TIMEOUT)
    done = TransactionState.COMPLETE_COMMIT
    eventually(lambda: admin.list_transactions()[name].state is done, "the commit")


@pytest.mark.needs_kafka("4.1", "patterns of transactional ids")
def test_transactions_are_listed_by_duration_and_pattern(
    admin: Admin, producer: Any, name: str
) -> None:
    eventually(lambda: name in admin.list_transactions(min_duration_ms=1), "a millisecond")
    assert name not in admin.list_transactions(min_duration_ms=HOUR_MS)
    assert list(admin.list_transactions(transactional_id_pattern=f"{name[:-1]}.")) == [name]
    assert list(admin.list_transactions(transactional_id_pattern=name[:-1])) == []
    errors = admin.list_transactions(transactional_id_pattern="(").errors
    assert [type(error) for error in errors.values()] == [InvalidRegularExpression]


def test_transactions_are_described(
    admin: Admin, producer: Any, name: str, partition: TopicPartition
) -> None:
    result = admin.describe_transactions([name, "no-such-id"])
    mine = result[name]
    assert (mine.state, mine.timeout_ms) == (TransactionState.ONGOING, 60000)
    assert mine.partitions == frozenset({partition})
    assert mine.start_ms is not None
    assert abs(mine.start_ms - time.time() * 1000) < HOUR_MS
    assert isinstance(result.errors["no-such-id"], TransactionalIdNotFound)
    (state,) = admin.describe_producers([partition])[partition]
    assert (state.producer_id, state.producer_epoch) == (mine.producer_id, mine.producer_epoch)
    assert (state.last_sequence, state.transaction_start_offset) == (0, 0)
    other = TopicPartition(name, 0)
    absent = TopicPartition(name, 9)
    of_broker = admin.describe_producers([partition, other, absent], broker_id=1)
    assert of_broker[partition] == (state,)
    assert of_broker[other] == ()
    assert isinstance(of_broker.errors[absent], UnknownTopicOrPartition)
    # A coordinator knows it: it does not hang, however long it is open.
    assert admin.find_hanging_transactions(topic=name, max_transaction_timeout_ms=0) == []


def test_producers_are_fenced(admin: Admin, producer: Any, name: str) -> None:
    before = admin.describe_transactions([name])[name]
    fenced = admin.fence_producers([name, f"{name}-new"])
    assert isinstance(fenced[f"{name}-new"], ProducerIdAndEpoch)
    assert fenced[name].producer_id == before.producer_id
    assert fenced[name].epoch > before.producer_epoch
    after = admin.describe_transactions([name])[name]
    assert (after.state, after.partitions) == (TransactionState.EMPTY, frozenset())
    with pytest.raises(confluent_kafka.KafkaException):
        producer.commit_transaction(TIMEOUT)


def test_a_transaction_is_terminated(
    admin: Admin, producer: Any, name: str, partition: TopicPartition
) -> None:
    admin.force_terminate_transaction(name)
    (state,) = admin.describe_producers([partition])[partition]
    assert state.transaction_start_offset is None
    assert state.coordinator_epoch is not None


def test_coordinators_of_many_ids(real_kafka_cluster: RealKafka, name: str) -> None:
    ids = [f"{name}-{number}" for number in range(9)]
    with Admin(bootstrap_servers=real_kafka_cluster.bootstrap) as admin:
        fenced = admin.fence_producers(ids).raise_first()
        assert list(fenced) == ids
        listed = admin.list_transactions(states=[TransactionState.EMPTY])
        assert set(ids) <= set(listed)
        described = admin.describe_transactions(ids)
    assert {key: one.producer_id for key, one in described.items()} == {
        key: one.producer_id for key, one in fenced.items()
    }


def write_hanging(
    kafka: RealKafka, partition: TopicPartition, producer_id: int, epoch: int
) -> None:
    """Write a record of a transaction that the coordinator has never heard of, an hour old."""
    records = batch(
        producer=(producer_id, epoch, 0),
        is_transactional=True,
        timestamp=int(time.time() * 1000) - HOUR_MS,
    )
    request = produce_request(
        partition.topic, [(partition.partition, records)], transactional_id="nobody"
    )
    with connected(kafka.bootstrap) as client:
        answer = client.ask(request, 9).responses[0].partition_responses[0]
    assert answer.error_code == 0


def test_hanging_transactions_are_found_and_aborted(
    admin: Admin, kafka: RealKafka, name: str, partition: TopicPartition
) -> None:
    other = TopicPartition(name, 0)
    known = admin.fence_producers([name])[name]  # with this id, and no transaction
    write_hanging(kafka, partition, known.producer_id, known.epoch)
    write_hanging(kafka, other, 123_456_789, 5)
    both = {
        (partition, known.producer_id, known.epoch),
        (other, 123_456_789, 5),
    }

    def hanging(**where: Any) -> set[tuple[TopicPartition, int, int]]:
        return {
            (one.partition, one.producer.producer_id, one.producer.producer_epoch)
            for one in admin.find_hanging_transactions(**where)
        }

    assert hanging(topic=name) == both
    assert hanging(topic=name, broker_id=1) == both
    assert hanging(broker_id=1) >= both
    assert {one for one, *_ in hanging(topic=name, partition=0)} == {other}
    assert hanging(topic=name, max_transaction_timeout_ms=2 * HOUR_MS) == set()
    with pytest.raises(InvalidProducerEpoch, match="higher epoch"):
        admin.abort_transaction(
            other, producer_id=123_456_789, producer_epoch=4, coordinator_epoch=0
        )
    for one in admin.find_hanging_transactions(topic=name):
        admin.abort_transaction(
            one.partition,
            producer_id=one.producer.producer_id,
            producer_epoch=one.producer.producer_epoch,
            coordinator_epoch=one.producer.coordinator_epoch or 0,
        )
    assert hanging(topic=name) == set()
    (state,) = admin.describe_producers([other])[other]
    assert (state.transaction_start_offset, state.coordinator_epoch) == (None, 0)
