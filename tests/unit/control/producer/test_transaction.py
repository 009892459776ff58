"""The states of a producer's transactions: what is allowed in each, and that nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_fast.control.producer.transaction import (
    TransactionLifecycle,
    TransactionOutcome,
    TransactionPhase,
)
from kafka_fast.errors import AbortableTransactionError, UsageError

S = TransactionPhase
FAILURE = AbortableTransactionError("a record was not delivered")


def in_state(state: TransactionPhase) -> TransactionLifecycle:
    """Return a transaction in this state, which it has reached by its own moves."""
    transaction = TransactionLifecycle()
    for move in PATHS[state]:
        MOVES[move](transaction)
    assert transaction.state is state
    return transaction


MOVES = {
    "want": TransactionLifecycle.want_identity,
    "identity": TransactionLifecycle.handle_identity,
    "begin": TransactionLifecycle.begin,
    "flush": TransactionLifecycle.flush,
    "fail": lambda transaction: transaction.fail(FAILURE),
    "commit": TransactionLifecycle.commit,
    "abort": TransactionLifecycle.abort,
    "ready": TransactionLifecycle.get_ready,
    "stop": lambda transaction: transaction.stop(FAILURE),
}

OPENED = ("want", "identity", "begin")

PATHS: dict[TransactionPhase, tuple[str, ...]] = {
    S.NO_ID: (),
    S.GETTING_ID: ("want",),
    S.READY: ("want", "identity"),
    S.OPEN: OPENED,
    S.FLUSHING: (*OPENED, "flush"),
    S.FAILED: (*OPENED, "fail"),
    S.COMMITTING: (*OPENED, "flush", "commit"),
    S.ABORTING: (*OPENED, "abort"),
    S.STOPPED: ("stop",),
}

ALLOWED = {
    "check_begin": {S.NO_ID, S.GETTING_ID, S.READY},
    "check_send": {S.OPEN},
    "check_commit": {S.OPEN, S.FLUSHING, S.COMMITTING, S.FAILED},
    "check_abort": {S.OPEN, S.FLUSHING, S.FAILED, S.ABORTING},
}


@pytest.mark.parametrize("state", S)
@pytest.mark.parametrize("check", ALLOWED)
def test_a_call_that_the_state_does_not_allow_names_state_and_remedy(
    check: str, state: TransactionPhase
) -> None:
    transaction = in_state(state)
    if state in ALLOWED[check]:
        getattr(transaction, check)()
        return
    with pytest.raises(UsageError) as caught:
        getattr(transaction, check)()
    text = str(caught.value)
    assert state.value in text
    assert (
        "_transaction()" in text.split(":", maxsplit=1)[0]
        or "_to_transaction()" in text.split(":", maxsplit=1)[0]
    )
    assert text.count(": ") >= 2, "it says what to call instead"


def test_a_failed_transaction_keeps_its_first_error() -> None:
    transaction = in_state(S.OPEN)
    assert transaction.fail(FAILURE)
    assert not transaction.fail(AbortableTransactionError("another"))
    assert transaction.error is FAILURE


def test_a_failure_after_the_end_is_not_the_next_ones() -> None:
    transaction = in_state(S.COMMITTING)
    transaction.note_end(commits=True)
    transaction.get_ready()
    assert not transaction.fail(FAILURE)
    transaction.begin()
    assert transaction.error is None
    assert transaction.number == 2


def test_the_outcome_is_known_of_the_last_one_and_open_until_then() -> None:
    transaction = in_state(S.OPEN)
    assert transaction.outcome_of(1) is TransactionOutcome.OPEN
    transaction.abort()
    assert transaction.outcome_of(1) is TransactionOutcome.OPEN
    transaction.note_end(commits=False)
    transaction.get_ready()
    assert transaction.outcome_of(1) is TransactionOutcome.ABORTED
    transaction.begin()
    assert transaction.outcome_of(1) is TransactionOutcome.ABORTED
    assert transaction.outcome_of(2) is TransactionOutcome.OPEN


@given(st.lists(st.sampled_from(sorted(MOVES)), max_size=30))
def test_no_row_of_moves_reaches_a_commit_past_a_failure(moves: list[str]) -> None:
    """Moves that a state does not allow are refused; a failed transaction is never committed."""
    transaction = TransactionLifecycle()
    has_failed = False
    for move in moves:
        before = transaction.state
        try:
            MOVES[move](transaction)
        except AssertionError:
            assert transaction.state is before
            continue
        if move == "begin":
            has_failed = False
        has_failed = has_failed or transaction.state is S.FAILED
        assert not (has_failed and transaction.state in (S.COMMITTING, S.FLUSHING))
        assert transaction.is_open == (transaction.state in (S.OPEN, S.FLUSHING, S.FAILED))
