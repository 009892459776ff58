"""The way in: how `send` may be called, and which batches sticky records fill."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from kafka_fast.errors import DeliveryError, UsageError
from kafka_fast.sending._accumulator import Accumulator
from kafka_fast.sending._observers import notify
from kafka_fast.sending.bulk._bulk import BulkAccumulator
from tests.unit.dataplane.lost import lost_count, lost_error
from tests.unit.dataplane.rig import ProduceRig
from tests.unit.sending.test_delivery import fail_all, report_nothing, succeed

CALLS: list[Callable[[Any], Any]] = [
    lambda send: send("t", b"v"),
    lambda send: send("t", b"v", None),
    lambda send: send("t", b"v", key=None),
    lambda send: send("t", value=b"v"),
    lambda send: send(topic="t", value=b"v"),
    lambda send: send("t", b"v", on_delivery=None),
    lambda send: send("t", bytearray(b"v")),
    lambda send: send("t", "v"),
]

KEYED_CALLS: list[Callable[[Any], Any]] = [
    lambda send: send("t", b"v", b"k"),
    lambda send: send("t", b"v", key=b"k"),
    lambda send: send("t", key=b"k", value=b"v"),
    lambda send: send("t", b"v", "k"),
    lambda send: send("t", b"v", b"k", on_delivery=None),
    lambda send: send("t", b"v", key=b"k", partition=0),
]


def records_of(rig: ProduceRig) -> list[tuple[bytes | None, bytes | None]]:
    """What the broker gets of it all."""
    rig.turner.begin_flush()
    records = [
        (record.key, record.value)
        for sent in rig.requests()
        for record in sent.batches["t", 0].records()
    ]
    rig.turner.end_flush()
    return records


@pytest.mark.parametrize("name", ["send", "send_nowait"])
@pytest.mark.parametrize(("calls", "key"), [(CALLS, None), (KEYED_CALLS, b"k")])
def test_all_ways_to_call_are_one(name: str, calls: list[Any], key: bytes | None) -> None:
    rig = ProduceRig(linger=3600.0)
    send = getattr(rig.accumulator, name)
    rig.send(b"the topic is known from here on")
    for call in calls:
        call(send)
    assert records_of(rig)[1:] == [(key, b"v")] * len(calls)


@pytest.mark.parametrize("name", ["send", "send_nowait"])
def test_what_does_not_fit_the_signature_is_refused(name: str) -> None:
    rig = ProduceRig(linger=3600.0)
    send: Any = getattr(rig.accumulator, name)
    rig.send()
    calls: list[Callable[[], Any]] = [
        send,
        lambda: send("t", b"v", b"k", 0),
        lambda: send("t", b"v", value=b"v"),
        lambda: send("t", b"v", b"k", key=b"k"),
        lambda: send("t", b"v", kee=b"k"),
        lambda: send("t", 1),
        lambda: send("t", b"v", 1),
        lambda: send(None, b"v"),
        lambda: getattr(Accumulator, name)(object(), "t", b"v"),
    ]
    for call in calls:
        with pytest.raises(TypeError):
            call()
    assert records_of(rig) == [(None, b"v")]


def test_the_methods_tell_of_themselves() -> None:
    for name in ("send", "send_nowait"):
        method = getattr(Accumulator, name)
        assert method.__name__ == name
        assert method.__objclass__ is Accumulator
        assert inspect.isroutine(method)
        assert "headers" in inspect.signature(method).parameters


def test_a_subclass_may_stand_round_send() -> None:
    class Counting(Accumulator):
        calls = 0

        def send(self, topic: str, *args: Any, **more: Any) -> Any:
            self.calls += 1
            return super().send(topic, *args, **more)

    rig = ProduceRig(linger=3600.0)
    counting = Counting(rig.queues, max_block=1e-6)
    for _ in range(3):
        counting.send("t", b"v", key=b"k")
    assert counting.calls == 3
    assert records_of(rig) == [(b"k", b"v")] * 3


def test_the_plain_call_hears_of_serializers_partitioners_and_closing() -> None:
    class Upper(Accumulator):
        def _serialize(self, topic: str, key: Any, value: Any, headers: Any) -> tuple[Any, Any]:
            return key, value.upper()

    rig = ProduceRig(linger=3600.0)
    for accumulator in (
        Upper(rig.queues, max_block=1e-6, transforms=True),
        Accumulator(rig.queues, max_block=1e-6, partitioner=lambda topic, key, value, count: 0),
    ):
        accumulator.send("t", b"v")
        accumulator.send("t", b"v")
    assert [value for _, value in records_of(rig)] == [b"V", b"V", b"v", b"v"]
    rig.send()
    rig.queues.refuse()
    with pytest.raises(UsageError, match="closed"):
        rig.accumulator.send("t", b"v")


@pytest.mark.parametrize("name", ["send", "send_nowait"])
def test_callbacks_of_the_call_and_of_the_producer(name: str) -> None:
    rig = ProduceRig()
    heard: list[tuple[str, int]] = []
    accumulator = Accumulator(
        rig.queues,
        max_block=1e-6,
        on_delivery=lambda error, metadata: heard.append(("ours", metadata.offset)),
    )
    send: Any = getattr(accumulator, name)
    for on_delivery in (
        None,
        lambda error, metadata: heard.append(("its own", metadata.offset)),
        None,
    ):
        send("t", b"v", on_delivery=on_delivery)
    send("t", b"v")
    succeed(rig)
    notify(rig.queues, report_nothing)
    assert heard == [("ours", 100), ("its own", 101), ("ours", 102), ("ours", 103)]


# ---- handles that are dropped at once ----


def test_dropped_handles_keep_their_count_from_batch_to_batch() -> None:
    rig = ProduceRig()
    kept = []
    for turn in range(5):
        for i in range(40):
            handle = rig.accumulator.send("t", b"v")
            if i % 7 == 3:
                kept.append(handle)
        rig.advance(0.001)  # beyond the pacing of the turn before
        if turn == 2:
            kept.clear()
        if turn % 2:
            fail_all(rig)
        else:
            succeed(rig)
    failed = sum(handle.exception(1) is not None for handle in kept)
    del handle
    assert failed == 6  # of turn 3: those of turns 1 and 2 were dropped, unread
    with pytest.raises(DeliveryError):
        raise lost_error(rig.queues) or AssertionError("nothing was lost")
    kept.clear()
    assert lost_count(rig.queues) == 0


def test_lost_records_are_counted_exactly_with_dropped_handles() -> None:
    rig = ProduceRig()
    for _ in range(3):
        for _ in range(10):
            rig.accumulator.send("t", b"v")
        fail_all(rig)
    assert lost_count(rig.queues) == 30


CALLS_WITHOUT_A_TOPIC = {
    "send": lambda sender: sender.send(None, b"v"),
    "send with a key": lambda sender: sender.send(None, b"v", b"k"),
    "send with a partition": lambda sender: sender.send(None, b"v", partition=0),
    "send_nowait": lambda sender: sender.send_nowait(None, b"v"),
    "send_many": lambda sender: sender.send_many(None, [b"v"]),
}


@pytest.mark.parametrize("name", CALLS_WITHOUT_A_TOPIC)
def test_a_topic_that_is_none_at_the_first_call(name: str) -> None:
    """Regression: it was taken for the topic of the call before, and took the process with it."""
    queues = ProduceRig().queues
    accumulator = BulkAccumulator(queues, max_block=1e-6)
    with pytest.raises(TypeError, match="topic must be str, not NoneType"):
        CALLS_WITHOUT_A_TOPIC[name](accumulator)
    accumulator.send("t", b"v")
    with pytest.raises(TypeError, match="topic must be str, not NoneType"):
        CALLS_WITHOUT_A_TOPIC[name](accumulator)


# ---- sticky ----


def test_sticky_records_leave_no_short_batch_behind() -> None:
    """A partition is left with the end of a batch: all but the last are full."""
    rig = ProduceRig(partitions=4, linger=3600.0, max_in_flight=1_000, idempotent=False)
    for _ in range(20_000):
        rig.accumulator.send_nowait("t", b"v" * 100)
    rig.turner.begin_flush()
    sizes = []
    for sent in rig.requests():
        sizes += [batch.record_count for batch in sent.batches.values()]
        rig.answer(sent)
    for sent in rig.requests():
        sizes += [batch.record_count for batch in sent.batches.values()]
    assert sum(sizes) == 20_000
    assert sum(size < 2_300 for size in sizes) <= 4
    assert len(sizes) <= 20_000 // 2_300 + 4


def test_sticky_partitions_get_equal_shares() -> None:
    rig = ProduceRig(partitions=4, linger=3600.0)
    for _ in range(800):
        rig.accumulator.send_nowait("t", b"v" * 32_000)
    counts = [0] * 4
    rig.turner.begin_flush()
    while requests := rig.requests():
        for sent in requests:
            for (_, partition), batch in sent.batches.items():
                counts[partition] += batch.record_count
            rig.answer(sent)
    assert sum(counts) == 800
    assert min(counts) > 80
