"""The sequence rules of verdicts.py, row by row, and what holds for every report."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_fast.control.producer.producer_messages import (
    BatchRow,
    CompleteBatch,
    FailBatch,
    ForgiveBatch,
    QueueReport,
    QueueRow,
    RenumberQueue,
    SplitBatch,
)
from kafka_fast.control.producer.verdicts import (
    SEQUENCE_ERRORS,
    Judgement,
    ProducerIdentity,
    Rules,
    begin_again,
    is_retriable,
    judge,
)
from kafka_fast.errors import Outcome

FOREVER = 2**31 - 1
NO_ANSWER, NOT_LEADER, TIMED_OUT, TOO_LARGE, INVALID_RECORD = 0, 6, 7, 10, 87
OUT_OF_ORDER, DUPLICATE, INVALID_EPOCH, UNKNOWN_PRODUCER = 45, 46, 47, 59
NETWORK_ERROR = 13
COUNT = 10


def rules(*, idempotent: bool = True, retries: int = FOREVER, transactional: bool = False) -> Rules:
    return Rules(idempotent, retries, lambda n: 0.1 * n, transactional)


def row_of(serial: int, code: int, sequence: int, count: int, *, failures: int) -> BatchRow:
    return BatchRow(7, 3, serial, 0, code, -1, sequence, count, 900, 900, failures, False)


def rows(*answers: tuple[int, bool], failures: int = 1, count: int = COUNT) -> list[BatchRow]:
    """Batches of `count` records in order, by (error code, whether they may be in the log)."""
    return [
        row_of(serial, code, serial * count, count, failures=failures)._replace(
            maybe_written=maybe_written
        )
        for serial, (code, maybe_written) in enumerate(answers)
    ]


def judged(
    batches: list[BatchRow], *, may_have_gap: bool = False, new_leader: bool = False, **how: int
) -> Judgement:
    own = QueueRow(7, 3, sum(row.record_count for row in batches), may_have_gap)
    report = QueueReport(own, tuple(batches))
    return judge(report, rules(**how), 5.0, leader_is_new=new_leader, split_size=16_384)


def closing(gap: BatchRow) -> RenumberQueue:
    return RenumberQueue(7, 3, -1, -1, gap.base_sequence, gap.serial, gap.slice)


def test_a_lost_link_sends_everything_again_as_it_is_and_at_once() -> None:
    judgement = judged(rows((NO_ANSWER, True), (NO_ANSWER, True)))
    assert (judgement.commands, judgement.bump) == ([], False)
    assert (judgement.thaw.at, judgement.thaw.single) == (5.0, True)


def test_a_retriable_error_waits_for_its_backoff() -> None:
    judgement = judged(rows((NOT_LEADER, False), failures=3))
    assert judgement.commands == []
    assert judgement.thaw.at == pytest.approx(5.3)


def test_with_a_new_leader_there_is_nothing_to_wait_for() -> None:
    assert judged(rows((NOT_LEADER, False), failures=3), new_leader=True).thaw.at == 5.0


def test_rule_a_a_rejected_batch_gives_its_sequence_to_those_behind_it() -> None:
    first, second, third = rows((NO_ANSWER, True), (INVALID_RECORD, False), (OUT_OF_ORDER, False))
    judgement = judged([first, second, third])
    assert judgement.commands == [
        FailBatch(second, INVALID_RECORD, Outcome.REJECTED),
        ForgiveBatch(third),
        closing(second),
    ]
    assert not judgement.bump


def test_rule_a_of_two_rejected_batches_the_first_sequence_counts() -> None:
    """Regression: the third took the first two's failure for its own, and cost an epoch."""
    first, second, third = rows(
        (INVALID_RECORD, False), (INVALID_RECORD, False), (OUT_OF_ORDER, False)
    )
    judgement = judged([first, second, third])
    assert judgement.commands == [
        FailBatch(first, INVALID_RECORD, Outcome.REJECTED),
        FailBatch(second, INVALID_RECORD, Outcome.REJECTED),
        ForgiveBatch(third),
        closing(first),
    ]
    assert not judgement.bump


def test_rule_a_a_rejected_last_batch_takes_its_sequence_back() -> None:
    (only,) = rows((INVALID_RECORD, False))
    judgement = judged([only])
    assert judgement.commands == [FailBatch(only, INVALID_RECORD, Outcome.REJECTED), closing(only)]
    assert judgement.thaw.single


def test_rule_b_a_batch_that_may_be_written_and_is_given_up_bumps_the_epoch() -> None:
    (only,) = rows((TIMED_OUT, True), failures=1)
    judgement = judged([only], retries=0)
    assert judgement.commands == [FailBatch(only, TIMED_OUT, Outcome.MAYBE_WRITTEN)]
    assert judgement.bump


def test_rule_b_not_while_others_may_be_written() -> None:
    first = rows((TIMED_OUT, True), failures=9)[0]
    second = rows((NO_ANSWER, True), (NO_ANSWER, True))[1]
    judgement = judged([first, second], retries=5)
    assert judgement.commands == [FailBatch(first, TIMED_OUT, Outcome.MAYBE_WRITTEN)]
    assert not judgement.bump


def test_rule_b_a_gap_that_an_expired_batch_may_have_left_bumps_the_epoch() -> None:
    assert judged([], may_have_gap=True).bump
    assert judged(rows((NOT_LEADER, False)), may_have_gap=True).bump
    assert not judged(rows((NO_ANSWER, True)), may_have_gap=True).bump


def test_rule_c_out_of_order_behind_another_batch_is_its_echo() -> None:
    first, second = rows((NOT_LEADER, False), (OUT_OF_ORDER, False))
    judgement = judged([first, second])
    assert (judgement.commands, judgement.bump) == ([ForgiveBatch(second)], False)


def test_rule_c_an_echo_is_not_paid_for() -> None:
    """Regression: behind a batch that was too large it waited as if it had failed itself."""
    (large,) = rows((TOO_LARGE, False))
    echo = row_of(1, OUT_OF_ORDER, 10, 10, failures=9)
    judgement = judged([large, echo], retries=3)
    assert judgement.commands == [SplitBatch(large, 16_384, TOO_LARGE), ForgiveBatch(echo)]
    assert judgement.thaw.at == 5.0
    (refused,) = rows((NOT_LEADER, False), failures=2)
    assert judged([refused, echo], retries=3).thaw.at == pytest.approx(5.2)


def test_rule_c_behind_a_batch_that_is_in_the_log_it_is_no_echo() -> None:
    first, second = rows((DUPLICATE, False), (OUT_OF_ORDER, False))
    judgement = judged([first, second])
    assert (judgement.commands, judgement.bump) == ([CompleteBatch(first, -1)], True)


@pytest.mark.parametrize("code", [OUT_OF_ORDER, INVALID_EPOCH, UNKNOWN_PRODUCER])
def test_rule_c_of_the_first_batch_it_bumps_the_epoch(code: int) -> None:
    judgement = judged(rows((code, False), (NO_ANSWER, True)))
    assert (judgement.commands, judgement.bump) == ([], True)


def test_rule_d_a_new_epoch_begins_at_zero_with_every_batch() -> None:
    own = QueueRow(7, 3, 50, False)
    renumber = begin_again(QueueReport(own, ()), ProducerIdentity(4711, 9))
    assert (renumber.producer_id, renumber.epoch, renumber.base_sequence) == (4711, 9, 0)
    assert renumber.serial == -1  # behind nothing: all of them


def test_rule_e_a_duplicate_is_success() -> None:
    first = rows((DUPLICATE, False))[0]._replace(base_offset=66)
    assert judged([first]).commands == [CompleteBatch(first, 66)]


@pytest.mark.parametrize("code", sorted(SEQUENCE_ERRORS))
def test_rule_f_in_a_transaction_a_lost_place_fails_all_that_follows(code: int) -> None:
    """Nothing goes out under another epoch: the transaction is to be aborted."""
    first, second = rows((code, False), (NO_ANSWER, True))
    judgement = judged([first, second], transactional=True)
    assert judgement.commands == [
        FailBatch(first, code, Outcome.REJECTED),
        FailBatch(second, NETWORK_ERROR, Outcome.MAYBE_WRITTEN),
    ]
    assert not judgement.bump


def test_rule_f_a_gap_fails_what_is_left_behind_it() -> None:
    (only,) = rows((NOT_LEADER, False))
    judgement = judged([only], may_have_gap=True, transactional=True)
    assert judgement.commands == [FailBatch(only, NOT_LEADER, Outcome.REJECTED)]
    assert not judgement.bump


def test_rule_f_what_needs_no_epoch_is_as_without_transactions() -> None:
    for answers in (
        [(NO_ANSWER, True), (NO_ANSWER, True)],
        [(NOT_LEADER, False), (OUT_OF_ORDER, False)],
        [(NO_ANSWER, True), (INVALID_RECORD, False), (OUT_OF_ORDER, False)],
        [(DUPLICATE, False)],
    ):
        batches = rows(*answers)
        usual = judged(batches)
        assert not usual.bump
        assert judged(batches, transactional=True).commands == usual.commands


def test_a_batch_that_is_too_large_is_split_and_one_record_fails() -> None:
    (large,) = rows((TOO_LARGE, False))
    assert judged([large]).commands == [SplitBatch(large, 16_384, TOO_LARGE)]
    single = large._replace(record_count=1)
    assert judged([single]).commands[0] == FailBatch(single, TOO_LARGE, Outcome.REJECTED)


def test_a_batch_that_may_be_in_the_log_is_not_split() -> None:
    """A broker that has the whole would take the pieces for something else."""
    (large,) = rows((TOO_LARGE, True))
    judgement = judged([large])
    assert judgement.commands == [FailBatch(large, TOO_LARGE, Outcome.MAYBE_WRITTEN)]
    assert judgement.bump
    assert judged([large], idempotent=False).commands == [SplitBatch(large, 16_384, TOO_LARGE)]


def test_without_idempotence_nothing_is_renumbered() -> None:
    batches = rows((INVALID_RECORD, False), (NO_ANSWER, True))
    judgement = judged(batches, idempotent=False)
    assert judgement.commands == [FailBatch(batches[0], INVALID_RECORD, Outcome.REJECTED)]
    assert not judgement.bump
    assert not judgement.thaw.single


def test_sequence_errors_are_final_without_idempotence() -> None:
    for code in SEQUENCE_ERRORS:
        assert is_retriable(code, idempotent=True)
        assert not is_retriable(code, idempotent=False)


def test_an_unknown_error_is_final() -> None:
    (only,) = rows((12_345, False))
    assert judged([only]).commands[0] == FailBatch(only, 12_345, Outcome.REJECTED)


# ---- every report ----

CODES = [NO_ANSWER, NOT_LEADER, TIMED_OUT, TOO_LARGE, INVALID_RECORD, OUT_OF_ORDER, DUPLICATE]
CODES += [INVALID_EPOCH, UNKNOWN_PRODUCER, -1, 12_345]

batch_lists = st.lists(
    st.tuples(
        st.sampled_from(CODES),
        st.booleans(),
        st.integers(1, 5),
        st.integers(1, 4),
        st.integers(0, 2),
    ),
    max_size=6,
)


def build(parts: list[tuple[int, bool, int, int, int]]) -> list[BatchRow]:
    """Rows with sequences as the data plane gives them: without overlap, perhaps with gaps."""
    batch_rows = []
    sequence = 0
    for serial, (code, unanswered, count, failures, gap) in enumerate(parts):
        sequence += gap
        maybe_written = unanswered or code in (NO_ANSWER, TIMED_OUT, -1)
        row = row_of(serial, code, sequence, count, failures=failures)
        batch_rows.append(row._replace(maybe_written=maybe_written))
        sequence += count
    return batch_rows


@given(
    parts=batch_lists,
    may_have_gap=st.booleans(),
    idempotent=st.booleans(),
    retries=st.integers(0, 5),
)
def test_every_report_is_answered_soundly(
    parts: list[tuple[int, bool, int, int, int]], may_have_gap: bool, idempotent: bool, retries: int
) -> None:
    batches = build(parts)
    judgement = judged(batches, may_have_gap=may_have_gap, idempotent=idempotent, retries=retries)

    # It always thaws, with the generation that was reported, and not in the past.
    thaw = judgement.thaw
    assert (thaw.queue_id, thaw.generation) == (7, 3)
    assert thaw.at >= 5.0

    # Each batch gets at most one verdict, and only batches that were reported get one.
    about = [
        command.row for command in judgement.commands if not isinstance(command, RenumberQueue)
    ]
    assert len({row.serial for row in about}) == len(about)
    assert all(row in batches for row in about)

    # Outcomes are true to what is known.
    for command in judgement.commands:
        if isinstance(command, FailBatch):
            assert command.outcome is (
                Outcome.MAYBE_WRITTEN if command.row.maybe_written else Outcome.REJECTED
            )
            assert command.error_code != 0

    stay = {
        command.row.serial
        for command in judgement.commands
        if isinstance(command, SplitBatch | ForgiveBatch)
    }
    ended = {row.serial for row in about} - stay
    kept = [row for row in batches if row.serial not in ended]
    renumbers = [command for command in judgement.commands if isinstance(command, RenumberQueue)]
    assert len(renumbers) + judgement.bump <= 1
    if not idempotent:
        assert not judgement.bump
        assert renumbers == []
        return

    # No batch that gets a new sequence is in the log: each was refused, or the first one surely is
    # not there, and a broker takes none out of order.
    if judgement.bump:
        surely_absent = bool(kept) and kept[0].error_code in SEQUENCE_ERRORS
        assert surely_absent or not any(row.maybe_written for row in kept)
        return
    numbers = {row.serial: row.base_sequence for row in kept}
    for renumber in renumbers:
        (gap,) = [row for row in batches if row.serial == renumber.serial]
        assert not gap.maybe_written
        assert gap.serial in ended
        following = renumber.base_sequence
        for row in kept:
            if row.serial > gap.serial:
                numbers[row.serial] = following
                following += row.record_count

    # No two batches that are sent again overlap, and they stay in order.
    ends = [(numbers[row.serial], numbers[row.serial] + row.record_count) for row in kept]
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(ends))
