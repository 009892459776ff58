"""Calls about transactions that take several operations, or are about one item of several.

partitions ──► DescribeProducers ──► open for too long ──► ListTransactions: whose are they?
                                                              │ nobody's: hanging
                                                              ▼
                  not among its partitions: hanging ◄── DescribeTransactions
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable
from typing import TypeVar

from kafka_fast.admin.admin_steps import AdminSteps
from kafka_fast.admin.workflows.topics import describe_topics_until
from kafka_fast.control.admin.operation import Operation, OperationResults
from kafka_fast.control.admin.operations.topics import ListTopics
from kafka_fast.control.admin.operations.transactions import (
    AbortTransaction,
    DescribeProducers,
    DescribeTransactions,
    FenceProducers,
    ListTransactions,
)
from kafka_fast.control.admin.types.transactions import HangingTransaction, TransactionDescription
from kafka_fast.errors import TransactionalIdNotFound, UsageError, fresh_copy
from kafka_fast.net.waiting.steps import Steps
from kafka_fast.types import TopicPartition

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def abort_transaction(
    steps: AdminSteps,
    partition: TopicPartition,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timeout: float | None,
) -> Steps[None]:
    """Write the marker of an abort into one partition.

    Raises:
        KafkaError: it was not written.
    """
    operation = AbortTransaction(
        partition,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        coordinator_epoch=coordinator_epoch,
    )
    result = yield from steps.run_items(operation, timeout)
    result.raise_first()


def force_terminate_transaction(
    steps: AdminSteps, transactional_id: str, *, timeout: float | None
) -> Steps[None]:
    """Fence one producer: the coordinator aborts its transaction.

    Raises:
        KafkaError: it was not fenced.
    """
    result = yield from steps.run_items(FenceProducers([transactional_id]), timeout)
    result.raise_first()


# ---- hanging transactions ----


class HangingSearch:
    """Finds hanging transactions, up to one deadline."""

    def __init__(
        self,
        steps: AdminSteps,
        *,
        topic: str | None,
        partition: int | None,
        broker_id: int | None,
        timeout: float | None,
    ) -> None:
        """Take where to look.

        Args:
            steps: run the operations.
            topic: only there; None: in all topics of the broker.
            partition: of the topic; None: all of them.
            broker_id: only in its replicas; None: the leaders are asked.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UsageError: neither topic nor broker is named, or the partition has no topic.
        """
        if topic is None and broker_id is None:
            raise UsageError("hanging transactions of all partitions: name a topic or a broker")
        if partition is not None and topic is None:
            raise UsageError(f"partition {partition} of which topic?")
        self._steps = steps
        self._topic = topic
        self._partition = partition
        self._broker_id = broker_id
        self._deadline = steps.begin_call(timeout)

    def find_hanging(self, max_transaction_timeout_ms: int) -> Steps[list[HangingTransaction]]:
        """Return what is open for longer than that, and not among what a coordinator will end.

        Raises:
            KafkaError: a partition, node or transaction could not be looked at.
        """
        partitions = yield from self._partitions()
        latest_ms = int(time.time() * 1000) - max_transaction_timeout_ms
        producers = DescribeProducers(partitions, broker_id=self._broker_id)
        logs = yield from self._all_of(producers)
        open_ = [
            HangingTransaction(partition, producer)
            for partition, states in logs.values.items()
            for producer in states
            if producer.transaction_start_offset is not None
            and producer.last_timestamp_ms < latest_ms
        ]
        if not open_:
            return []
        ids = yield from self._transactional_ids({one.producer.producer_id for one in open_})
        known = yield from self._descriptions(ids.values())

        def is_hanging(one: HangingTransaction) -> bool:
            transactional_id = ids.get(one.producer.producer_id)
            description = None if transactional_id is None else known.get(transactional_id)
            return description is None or one.partition not in description.partitions

        return [one for one in open_ if is_hanging(one)]

    def _partitions(self) -> Steps[list[TopicPartition]]:
        """Return the partitions to look at."""
        topic, broker_id = self._topic, self._broker_id
        if topic is not None and self._partition is not None:
            return [TopicPartition(topic, self._partition)]
        if topic is None:
            listing = ListTopics(include_internal=True)
            topics = list((yield from self._steps.run_one_until(listing, self._deadline)))
        else:
            topics = [topic]
        described = yield from describe_topics_until(
            self._steps,
            topics,
            by_id=False,
            include_authorized_operations=False,
            deadline=self._deadline,
        )
        return [
            TopicPartition(name, info.partition)
            for name, description in described.items()
            for info in description.partitions
            if broker_id is None or broker_id in info.replicas
        ]

    def _transactional_ids(self, producer_ids: set[int]) -> Steps[dict[int, str]]:
        """Return the transactional ids of producers, as far as a coordinator knows them."""
        operation = ListTransactions(
            states=(), producer_ids=producer_ids, min_duration_ms=None, pattern=None
        )
        nodes = yield from self._all_of(operation)
        return {
            one.producer_id: one.transactional_id
            for listings in nodes.values.values()
            for one in listings.values()
        }

    def _descriptions(
        self, transactional_ids: Iterable[str]
    ) -> Steps[dict[str, TransactionDescription]]:
        """Return the transactions; one that has ended meanwhile is left out."""
        operation = DescribeTransactions(transactional_ids)
        results = yield from self._steps.results(operation, self._deadline)
        for error in results.errors.values():
            if not isinstance(error, TransactionalIdNotFound):
                raise fresh_copy(error)
        return results.values

    def _all_of(self, operation: Operation[K, V]) -> Steps[OperationResults[K, V]]:
        """Return results without errors: what was not looked at would be taken for hanging."""
        results = yield from self._steps.results(operation, self._deadline)
        for error in results.errors.values():
            raise fresh_copy(error)
        return results
