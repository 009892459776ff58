"""What happens to the batches of a partition after something failed.

The data plane freezes a partition's queue with the first failure. It waits until none of its
batches is in flight, and reports the unresolved batches in their order. This module answers with
verdicts: a pure function of the report. It holds all rules of the idempotent producer about
sequences:

(a) A batch fails that is surely not in the log. The batches behind it cannot be in the log either,
    because a broker takes no batch out of order. They take over its sequence.
(b) A batch fails that may be in the log. Batches behind it that may be in the log are sent again
    unchanged, and the broker's answer tells. When none of these is left, the epoch is bumped, and
    the partition begins at sequence 0 (KIP-360).
(c) OUT_OF_ORDER_SEQUENCE_NUMBER behind another batch that has failed only follows from that
    failure: the batch is sent again, at once, and the failure does not count as its own. For the
    first batch it means that neither this batch nor those behind it are in the log; then (b)
    applies.
(d) If the epochs are used up, the producer gets a new id first (`identity`).
(e) DUPLICATE_SEQUENCE_NUMBER is success at an unknown offset.
(f) In a transaction nothing is written under another epoch than the one that it was begun with.
    What would bump the epoch fails instead, with all batches behind it, and the transaction can
    only be aborted. The abort brings the new epoch.

A broker that does not know a producer id takes any sequence from it. So the first batch of a new
identity is alone in flight until it is acknowledged. So is the first batch after a failure.
Otherwise the second batch could be written before the first. So is each batch that is sent again
and may be in the log: a broker recognizes the last five batches, and (c) must not be said of one
that five new batches have overtaken.

A batch that may be in the log is not split: the broker would not recognize its parts as duplicates.
The parts of a batch that is split are new batches: they do not inherit its failures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kafka_fast.control.producer.producer_messages import (
    BatchRow,
    CompleteBatch,
    FailBatch,
    ForgiveBatch,
    ProducerCommand,
    QueueReport,
    RenumberQueue,
    SplitBatch,
    ThawQueue,
)
from kafka_fast.control.producer.refusals import NO_REFUSALS, Refusal
from kafka_fast.errors import ERRORS, ErrorCode, Outcome
from kafka_fast.values import Value

NO_ANSWER = 0

TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})
SEQUENCE_ERRORS = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    }
)


class Rules(Value):
    """The producer's settings that verdicts depend on."""

    idempotent: bool
    retries: int
    """How often a batch may be sent again."""
    delay: Callable[[int], float]
    """Seconds to wait before the n-th retry."""
    transactional: bool = False
    """Batches belong to transactions; then the producer is idempotent, too."""


class ProducerIdentity(Value):
    """A producer id and its epoch."""

    producer_id: int
    epoch: int


class Judgement(Value):
    """The verdicts on one report."""

    commands: Sequence[ProducerCommand]
    """For its batches, complete."""
    bump: bool
    """The epoch must be bumped: then `RenumberQueue` to sequence 0 comes before `thaw`."""
    thaw: ThawQueue
    """The last command."""


def is_retriable(code: int, *, idempotent: bool) -> bool:
    """Tell whether a batch with this answer is sent again."""
    if code == NO_ANSWER:
        return True
    if code in SEQUENCE_ERRORS:
        return idempotent
    known = ERRORS.get(code)
    return known is not None and known.retriable


def may_split(row: BatchRow, rules: Rules) -> bool:
    """Tell whether a batch that is too large may be split.

    It may not if an earlier try may be in the log: the broker would write the parts once more.
    """
    return row.record_count > 1 and not (rules.idempotent and row.maybe_written)


def judge(
    report: QueueReport,
    rules: Rules,
    now: float,
    *,
    leader_is_new: bool,
    split_size: int = 0,
    refusals: Mapping[tuple[int, int], Refusal] = NO_REFUSALS,
) -> Judgement:
    """Return the verdicts on a frozen queue.

    Args:
        report: from the data plane; none of the queue's batches is in flight.
        rules: of the producer.
        now: the time.
        leader_is_new: the leader has changed since the failure, so do not wait (KIP-951).
        split_size: the largest size of the parts of a split batch, in bytes.
        refusals: what the leader said of batches, by serial and slice.
    """
    commands: list[ProducerCommand] = []
    kept: list[BatchRow] = []
    gap: BatchRow | None = None
    may_have_gap = report.queue.may_have_gap
    followers = consequences(report)
    for row in report.batches:
        code = row.error_code
        if code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            commands.append(CompleteBatch(row, row.base_offset))
        elif code in TOO_LARGE and may_split(row, rules):
            commands.append(SplitBatch(row, split_size, code))
            kept.append(row)
        elif row in followers and rules.idempotent:
            commands.append(ForgiveBatch(row))
            kept.append(row)
        elif is_retriable(code, idempotent=rules.idempotent) and row.failures <= rules.retries:
            kept.append(row)
        else:
            commands.append(fail_batch(row, refusals.get((row.serial, row.slice))))
            may_have_gap = may_have_gap or row.maybe_written
            if not row.maybe_written and gap is None:
                gap = row
    causes = [row for row in kept if row not in followers]
    has_lost_place = bool(kept) and kept[0] in causes and kept[0].error_code in SEQUENCE_ERRORS
    bump = rules.idempotent and (has_lost_place or must_bump(kept, may_have_gap=may_have_gap))
    if bump and rules.transactional:
        commands.extend(fail_batch(row, refusals.get((row.serial, row.slice))) for row in kept)
        bump = False
        causes = []
    elif rules.idempotent and not bump and not may_have_gap and gap is not None:
        commands.append(close_gap(report, gap))
    wait = 0.0 if leader_is_new else pause(causes, rules)
    # One batch at a time, at least until the next success, even if no batch is kept: the broker may
    # not have seen any batch of this producer yet, and takes any sequence until then.
    thaw = ThawQueue(
        report.queue.queue_id, report.queue.generation, now + wait, single=rules.idempotent
    )
    return Judgement(commands, bump, thaw)


def fail_batch(row: BatchRow, refusal: Refusal | None) -> FailBatch:
    """Return the command that fails a batch, with what its leader said of it at last."""
    code = row.error_code or ErrorCode.NETWORK_EXCEPTION  # as Java's client does without an answer
    outcome = Outcome.MAYBE_WRITTEN if row.maybe_written else Outcome.REJECTED
    if refusal is None or refusal.error.code != code:
        return FailBatch(row, code, outcome)
    return FailBatch(row, code, outcome, refusal.detail)


def consequences(report: QueueReport) -> set[BatchRow]:
    """Return the batches that were only refused because one before them has failed; see (c)."""
    followers: set[BatchRow] = set()
    has_failure = False
    for row in report.batches:
        if has_failure and row.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            followers.add(row)
        has_failure = has_failure or row.error_code != ErrorCode.DUPLICATE_SEQUENCE_NUMBER
    return followers


def close_gap(report: QueueReport, gap: BatchRow) -> RenumberQueue:
    """Return the command that gives the batches behind a rejected one its sequence, and on."""
    own = report.queue
    return RenumberQueue(
        own.queue_id, own.generation, -1, -1, gap.base_sequence, gap.serial, gap.slice
    )


def begin_again(report: QueueReport, identity: ProducerIdentity) -> RenumberQueue:
    """Return the command that lets a partition begin at sequence 0 of a new epoch."""
    own = report.queue
    return RenumberQueue(own.queue_id, own.generation, identity.producer_id, identity.epoch, 0)


def must_bump(kept: list[BatchRow], *, may_have_gap: bool) -> bool:
    """Tell whether sequences may be missing, and the kept batches can get others.

    They can if none of them may be in the log. Then the partition begins again at sequence 0 of a
    new epoch.

    Args:
        kept: the batches that are sent again.
        may_have_gap: a batch that may be in the log has failed, so sequences may have a gap.
    """
    return may_have_gap and not any(row.maybe_written for row in kept)


def pause(causes: list[BatchRow], rules: Rules) -> float:
    """Return how long to wait before the next try; a lost link has its own backoff."""
    answered = [row.failures for row in causes if row.error_code not in (NO_ANSWER, *TOO_LARGE)]
    return rules.delay(max(answered)) if answered else 0.0
