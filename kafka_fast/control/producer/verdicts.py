"""What happens to the batches of a partition after something failed.

The data plane freezes a partition's queue with the first failure, waits until nothing of it is in
flight, and reports what is unresolved, in order. This module answers with verdicts. It is a pure
function of the report. All of the idempotent producer's rules about sequences are here:

(a) A batch that is surely not in the log is given up. The batches behind it cannot be in the log
    either, because a broker takes no batch out of order. They take over its sequence.
(b) A batch that may be in the log is given up. Batches behind it that may be in the log are sent
    again unchanged; the broker's answer tells. When none of these is left, the epoch is bumped and
    the partition begins at sequence 0 (KIP-360).
(c) OUT_OF_ORDER_SEQUENCE_NUMBER behind another unresolved batch only follows from that batch's
    failure: the batch is sent again unchanged. For the first batch it means that neither this batch
    nor those behind it are in the log: (b).
(d) The epochs are used up: the producer gets a new id first (`identity`).
(e) DUPLICATE_SEQUENCE_NUMBER is success at an unknown offset.

A broker that does not know a producer id takes any sequence from it. So the first batch of a new
identity is alone in flight until it is acknowledged, and so is the first batch after a failure:
otherwise the second could be written before the first.

A batch that may be in the log is not split: the broker would not know its pieces as duplicates.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_fast.control.plane import (
    BatchRow,
    Command,
    CompleteBatch,
    FailBatch,
    QueueReport,
    RenumberQueue,
    SplitBatch,
    ThawQueue,
)
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
    """What the verdicts depend on besides the report."""

    idempotent: bool
    retries: int
    """How often a batch may be sent again."""
    split_size: int
    """Bytes that the pieces of a batch that was too large may have."""
    delay: Callable[[int], float]
    """Seconds to wait before the n-th retry."""


class ProducerIdentity(Value):
    """A producer id and its epoch."""

    producer_id: int
    epoch: int


class Judgement(Value, frozen=False):
    """The verdicts on one report."""

    commands: list[Command]
    bump: bool
    """The epoch must be bumped: then `RenumberQueue` to sequence 0 comes before `thaw`."""
    thaw: ThawQueue


def is_retriable(code: int, *, idempotent: bool) -> bool:
    """Tell whether a batch with this answer is sent again."""
    if code == NO_ANSWER:
        return True
    if code in SEQUENCE_ERRORS:
        return idempotent
    known = ERRORS.get(code)
    return known is not None and known.retriable


def may_split(row: BatchRow, rules: Rules) -> bool:
    """Tell whether smaller batches may take the place of one that is too large.

    Not if an earlier try of it may be in the log: parts of it are no duplicates to the broker.
    """
    return row.record_count > 1 and not (rules.idempotent and row.maybe_written)


def judge(report: QueueReport, rules: Rules, now: float, *, leader_is_new: bool) -> Judgement:
    """Return the verdicts on a frozen queue.

    Args:
        report: from the data plane; nothing of the queue is in flight.
        rules: of the producer.
        now: the time.
        leader_is_new: the partition's leader has changed since: no need to wait (KIP-951).
    """
    commands: list[Command] = []
    kept: list[BatchRow] = []
    gap: BatchRow | None = None
    hole = report.queue.may_have_gap
    for row in report.batches:
        code = row.error_code
        if code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            commands.append(CompleteBatch(row, row.base_offset))
        elif code in TOO_LARGE and may_split(row, rules):
            commands.append(SplitBatch(row, rules.split_size, code))
            kept.append(row)
        elif is_retriable(code, idempotent=rules.idempotent) and row.attempts <= rules.retries:
            kept.append(row)
        else:
            outcome = Outcome.MAYBE_WRITTEN if row.maybe_written else Outcome.REJECTED
            # Java's client, too, names a batch without an answer so.
            commands.append(FailBatch(row, code or ErrorCode.NETWORK_EXCEPTION, outcome))
            hole = hole or row.maybe_written
            if not row.maybe_written and gap is None:
                gap = row
    bump = rules.idempotent and must_bump(kept, hole=hole)
    if rules.idempotent and not bump and not hole and gap is not None:
        commands.append(close_gap(report, gap))
    wait = 0.0 if leader_is_new else pause(kept, rules)
    # Alone until the next success, also if nothing is kept: perhaps the broker has yet to see the
    # first batch of this producer, and takes any sequence until then.
    thaw = ThawQueue(
        report.queue.queue_id, report.queue.generation, now + wait, single=rules.idempotent
    )
    return Judgement(commands, bump, thaw)


def close_gap(report: QueueReport, gap: BatchRow) -> RenumberQueue:
    """Give the batches behind a rejected one its sequence and those that follow from it."""
    own = report.queue
    return RenumberQueue(
        own.queue_id, own.generation, -1, -1, gap.base_sequence, gap.serial, gap.slice
    )


def begin_again(report: QueueReport, identity: ProducerIdentity) -> RenumberQueue:
    """Let the partition begin at sequence 0 of a new epoch."""
    own = report.queue
    return RenumberQueue(own.queue_id, own.generation, identity.producer_id, identity.epoch, 0)


def must_bump(kept: list[BatchRow], *, hole: bool) -> bool:
    """Tell whether the partition must begin again at sequence 0 of a new epoch, and can.

    It can if none of the batches that are kept may be in the log: then their sequences are free.
    """
    if kept and kept[0].error_code in SEQUENCE_ERRORS:
        return True
    return hole and not any(row.maybe_written for row in kept)


def pause(kept: list[BatchRow], rules: Rules) -> float:
    """Return how long to wait before the next try; a lost link has its own backoff."""
    answered = [row.attempts for row in kept if row.error_code not in (NO_ANSWER, *TOO_LARGE)]
    return rules.delay(max(answered)) if answered else 0.0
