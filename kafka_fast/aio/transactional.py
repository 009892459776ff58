"""The calls of a producer that concern transactions, as coroutines."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from kafka_fast.net.waiting.looping import LoopDriver
from kafka_fast.producer.offsets_argument import Offsets, group_of, offsets_of
from kafka_fast.producer.transaction_block import TransactionBlock
from kafka_fast.types import GroupMetadata

if TYPE_CHECKING:
    from kafka_fast.producer.transaction_steps import TransactionSteps

__all__ = ["Transaction", "TransactionalCalls"]


class TransactionalCalls:
    """The part of `Producer` that begins and ends transactions."""

    client_id: str
    _driver: LoopDriver
    _transactions: TransactionSteps

    async def init_transactions(self, timeout: float | None = None) -> None:
        """Get the producer id, and abort what a producer of the same name has left open.

        That producer is fenced: it can write no more. The first `begin_transaction` does the same.

        Args:
            timeout: seconds; None: max.block.ms.

        Raises:
            KafkaTimeoutError: there was no answer in time. Call this again.
            KafkaError: the producer cannot go on: it lacks WRITE on the transactional id, or
                transaction.timeout.ms is more than the broker allows.
            UsageError: transactional.id is not set.
        """
        await self._driver.run(self._transactions.init(timeout))

    async def begin_transaction(self, timeout: float | None = None) -> None:
        """Open a transaction. All records that are sent until its end belong to it.

        Args:
            timeout: seconds, for the producer id if it is not there yet; None: max.block.ms.

        Raises:
            UsageError: a transaction is open already, or its end is not known.
            KafkaError: as for `init_transactions`.
        """
        await self._driver.run(self._transactions.begin(timeout))

    async def send_offsets_to_transaction(
        self, offsets: Offsets, group: GroupMetadata | str, timeout: float | None = None
    ) -> None:
        """Have the open transaction commit a consumer's offsets, too.

        Args:
            offsets: records that are done; or a mapping of TopicPartition to the offset to read
                next, or to OffsetAndMetadata.
            group: `consumer.group_metadata()`, so that a member that was expelled commits nothing;
                or the group's name.
            timeout: seconds; None: max.block.ms.

        Raises:
            AbortableTransactionError: the group has gone on without this member, or the offsets
                were refused. Abort the transaction.
            KafkaTimeoutError: there was no answer in time. Abort the transaction.
            UsageError: no transaction is open.
            UnsupportedVersionError: the broker is older than Kafka 2.5 and takes no member.
        """
        await self._driver.run(
            self._transactions.send_offsets(offsets_of(offsets), group_of(group), timeout)
        )

    async def commit_transaction(self, timeout: float | None = None) -> None:
        """Deliver all records of the open transaction, and commit it.

        Args:
            timeout: seconds; None: max.block.ms.

        Raises:
            AbortableTransactionError: a record was not delivered, or the coordinator has aborted
                the transaction. Call `abort_transaction`, then begin another one.
            ProducerFencedError: a newer producer has the transactional id. Close this one.
            TransactionOutcomeUnknownError: the commit was sent and not answered in time. Call this
                again: it never commits twice.
            KafkaTimeoutError: records are not delivered yet. Call this again, or abort.
            UsageError: no transaction is open.
        """
        await self._driver.run(self._transactions.commit(timeout))

    async def abort_transaction(self, timeout: float | None = None) -> None:
        """Abort the open transaction. Records of it that were not sent yet are not.

        Args:
            timeout: seconds; None: max.block.ms.

        Raises:
            KafkaTimeoutError: there was no answer in time. Call this again.
            ProducerFencedError: a newer producer has the transactional id. Close this one.
            UsageError: no transaction is open, or a commit was sent.
        """
        await self._driver.run(self._transactions.abort(timeout))

    def transaction(self, timeout: float | None = None) -> Transaction:
        """Return a transaction for an `async with` block, which commits at its end.

        If the block raises, the transaction is aborted, and the exception passes on.

        Examples:
            >>> async with producer.transaction() as transaction:
            ...     await producer.send("orders", b"1")
            ...     await producer.send("payments", b"1")
            >>> transaction.committed
            True

        Args:
            timeout: seconds, for each of the calls that it makes; None: max.block.ms.
        """
        return Transaction(self._driver, self._transactions, self.client_id, timeout)


class Transaction(TransactionBlock):
    """One transaction of a producer, for an `async with` block; `Producer.transaction` makes it."""

    def __init__(
        self, driver: LoopDriver, steps: TransactionSteps, client_id: str, timeout: float | None
    ) -> None:
        super().__init__(steps, client_id, timeout)
        self._driver = driver

    async def send_offsets(self, offsets: Offsets, group: GroupMetadata | str) -> None:
        """Do as `Producer.send_offsets_to_transaction`."""
        steps = self._steps.send_offsets(offsets_of(offsets), group_of(group), self._timeout)
        await self._driver.run(steps)

    async def __aenter__(self) -> Transaction:
        """Open the transaction."""
        await self._driver.run(self._enter())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Commit; or abort, if the block has raised."""
        await self._driver.run(self._leave(error))
