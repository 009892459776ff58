"""A transaction that hangs because its coordinator has forgotten it; librdkafka's producer."""

from __future__ import annotations

import confluent_kafka
import pytest

from kafka_fast import Admin, TopicPartition
from kafka_fast.admin import IsolationLevel, OffsetSpec, TransactionState
from kafka_fast.errors import TransactionalIdNotFound, UnknownTopicOrPartition
from tests.integration.admin.calls.stage import TIMEOUT, Stage
from tests.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.broker]

STATES = "__transaction_state"
"""The coordinators' own topic: with it all transactions are forgotten."""


def is_forgotten(admin: Admin, name: str) -> bool:
    """Return whether no coordinator knows a transactional id. Brokers make the topic again."""
    error = admin.describe_transactions([name]).errors.get(name)
    return isinstance(error, TransactionalIdNotFound)


def last_stable_offset(admin: Admin, partition: TopicPartition) -> int:
    latest = {partition: OffsetSpec.LATEST}
    committed = IsolationLevel.READ_COMMITTED
    return admin.list_offsets(latest, isolation_level=committed)[partition].offset


def test_what_a_coordinator_has_forgotten_is_found_and_aborted(stage: Stage, admin: Admin) -> None:
    name, here = stage.new_name("hanging"), TopicPartition(stage.new_topic(), 0)
    other_name, there = stage.new_name("open"), TopicPartition(here.topic, 1)
    forgotten = stage.open_transaction(name, here)
    topic = here.topic

    def hanging() -> list[TopicPartition]:
        found = admin.find_hanging_transactions(topic=topic, max_transaction_timeout_ms=0)
        return [one.partition for one in found]

    assert hanging() == []
    admin.delete_topics([STATES]).raise_first()
    eventually(lambda: is_forgotten(admin, name), "the transaction to be forgotten")
    producer = stage.open_transaction(other_name, there)
    assert hanging() == [here]  # and not the one that its coordinator knows
    (leader_state,) = admin.describe_producers([here])[here]
    assert leader_state.transaction_start_offset == 0
    for node in (1, 2, 3):
        of_node = admin.describe_producers([here], broker_id=node)[here]
        assert [one.producer_id for one in of_node] == [leader_state.producer_id]
    assert last_stable_offset(admin, here) == 0
    (found,) = admin.find_hanging_transactions(
        topic=topic, partition=0, max_transaction_timeout_ms=0
    )
    admin.abort_transaction(
        found.partition,
        producer_id=found.producer.producer_id,
        producer_epoch=found.producer.producer_epoch,
        coordinator_epoch=found.producer.coordinator_epoch or 0,
    )
    eventually(lambda: last_stable_offset(admin, here) == 2, "the marker of the abort")
    assert hanging() == []
    producer.commit_transaction(TIMEOUT)
    with pytest.raises(confluent_kafka.KafkaException):
        forgotten.commit_transaction(TIMEOUT)


def test_a_producer_that_is_gone_is_ended(stage: Stage, admin: Admin) -> None:
    """By force_terminate_transaction the readers go on; by fence_producers, too."""
    for end in ("force", "fence"):
        name, here = stage.new_name(end), TopicPartition(stage.new_topic(), 0)
        producer = stage.open_transaction(name, here)
        assert last_stable_offset(admin, here) == 0
        if end == "force":
            admin.force_terminate_transaction(name)
        else:
            admin.fence_producers([name]).raise_first()
        eventually(lambda p=here: last_stable_offset(admin, p) == 2, "the marker")  # type: ignore[misc]
        told = admin.describe_transactions([name])[name]
        assert told.state in (TransactionState.EMPTY, TransactionState.COMPLETE_ABORT)
        with pytest.raises(confluent_kafka.KafkaException):
            producer.commit_transaction(TIMEOUT)


def test_partitions_that_are_not_there_are_said_so(stage: Stage, admin: Admin) -> None:
    absent = TopicPartition(stage.new_topic(), 9)
    error = admin.describe_producers([absent], broker_id=1).errors[absent]
    assert isinstance(error, UnknownTopicOrPartition)
