"""Verdicts on frozen queues: a pure function of the report."""

from __future__ import annotations

from kafka_fast.control.producer.producer_messages import BatchRow, FailBatch, QueueReport, QueueRow
from kafka_fast.control.producer.refusals import Refusal
from kafka_fast.control.producer.verdicts import NO_ANSWER, Rules, judge
from kafka_fast.errors import ErrorCode, Outcome, broker_error


def rules(*, idempotent: bool = True, retries: int = 2**31 - 1) -> Rules:
    return Rules(idempotent=idempotent, retries=retries, delay=lambda n: 0.1 * n)


def row(
    serial: int, error_code: int, *, failures: int = 1, maybe_written: bool = False
) -> BatchRow:
    return BatchRow(
        7, 3, serial, 0, error_code, -1, serial * 10, 10, 900, 900, failures, maybe_written
    )


def report(*rows: BatchRow, may_have_gap: bool = False) -> QueueReport:
    return QueueReport(QueueRow(7, 3, 50, may_have_gap), rows)


def test_a_batch_without_an_answer_fails_with_a_network_error_once_its_retries_are_used_up() -> (
    None
):
    unanswered = row(1, NO_ANSWER, failures=2, maybe_written=True)
    judgement = judge(
        report(unanswered), rules(idempotent=False, retries=1), 5.0, leader_is_new=False
    )
    assert judgement.commands == [
        FailBatch(unanswered, ErrorCode.NETWORK_EXCEPTION, Outcome.MAYBE_WRITTEN)
    ]


def test_after_a_failure_one_batch_goes_alone_even_if_none_is_kept() -> None:
    """A broker that has yet to see the producer takes any sequence: order is ours to keep."""
    refused = row(1, 29)  # TOPIC_AUTHORIZATION_FAILED
    assert judge(report(refused), rules(), 5.0, leader_is_new=False).thaw.single
    assert not judge(report(refused), rules(idempotent=False), 5.0, leader_is_new=False).thaw.single


def test_a_failed_batch_keeps_what_its_leader_said_of_it_and_of_no_other_answer() -> None:
    refused, expired = row(1, ErrorCode.INVALID_RECORD), row(2, NO_ANSWER, failures=9)
    said = Refusal(broker_error(ErrorCode.INVALID_RECORD, "too old"), b"too old")
    judgement = judge(
        report(refused, expired),
        rules(idempotent=False, retries=1),
        5.0,
        leader_is_new=False,
        refusals={(1, 0): said, (2, 0): said},
    )
    assert judgement.commands == [
        FailBatch(refused, ErrorCode.INVALID_RECORD, Outcome.REJECTED, b"too old"),
        FailBatch(expired, ErrorCode.NETWORK_EXCEPTION, Outcome.REJECTED),
    ]
