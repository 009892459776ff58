"""The calls of `aio.Admin` about transactions.

Made of `admin/calls/transactions.py` by `python -m tests.shells`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafka_fast.admin.base import AdminCalls

if TYPE_CHECKING:
    from kafka_fast.admin.result import AdminResult, NodesResult
    from kafka_fast.control.admin.types.transactions import (
        HangingTransaction,
        ProducerIdAndEpoch,
        ProducerState,
        TransactionDescription,
        TransactionListing,
        TransactionState,
    )
    from kafka_fast.types import TopicPartition


class AsyncTransactionCalls(AdminCalls):
    """Transactions: list, describe and abort them, and find those that hang."""

    async def list_transactions(
        self,
        *,
        states: Iterable[TransactionState | str] = (),
        producer_ids: Iterable[int] = (),
        min_duration_ms: int | None = None,
        transactional_id_pattern: str | None = None,
        timeout: float | None = None,
    ) -> NodesResult[str, TransactionListing]:
        """Return the transactional ids that brokers coordinate, with their states.

        ListTransactions, from all brokers; needs DESCRIBE on a transactional id to see it. Since
        Kafka 3.0.

        Args:
            states: only those in one of these states; none: in any.
            producer_ids: only those of these producers; none: of any.
            min_duration_ms: only those with a transaction that is open for longer. Needs Kafka 3.8.
            transactional_id_pattern: only those that this regular expression (RE2J) matches as a
                whole. Needs Kafka 4.1.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UsageError: the duration is negative, or a state is UNKNOWN.
        """
        from kafka_fast.control.admin.operations.transactions import ListTransactions

        operation = ListTransactions(
            states=states,
            producer_ids=producer_ids,
            min_duration_ms=min_duration_ms,
            pattern=transactional_id_pattern,
        )
        return await self._driver.run(self._steps.merge_nodes(operation, timeout))

    async def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout: float | None = None
    ) -> AdminResult[str, TransactionDescription]:
        """Return what coordinators know of transactions.

        DescribeTransactions; needs DESCRIBE on the transactional id, and on a topic to see its
        partitions. Since Kafka 3.0. An id that no coordinator knows is a TransactionalIdNotFound.

        Args:
            transactional_ids: their ids.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UsageError: an id is empty.
        """
        from kafka_fast.control.admin.operations.transactions import DescribeTransactions

        operation = DescribeTransactions(transactional_ids)
        return await self._driver.run(self._steps.run_items(operation, timeout))

    async def describe_producers(
        self,
        partitions: Iterable[TopicPartition],
        *,
        broker_id: int | None = None,
        timeout: float | None = None,
    ) -> AdminResult[TopicPartition, tuple[ProducerState, ...]]:
        """Return the producers, idempotent or transactional, that partitions' logs know.

        DescribeProducers; needs READ on the topic. Since Kafka 2.8.

        Args:
            partitions: the partitions.
            broker_id: a broker with replicas of all of them, which is asked; None: the leader of
                each.
            timeout: seconds; None: default.api.timeout.ms.
        """
        from kafka_fast.control.admin.operations.transactions import DescribeProducers

        operation = DescribeProducers(partitions, broker_id=broker_id)
        return await self._driver.run(self._steps.run_items(operation, timeout))

    async def fence_producers(
        self, transactional_ids: Iterable[str], *, timeout: float | None = None
    ) -> AdminResult[str, ProducerIdAndEpoch]:
        """Fence the producers of transactional ids: they can write no more.

        InitProducerId; needs WRITE on the transactional id. The coordinator aborts what they have
        open. An id that is new is created.

        Args:
            transactional_ids: their ids.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UsageError: an id is empty.
        """
        from kafka_fast.control.admin.operations.transactions import FenceProducers

        operation = FenceProducers(transactional_ids)
        return await self._driver.run(self._steps.run_items(operation, timeout))

    async def force_terminate_transaction(
        self, transactional_id: str, *, timeout: float | None = None
    ) -> None:
        """Abort the transaction of a producer that is gone, and fence the producer.

        InitProducerId; needs WRITE on the transactional id.

        Args:
            transactional_id: of the producer.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UsageError: the id is empty.
        """
        from kafka_fast.admin.workflows.transactions import force_terminate_transaction

        return await self._driver.run(
            force_terminate_transaction(self._steps, transactional_id, timeout=timeout)
        )

    async def abort_transaction(
        self,
        partition: TopicPartition,
        *,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        timeout: float | None = None,
    ) -> None:
        """Abort a transaction in one partition that no coordinator will end.

        WriteTxnMarkers; needs ALTER or CLUSTER_ACTION on the cluster. Since Kafka 2.8, in a version
        that brokers still have. A transaction that a coordinator still knows is aborted behind its
        back: look with `find_hanging_transactions`.

        Args:
            partition: in which it is open.
            producer_id: of its producer, as `describe_producers` has it.
            producer_epoch: of its producer, as there.
            coordinator_epoch: as there; 0 if there is none.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            InvalidProducerEpoch: the producer has a higher epoch.
            TransactionCoordinatorFenced: a coordinator with a higher epoch has written.
            UsageError: the id or an epoch is negative.
        """
        from kafka_fast.admin.workflows.transactions import abort_transaction

        return await self._driver.run(
            abort_transaction(
                self._steps,
                partition,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                coordinator_epoch=coordinator_epoch,
                timeout=timeout,
            )
        )

    async def find_hanging_transactions(
        self,
        *,
        topic: str | None = None,
        partition: int | None = None,
        broker_id: int | None = None,
        max_transaction_timeout_ms: int = 900_000,
        timeout: float | None = None,
    ) -> list[HangingTransaction]:
        """Return transactions that are open in logs, and that no coordinator will end.

        They keep readers with isolation.level=read_committed from going on; `abort_transaction`
        ends them. This does what `kafka-transactions.sh find-hanging` does.

        Metadata, DescribeProducers, ListTransactions and DescribeTransactions; needs READ on the
        topics, and DESCRIBE on all transactional ids: a transaction that this client may not see
        looks like one that hangs. Since Kafka 3.0.

        Args:
            topic: where to look; None: in all topics with replicas on the broker.
            partition: of the topic; None: all of its partitions.
            broker_id: look at its replicas; None: the leaders are asked.
            max_transaction_timeout_ms: transaction.max.timeout.ms of the brokers. What was written
                to since is not looked at.
            timeout: seconds for all of this; None: default.api.timeout.ms.

        Raises:
            KafkaError: a partition, a broker or a transaction could not be looked at.
            UsageError: neither topic nor broker is named, or the partition has no topic.
        """
        from kafka_fast.admin.workflows.transactions import HangingSearch

        return await self._driver.run(
            HangingSearch(
                self._steps,
                topic=topic,
                partition=partition,
                broker_id=broker_id,
                timeout=timeout,
            ).find_hanging(max_transaction_timeout_ms)
        )
