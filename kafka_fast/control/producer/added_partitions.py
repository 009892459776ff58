"""Which partitions belong to the open transaction, in version 1 of the protocol.

    a queue with data wants a route ─► may_send ─► AddPartitionsToTxn ─► the queue's route

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_fast.control.diagnosis.troubles import Reason
from kafka_fast.control.producer.routes import Routes
from kafka_fast.control.producer.transaction_calls import AddPartitions, OpenTransaction
from kafka_fast.control.requests.open_call import OpenCall
from kafka_fast.control.requests.requester import Requester
from kafka_fast.errors import KafkaError
from kafka_fast.types import TopicPartition


class AddedPartitions:
    """The partitions of one producer's transactions."""

    def __init__(
        self,
        requester: Requester,
        routes: Routes,
        timeout: float,
        *,
        on_failed: Callable[[OpenTransaction, KafkaError], None],
        on_ended: Callable[[float], None],
    ) -> None:
        """Start without a partition.

        Args:
            requester: sends the calls.
            routes: of the producer's queues.
            timeout: seconds for one try.
            on_failed: called with why a partition cannot be added.
            on_ended: called after each end of a request, with the time.
        """
        self._requester = requester
        self._routes = routes
        self._timeout = timeout
        self._on_failed = on_failed
        self._on_ended = on_ended
        self._asked: set[TopicPartition] = set()  # whose queues asked for a route
        self._added: set[TopicPartition] = set()  # those of them that were added
        self._transaction: OpenTransaction | None = None
        self._opened: OpenCall[TopicPartition, None] | None = None

    def __len__(self) -> int:
        """Return how many partitions were added."""
        return len(self._added)

    @property
    def is_adding(self) -> bool:
        """Whether a request is in flight, or is to be sent."""
        return self._opened is not None and self._opened.is_open

    def why_waiting(self) -> Reason | None:
        """Return why a partition is not added yet; None: none is waited for. Any thread."""
        for partition in self._opened or ():
            return self._opened.why_waiting(partition) if self._opened is not None else None
        return None

    def may_send(self, partition: TopicPartition, transaction: OpenTransaction | None) -> bool:
        """Tell whether records may go to a partition; if not, have it added.

        Args:
            partition: of a queue that has data.
            transaction: to which it is added; None: to none, the queue has to ask again.
        """
        if partition in self._added:
            return True
        self._asked.add(partition)
        if transaction is not None:
            self._add(partition, transaction)
        return False

    def _add(self, partition: TopicPartition, transaction: OpenTransaction) -> None:
        if self._opened is None:
            self._transaction = transaction
            self._opened = self._requester.open_call(
                AddPartitions(
                    transaction,
                    timeout=self._timeout,
                    on_added=lambda added, now: self._handle_added(transaction, added, now),
                    on_failed=lambda error, now: self._handle_failed(transaction, error, now),
                )
            )
        if partition not in self._opened:
            self._opened.add_item(partition)

    def give_up(self, now: float) -> None:
        """Add no more. What is in flight ends with its answer, or its connection."""
        if self._opened is not None:
            self._opened.deadline = now

    def end(self) -> None:
        """Let the queues that were routed, or wanted to be, ask anew: for another transaction."""
        if self._opened is not None:
            self._opened.cancel()
        self._opened = self._transaction = None
        self._added.clear()
        self._routes.hold_added(self._asked)
        self._asked.clear()

    def _handle_added(
        self, transaction: OpenTransaction, partition: TopicPartition, now: float
    ) -> None:
        if self._transaction is transaction:
            self._added.add(partition)
            self._routes.release_added(partition)
        self._on_ended(now)

    def _handle_failed(self, transaction: OpenTransaction, error: KafkaError, now: float) -> None:
        self._on_failed(transaction, error)
        self._on_ended(now)
