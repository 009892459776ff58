"""Transactions that hang are told from those that a coordinator will end."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kafka_fast import TopicPartition
from kafka_fast.admin import (
    ProducerState,
    TopicDescription,
    TopicListing,
    TopicPartitionInfo,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from kafka_fast.admin.workflows.transactions import HangingSearch, abort_transaction
from kafka_fast.control.admin.operations.topic_pages import DescribeTopicPage, TopicPage
from kafka_fast.control.admin.operations.topics import ListTopics
from kafka_fast.control.admin.operations.transactions import (
    DescribeProducers,
    DescribeTransactions,
    ListTransactions,
)
from kafka_fast.errors import (
    ErrorCode,
    InvalidProducerEpoch,
    KafkaTimeoutError,
    TransactionalIdNotFound,
    UsageError,
    broker_error,
)
from tests.unit.admin.workflows.scripted import ScriptedSteps, finish, only

LONG_AGO_MS, NOW_MS = 5, int(time.time() * 1000)
ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)


def open_of(producer_id: int, *, since_ms: int = LONG_AGO_MS) -> ProducerState:
    return ProducerState(producer_id, 0, 0, since_ms, None, 3)


class Brokers:
    """Has two partitions, on the brokers 1 and 2, with these producers."""

    def __init__(self, *producers: ProducerState) -> None:
        self.producers = producers
        self.listed: dict[int, str] = {}
        self.described: dict[str, Any] = {}
        self.looked_at: list[TopicPartition] = []
        self.failing: type[Any] | None = None

    def __call__(self, operation: Any) -> Any:
        if self.failing is type(operation):
            return (
                {1: KafkaTimeoutError("late")} if operation.items is None else KafkaTimeoutError()
            )
        if isinstance(operation, ListTopics):
            return only({"t": TopicListing("t", None, is_internal=False)})
        if isinstance(operation, DescribeTopicPage):
            infos = tuple(
                TopicPartitionInfo(number, number + 1, 0, (number + 1,), (number + 1,), ())
                for number in range(2)
            )
            topic = TopicDescription("t", None, is_internal=False, partitions=infos)
            return only(TopicPage((topic,), {}, frozenset(), None))
        if isinstance(operation, DescribeProducers):
            self.looked_at = list(operation.items or ())
            return dict.fromkeys(self.looked_at, self.producers)
        if isinstance(operation, ListTransactions):
            return {
                1: {
                    name: TransactionListing(name, producer_id, TransactionState.ONGOING)
                    for producer_id, name in self.listed.items()
                }
            }
        assert isinstance(operation, DescribeTransactions)
        return {name: self.described[name] for name in operation.items or ()}

    def hanging(self, **where: Any) -> list[tuple[TopicPartition, int]]:
        steps = ScriptedSteps(self)
        places = {"topic": None, "partition": None, "broker_id": None, "timeout": None, **where}
        search = HangingSearch(steps, **places)
        return [
            (one.partition, one.producer.producer_id)
            for one in finish(search.find_hanging(900_000))
        ]


def transaction(*partitions: TopicPartition) -> TransactionDescription:
    return TransactionDescription(
        TransactionState.ONGOING, 7, 0, 60000, LONG_AGO_MS, frozenset(partitions)
    )


def test_producers_that_no_coordinator_knows_hang() -> None:
    closed = ProducerState(8, 0, 0, LONG_AGO_MS, None, None)
    brokers = Brokers(open_of(7), open_of(9, since_ms=NOW_MS), closed)
    assert brokers.hanging(topic="t") == [(ZERO, 7), (ONE, 7)]
    assert brokers.looked_at == [ZERO, ONE]


def test_coordinators_end_what_they_know() -> None:
    brokers = Brokers(open_of(7))
    brokers.listed = {7: "a"}
    brokers.described = {"a": transaction(ZERO)}
    assert brokers.hanging(topic="t") == [(ONE, 7)]
    brokers.described = {"a": broker_error(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, "gone")}
    assert isinstance(brokers.described["a"], TransactionalIdNotFound)
    assert brokers.hanging(topic="t") == [(ZERO, 7), (ONE, 7)]


def test_where_to_look() -> None:
    brokers = Brokers(open_of(7))
    assert brokers.hanging(broker_id=2) == [(ONE, 7)]
    assert brokers.hanging(topic="t", broker_id=1) == [(ZERO, 7)]
    assert brokers.hanging(topic="t", partition=1) == [(ONE, 7)]
    assert Brokers().hanging(topic="t") == []
    with pytest.raises(UsageError, match="name a topic or a broker"):
        brokers.hanging()
    with pytest.raises(UsageError, match="of which topic"):
        brokers.hanging(partition=1, broker_id=1)


@pytest.mark.parametrize("kind", [DescribeProducers, ListTransactions, DescribeTransactions])
def test_what_could_not_be_looked_at_is_an_error(kind: type[Any]) -> None:
    brokers = Brokers(open_of(7))
    brokers.listed = {7: "a"}
    brokers.failing = kind
    with pytest.raises(KafkaTimeoutError):
        brokers.hanging(topic="t")


def test_an_abort_is_done_or_raises() -> None:
    def aborted(outcome: Any) -> Any:
        ids = {"producer_id": 7, "producer_epoch": 0, "coordinator_epoch": 0}
        steps = ScriptedSteps(lambda operation: {ZERO: outcome})
        return finish(abort_transaction(steps, ZERO, **ids, timeout=None))

    assert aborted(None) is None
    with pytest.raises(InvalidProducerEpoch):
        aborted(broker_error(ErrorCode.INVALID_PRODUCER_EPOCH, "no"))
