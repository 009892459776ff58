"""A producer's transactions in the control plane: which requests they need, and when. Sans-I/O.

    users' calls ─────────────┐                          ┌─► calls to the coordinators
    batches that have failed ─┼─► TransactionControl ────┼─► queues that are held, failed, routed
    identities, versions ─────┘   (`TransactionLifecycle`) └─► results, for the users

Two versions of the protocol differ in how the coordinator hears of a partition.

1: the producer adds each partition before it sends a record there. Its queue has no route until
   then: a queue with data asks for one, and that is how this plane hears of the partition.
2: the partition's leader adds it (KIP-890). Every transaction has an epoch of its own, which the
   answer to the last EndTxn brings.

The finalized feature `transaction.version` says which one, as the newest answer to ApiVersions has
it. It is chosen while no transaction is open.

Between the decision and the next identity the data plane has no producer id, so that it sends
nothing: a record of the next transaction must not go out under the epoch of the last one.

Thread: control, but for what says "any thread".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafka_fast.config import ProducerSettings
from kafka_fast.control.connections.links import Link
from kafka_fast.control.context import Context
from kafka_fast.control.diagnosis.troubles import Reason
from kafka_fast.control.producer.added_partitions import AddedPartitions
from kafka_fast.control.producer.identity import TransactionalIdCall
from kafka_fast.control.producer.producer_messages import (
    ABORTED,
    FailQueue,
    HoldRecords,
    OwnCommand,
    SetProducerId,
)
from kafka_fast.control.producer.routes import Routes
from kafka_fast.control.producer.transaction import (
    TransactionLifecycle,
    TransactionOutcome,
    TransactionPhase,
)
from kafka_fast.control.producer.transaction_calls import (
    STOPPING,
    AddOffsets,
    CommitOffsets,
    EndTransaction,
    OpenTransaction,
    TransactionCall,
    is_downgrade,
    offsets_failure,
    transaction_error,
)
from kafka_fast.control.producer.verdicts import ProducerIdentity
from kafka_fast.control.requests.call import ONLY
from kafka_fast.control.requests.open_call import OpenCall
from kafka_fast.errors import (
    AbortableTransactionError,
    BrokerError,
    ErrorCode,
    KafkaError,
    ProducerFencedError,
    TransactionOutcomeUnknownError,
    UnsupportedVersionError,
    UsageError,
)
from kafka_fast.instants import NEVER
from kafka_fast.logs import get_logger
from kafka_fast.types import GroupMetadata, OffsetAndMetadata, TopicPartition

logger = get_logger("kafka_fast.producer")

FEATURE = "transaction.version"

VERSION_2_LEVEL = 2
"""The level of `FEATURE` from which on the leaders add partitions."""

WARN_AT = 0.8
"""The part of transaction.timeout.ms after which an open transaction is warned of."""

Done = Callable[[KafkaError | None], None]
"""Takes None, or why a call of a user has failed."""


class TransactionControl:
    """The transactions of one producer."""

    def __init__(
        self,
        context: Context[ProducerSettings],
        transactional_id: str,
        routes: Routes,
        *,
        put_command: Callable[[OwnCommand], None],
        on_identity: Callable[[ProducerIdentity, float], None],
        on_fatal: Callable[[KafkaError], None],
        on_unusable: Callable[[Link, UnsupportedVersionError, float], None],
    ) -> None:
        """Start without a producer id; the first `want_identity` asks for it.

        Args:
            context: the producer's.
            transactional_id: transactional.id.
            routes: of the producer's queues.
            put_command: takes what the data plane is to do.
            on_identity: called with each new producer id and epoch.
            on_fatal: called with why this producer cannot go on.
            on_unusable: called with a link that cannot carry the records of transactions, and why.
        """
        self._settings = context.settings
        self._requester = context.requester
        self._transactional_id = transactional_id
        self._routes = routes
        self._put_command = put_command
        self._on_identity = on_identity
        self._on_fatal = on_fatal
        self._on_unusable = on_unusable
        self.transaction = TransactionLifecycle()
        """Its state. Any thread."""
        self.identity = TransactionalIdCall(
            context,
            transactional_id,
            on_identity=self._handle_identity,
            on_fatal=on_fatal,
        )
        self._version = 1
        self._features_epoch = -1  # of the answer that `_level` is from
        self._level = 0
        self._open: OpenTransaction | None = None
        self._partitions = AddedPartitions(
            context.requester,
            routes,
            context.settings.request_timeout,
            on_failed=self._fail_open,
            on_ended=self._decide_if_pending,
        )
        self._calls: list[OpenCall[str, None]] = []  # that add offsets to the open transaction
        self._pending_end: tuple[bool, bool] | None = None  # arguments of `_decide`, which waits
        self._may_be_known = False  # the coordinator may have heard of the open transaction
        self._needs_epoch = False  # the next transaction needs a new epoch
        self._ending: EndTransaction | None = None
        self._deciding: OpenCall[str, ProducerIdentity | None] | None = None
        self._waiting_for_identity: list[Done] = []
        self._waiting_for_end: list[Done] = []
        self._is_abandoned = False
        self.committed = 0
        """Transactions that were committed."""
        self.aborted = 0
        """Transactions that were aborted."""

    # ---- getters ----

    @property
    def is_decision_sent(self) -> bool:
        """Whether the coordinator may have taken the decision. Any thread."""
        ending = self._ending
        return ending is not None and ending.is_sent

    @property
    def is_decided(self) -> bool:
        """Whether the outcome is being told to the coordinator. Any thread."""
        return self._ending is not None

    @property
    def is_giving_up(self) -> bool:
        """Whether records are given up: their transaction has failed, or is being aborted."""
        return self._is_aborting or self.transaction.state is TransactionPhase.FAILED

    @property
    def _is_aborting(self) -> bool:
        return self.transaction.state is TransactionPhase.ABORTING

    def may_send(self, partition: TopicPartition) -> bool:
        """Tell whether records may go to a partition now; if not, have it added (version 1)."""
        if self._version != 1:
            return True
        takes_records = self.transaction.state in (TransactionPhase.OPEN, TransactionPhase.FLUSHING)
        opened = self._open if takes_records else None
        self._may_be_known = self._may_be_known or opened is not None
        return self._partitions.may_send(partition, opened)

    def why_waiting(self) -> Reason | None:
        """Return why a call of a user has not ended; None: nothing is known. Any thread."""
        deciding = self._deciding
        if deciding is not None:
            return deciding.why_waiting(ONLY)
        for opened in self._calls:
            if ONLY in opened:
                return opened.why_waiting(ONLY)
        return self._partitions.why_waiting() or self.identity.why_waiting()

    def describe_state(self) -> str:
        """Return the state, for people. Any thread."""
        return (
            f"transactional id {self._transactional_id!r}: {self.transaction.state.value} "
            f"(transaction {self.transaction.number}, version {self._version}, "
            f"{len(self._partitions)} partitions added)"
        )

    # ---- versions ----

    def handle_ready(self, link: Link, now: float) -> None:
        """Take the feature's level, if this answer is newer than the last one."""
        versions = link.versions
        if versions.features_epoch > self._features_epoch:
            self._features_epoch = versions.features_epoch
            self._level = versions.features.get(FEATURE, 0)
        self._choose_version(now)

    def _choose_version(self, now: float) -> None:
        """Let the next transaction have the version that the cluster has now."""
        version = 2 if self._level >= VERSION_2_LEVEL else 1
        state = self.transaction.state
        if version == self._version or self.transaction.is_open or self.transaction.is_ending:
            return
        logger.info("transactions of version %d from now on (%s)", version, state.value)
        self._version = version
        for link, error in self._routes.use_transactions(version):
            self._on_unusable(link, error, now)

    # ---- the producer id ----

    def want_identity(self, done: Done, now: float) -> None:
        """Get a producer id, if there is none. `done` hears of the end."""
        transaction = self.transaction
        if transaction.state is TransactionPhase.STOPPED:
            done(transaction.error)
        elif transaction.state in (TransactionPhase.NO_ID, TransactionPhase.GETTING_ID):
            transaction.want_identity()
            self._waiting_for_identity.append(done)
            self.identity.want_identity()
        else:
            done(None)

    def _handle_identity(self, identity: ProducerIdentity, now: float) -> None:
        self._choose_version(now)
        self._on_identity(identity, now)
        self.transaction.handle_identity()
        self._end_waits(self._waiting_for_identity, None)

    # ---- a transaction ----

    def open_next(self, now: float) -> KafkaError | None:
        """Open a transaction; return why that cannot be done any more, after the user's check."""
        transaction, identity = self.transaction, self.identity.identity
        if transaction.state is not TransactionPhase.READY or identity is None:
            return transaction.error or UsageError(
                f"begin_transaction(): {transaction.state.value}"
            )
        transaction.begin()
        self._partitions.end()  # what was asked too late for the last one asks again
        self._may_be_known = False
        self._open = OpenTransaction(
            self._transactional_id,
            identity,
            self._version,
            now,
            self._settings.transaction_timeout,
            now + WARN_AT * self._settings.transaction_timeout,
        )
        return None

    def withdraw_begin(self, now: float) -> None:
        """Close a transaction again whose `begin` was given up before its user knew of it."""
        if self.transaction.state is TransactionPhase.OPEN and not self._may_be_known:
            self._open = None
            self.transaction.withdraw_begin()

    def send_offsets(
        self,
        group: GroupMetadata,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        done: Done,
        now: float,
    ) -> None:
        """Add a group's offsets to the open transaction."""
        opened = self._open
        if opened is None or self.transaction.state is not TransactionPhase.OPEN:
            done(self.transaction.error or UsageError("no transaction is open"))
            return
        self._may_be_known = True
        timeout = self._settings.request_timeout

        def ended(error: KafkaError | None, now: float) -> None:
            if error is not None:
                self._fail_open(opened, offsets_failure(error))
            done(error)
            self._decide_if_pending(now)

        commit = CommitOffsets(opened, group, offsets, timeout=timeout, on_ended=ended)

        def added(error: KafkaError | None, now: float) -> None:
            if error is None and self.transaction.state is TransactionPhase.OPEN:
                self._ask(commit)
            else:  # the transaction has failed meanwhile
                ended(error or self.transaction.error, now)

        if opened.version == 1:
            self._ask(AddOffsets(opened, group.group_id, timeout=timeout, on_ended=added))
        else:
            self._ask(commit)

    def _ask(self, call: TransactionCall) -> None:
        self._calls = [opened for opened in self._calls if opened.is_open]
        self._calls.append(self._requester.open_call(call, [ONLY]))

    def flush(self, now: float) -> None:
        """A commit waits for the records; nothing is added any more."""
        if self.transaction.state is TransactionPhase.OPEN:
            self.transaction.flush()

    def fail(self, error: KafkaError) -> None:
        """The open transaction can only be aborted. Sends raise the error from now on."""
        self._notice_downgrade(error)
        if self.transaction.fail(error):
            logger.warning("the transaction can only be aborted: %s", error)
            self._needs_epoch = True
            self._put_command(HoldRecords(error))
            self._fail_queues()  # nothing of it will ever be committed

    def _notice_downgrade(self, error: KafkaError) -> bool:
        """Go back to version 1 if the cluster has done so; return whether that is news.

        Links that are open do not tell of such a change, only refuse. A newer answer to ApiVersions
        may say otherwise.
        """
        opened, cause = self._open, error.__cause__
        is_news = opened is not None and is_downgrade(opened, cause)
        if opened is not None and is_news:
            opened.version = 1
            self._level = 0
        return is_news

    def _fail_open(self, transaction: OpenTransaction, error: KafkaError) -> None:
        """Let an error of a call about a transaction fail it, or stop the producer."""
        if self._open is not transaction or self.is_giving_up:
            return  # the coordinator decides whether this producer may still abort it
        if isinstance(error, AbortableTransactionError):
            self.fail(error)
        else:
            self._on_fatal(error)

    def handle_failed_batch(
        self, partition: TopicPartition, error: BrokerError, now: float
    ) -> None:
        """A batch of the open transaction was given up, after this answer of its leader."""
        opened = self._open
        if opened is None or self.is_giving_up:
            return
        is_final = error.code in STOPPING and not is_downgrade(opened, error)
        if is_final or error.code == ErrorCode.PRODUCER_FENCED:
            self._on_fatal(
                transaction_error(opened, error.code, "Produce", f" to {partition}", now)
            )
            return
        failure = AbortableTransactionError(
            f"the transaction cannot be committed: a record of {partition} was not delivered: "
            f"{error}"
        )
        failure.__cause__ = error
        self.fail(failure)

    # ---- its end ----

    def commit_open(self, number: int, is_sent: bool, done: Done, now: float) -> None:
        """Commit the open transaction, none of whose records is pending or has failed.

        Args:
            number: of the transaction.
            is_sent: whether a record of it was handed to a link.
            done: hears of the end.
            now: the time.
        """
        state = self.transaction.state
        if self.transaction.outcome_of(number) is TransactionOutcome.COMMITTED:
            done(None)  # an earlier call has been given up, and was answered since
        elif state is TransactionPhase.COMMITTING or self._pending_end is not None:
            self._waiting_for_end.append(done)
        elif state is not TransactionPhase.FLUSHING:
            done(self.transaction.error or UsageError(f"commit_transaction(): {state.value}"))
        else:
            self._waiting_for_end.append(done)
            self._decide(is_sent, commits=True, now=now)

    def withdraw_commit(self, done: Done, now: float) -> None:
        """Take a commit back that nobody waits for any more, if it was in no request.

        Otherwise the coordinator may have decided, and it is repeated until it is answered.
        """
        if self._pending_end is not None and self.transaction.state is TransactionPhase.FLUSHING:
            self._pending_end = None
            self._waiting_for_end.clear()
        elif (
            self.transaction.state is TransactionPhase.COMMITTING
            and self._deciding is not None
            and not self.is_decision_sent
        ):
            self._deciding.cancel()
            self._ending = self._deciding = None
            self._waiting_for_end.clear()
            self.transaction.withdraw_commit()
        done(None)

    def give_up(self, done: Done, now: float) -> None:
        """Fail the records of the open transaction that are in no request. Then `abort_open`."""
        if self.transaction.is_open:
            self.transaction.abort()
            self._pending_end = None  # of a commit that was given up
            self._waiting_for_end.clear()
            self._partitions.give_up(now)
            for opened in self._calls:
                opened.deadline = now  # what is in flight ends with its answer, or connection
            self._fail_queues()
        done(None if self._is_aborting else self.transaction.why_not_aborted())

    def _fail_queues(self) -> None:
        for queue_id in self._routes.queue_ids:
            self._put_command(FailQueue(queue_id, ABORTED))

    def abort_open(self, is_sent: bool, has_failed: bool, done: Done, now: float) -> None:
        """Tell the coordinator that the transaction is aborted; none of its records is pending.

        Args:
            is_sent: whether a record of it was handed to a link.
            has_failed: whether a record of it has failed; then its sequence is missing in the log.
            done: hears of the end.
            now: the time.
        """
        if not self._is_aborting:
            done(self.transaction.why_not_aborted())
            return
        self._needs_epoch = self._needs_epoch or (is_sent and has_failed)
        self._waiting_for_end.append(done)
        if self._ending is None and self._pending_end is None:
            self._decide(is_sent, commits=False, now=now)

    def _decide(self, is_sent: bool, *, commits: bool, now: float) -> None:
        """Tell the coordinator, when no request that adds to the transaction is in flight.

        One that came late would begin another transaction, which nobody would end.
        """
        opened = self._open
        assert opened is not None
        if self._is_adding:
            self._pending_end = is_sent, commits
            return
        self._calls.clear()
        if not (is_sent or self._may_be_known):
            self._finish(commits=commits, identity=None, now=now)
            return
        if commits:
            self.transaction.commit()
        self._put_command(SetProducerId(-1, -1))
        self._partitions.end()
        self._tell_coordinator(commits=commits)

    def _tell_coordinator(self, *, commits: bool) -> None:
        opened = self._open
        assert opened is not None
        self._ending = EndTransaction(
            opened,
            commits=commits,
            timeout=self._settings.request_timeout,
            on_done=lambda identity, now: self._finish(commits=commits, identity=identity, now=now),
            on_failed=lambda error, now: self._handle_not_ended(error, commits, now),
        )
        self._deciding = self._requester.open_call(self._ending, [ONLY])

    @property
    def _is_adding(self) -> bool:
        """Whether a request that adds to the transaction is in flight, or is to be sent."""
        return self._partitions.is_adding or any(call.is_open for call in self._calls)

    def _decide_if_pending(self, now: float) -> None:
        """Tell the coordinator now, if only a request that has ended was in the way."""
        if self._pending_end is not None and not self._is_adding:
            (is_sent, commits), self._pending_end = self._pending_end, None
            if commits and self.transaction.state is not TransactionPhase.FLUSHING:
                self._end_waits(self._waiting_for_end, self.transaction.error)  # it has failed
            else:
                self._decide(is_sent, commits=commits, now=now)

    def _handle_not_ended(self, error: KafkaError, commits: bool, now: float) -> None:
        """The coordinator does not take the decision."""
        ending, self._ending, self._deciding = self._ending, None, None
        was_repeated = ending is not None and ending.tries > 1
        if self._notice_downgrade(error):
            self._tell_coordinator(commits=commits)
        elif commits and was_repeated and isinstance(error, ProducerFencedError):
            unknown = TransactionOutcomeUnknownError(
                f"an earlier try of the commit was not answered, and may have been taken: {error}"
            )
            unknown.__cause__ = error
            self._on_fatal(unknown)
        elif not isinstance(error, AbortableTransactionError):
            self._on_fatal(error)
        elif commits:
            self.fail(error)
            self._end_waits(self._waiting_for_end, error)
        else:
            # The coordinator has no such transaction any more: it was aborted when its time was
            # up, or it was never heard of. A new epoch keeps what is left of it from the log.
            self._needs_epoch = True
            self._finish(commits=False, identity=None, now=now)

    def _finish(self, *, commits: bool, identity: ProducerIdentity | None, now: float) -> None:
        """The transaction has ended. Its successor gets the identity, or a new epoch is needed."""
        ending, self._ending, self._deciding = self._ending, None, None
        if self._version == 1 and ending is not None and ending.tries > 1:
            self._needs_epoch = True  # a late copy would decide the next one (KAFKA-17754)
        self._open = None
        if commits:
            self.committed += 1
        else:
            self.aborted += 1
        self.transaction.note_end(commits=commits)
        needs_epoch, self._needs_epoch = self._needs_epoch, False
        if identity is not None:
            self.identity.adopt(identity)
            self._on_identity(identity, now)
            self.transaction.get_ready()
        elif needs_epoch:
            self.transaction.want_identity()
            self.identity.renew()
        else:
            self.transaction.get_ready()
            known = self.identity.identity
            if ending is not None and known is not None:
                self._on_identity(known, now)
        self._choose_version(now)
        self._end_waits(self._waiting_for_end, None)

    # ---- time ----

    def warn_if_due(self, now: float) -> None:
        """Warn of a transaction that is about to be timed out."""
        opened = self._open
        if opened is not None and now >= opened.warn_at:
            opened.warn_at = NEVER
            logger.warning(
                "transaction %d has been open for %.1f s: after transaction.timeout.ms (%d) the "
                "coordinator aborts it",
                self.transaction.number,
                now - opened.began,
                self._settings.transaction_timeout_ms,
            )

    def next_warning(self) -> float:
        """Return when `warn_if_due` has something to do."""
        return NEVER if self._open is None else self._open.warn_at

    # ---- the end of the producer ----

    def abandon(self, now: float) -> None:
        """Abort the open transaction by and by: nobody will end it. `end_abandoned` goes on."""
        self._is_abandoned = True
        if self.transaction.is_open:
            logger.warning("the producer ends with a transaction open: it is aborted")
            self.give_up(lambda error: None, now)

    def end_abandoned(self, now: float) -> bool:
        """Go on after `abandon`, when no record is pending; return whether this is the end.

        The coordinator aborts the transaction by itself when its time is up. So nobody waits for
        longer than that.
        """
        if not self._is_abandoned:
            self.abandon(now)
        opened = self._open
        if opened is None or opened.is_timed_out(now):
            return True
        if self._is_aborting and self._ending is None and self._pending_end is None:
            self._decide(is_sent=True, commits=False, now=now)
        return not self.transaction.is_ending

    def leave_cluster(self) -> None:
        """Stop: in another cluster the transactional id is somebody else's."""
        own = f"transactional id {self._transactional_id!r}"
        self._on_fatal(UsageError(f"{own} is of another cluster: make another producer"))

    def stop(self, error: KafkaError) -> None:
        """End everything that waits: the producer cannot go on."""
        self.transaction.stop(error)
        if self._deciding is not None:
            self._deciding.cancel()
        self.identity.ask_no_more()
        self._open = self._ending = self._deciding = self._pending_end = None
        self._partitions.end()
        for opened in self._calls:
            opened.cancel()
        self._end_waits(self._waiting_for_identity, error)
        self._end_waits(self._waiting_for_end, error)

    def _end_waits(self, waiting: list[Done], error: KafkaError | None) -> None:
        ended, waiting[:] = list(waiting), []
        for done in ended:
            done(error)
