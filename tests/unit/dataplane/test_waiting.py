"""Whoever waits for the only batch there is stays awake for a moment, while that pays."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from kafka_fast.errors import KafkaTimeoutError
from tests.unit.dataplane.rig import Rig

MOMENT = 200e-6  # seconds
ONE_LOOK = 1.5e-9  # and no second one: that comes two nanoseconds after the first


def stays_awake(rig: Rig, future: Any) -> bool:
    """Wait once. The virtual clock moves a nanosecond when it is asked, and not otherwise."""
    before = rig.machine.now
    with pytest.raises(KafkaTimeoutError):
        future.result(timeout=ONE_LOOK)
    return rig.machine.now - before >= MOMENT


def test_what_is_in_vain_is_tried_less_and_less() -> None:
    rig = Rig()
    future = rig.send()
    tried = [wait for wait in range(200) if stays_awake(rig, future)]
    gaps = [later - earlier for earlier, later in pairwise(tried)]
    assert (tried[0], gaps) == (0, [2, 4, 8, 16, 32, 64, 64])


def test_a_flush_stays_awake_too() -> None:
    rig = Rig()
    rig.send_nowait()
    before = rig.machine.now
    assert rig.plane.flush(rig.machine.now + ONE_LOOK) == 1
    assert rig.machine.now - before >= MOMENT


def test_with_other_batches_under_way_nobody_stays_awake() -> None:
    rig = Rig(partitions=2)
    futures = [rig.send(partition=partition) for partition in range(2)]
    assert not any(stays_awake(rig, future) for future in futures)
