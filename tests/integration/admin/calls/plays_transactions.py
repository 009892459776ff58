"""Plays of the calls about transactions, which librdkafka's producers have open."""

from __future__ import annotations

from typing import Any

import confluent_kafka
import pytest

from kafka_fast import TopicPartition
from kafka_fast.admin import TransactionState
from tests.integration.admin.calls.stage import TIMEOUT, Stage, play
from tests.waiting import eventually


def _opened(stage: Stage) -> tuple[str, TopicPartition, Any]:
    """Return a transactional id, the partition that it has written to, and its producer."""
    name, partition = stage.new_name("txn"), TopicPartition(stage.new_topic(), 0)
    return name, partition, stage.open_transaction(name, partition)


@play
def list_transactions(stage: Stage) -> None:
    name, _, producer = _opened(stage)
    listed = stage.admin.list_transactions(states=[TransactionState.ONGOING])
    assert name in listed.raise_first()
    producer.commit_transaction(TIMEOUT)


@play
def describe_transactions(stage: Stage) -> None:
    name, partition, producer = _opened(stage)
    told = stage.admin.describe_transactions([name])[name]
    assert told.state is TransactionState.ONGOING
    assert told.partitions == {partition}
    producer.commit_transaction(TIMEOUT)


@play
def describe_producers(stage: Stage) -> None:
    _, partition, producer = _opened(stage)
    (state,) = stage.admin.describe_producers([partition])[partition]
    assert state.transaction_start_offset == 0
    producer.commit_transaction(TIMEOUT)


@play
def fence_producers(stage: Stage) -> None:
    name, _, producer = _opened(stage)
    stage.admin.fence_producers([name]).raise_first()
    with pytest.raises(confluent_kafka.KafkaException):
        producer.commit_transaction(TIMEOUT)


@play
def force_terminate_transaction(stage: Stage) -> None:
    name, _, producer = _opened(stage)
    stage.admin.force_terminate_transaction(name)
    with pytest.raises(confluent_kafka.KafkaException):
        producer.commit_transaction(TIMEOUT)


@play
def find_hanging_transactions(stage: Stage) -> None:
    _, partition, producer = _opened(stage)
    hanging = stage.admin.find_hanging_transactions(
        topic=partition.topic, max_transaction_timeout_ms=0
    )
    assert hanging == []  # it is open, and its coordinator knows that
    producer.commit_transaction(TIMEOUT)


@play
def abort_transaction(stage: Stage) -> None:
    partition = TopicPartition(stage.new_topic(), 0)
    if stage.kafka is not None and not stage.has("2.8"):
        stage.admin.abort_transaction(
            partition, producer_id=1, producer_epoch=0, coordinator_epoch=0
        )
        return
    stage.open_transaction(stage.new_name("txn"), partition)
    (state,) = stage.admin.describe_producers([partition])[partition]
    stage.admin.abort_transaction(
        partition,
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        coordinator_epoch=0,
    )

    def start() -> int | None:
        (state,) = stage.admin.describe_producers([partition])[partition]
        return state.transaction_start_offset

    eventually(lambda: start() is None, "the end of the transaction")
