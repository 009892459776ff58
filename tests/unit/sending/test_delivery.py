"""Handles, callbacks, and the exact count of failures that nobody can observe."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from typing import Any

import pytest

from kafka_fast.control.producer.producer_messages import FailBatch, SplitBatch
from kafka_fast.errors import DeliveryError, ErrorCode, KafkaTimeoutError, Outcome, UsageError
from kafka_fast.sending._delivery import DeliveryFuture
from kafka_fast.sending._observers import collect, notify
from kafka_fast.sending.bulk._bulk import BulkAccumulator
from tests.unit.dataplane.lost import lost_count
from tests.unit.dataplane.rig import UNIX_MS, ProduceRig, encode, response_to

TOO_LARGE = 10


def report_nothing(callback: Any, error: Exception) -> None:
    raise AssertionError(f"{callback} raised {error!r}")


def succeed(rig: ProduceRig) -> None:
    for sent in rig.requests():
        rig.answer(sent)


def fail_all(rig: ProduceRig) -> None:
    """Let the broker refuse what is in flight, and the control plane give it up."""
    for sent in rig.requests():
        rig.answer(sent, {0: ErrorCode.INVALID_RECORD})
    for report in rig.reports():
        for row in report.batches:
            rig.carry(FailBatch(row, ErrorCode.INVALID_RECORD, Outcome.REJECTED))
        rig.thaw(report)


def test_a_handle_tells_where_its_record_is() -> None:
    rig = ProduceRig(linger=3600.0)
    first = rig.send(timestamp_ms=5)
    second = rig.send()
    rig.turner.begin_flush()
    succeed(rig)
    assert (first.result().offset, second.result().offset) == (100, 101)
    assert (first.result().topic, first.result().partition) == ("t", 0)
    assert first.result().timestamp_ms == 5
    assert second.result().timestamp_ms >= UNIX_MS
    assert first.exception() is None


def test_a_handle_keeps_a_timestamp_far_from_those_of_its_batch() -> None:
    """Most are kept as a few milliseconds from the batch's first; any must come back."""
    times = [UNIX_MS, 0, UNIX_MS + 2**31 - 1, UNIX_MS - 2**31, UNIX_MS + 2**31, 2**63 - 1, UNIX_MS]
    rig = ProduceRig(linger=3600.0)
    handles = [rig.send(timestamp_ms=time) for time in times]
    dropped = rig.send(timestamp_ms=1)
    del dropped
    rig.turner.begin_flush()
    succeed(rig)
    assert [handle.result().timestamp_ms for handle in handles] == times
    assert [handle.result().offset for handle in handles] == [100 + i for i in range(len(times))]


def test_log_append_time_is_the_timestamp_of_each_record() -> None:
    rig = ProduceRig()
    future = rig.send(timestamp_ms=5)
    (sent,) = rig.requests()
    response = response_to(sent)
    response.responses[0].partition_responses[0].log_append_time_ms = 777
    rig.links[1].arrive(encode(response, sent))
    rig.turn()
    assert future.result().timestamp_ms == 777


def test_a_handle_that_is_not_known_yet_says_so() -> None:
    rig = ProduceRig()
    future = rig.send()
    assert not future.done()
    assert not future.cancelled()
    assert repr(future) == "<DeliveryFuture pending>"
    with pytest.raises(KafkaTimeoutError, match="not known after"):
        future.result(timeout=0)
    succeed(rig)
    assert future.done()
    assert "offset=100" in repr(future)


def test_a_handle_cannot_be_made_by_hand() -> None:
    with pytest.raises(TypeError):
        DeliveryFuture()


def test_a_failure_tells_what_is_known_of_the_record() -> None:
    rig = ProduceRig()
    future = rig.send()
    fail_all(rig)
    with pytest.raises(DeliveryError) as caught:
        future.result()
    assert caught.value.outcome is Outcome.REJECTED
    assert caught.value.__cause__ is not None
    assert "t-0" in str(caught.value)


def test_a_handle_outlives_its_batch_and_keeps_no_memory() -> None:
    rig = ProduceRig()
    futures = [rig.send() for _ in range(100)]
    succeed(rig)
    assert rig.reserved == 0
    assert [future.result().offset for future in futures] == list(range(100, 200))


def test_a_closed_plane_fails_what_is_left() -> None:
    rig = ProduceRig()
    futures = [rig.send(), rig.send()]
    assert len(rig.requests()) == 1
    rig.send_nowait()
    rig.queues.shut_down()
    assert [future.exception().outcome for future in futures] == [Outcome.MAYBE_WRITTEN] * 2
    assert rig.reserved == 0
    with pytest.raises(UsageError):
        rig.send()


def test_a_record_on_its_way_when_the_plane_closes_is_refused() -> None:
    rig = ProduceRig()
    rig.send_nowait()  # the open batch that the next record would be put into

    class Partition:
        def __index__(self) -> int:
            rig.queues.shut_down()
            return 0

    with pytest.raises(UsageError):
        rig.accumulator.send("t", b"v", partition=Partition())
    assert rig.reserved == 0


def test_a_callback_that_exits_keeps_no_other_from_running() -> None:
    rig = ProduceRig()
    told: list[int] = []
    reported: list[type[BaseException]] = []

    def leave(error: Any, metadata: Any) -> None:
        raise SystemExit

    rig.send(on_delivery=leave)
    rig.send(on_delivery=lambda error, metadata: told.append(metadata.offset))
    succeed(rig)
    notify(rig.queues, lambda callback, error: reported.append(type(error)))
    assert reported == [SystemExit]
    assert told == [101]
    assert rig.queues.notified == rig.queues.observed


def test_bulk_calls_count_as_use_of_the_topic() -> None:
    rig = ProduceRig()
    assert rig.queues.take_used_topics() == []
    BulkAccumulator(rig.queues, max_block=1e-6).send_many("t", [b"v"])
    assert rig.queues.take_used_topics() == ["t"]


# ---- who can observe a failure ----


def lost(rig: ProduceRig) -> int:
    return lost_count(rig.queues)


def test_failures_of_send_nowait_are_counted_once() -> None:
    rig = ProduceRig()
    for _ in range(7):
        rig.send_nowait()
    fail_all(rig)
    assert lost(rig) == 7
    assert lost(rig) == 0


def test_a_handle_that_is_alive_is_its_owners_business() -> None:
    rig = ProduceRig()
    futures = [rig.send() for _ in range(3)]
    rig.send_nowait()
    fail_all(rig)
    assert lost(rig) == 1
    futures[0].exception()
    del futures
    assert lost(rig) == 2  # dropped without having been read


def test_a_handle_dropped_before_the_failure_counts() -> None:
    rig = ProduceRig()
    rig.send()
    kept = rig.send()
    fail_all(rig)
    assert lost(rig) == 1
    assert kept.exception() is not None
    del kept
    assert lost(rig) == 0


def test_success_is_never_lost() -> None:
    rig = ProduceRig()
    for _ in range(3):
        rig.send_nowait()
        rig.send()
    succeed(rig)
    assert lost(rig) == 0


def test_a_callback_observes_its_record() -> None:
    rig = ProduceRig()
    told: list[tuple[Any, Any]] = []
    rig.send_nowait(on_delivery=lambda error, metadata: told.append((error, metadata)))
    rig.send(on_delivery=lambda error, metadata: told.append((error, metadata)))
    rig.send_nowait()
    fail_all(rig)
    assert rig.machine.take_observers_wake()
    notify(rig.queues, report_nothing)
    assert [error.outcome for error, _ in told] == [Outcome.REJECTED] * 2
    assert [metadata.offset for _, metadata in told] == [-1, -1]
    assert lost(rig) == 1


def test_the_dropped_handles_of_a_split_batch_count_where_their_records_failed() -> None:
    rig = ProduceRig(linger=3600.0)
    futures = [rig.send(bytes(400)) for _ in range(8)]
    rig.turner.begin_flush()
    (sent,) = rig.requests()
    rig.answer(sent, {0: TOO_LARGE})
    (report,) = rig.reports()
    (row,) = report.batches
    rig.carry(SplitBatch(row, 1500, TOO_LARGE))
    rig.thaw(report, single=True)
    (first,) = rig.requests()
    rig.answer(first)
    fail_all(rig)
    assert lost(rig) == 0  # every handle is alive
    futures.pop(0)  # delivered: nothing is lost with it
    assert lost(rig) == 0
    futures.pop()
    assert lost(rig) == 1
    assert [future.exception() is None for future in futures] == [True] * 2 + [False] * 4


# ---- callbacks ----


def test_callbacks_run_in_order_once_and_only_in_notify() -> None:
    rig = ProduceRig()
    told: list[int] = []
    for _ in range(3):
        rig.send_nowait(on_delivery=lambda error, metadata: told.append(metadata.offset))
    succeed(rig)
    assert collect(rig.queues)
    assert told == []
    notify(rig.queues, report_nothing)
    notify(rig.queues, report_nothing)
    assert told == [100, 101, 102]


def test_metadata_that_somebody_keeps_do_not_change() -> None:
    """The tuple of metadata that were dropped is given out again."""
    rig = ProduceRig(linger=3600.0, partitions=2)
    futures = [rig.send(partition=i // 6, timestamp_ms=UNIX_MS + i // 4) for i in range(12)]
    rig.turner.begin_flush()
    succeed(rig)
    expected = [("t", i // 6, 100 + i % 6, UNIX_MS + i // 4) for i in range(12)]
    assert [tuple(future.result()) for future in futures] == expected
    kept = [future.result() for future in futures[::3]]
    assert [tuple(future.result()) for future in futures] == expected
    assert [tuple(metadata) for metadata in kept] == expected[::3]
    assert [hash(future.result()) for future in futures] == list(map(hash, expected))


def test_metadata_that_a_callback_keeps_does_not_change() -> None:
    rig = ProduceRig(linger=3600.0)
    kept: list[Any] = []
    passed: list[tuple[int, int]] = []

    def hear(error: Any, metadata: Any) -> None:
        assert error is None
        passed.append((metadata.offset, metadata.timestamp_ms))
        if metadata.offset % 3:
            kept.append(metadata)

    for i in range(12):
        rig.send(timestamp_ms=UNIX_MS + i // 5, on_delivery=hear)
    rig.turner.begin_flush()
    succeed(rig)
    notify(rig.queues, report_nothing)
    assert passed == [(100 + i, UNIX_MS + i // 5) for i in range(12)]
    assert [(metadata.offset, metadata.timestamp_ms) for metadata in kept] == [
        pair for pair in passed if pair[0] % 3
    ]
    assert {(metadata.topic, metadata.partition) for metadata in kept} == {("t", 0)}


def test_a_callback_added_after_the_end_is_called_too() -> None:
    rig = ProduceRig()
    future = rig.send()
    succeed(rig)
    told: list[Any] = []
    rig.machine.take_observers_wake()
    future.add_done_callback(told.append)
    assert rig.machine.take_observers_wake()
    notify(rig.queues, report_nothing)
    assert told == [future]


def test_handles_are_made_by_producers_only() -> None:
    """Regression: one without a batch took the interpreter with it."""
    with pytest.raises(TypeError, match="made by"):
        DeliveryFuture()
    with pytest.raises(TypeError, match="made by"):
        DeliveryFuture.__new__(DeliveryFuture)


NEVER_RUN = """
import gc
from kafka_fast.sending._observers import collect
from tests.unit.dataplane.rig import ProduceRig
from tests.unit.sending.test_delivery import succeed

rig = ProduceRig()
rig.send_nowait(on_delivery=print)
succeed(rig)
assert collect(rig.queues)
del rig
gc.collect()
"""


def test_a_plane_goes_with_callbacks_that_were_never_run() -> None:
    """Regression: they gave their batch up when its queue had been freed."""
    spoil_freed_memory = "glibc.malloc.tcache_count=0:glibc.malloc.perturb=165"
    done = subprocess.run(
        [sys.executable, "-c", NEVER_RUN],
        env={
            **os.environ,
            "GLIBC_TUNABLES": spoil_freed_memory,
            "PYTHONPATH": os.pathsep.join(sys.path),
        },
        check=False,
    )
    assert done.returncode == 0


def test_a_callback_that_raises_stops_no_other() -> None:
    rig = ProduceRig()
    told: list[Any] = []
    complaints: list[str] = []

    def bad(error: Any, metadata: Any) -> None:
        raise ValueError("mine")

    rig.send_nowait(on_delivery=bad)
    rig.send_nowait(on_delivery=lambda error, metadata: told.append(metadata))
    succeed(rig)
    notify(rig.queues, lambda callback, error: complaints.append(str(error)))
    assert complaints == ["mine"]
    assert len(told) == 1


def test_a_callback_keeps_no_record_alive_after_it_has_run() -> None:
    rig = ProduceRig()
    freed: list[bool] = []

    class Witness:
        def __call__(self, error: Any, metadata: Any) -> None:
            pass

        def __del__(self) -> None:
            freed.append(True)

    rig.send_nowait(on_delivery=Witness())
    succeed(rig)
    notify(rig.queues, report_nothing)
    gc.collect()
    assert freed == [True]


# ---- event loops ----


def test_awaiting_a_known_outcome_ends_at_once() -> None:
    rig = ProduceRig()
    future = rig.send()
    succeed(rig)

    async def wait() -> Any:
        return await future

    coroutine = wait()
    with pytest.raises(StopIteration) as stopped:
        coroutine.send(None)
    assert stopped.value.value == future.result()


def test_awaiting_a_failure_raises_it() -> None:
    rig = ProduceRig()
    future = rig.send()
    fail_all(rig)

    async def wait() -> Any:
        return await future

    with pytest.raises(DeliveryError):
        wait().send(None)
