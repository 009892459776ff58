"""`with producer.transaction()`: what its block is told, and how it ends, for both producers.

    the block ends ───────► commit ── it fails before it was sent ► abort, and raise why
    the block raises ─────► abort, and the exception passes on
    the block has ended the transaction itself ───────────────────► nothing

Thread: the caller's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_fast.control.producer.transaction import TransactionOutcome
from kafka_fast.errors import KafkaError, TransactionOutcomeUnknownError
from kafka_fast.logs import UNLIMITED, ClientLog
from kafka_fast.net.waiting.steps import Steps

if TYPE_CHECKING:
    from kafka_fast.producer.transaction_steps import TransactionSteps


ENDED = frozenset({TransactionOutcome.COMMITTED, TransactionOutcome.ABORTED})


class TransactionBlock:
    """One transaction of a `with` block; the two public classes extend it."""

    def __init__(self, steps: TransactionSteps, client_id: str, timeout: float | None) -> None:
        self._steps = steps
        self._timeout = timeout
        self._log = ClientLog("kafka_fast.producer", client_id)
        self._number = 0
        self.outcome = TransactionOutcome.OPEN
        """What became of it; OPEN inside of the block."""

    @property
    def committed(self) -> bool:
        """Whether it was committed. Side effects belong behind the block, under this condition."""
        return self.outcome is TransactionOutcome.COMMITTED

    def __repr__(self) -> str:
        return f"<transaction {self._number}, {self.outcome.value}>"

    def _enter(self) -> Steps[None]:
        yield from self._steps.begin(self._timeout)
        self._number = self._steps.number
        self.outcome = TransactionOutcome.OPEN

    def _leave(self, error: BaseException | None) -> Steps[None]:
        """End the transaction, unless the block has done so itself."""
        steps = self._steps
        outcome = steps.outcome_of(self._number)
        if steps.number != self._number or outcome in ENDED:
            self.outcome = outcome
        elif error is None:
            yield from self._commit()
        else:
            yield from self._abort()

    def _commit(self) -> Steps[None]:
        """Commit; abort if that fails or is interrupted before the commit was sent."""
        try:
            yield from self._steps.commit(self._timeout)
        except GeneratorExit:
            raise  # nothing may be awaited here any more
        except BaseException:
            if self._steps.is_open:
                yield from self._abort()
            else:
                self.outcome = TransactionOutcome.UNKNOWN
            raise
        self.outcome = TransactionOutcome.COMMITTED

    def _abort(self) -> Steps[None]:
        """Abort; an error of that is logged, because another one is on its way to the user."""
        self.outcome = TransactionOutcome.ABORTED  # never to be committed, whatever comes
        try:
            yield from self._steps.abort(self._timeout)
        except KafkaError as failure:
            self._log.error("a transaction was not aborted: %s", failure, extra=UNLIMITED)
            if isinstance(failure, TransactionOutcomeUnknownError):
                self.outcome = TransactionOutcome.UNKNOWN
