"""Commands of the control plane: routes, verdicts, and the freeze that they answer."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka_fast.control.producer.producer_messages import (
    BatchRow,
    CompleteBatch,
    FailBatch,
    ForgiveBatch,
    ProduceCommand,
    QueueReport,
    SplitBatch,
    ThawQueue,
)
from kafka_fast.errors import DeliveryError, ErrorCode, Outcome, UsageError
from tests.unit.dataplane.rig import ProduceRig

NOT_LEADER = 6
TOO_LARGE = 10
OUT_OF_ORDER = 45


def judge(rig: ProduceRig, verdict: ProduceCommand) -> None:
    rig.carry(verdict)
    rig.turn()


# ---- routes ----


def test_a_queue_asks_for_its_route_once() -> None:
    rig = ProduceRig()
    rig.route(0, 0)
    rig.send()
    rig.send()
    assert rig.wanted_routes() == [0]
    rig.send()
    assert rig.wanted_routes() == []
    rig.route(0, 1)
    assert len(rig.requests()) == 1


def test_a_queue_without_data_asks_for_no_route() -> None:
    rig = ProduceRig()
    rig.route(0, 0)
    assert rig.wanted_routes() == []


def test_a_route_changes_only_after_the_last_answer_from_the_old_link() -> None:
    rig = ProduceRig(warm=True, links=2)
    rig.send(b"one")
    rig.send(b"two")
    sent = rig.requests(1)
    rig.send(b"three")
    sent += rig.requests(1)
    rig.route(0, 2)
    rig.send(b"after")
    assert rig.requests(2) == []
    rig.answer(sent[0], link_id=1)
    assert rig.requests(2) == []
    rig.answer(sent[1], link_id=1)
    (moved,) = rig.requests(2)
    assert moved.values() == [b"after"]
    assert rig.requests(1) == []


def test_a_route_changed_back_takes_no_detour() -> None:
    rig = ProduceRig(warm=True, links=2)
    rig.send(b"one")
    (sent,) = rig.requests(1)
    rig.route(0, 2)
    rig.route(0, 1)
    rig.send(b"two")
    (second,) = rig.requests(1)
    assert second.values() == [b"two"]
    rig.answer(sent, link_id=1)
    assert rig.requests(2) == []


def test_a_queue_that_moves_is_reported_when_its_old_link_dies() -> None:
    """The old leader has gone: its last batches come back to a queue that has a new link."""
    rig = ProduceRig(links=2)
    future = rig.send(b"one")
    assert len(rig.requests(1)) == 1
    rig.route(0, 2)
    rig.turn()
    rig.hang_up(1)
    (report,) = rig.reports()
    assert [row.error_code for row in report.batches] == [0]
    rig.thaw(report, single=True)
    (again,) = rig.requests(2)
    assert again.values() == [b"one"]
    rig.answer(again, link_id=2)
    assert future.done()


def test_a_route_to_a_link_that_has_closed_meanwhile_is_asked_for_again() -> None:
    rig = ProduceRig(links=2)
    rig.route(0, 0)
    rig.send(b"one")
    assert rig.wanted_routes() == [0]
    rig.hang_up(2)
    rig.route(0, 2)  # decided before the control plane heard of the end
    assert rig.wanted_routes() == [0]
    rig.route(0, 1)
    assert len(rig.requests(1)) == 1


def test_a_move_to_a_link_that_has_closed_meanwhile_leaves_the_old_one() -> None:
    """The old leader refuses what comes to it: staying there would never end."""
    rig = ProduceRig(links=2)
    rig.send(b"one")
    (sent,) = rig.requests(1)
    rig.hang_up(2)
    rig.route(0, 2)
    rig.send(b"two")
    assert rig.requests(1) == []
    rig.answer(sent)
    assert rig.wanted_routes() == [0]


# ---- verdicts and thaw ----


def frozen(rig: ProduceRig, code: int = NOT_LEADER, records: int = 1) -> QueueReport:
    for _ in range(records):
        rig.send_nowait(bytes(1000))
    (sent,) = rig.requests()
    rig.answer(sent, {0: code})
    (report,) = rig.reports()
    return report


def test_a_topic_that_begins_again_waits_for_what_is_on_its_way_and_then_sends_one_batch() -> None:
    """The new log knows no producer: of two batches it might refuse the first, take the second."""
    rig = ProduceRig(warm=True)
    rig.send(b"to the old log")
    (old,) = rig.requests()
    rig.restart_topic("t")
    rig.send(b"one")
    assert rig.requests() == []
    rig.answer(old)
    (first,) = rig.requests()
    rig.send(b"two")
    rig.advance(1.0)
    assert rig.requests() == []
    rig.answer(first)
    rig.advance(1.0)
    (second,) = rig.requests()
    rig.send(b"three")
    rig.advance(1.0)
    (third,) = rig.requests()
    values = [request.values() for request in (first, second, third)]
    assert values == [[b"one"], [b"two"], [b"three"]]


def test_a_topic_that_begins_again_ends_the_pauses_that_the_old_one_had() -> None:
    rig = ProduceRig(warm=True, partitions=2)
    other = rig.add_topic("other", 1)
    rig.route(other.start, 1)
    futures = [rig.send(b"one"), rig.send(b"two", topic="other")]
    (sent,) = rig.requests()
    rig.answer(sent, {0: NOT_LEADER})
    for report in rig.reports():
        rig.thaw(report, at=rig.machine.now + 1.0)
    assert rig.requests() == []
    rig.restart_topic("t")
    (again,) = rig.requests()
    assert [topic for topic, _ in again.batches] == ["t"]
    rig.answer(again)
    assert [future.done() for future in futures] == [True, False]


def test_records_go_to_the_first_partitions_only_and_the_queues_of_the_others_stay() -> None:
    rig = ProduceRig(partitions=3)
    lost = rig.send(b"lost", partition=2)
    rig.queues.set_partition_count("t", 2)
    with pytest.raises(UsageError, match="partitions 0 to 1, not 2"):
        rig.send(partition=2)
    for number in range(40):
        rig.accumulator.send_nowait("t", b"v", b"key-%d" % number)
        rig.accumulator.send_nowait("t", b"v")
    (sent,) = rig.requests()
    assert {partition for _, partition in sent.batches} == {0, 1, 2}
    assert sent.values(2) == [b"lost"]
    rig.answer(sent)
    assert lost.result(0).partition == 2
    assert rig.queues.topic_stats()["t"]["records_acked"] == 81
    rig.queues.set_partition_count("t", 3)
    rig.send(partition=2)
    for wrong in (0, 4):
        with pytest.raises(UsageError, match=f"has 3 queues: {wrong} partitions"):
            rig.queues.set_partition_count("t", wrong)


def test_the_partition_of_records_without_a_key_is_chosen_anew_if_it_is_gone() -> None:
    rig = ProduceRig(partitions=8, batch_size=100)
    for _ in range(20):
        rig.queues.set_partition_count("t", 8)
        rig.accumulator.send_nowait("t", b"v" * 300_000)  # another partition is drawn each time
        rig.queues.set_partition_count("t", 1)
        future = rig.accumulator.send("t", b"v")
        for sent in rig.requests():
            rig.answer(sent)
        rig.advance(0.001)
        for sent in rig.requests():
            rig.answer(sent)
        assert future.result(0).partition == 0


def test_a_frozen_queue_sends_nothing_until_it_is_thawed() -> None:
    rig = ProduceRig()
    report = frozen(rig)
    rig.send(b"next")
    assert rig.requests() == []
    rig.thaw(report, at=rig.machine.now + 0.1)
    assert rig.requests() == []
    rig.advance(0.1)
    first, second = rig.requests()
    assert first.batches["t", 0].base_sequence == 0
    assert second.values() == [b"next"]


def test_single_means_one_in_flight_until_the_next_success() -> None:
    rig = ProduceRig()
    report = frozen(rig)
    rig.send(b"next")
    rig.thaw(report, single=True)
    (again,) = rig.requests()
    rig.send(b"more")
    assert rig.requests() == []
    rig.answer(again)
    (second,) = rig.requests()
    assert second.values() == [b"next", b"more"]
    rig.send(b"last")
    assert len(rig.requests()) == 1


@pytest.mark.parametrize(
    "verdict",
    [
        lambda row: FailBatch(row, TOO_LARGE, Outcome.REJECTED),
        lambda row: CompleteBatch(row, 5),
        lambda row: SplitBatch(row, 1500, TOO_LARGE),
        ForgiveBatch,
    ],
)
def test_a_stale_verdict_does_nothing(verdict: Callable[[BatchRow], ProduceCommand]) -> None:
    rig = ProduceRig()
    report = frozen(rig, records=2)
    stale = report.batches[0]._replace(generation=report.queue.generation - 1)
    judge(rig, verdict(stale))
    rig.renumber(0, report.queue.generation - 1, 1, 1, 77, -1, 0)
    rig.carry(ThawQueue(0, report.queue.generation - 1, 0.0, False))
    assert rig.requests() == []
    rig.thaw(report)
    (again,) = rig.requests()
    assert (again.batches["t", 0].base_sequence, again.batches["t", 0].record_count) == (0, 2)


def test_a_second_failure_makes_the_first_verdict_stale() -> None:
    rig = ProduceRig(warm=True)
    rig.send(b"one")
    first = rig.requests()[0]
    rig.send(b"two")
    second = rig.requests()[0]
    rig.answer(first, {0: NOT_LEADER})
    assert rig.reports() == []  # the second is still in flight
    rig.answer(second, {0: NOT_LEADER})
    (report,) = rig.reports()
    assert [row.base_sequence for row in report.batches] == [1, 2]
    assert {row.generation for row in report.batches} == {report.queue.generation}


def test_success_by_verdict_completes_at_the_given_offset() -> None:
    rig = ProduceRig()
    future = rig.send()
    (sent,) = rig.requests()
    rig.answer(sent, {0: 46})
    (report,) = rig.reports()
    judge(rig, CompleteBatch(report.batches[0], 55))
    assert future.result().offset == 55
    assert rig.reserved == 0


def test_failure_by_verdict_tells_its_outcome() -> None:
    rig = ProduceRig()
    future = rig.send()
    (sent,) = rig.requests()
    rig.answer(sent, {0: ErrorCode.INVALID_RECORD})
    (report,) = rig.reports()
    refused = ErrorCode.INVALID_RECORD
    row = report.batches[0]
    judge(rig, FailBatch(row, refused, Outcome.REJECTED))
    error = future.exception()
    assert isinstance(error, DeliveryError)
    assert error.outcome is Outcome.REJECTED
    assert rig.reserved == 0


def test_renumbering_closes_the_gap_behind_a_rejected_batch() -> None:
    rig = ProduceRig(warm=True)
    sent = []
    for number in range(3):
        rig.send(b"%d" % number)
        sent += rig.requests()
    for each, code in zip(sent, (ErrorCode.INVALID_RECORD, 45, 45), strict=True):
        rig.answer(each, {0: code})
    (report,) = rig.reports()
    refused = ErrorCode.INVALID_RECORD
    row = report.batches[0]
    judge(rig, FailBatch(row, refused, Outcome.REJECTED))
    rig.renumber(0, report.queue.generation, -1, -1, 1, report.batches[0].serial, 0)
    rig.thaw(report)
    again = rig.requests()
    rig.send(b"3")
    again += rig.requests()
    assert [(each.batches["t", 0].base_sequence, each.values()) for each in again] == [
        (1, [b"1"]),
        (2, [b"2"]),
        (3, [b"3"]),
    ]


def test_renumbering_with_a_new_epoch_begins_at_zero() -> None:
    rig = ProduceRig()
    sent = []
    for number in range(2):
        rig.send(b"%d" % number)
        sent += rig.requests()
    for each in sent:
        rig.answer(each, {0: 45})
    (report,) = rig.reports()
    rig.set_producer_id(4711, 4)
    rig.renumber(0, report.queue.generation, 4711, 4, 0, -1, 0)
    rig.thaw(report)
    numbers = [
        (batch.producer_epoch, batch.base_sequence)
        for batch in (each.batches["t", 0] for each in rig.requests())
    ]
    assert numbers == [(4, 0), (4, 1)]


# ---- splitting ----


def test_a_split_batch_keeps_order_sequences_and_futures() -> None:
    rig = ProduceRig(linger=3600.0)
    futures = [rig.send(b"%03d" % number + bytes(400)) for number in range(10)]
    rig.turner.begin_flush()
    (sent,) = rig.requests()
    rig.answer(sent, {0: TOO_LARGE})
    (report,) = rig.reports()
    judge(rig, SplitBatch(report.batches[0], 2000, TOO_LARGE))
    assert not any(future.done() for future in futures)
    rig.thaw(report)
    pieces = rig.requests()
    assert [each.batches["t", 0].base_sequence for each in pieces] == [0, 4, 8]
    assert [value[:3] for each in pieces for value in each.values() if value] == [
        b"%03d" % number for number in range(10)
    ]
    rig.answer(pieces[0], base_offset=100)
    assert [future.done() for future in futures] == [True] * 4 + [False] * 6
    rig.answer(pieces[1], base_offset=104)
    rig.answer(pieces[2], base_offset=108)
    assert [future.result().offset for future in futures] == list(range(100, 110))
    assert rig.reserved == 0
    assert rig.queues.stats()["splits"] == 1
    assert rig.queues.pending() == 0


def test_a_piece_that_fails_takes_only_its_own_records_with_it() -> None:
    rig = ProduceRig(linger=3600.0)
    futures = [rig.send(bytes(400)) for _ in range(8)]
    rig.turner.begin_flush()
    (sent,) = rig.requests()
    rig.answer(sent, {0: TOO_LARGE})
    (report,) = rig.reports()
    judge(rig, SplitBatch(report.batches[0], 1500, TOO_LARGE))
    rig.thaw(report, single=True)
    (first,) = rig.requests()
    rig.answer(first)
    second, third = rig.requests()
    rig.answer(second, {0: ErrorCode.INVALID_RECORD})
    rig.answer(third, {0: 45})
    (report,) = rig.reports()
    assert [row.slice for row in report.batches] == [3, 6]
    refused = ErrorCode.INVALID_RECORD
    row = report.batches[0]
    judge(rig, FailBatch(row, refused, Outcome.REJECTED))
    rig.renumber(
        0, report.queue.generation, -1, -1, 3, report.batches[0].serial, report.batches[0].slice
    )
    rig.thaw(report)
    (last,) = rig.requests()
    assert last.batches["t", 0].base_sequence == 3
    rig.answer(last)
    assert [future.exception() is None for future in futures] == [True] * 3 + [False] * 3 + [
        True
    ] * 2


def test_a_batch_of_one_record_cannot_be_split_and_fails() -> None:
    rig = ProduceRig()
    future = rig.send(bytes(400))
    (sent,) = rig.requests()
    rig.answer(sent, {0: TOO_LARGE})
    (report,) = rig.reports()
    judge(rig, SplitBatch(report.batches[0], 10, TOO_LARGE))
    assert future.exception().outcome is Outcome.REJECTED
    assert rig.reserved == 0


def test_a_batch_that_cannot_be_split_leaves_no_gap() -> None:
    """Regression: what came behind it kept its sequence, and the broker refused all of it."""
    rig = ProduceRig(warm=True)
    sent = []
    for value in (b"one", b"two", b"three"):
        rig.send_nowait(value)
        sent += rig.requests()
    for request, code in zip(sent, (TOO_LARGE, OUT_OF_ORDER, OUT_OF_ORDER), strict=True):
        rig.answer(request, {0: code})
    (report,) = rig.reports()
    judge(rig, SplitBatch(report.batches[0], 10, TOO_LARGE))
    rig.thaw(report)
    again = rig.requests()
    sequences = [(one.values(), one.batches["t", 0].base_sequence) for one in again]
    assert sequences == [([b"two"], 1), ([b"three"], 2)]


def test_children_of_children_complete_their_ancestor() -> None:
    rig = ProduceRig(linger=3600.0)
    futures = [rig.send(b"%d" % number + bytes(400)) for number in range(8)]
    rig.turner.begin_flush()
    (sent,) = rig.requests()
    rig.answer(sent, {0: TOO_LARGE})
    for size in (2000, 1000):
        (report,) = rig.reports()
        judge(rig, SplitBatch(report.batches[0], size, TOO_LARGE))
        rig.thaw(report, single=True)
        (sent,) = rig.requests()
        if size == 2000:
            rig.answer(sent, {0: TOO_LARGE})
    offset = 0
    while sent is not None:
        count = sent.batches["t", 0].record_count
        rig.answer(sent, base_offset=offset)
        offset += count
        more = rig.requests()
        for extra in more[:-1]:
            rig.answer(extra, base_offset=offset)
            offset += extra.batches["t", 0].record_count
        sent = more[-1] if more else None
    assert [future.result().offset for future in futures] == list(range(8))
    assert rig.reserved == 0


# ---- failing a queue ----


def test_failing_a_queue_leaves_what_is_in_flight_alone() -> None:
    rig = ProduceRig(max_in_flight=1)
    flying = rig.send(b"flying")
    (sent,) = rig.requests()
    waiting = rig.send(b"waiting")
    rig.turn()
    rig.fail_queue(0, 29)
    rig.turn()
    assert waiting.exception().outcome is Outcome.NOT_SENT
    assert not flying.done()
    rig.answer(sent)
    assert flying.result().offset == 100
    assert rig.reserved == 0


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, Outcome.REJECTED),
        (ErrorCode.REQUEST_TIMED_OUT, Outcome.MAYBE_WRITTEN),
    ],
)
@pytest.mark.parametrize("closes", [False, True])
def test_what_came_back_is_given_up_with_what_is_known_of_it(
    closes: bool, code: ErrorCode, expected: Outcome
) -> None:
    rig = ProduceRig()
    refused = rig.send(b"refused")
    (sent,) = rig.requests()
    rig.answer(sent, {0: code})
    unsent = rig.send(b"unsent")
    if closes:
        rig.plane.shut_down()
    else:
        rig.fail_queue(0, 29)
        rig.turn()
    assert refused.exception().outcome is expected
    assert unsent.exception().outcome is Outcome.NOT_SENT


def test_the_parts_of_what_may_be_written_may_be_written() -> None:
    """A batch timed out; then it was found too large, and split for there is no producer id."""
    rig = ProduceRig(idempotent=False)
    futures = [rig.send(bytes(1000)) for _ in range(2)]
    (sent,) = rig.requests()
    rig.answer(sent, {0: ErrorCode.REQUEST_TIMED_OUT})
    (report,) = rig.reports()
    rig.thaw(report)
    (sent,) = rig.requests()
    rig.answer(sent, {0: TOO_LARGE})
    (report,) = rig.reports()
    judge(rig, SplitBatch(report.batches[0], 1500, TOO_LARGE))
    rig.fail_queue(0, 29)
    rig.turn()
    assert {future.exception().outcome for future in futures} == {Outcome.MAYBE_WRITTEN}


@pytest.mark.parametrize(
    ("first", "queue_ids"), [(1, range(3, 5)), (2, range(2, 4)), (2, range(4, 6)), (0, range(3, 5))]
)
def test_queue_ids_that_were_counted_otherwise_are_refused(first: int, queue_ids: range) -> None:
    rig = ProduceRig(partitions=2)
    rig.add_topic("other", 1)
    with pytest.raises(UsageError, match="has 2 of 3 queues"):
        rig.queues.set_partitions("t", first, queue_ids)
    rig.queues.set_partitions("t", 2, range(3, 5))
    assert rig.queues.queue_of(4) == ("t", 3)
