"""The states of a producer's transactions, and what may be called in each. Pure: no I/O, no time.

                    init                 identity
        NO_ID ─────────────► GETTING_ID ──────────► READY ◄──────────────┐
                                  ▲                   │ begin            │
                                  │ (a new epoch      ▼                  │
                                  │  is needed)      OPEN ── fail ──┐    │
                                  │                   │ commit      ▼    │
                                  │                   ▼          FAILED  │
                                  │               FLUSHING ──────┘ │     │
                                  │                   │ decide     │     │
                                  │                   ▼            │     │
                                  ├───────────── COMMITTING        │     │
                                  │                   │            │     │
                                  │                   └── ended ───┼─────┤
                                  │                                ▼     │
                                  └────────────────────────── ABORTING ──┘
        any state ── stop ──► STOPPED

`OPEN`, `FLUSHING` and `FAILED` may be aborted. `COMMITTING` may not: the decision was sent, and the
coordinator may have taken it. A commit that has timed out is called again, and waits for the same
decision. One that was in no request yet goes back to `FLUSHING`. A commit that finds a failed
record, or that the coordinator refuses, ends in `FAILED`. If nothing belongs to a transaction, it
goes from `FLUSHING` to `READY` at once.

Thread: control; `state`, `error` and `number` may be read by any.
"""

from __future__ import annotations

import enum

from kafka_fast.errors import KafkaError, TransactionOutcomeUnknownError, UsageError

__all__ = ["TransactionLifecycle", "TransactionOutcome", "TransactionPhase"]


class TransactionPhase(enum.Enum):
    """Where a transactional producer stands; the value is said in errors."""

    NO_ID = "init_transactions() was not called"
    GETTING_ID = "the producer id is not there yet"
    READY = "no transaction is open"
    OPEN = "a transaction is open"
    FLUSHING = "a commit waits for its records"
    FAILED = "the transaction has failed, and can only be aborted"
    COMMITTING = "a commit is under way"
    ABORTING = "an abort is under way"
    STOPPED = "the producer cannot go on"


class TransactionOutcome(enum.Enum):
    """What became of a transaction."""

    OPEN = "open"  #: it has not ended yet
    COMMITTED = "committed"  #: its records and offsets are there for readers of read_committed
    ABORTED = "aborted"  #: none of its records and offsets will ever be
    UNKNOWN = "unknown"  #: the commit was sent, and not answered


_S = TransactionPhase

OPEN_STATES = frozenset({_S.OPEN, _S.FLUSHING, _S.FAILED})
"""A transaction is open, and its outcome is not decided."""

ENDING = frozenset({_S.COMMITTING, _S.ABORTING})
"""The outcome is decided, and the coordinator is told."""


class TransactionLifecycle:
    """The state of one producer's transactions."""

    def __init__(self) -> None:
        self.state = TransactionPhase.NO_ID
        self.error: KafkaError | None = None
        """Why the open transaction has failed, or why the producer cannot go on; else None."""
        self.number = 0
        """Counts the transactions that were begun."""
        self._ended = 0, TransactionOutcome.UNKNOWN  # the last one that has ended

    def __repr__(self) -> str:
        return f"<Transaction {self.number} {self.state.name}>"

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open whose outcome is not decided."""
        return self.state in OPEN_STATES

    @property
    def is_ending(self) -> bool:
        """Whether the coordinator is being told the outcome."""
        return self.state in ENDING

    def outcome_of(self, number: int) -> TransactionOutcome:
        """Return what became of the transaction of this number, as far as that is known."""
        if number == self.number and (self.is_open or self.state is _S.ABORTING):
            return TransactionOutcome.OPEN
        last, outcome = self._ended
        return outcome if last == number else TransactionOutcome.UNKNOWN

    def why_not_aborted(self) -> KafkaError | None:
        """Return why the last transaction, which is not open, is not aborted; None: it is."""
        outcome = self.outcome_of(self.number)
        if outcome is TransactionOutcome.ABORTED:
            return None
        if self.state is _S.STOPPED:
            return self.error
        return TransactionOutcomeUnknownError(
            "the commit was sent before the abort: call commit_transaction() again to learn its "
            "outcome"
        )

    # ---- what users call ----

    def check_begin(self) -> None:
        """Raise if `begin` is not allowed.

        Raises:
            UsageError: the state does not allow it; the text says what to call.
        """
        if self.state not in (_S.READY, _S.NO_ID, _S.GETTING_ID):
            raise self._refusal("begin_transaction()")

    def check_send(self) -> None:
        """Raise if nothing can be added to a transaction now."""
        if self.state is not _S.OPEN:
            raise self._refusal("send_offsets_to_transaction()")

    def check_commit(self) -> None:
        """Raise if there is nothing to commit."""
        if self.state not in (_S.OPEN, _S.FLUSHING, _S.COMMITTING, _S.FAILED):
            raise self._refusal("commit_transaction()")

    def check_abort(self) -> None:
        """Raise if there is nothing to abort."""
        if self.state not in OPEN_STATES and self.state is not _S.ABORTING:
            raise self._refusal("abort_transaction()")

    def _refusal(self, call: str) -> UsageError:
        error = UsageError(f"{call}: {self.state.value}{_REMEDIES[self.state]}")
        error.__cause__ = self.error
        return error

    # ---- moves ----

    def want_identity(self) -> None:
        """A producer id, or a new epoch of it, is asked for."""
        self._move(_S.GETTING_ID, _S.NO_ID, _S.GETTING_ID, *ENDING)

    def handle_identity(self) -> None:
        """The producer id and epoch of the next transaction are there."""
        self._move(_S.READY, _S.GETTING_ID)

    def begin(self) -> None:
        """A transaction is open from now on."""
        self._move(_S.OPEN, _S.READY)
        self.number += 1
        self.error = None

    def flush(self) -> None:
        """A commit waits for the records of the transaction; nothing is added any more."""
        self._move(_S.FLUSHING, _S.OPEN, _S.FLUSHING)

    def fail(self, error: KafkaError) -> bool:
        """The transaction can only be aborted; return whether that is news."""
        if self.state not in (_S.OPEN, _S.FLUSHING, _S.COMMITTING):
            return False
        self.state = _S.FAILED
        self.error = error
        return True

    def commit(self) -> None:
        """The coordinator is told to commit."""
        self._move(_S.COMMITTING, _S.FLUSHING)

    def withdraw_commit(self) -> None:
        """The commit was in no request, and nobody waits for it: it may be aborted again."""
        self._move(_S.FLUSHING, _S.COMMITTING)

    def withdraw_begin(self) -> None:
        """Nobody knows that the transaction was begun, and nothing belongs to it."""
        self._move(_S.READY, _S.OPEN)

    def abort(self) -> None:
        """The transaction is given up; the coordinator is told when nothing is in flight."""
        self._move(_S.ABORTING, *OPEN_STATES)

    def note_end(self, *, commits: bool) -> None:
        """The coordinator has taken the decision, or there was nothing to decide."""
        outcomes = TransactionOutcome
        self._ended = self.number, outcomes.COMMITTED if commits else outcomes.ABORTED
        self.error = None

    def get_ready(self) -> None:
        """Another transaction may begin, after `note_end`."""
        self._move(_S.READY, _S.FLUSHING, *ENDING)

    def stop(self, error: KafkaError) -> None:
        """The producer cannot go on."""
        self.state = _S.STOPPED
        self.error = error

    def _move(self, to: TransactionPhase, *allowed: TransactionPhase) -> None:
        if self.state not in allowed:
            raise AssertionError(f"a transaction goes from {self.state.name} to {to.name}")
        self.state = to


_REMEDIES = {
    _S.NO_ID: ": call begin_transaction() first",
    _S.GETTING_ID: ": call begin_transaction() first",
    _S.READY: ": call begin_transaction() first",
    _S.OPEN: ": commit or abort it first",
    _S.FLUSHING: ": call commit_transaction() again, or abort_transaction()",
    _S.FAILED: ": call abort_transaction() first",
    _S.COMMITTING: ": call commit_transaction() again to learn its outcome",
    _S.ABORTING: ": call abort_transaction() again to wait for its end",
    _S.STOPPED: ": close it",
}
