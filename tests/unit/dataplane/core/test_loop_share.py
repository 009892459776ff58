"""How long a task may run before it yields to its event loop."""

from __future__ import annotations

import threading

import pytest

from kafka_fast.dataplane.core._loop_share import add_runnable, begin_share, is_share_over


def share(runnable: int) -> float:
    """Return the share of a task beside so many runnable ones, in seconds."""
    add_runnable(runnable)
    begin_share(0.0)
    add_runnable(-runnable)
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if is_share_over(middle) else (middle, high)
    return high


@pytest.mark.parametrize(
    ("runnable", "seconds"), [(0, 1e-3), (1, 1e-3), (4, 250e-6), (50, 20e-6), (10_000, 20e-6)]
)
def test_all_together_have_a_millisecond(runnable: int, seconds: float) -> None:
    assert share(runnable) == pytest.approx(seconds)


def test_what_is_taken_away_too_often_is_none() -> None:
    add_runnable(-5)
    assert share(2) == pytest.approx(500e-6)


def test_each_thread_has_its_own() -> None:
    shares: list[float] = []
    add_runnable(10)
    thread = threading.Thread(target=lambda: shares.append(share(0)))
    thread.start()
    thread.join()
    add_runnable(-10)
    assert shares == [pytest.approx(1e-3)]
