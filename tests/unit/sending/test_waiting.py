"""Whoever waits for the only batch there is stays awake for a moment, while that pays."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import pytest

from kafka_fast.control.diagnosis.troubles import Reason
from kafka_fast.dataplane.produce._produce_waits import ProduceWaits
from kafka_fast.errors import KafkaTimeoutError
from kafka_fast.logs import LONG
from kafka_fast.sending._accumulator import Accumulator
from tests.unit.dataplane.rig import ProduceRig
from tests.waiting import TIMEOUT, eventually

MOMENT = 200e-6  # seconds
ONE_LOOK = 1.5e-9  # and no second one: that comes two nanoseconds after the first


def stays_awake(rig: ProduceRig, future: Any) -> bool:
    """Wait once. The virtual clock moves a nanosecond when it is asked, and not otherwise."""
    before = rig.machine.now
    with pytest.raises(KafkaTimeoutError):
        future.result(timeout=ONE_LOOK)
    return rig.machine.now - before >= MOMENT


def test_what_is_in_vain_is_tried_less_and_less() -> None:
    rig = ProduceRig()
    future = rig.send()
    tried = [wait for wait in range(200) if stays_awake(rig, future)]
    gaps = [later - earlier for earlier, later in pairwise(tried)]
    assert (tried[0], gaps) == (0, [2, 4, 8, 16, 32, 64, 64])


def test_a_flush_stays_awake_too() -> None:
    rig = ProduceRig()
    rig.send_nowait()
    before = rig.machine.now
    assert ProduceWaits(rig.queues).flush(rig.machine.now + ONE_LOOK) == 1
    assert rig.machine.now - before >= MOMENT


def test_with_other_batches_under_way_nobody_stays_awake() -> None:
    rig = ProduceRig(partitions=2)
    futures = [rig.send(partition=partition) for partition in range(2)]
    assert not any(stays_awake(rig, future) for future in futures)


class Told:
    """Stands for producer/failure_explainer: notes what it is told to say."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, plane: Any, what: str, queue_id: int, created: float, now: float) -> None:
        self.said.append(what)

    def timeout_error(
        self, plane: Any, what: str, queue_id: int, since: float, now: float
    ) -> KafkaTimeoutError:
        return KafkaTimeoutError(f"{what}; since {since:.0f}")

    def explain(self, *failure: Any) -> Reason:
        return Reason("")


def send_for_ever(rig: ProduceRig) -> None:
    while True:
        rig.send_nowait(b"x" * 20_000)


def test_a_wait_for_memory_that_is_long_is_told_once() -> None:
    rig = ProduceRig(buffer_memory=64 << 10)
    explainer = Told()
    rig.queues.explainer = explainer
    accumulator = Accumulator(rig.queues, max_block=60.0)
    with pytest.raises(KafkaTimeoutError, match="no room"):
        send_for_ever(rig)
    began = rig.machine.now
    raised: list[BaseException] = []

    def send() -> None:
        try:
            accumulator.send_nowait("t", b"x" * 20_000, partition=0)
        except KafkaTimeoutError as error:
            raised.append(error)

    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(send)
        eventually(lambda: rig.queues.stats()["blocked"] == 2)
        assert explainer.said == []
        rig.machine.advance(began + LONG + 0.1)
        eventually(lambda: bool(explainer.said))
        rig.machine.advance(began + 30.0)
        rig.machine.advance(began + 60.1)
        waiting.result(TIMEOUT)
    memory = "no room in buffer.memory (65536 bytes) for a record of topic 't'"
    assert explainer.said == [f"{memory}; waiting up to max.block.ms (60 s)"]
    assert str(raised[0]).startswith(f"{memory} after max.block.ms (60000)")
