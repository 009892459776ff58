"""Batches that are larger than their topic takes: their parts, whose outcomes come one by one."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_fast.control.producer.producer_messages import (
    FailBatch,
    ForgiveBatch,
    ProduceCommand,
    QueueReport,
    SplitBatch,
)
from kafka_fast.errors import DeliveryError, ErrorCode, KafkaTimeoutError, Outcome
from kafka_fast.record import Codec, codecs_available
from kafka_fast.sending._observers import collect, notify, raise_lost
from kafka_fast.sending.bulk._bulk import BulkAccumulator
from kafka_fast.types import BatchResult
from tests.memory import resident_bytes
from tests.unit.dataplane.rig import EPOCH, PRODUCER_ID, ProduceRig, Sent

NOT_LEADER, TOO_LARGE, OUT_OF_ORDER = 6, 10, 45
LINGER = 3600.0
RECORD = 400
PARTS = [3, 3, 2]
"""Records in each of the parts into which eight records are split."""


def report_nothing(callback: Any, error: Exception) -> None:
    raise AssertionError(f"{callback} raised {error!r}")


def judge(rig: ProduceRig, verdict: ProduceCommand) -> None:
    rig.carry(verdict)


def refused(rig: ProduceRig, size: int = 1500, *, single: bool = False) -> QueueReport:
    """Let what has been sent be refused as too large, and split into parts of so many bytes."""
    rig.turner.begin_flush()
    (sent,) = rig.requests()
    rig.answer(sent, {0: TOO_LARGE})
    (report,) = rig.reports()
    judge(rig, SplitBatch(report.batches[0], size, TOO_LARGE))
    rig.thaw(report, single=single)
    return report


def split_rig(**settings: Any) -> tuple[ProduceRig, list[Any], list[Sent]]:
    """Return the futures of eight records, and the requests of the three parts of their batch."""
    rig = ProduceRig(linger=LINGER, **settings)
    futures = [rig.send(bytes(RECORD)) for _ in range(8)]
    refused(rig)
    return rig, futures, rig.requests()


def done(futures: list[Any]) -> str:
    return "".join("x" if future.done() else "." for future in futures)


# ---- outcomes ----


def test_futures_end_with_their_part() -> None:
    """Regression: no record of a batch that was split was done before all of them were."""
    rig, futures, (first, second, third) = split_rig()
    rig.answer(first, base_offset=10)
    assert done(futures) == "xxx....."
    assert futures[2].result(0).offset == 12
    assert "offset=12" in repr(futures[2])
    with pytest.raises(KafkaTimeoutError):
        futures[3].result(0)
    rig.answer(second, base_offset=20)
    rig.answer(third, base_offset=30)
    assert [future.result(0).offset for future in futures] == [10, 11, 12, 20, 21, 22, 30, 31]


def test_a_part_that_is_split_again_ends_in_its_own_parts() -> None:
    rig, futures, (first, second, third) = split_rig()
    rig.answer(first)
    rig.answer(second, {0: TOO_LARGE})
    rig.answer(third, {0: OUT_OF_ORDER})
    (report,) = rig.reports()
    judge(rig, SplitBatch(report.batches[0], 500, TOO_LARGE))
    rig.thaw(report)
    seen = []
    for sent in rig.requests():
        rig.answer(sent)
        seen.append(done(futures))
    assert seen == ["xxxx....", "xxxxx...", "xxxxxx..", "xxxxxxxx"]


def test_callbacks_run_with_their_part_each_once() -> None:
    rig = ProduceRig(linger=LINGER)
    told: list[int] = []
    for _ in range(8):
        rig.send_nowait(bytes(RECORD), on_delivery=lambda _, meta: told.append(meta.offset))
    refused(rig)
    first, second, third = rig.requests()
    rig.answer(first, base_offset=10)
    notify(rig.queues, report_nothing)
    assert told == [10, 11, 12]
    notify(rig.queues, report_nothing)
    rig.answer(second, base_offset=20)
    rig.answer(third, base_offset=30)
    notify(rig.queues, report_nothing)
    assert told == [10, 11, 12, 20, 21, 22, 30, 31]
    assert rig.queues.observed == rig.queues.notified


def test_a_batch_is_freed_though_its_only_callback_has_run_with_an_early_part() -> None:
    """Regression: with no callback left for the last part, the batch was kept forever."""
    rig = ProduceRig(linger=LINGER)
    told: list[int] = []

    def round_trip() -> None:
        rig.send_nowait(bytes(RECORD), on_delivery=lambda _, meta: told.append(meta.offset))
        for _ in range(7):
            rig.send_nowait(bytes(RECORD))
        refused(rig)
        for sent in rig.requests():
            rig.answer(sent, base_offset=0)
            notify(rig.queues, report_nothing)

    for _ in range(200):
        round_trip()
    before = resident_bytes()
    for _ in range(6000):
        round_trip()
    assert told == [0] * 6200
    assert resident_bytes() - before < 4 << 20, "a batch and its parts have 2 KiB"


def test_a_callback_that_comes_after_its_part_has_ended_is_called() -> None:
    rig, futures, (first, *_) = split_rig()
    rig.answer(first)
    told: list[Any] = []
    futures[0].add_done_callback(told.append)
    futures[7].add_done_callback(told.append)
    notify(rig.queues, report_nothing)
    assert told == [futures[0]]


def test_failures_that_nobody_can_observe_are_counted_once_all_parts_have_ended() -> None:
    rig = ProduceRig(linger=LINGER)
    for _ in range(8):
        rig.send_nowait(bytes(RECORD))
    refused(rig)
    first, second, third = rig.requests()
    for sent, code in ((first, 0), (second, ErrorCode.INVALID_RECORD), (third, OUT_OF_ORDER)):
        rig.answer(sent, {0: code} if code else None)
    (report,) = rig.reports()
    wrong = report.batches[0]
    judge(rig, FailBatch(wrong, ErrorCode.INVALID_RECORD, Outcome.REJECTED))
    rig.turn()
    raise_lost(rig.queues)
    rig.renumber(0, wrong.generation, -1, -1, wrong.base_sequence, wrong.serial, wrong.slice)
    rig.thaw(report)
    (third,) = rig.requests()
    rig.answer(third)
    with pytest.raises(DeliveryError) as lost:
        raise_lost(rig.queues)
    assert lost.value.count == 3


# ---- bulk calls ----


def bulk_rig() -> tuple[ProduceRig, BulkAccumulator]:
    rig = ProduceRig(linger=LINGER)
    return rig, BulkAccumulator(rig.queues, max_block=1e-6)


def test_a_bulk_call_ends_with_the_last_part_that_has_records_of_it() -> None:
    rig, bulk = bulk_rig()
    before = bulk.send_many("t", [bytes(RECORD)] * 2, partitions=0)
    across = bulk.send_many("t", [bytes(RECORD)] * 3, partitions=0)
    behind = bulk.send_many("t", [bytes(RECORD)] * 3, partitions=0)
    told: list[str] = []
    for future, name in ((before, "before"), (across, "across"), (behind, "behind")):
        future.add_done_callback(lambda _, name=name: told.append(name))
    refused(rig)
    steps = []
    for number, sent in enumerate(rig.requests()):
        rig.answer(sent, base_offset=10 * number)
        notify(rig.queues, report_nothing)
        steps.append((done([before, across, behind]), list(told)))
    assert steps == [
        ("x..", ["before"]),
        ("xx.", ["before", "across"]),
        ("xxx", ["before", "across", "behind"]),
    ]
    results: list[BatchResult] = [bulk_future.result(0) for bulk_future in (before, across, behind)]
    assert [result.failed for result in results] == [0, 0, 0]
    assert [next(iter(result.partitions.values())).base_offset for result in results] == [0, 2, 12]


def test_a_bulk_calls_callback_hears_of_each_record_with_its_part() -> None:
    rig = ProduceRig(linger=LINGER)
    told: list[int] = []
    bulk = BulkAccumulator(
        rig.queues, max_block=1e-6, on_delivery=lambda _, meta: told.append(meta.offset)
    )
    bulk.send_many("t", [bytes(RECORD)] * 8, partitions=0)
    refused(rig)
    counts = []
    for number, sent in enumerate(rig.requests()):
        rig.answer(sent, base_offset=10 * number)
        notify(rig.queues, report_nothing)
        counts.append(len(told))
    assert counts == [3, 6, 8]
    assert told == [0, 1, 2, 10, 11, 12, 20, 21]


def test_a_bulk_call_is_waited_for_part_by_part() -> None:
    rig, bulk = bulk_rig()
    future = bulk.send_many("t", [bytes(RECORD)] * 8, partitions=0)
    refused(rig)
    first, *others = rig.requests()
    rig.answer(first)
    with pytest.raises(KafkaTimeoutError, match="8 records"):
        future.result(0.0)
    for sent in others:
        rig.answer(sent)
    assert future.exception(0) is None


# ---- what a failure costs ----


def failures(report: QueueReport) -> list[int]:
    return [row.failures for row in report.batches]


def test_the_parts_do_not_inherit_the_failures_of_the_whole() -> None:
    """Regression: they waited as long as if each of them had been refused as often."""
    rig = ProduceRig(linger=LINGER)
    for _ in range(8):
        rig.send(bytes(RECORD))
    rig.turner.begin_flush()
    for _ in range(3):
        (sent,) = rig.requests()
        rig.answer(sent, {0: NOT_LEADER})
        (report,) = rig.reports()
        rig.thaw(report)
    assert failures(report) == [3]
    report = refused(rig)
    assert failures(report) == [4]
    first, *_ = rig.requests()
    rig.answer(first, {0: NOT_LEADER})
    rig.hang_up()
    (report,) = rig.reports()
    assert failures(report) == [1, 1, 1]


def test_what_only_follows_from_another_failure_is_forgiven() -> None:
    rig = ProduceRig(warm=True)
    sent = []
    for value in (b"one", b"two"):
        rig.send(value)
        sent += rig.requests()
    for _ in range(3):
        rig.answer(sent[0], {0: NOT_LEADER})
        rig.answer(sent[1], {0: OUT_OF_ORDER})
        (report,) = rig.reports()
        assert failures(report)[1] == 1
        judge(rig, ForgiveBatch(report.batches[1]))
        rig.thaw(report)
        sent = rig.requests()
    assert failures(report) == [3, 1]
    for request in sent:
        rig.answer(request)
    assert rig.queues.pending() == 0


def test_forgiving_a_batch_that_is_gone_does_nothing() -> None:
    rig = ProduceRig(delivery_timeout=5.0)
    future = rig.send()
    (sent,) = rig.requests()
    rig.answer(sent, {0: NOT_LEADER})
    (report,) = rig.reports()
    rig.advance(6.0)
    judge(rig, ForgiveBatch(report.batches[0]))
    rig.turn()
    assert future.exception(0).outcome is Outcome.MAYBE_WRITTEN


# ---- a limit that was learnt ----


def sizes(requests: list[Sent]) -> list[int]:
    """Return the size of each request's batch."""
    return [len(sent.request.topic_data[0].partition_data[0].records or b"") for sent in requests]


def everything(rig: ProduceRig) -> list[Sent]:
    """Answer everything; return the requests."""
    requests = []
    rig.turner.begin_flush()
    while sent := rig.requests():
        for one in sent:
            rig.answer(one)
        requests += sent
        rig.advance(0.001)
    rig.turner.end_flush()
    return requests


def test_no_larger_batches_are_made_for_a_topic_and_no_smaller_ones_for_others() -> None:
    rig = ProduceRig(linger=LINGER, batch_size=100_000)
    other = rig.add_topic("other", 1)
    rig.route(other.start, 1)
    rig.limit_topic("t", 2_000, 2_000)
    rig.turn()
    for topic in ("t", "other"):
        for _ in range(50):
            rig.send(bytes(RECORD), topic=topic)
    counts: dict[str, list[int]] = {"t": [], "other": []}
    for sent in everything(rig):
        for (topic, _), batch in sent.batches.items():
            counts[topic].append(batch.record_count)
    assert counts == {"t": [4] * 12 + [2], "other": [50]}
    assert rig.queues.stats()["splits"] == 0
    rig.limit_topic("t", 0, 0)
    rig.turn()
    for _ in range(50):
        rig.send(bytes(RECORD))
    (sent,) = everything(rig)
    assert sent.batches["t", 0].record_count == 50


def test_new_partitions_of_the_topic_are_limited_too() -> None:
    rig = ProduceRig(linger=LINGER, batch_size=100_000)
    rig.limit_topic("t", 2_000, 2_000)
    rig.turn()
    rig.queues.set_partitions("t", 1, range(1, 2))
    rig.route(1, 1)
    for _ in range(8):
        rig.send(bytes(RECORD), partition=1)
    assert [sent.batches["t", 1].record_count for sent in everything(rig)] == [4, 4]
    assert rig.queues.stats()["splits"] == 0


@pytest.mark.parametrize("idempotent", [True, False])
def test_what_was_made_before_is_split_before_it_is_sent(idempotent: bool) -> None:
    """Regression: each full batch was refused by the broker, one after the other."""
    rig = ProduceRig(linger=LINGER, batch_size=3_000, idempotent=idempotent)
    futures = [rig.send(b"%03d" % number + bytes(RECORD)) for number in range(40)]
    rig.limit_topic("t", 1_500, 1_500)
    requests = everything(rig)
    assert max(sizes(requests)) <= 1_500
    values = [value for sent in requests for value in sent.values()]
    assert values == sorted(value for value in values if value)
    assert len(values) == 40
    if idempotent:
        sequences = [sent.batches["t", 0].base_sequence for sent in requests]
        counts = [sent.batches["t", 0].record_count for sent in requests]
        assert sequences == [sum(counts[:number]) for number in range(len(counts))]
        first = requests[0].batches["t", 0]
        assert (first.producer_id, first.producer_epoch) == (PRODUCER_ID, EPOCH)
    assert all(future.done() for future in futures)
    assert rig.queues.stats()["retries"] == 0
    assert rig.reserved == 0


def test_parts_that_were_never_sent_take_the_producer_id_that_holds_then() -> None:
    rig = ProduceRig(linger=LINGER, batch_size=3_000, with_producer_id=False)
    for _ in range(8):
        rig.send(bytes(RECORD))
    rig.limit_topic("t", 1_500, 1_500)
    rig.set_producer_id(4, 2)
    (first,) = rig_requests(rig)
    rig.answer(first)
    others = everything(rig)
    batches = [sent.batches["t", 0] for sent in (first, *others)]
    assert [(batch.producer_id, batch.producer_epoch) for batch in batches] == [(4, 2)] * 3
    assert [batch.base_sequence for batch in batches] == [0, 3, 6]


def rig_requests(rig: ProduceRig) -> list[Sent]:
    """Return what is sent at once when everything may leave."""
    rig.turner.begin_flush()
    requests = rig.requests()
    rig.turner.end_flush()
    return requests


def test_a_batch_of_one_record_goes_as_it_is() -> None:
    rig = ProduceRig()
    rig.limit_topic("t", 100, 100)
    rig.send(bytes(RECORD))
    (sent,) = rig.requests()
    assert sizes([sent])[0] > RECORD


def test_what_may_be_in_the_log_is_sent_again_as_it_is() -> None:
    rig = ProduceRig(linger=LINGER, links=2)
    for _ in range(8):
        rig.send(bytes(RECORD))
    assert len(rig_requests(rig)) == 1
    rig.hang_up(1)
    (report,) = rig.reports()
    rig.limit_topic("t", 1_500, 1_500)
    rig.route(0, 2)
    rig.thaw(report)
    (again,) = rig.requests(2)
    assert again.batches["t", 0].record_count == 8


def test_what_waits_for_another_try_is_split_if_it_is_larger_than_was_learnt() -> None:
    rig = ProduceRig(linger=LINGER, batch_size=3_000, warm=True)
    for _ in range(16):
        rig.send(bytes(RECORD))
    rig.turner.begin_flush()
    sent = rig.requests()
    rig.turner.end_flush()
    rig.answer(sent[0], {0: TOO_LARGE})
    for one in sent[1:]:
        rig.answer(one, {0: OUT_OF_ORDER})
    (report,) = rig.reports()
    rig.limit_topic("t", 1_500, 1_500)
    judge(rig, SplitBatch(report.batches[0], 1_500, TOO_LARGE))
    rig.thaw(report, single=True)
    requests = everything(rig)
    assert max(sizes(requests)) <= 1_500
    assert sum(request.batches["t", 0].record_count for request in requests) == 16


@pytest.mark.parametrize("codec", [3, 4])
def test_compressed_batches_count_as_they_are_sent(codec: int) -> None:
    rig = ProduceRig(linger=LINGER, batch_size=30_000, codec=codec)
    for _ in range(60):
        rig.send(bytes(RECORD))
    rig.limit_topic("t", 5_000, 1_500)
    requests = everything(rig)
    assert sum(sent.batches["t", 0].record_count for sent in requests) == 60
    # Zeros take little room. A build without the codec leaves compression to other threads.
    is_native = codecs_available()[Codec(codec).name.lower()] == "native"
    assert (rig.queues.stats()["splits"] == 0) == is_native


def test_parts_are_compressed_each_for_itself() -> None:
    rig = ProduceRig(linger=LINGER, batch_size=30_000, codec=4)
    noise = [bytes((number * 37 + at * at) % 251 for at in range(RECORD)) for number in range(60)]
    for value in noise:
        rig.send(value)
    rig.limit_topic("t", 1_500, 300)
    requests = everything(rig)
    assert rig.queues.stats()["splits"] > 0
    assert [value for sent in requests for value in sent.values()] == noise


def test_parts_that_expire_unsent_were_not_sent_and_leave_no_gap() -> None:
    rig = ProduceRig(linger=LINGER, delivery_timeout=5.0, max_in_flight=1)
    futures = [rig.send(bytes(RECORD)) for _ in range(8)]
    rig.limit_topic("t", 1_500, 1_500)
    (first,) = rig_requests(rig)
    rig.advance(6.0)
    outcomes = [future.exception(0).outcome for future in futures]
    assert outcomes == [Outcome.MAYBE_WRITTEN] * 3 + [Outcome.NOT_SENT] * 5
    rig.answer(first)
    assert rig.reports() == []
    rig.send(b"next")
    (following,) = rig_requests(rig)
    assert following.batches["t", 0].base_sequence == 3


def test_records_without_a_key_change_their_partition_with_each_small_batch() -> None:
    rig = ProduceRig(partitions=4, linger=LINGER)
    rig.limit_topic("t", 2_000, 2_000)
    rig.turn()
    for _ in range(200):
        rig.accumulator.send_nowait("t", bytes(RECORD))
    collect(rig.queues)
    records: dict[int, int] = {}
    for sent in everything(rig):
        for (_, partition), batch in sent.batches.items():
            records[partition] = records.get(partition, 0) + batch.record_count
    assert set(records) == {0, 1, 2, 3}
    assert max(records.values()) < 120
