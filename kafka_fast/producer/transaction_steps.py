"""The calls of a producer with transactions, as steps, for callers in threads and event loops.

    begin ──► the queues admit records ──► send … send ──► commit
                                                             │ the queues hold records
                                                             ▼
                             flush ──► has one failed? ──► EndTxn ──► the next producer id or epoch

Between two transactions the queues accept no record, also of a call that is at work in another
thread. So all records that were accepted since `begin` are the transaction's, and no others.

Thread: the caller's. Another caller's call is refused while one of these is at work.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from kafka_fast.control.producer.transaction import (
    TransactionLifecycle,
    TransactionOutcome,
    TransactionPhase,
)
from kafka_fast.control.producer.transaction_control import TransactionControl
from kafka_fast.errors import (
    AbortableTransactionError,
    KafkaError,
    KafkaTimeoutError,
    TransactionOutcomeUnknownError,
    UsageError,
    fresh_copy,
)
from kafka_fast.logs import ClientLog, count_of
from kafka_fast.net.waiting.steps import Steps
from kafka_fast.net.waiting.waits import Answer
from kafka_fast.producer.producer_core import NO_TRANSACTION, ProducerCore
from kafka_fast.producer.producer_steps import ProducerSteps
from kafka_fast.times import timeout_seconds
from kafka_fast.types import GroupMetadata, OffsetAndMetadata, TopicPartition

NOT_TRANSACTIONAL = "this producer has no transactions: transactional.id is not set"

TURN_PATIENCE = 1.0
"""Seconds for a turn of the control thread, which waits for nothing."""

COMMITS = "a commit is under way: its transaction takes no more records"

UNSURE_OFFSETS = (
    "the transaction cannot be committed: nobody knows whether offsets that were sent to it belong "
    "to it, because the call was given up"
)

ABORTS = "an abort is under way: its transaction takes no more records"


class TransactionSteps:
    """The transactions of one producer's users."""

    def __init__(self, core: ProducerCore, max_block: float) -> None:
        """Bind to one producer.

        Args:
            core: of the producer.
            max_block: seconds that a call takes at most, unless it is given a timeout.
        """
        self._core = core
        self._log = ClientLog("kafka_fast.producer", core.client_id)
        self._max_block = max_block
        self._flushing = ProducerSteps(core, max_block)
        self._mutex = threading.Lock()  # held while a call is at work
        self._failed_before = 0  # what had failed when the open transaction was begun
        self._sent_before = 0
        self._unseen = 0  # the number of a transaction whose end a call has not waited for

    # ---- getters ----

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open whose outcome is not decided. Any thread."""
        transactions = self._core.control.transactions
        return transactions is not None and transactions.transaction.is_open

    @property
    def number(self) -> int:
        """Counts the transactions that were begun. Any thread."""
        return self._control().transaction.number

    def outcome_of(self, number: int) -> TransactionOutcome:
        """Return what became of a transaction that its user has ended. Any thread."""
        return self._control().transaction.outcome_of(number)

    # ---- the calls ----

    def init(self, timeout: float | None) -> Steps[None]:
        """Get the producer id, and end what a predecessor has left open.

        Raises:
            KafkaTimeoutError: there was no answer in time; the call may be repeated.
            KafkaError: the producer cannot go on.
        """
        with self._one_caller("init_transactions()"):
            yield from self._get_identity(self._deadline(timeout))

    def begin(self, timeout: float | None) -> Steps[None]:
        """Open a transaction.

        Raises:
            UsageError: one is open already, or is being ended.
            KafkaError: as `init`.
        """
        with self._one_caller("begin_transaction()"):
            core, transaction = self._core, self._control().transaction
            transaction.check_begin()
            if transaction.state is not TransactionPhase.READY:
                yield from self._get_identity(self._deadline(timeout))
            queues = core.queues
            self._failed_before, self._sent_before = queues.failed_records, queues.sent_batches
            begun: Answer[None] = Answer()
            core.call(lambda now: self._begin(begun, now))
            try:
                yield from core.waits.wait(begun, self._deadline(timeout), "begin_transaction()")
            except BaseException:
                core.call(self._control().withdraw_begin)
                raise
            queues.admit()

    def _begin(self, begun: Answer[None], now: float) -> None:
        """Open the transaction. Control thread."""
        error = self._control().open_next(now)
        begun.set(error)

    def send_offsets(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: GroupMetadata,
        timeout: float | None,
    ) -> Steps[None]:
        """Add offsets to the open transaction.

        Raises:
            AbortableTransactionError: the transaction can only be aborted.
            KafkaTimeoutError: there was no answer in time; the transaction is to be aborted.
        """
        with self._one_caller("send_offsets_to_transaction()"):
            control = self._control()
            self._check_not_failed(control.transaction)
            control.transaction.check_send()
            answer: Answer[None] = Answer()
            self._core.call(lambda now: control.send_offsets(group, offsets, answer.set, now))
            try:
                yield from self._wait(answer, timeout, f"the offsets of group {group.group_id!r}")
            except BaseException:
                self._core.call(lambda now: control.fail(AbortableTransactionError(UNSURE_OFFSETS)))
                raise

    def commit(self, timeout: float | None) -> Steps[None]:
        """Commit the open transaction, after all of its records were delivered.

        Raises:
            AbortableTransactionError: it can only be aborted: a record was not delivered, or the
                coordinator has aborted it.
            TransactionOutcomeUnknownError: the commit was sent and not answered in time.
            KafkaTimeoutError: its records were not delivered in time. Commit again, or abort.
        """
        with self._one_caller("commit_transaction()"), self._noting_interruption():
            core, control = self._core, self._control()
            deadline = self._deadline(timeout)
            if self._has_ended_since(TransactionOutcome.COMMITTED):
                return
            control.transaction.check_commit()
            self._check_not_failed(control.transaction)
            if control.transaction.state is not TransactionPhase.COMMITTING:
                core.queues.hold(UsageError(COMMITS))
                core.call(control.flush)
                yield from self._flush(deadline, "commit_transaction()")
                self._check_delivered()
            number = control.transaction.number
            is_sent = core.queues.sent_batches != self._sent_before
            answer: Answer[None] = Answer()
            core.call(lambda now: control.commit_open(number, is_sent, answer.set, now))
            try:
                yield from self._wait_until(answer, deadline, "the commit")
            except BaseException as error:
                withdrawn: Answer[None] = Answer()
                core.call(lambda now: control.withdraw_commit(withdrawn.set, now))
                if isinstance(error, KafkaTimeoutError):
                    yield from self._check_withdrawn(withdrawn, number, error)
                else:
                    raise
            core.queues.hold(UsageError(NO_TRANSACTION))

    def abort(self, timeout: float | None) -> Steps[None]:
        """Abort the open transaction. Records of it that were not sent fail.

        Raises:
            KafkaTimeoutError: there was no answer in time. Call this again.
        """
        with self._one_caller("abort_transaction()"), self._noting_interruption():
            core, control = self._core, self._control()
            deadline = self._deadline(timeout)
            if self._has_ended_since(TransactionOutcome.ABORTED):
                return
            control.transaction.check_abort()
            core.queues.hold(UsageError(ABORTS))
            given_up: Answer[None] = Answer()
            core.call(lambda now: control.give_up(given_up.set, now))
            yield from self._wait_until(given_up, deadline, "the abort")
            if not control.is_decided:
                yield from self._flush(deadline, "abort_transaction()")
            is_sent = core.queues.sent_batches != self._sent_before
            has_failed = core.queues.failed_records != self._failed_before
            answer: Answer[None] = Answer()
            core.call(lambda now: control.abort_open(is_sent, has_failed, answer.set, now))
            yield from self._wait_until(answer, deadline, "the abort")
            core.queues.hold(UsageError(NO_TRANSACTION))

    def abort_open(self, timeout: float | None) -> Steps[float | None]:
        """Abort what is open, because the producer is closed; return what is left of `timeout`.

        An error is only logged: the coordinator aborts the transaction when its time is up.
        """
        transactions = self._core.control.transactions
        if transactions is None or self._core.queues.dead:
            return timeout
        began = self._core.now()
        try:
            if transactions.transaction.state is TransactionPhase.COMMITTING:
                self._log.warning("the producer is closed while a commit waits for its answer")
                yield from self.commit(timeout)
            elif self.is_open or transactions.transaction.is_ending:
                self._log.warning("the producer is closed with a transaction open: it is aborted")
                yield from self.abort(timeout)
        except KafkaError as error:
            self._log.warning("the end of that transaction is not known: %s", error)
        return None if timeout is None else max(0.0, timeout - (self._core.now() - began))

    # ---- parts ----

    def _check_withdrawn(
        self, withdrawn: Answer[None], number: int, late: KafkaTimeoutError
    ) -> Steps[None]:
        """Raise what is known of a commit that was not answered in time; return if it was since.

        Raises:
            TransactionOutcomeUnknownError: it was sent, and may have been taken.
            KafkaTimeoutError: it was in no request: the transaction is as open as before.
        """
        transaction = self._control().transaction
        yield from self._wait_until(withdrawn, self._core.now() + TURN_PATIENCE, "the commit")
        if transaction.outcome_of(number) is TransactionOutcome.COMMITTED:
            return
        if transaction.is_open:
            raise late
        raise TransactionOutcomeUnknownError(
            f"{late}; it may have been committed: call commit_transaction() again"
        ) from late

    @contextmanager
    def _noting_interruption(self) -> Iterator[None]:
        """Note that a call has not seen the end: the transaction may end without it."""
        try:
            yield
        except UsageError:
            raise  # the call has not begun
        except BaseException:
            self._unseen = self._control().transaction.number
            raise

    def _has_ended_since(self, outcome: TransactionOutcome) -> bool:
        """Tell whether what an earlier call was given up for has come true meanwhile."""
        transaction, self._unseen, number = self._control().transaction, 0, self._unseen
        has_ended = number == transaction.number and transaction.outcome_of(number) is outcome
        if has_ended:
            self._core.queues.hold(UsageError(NO_TRANSACTION))
        return has_ended

    def _get_identity(self, deadline: float) -> Steps[None]:
        answer: Answer[None] = Answer()
        control = self._control()
        self._core.call(lambda now: control.want_identity(answer.set, now))
        yield from self._wait_until(answer, deadline, "init_transactions()")

    def _flush(self, deadline: float, call: str) -> Steps[None]:
        """Wait until no record of the transaction is pending."""
        core = self._core
        left = max(0.0, deadline - core.now())
        pending = yield from self._flushing.flush(left)
        if pending:
            core.waits.raise_if_over()
            raise core.waits.timeout_error(
                f"{call}: {count_of(pending, 'record')} not delivered within {left:.1f} s"
            )

    def _check_delivered(self) -> None:
        """Fail the transaction if a record of it was not delivered."""
        core, control = self._core, self._control()
        self._check_not_failed(control.transaction)
        count = core.queues.failed_records - self._failed_before
        if count:
            error = AbortableTransactionError(
                f"the transaction cannot be committed: {count_of(count, 'record')} of it not "
                "delivered; each one's handle and callback say why"
            )
            core.call(lambda now: control.fail(error))
            raise fresh_copy(error)

    def _check_not_failed(self, transaction: TransactionLifecycle) -> None:
        """Raise the error of a transaction that has failed, or of a producer that was stopped."""
        error = transaction.error
        if error is not None:
            raise fresh_copy(error)

    def _wait(self, answer: Answer[None], timeout: float | None, what: str) -> Steps[None]:
        yield from self._wait_until(answer, self._deadline(timeout), what)

    def _wait_until(self, answer: Answer[None], deadline: float, what: str) -> Steps[None]:
        control = self._control()
        yield from self._core.waits.wait(answer, deadline, what, missing=control.why_waiting)

    def _deadline(self, timeout: float | None) -> float:
        limit = self._max_block if timeout is None else timeout_seconds(timeout)
        return self._core.now() + limit

    def _control(self) -> TransactionControl:
        control = self._core.control.transactions
        if control is None:
            raise UsageError(NOT_TRANSACTIONAL)
        return control

    def _one_caller(self, call: str) -> OneCaller:
        self._core.queues.check_may_wait()
        self._core.waits.raise_if_over()
        return OneCaller(self._mutex, call)


class OneCaller:
    """A context manager that lets one call at a time change a producer's transaction."""

    __slots__ = ("_call", "_mutex")

    def __init__(self, mutex: threading.Lock, call: str) -> None:
        self._mutex = mutex
        self._call = call

    def __enter__(self) -> None:
        if not self._mutex.acquire(blocking=False):
            raise UsageError(
                f"{self._call}: another caller begins, commits or aborts a transaction of this "
                "producer: these are for one caller at a time"
            )

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._mutex.release()
