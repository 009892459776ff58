"""The backoff curve stays inside its limits, and keys are counted apart."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_fast.control.connections.backoff import Backoff, KeyedBackoff


def middle() -> float:
    """A random source without spread: the factor becomes exactly 1."""
    return 0.5


def test_doubles_from_base_to_maximum() -> None:
    backoff = Backoff(100, 1000, middle)
    delays = [backoff.delay(failures) for failures in range(6)]
    assert delays == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0])


def test_jitter_is_twenty_percent_each_way() -> None:
    assert Backoff(100, 1000, lambda: 0.0).delay(0) == pytest.approx(0.08)
    assert Backoff(100, 1000, lambda: 1.0).delay(0) == pytest.approx(0.12)


def test_base_above_maximum_waits_the_maximum() -> None:
    backoff = Backoff(5000, 300, middle)
    assert [backoff.delay(failures) for failures in (0, 3)] == pytest.approx([0.3, 0.3])


def test_zero_means_no_wait() -> None:
    assert Backoff(0, 0, middle).delay(10) == 0.0


@given(
    base_ms=st.integers(0, 60_000),
    max_ms=st.integers(0, 600_000),
    failures=st.integers(-1, 2**40),
    seed=st.integers(0, 2**32),
)
def test_every_delay_is_within_its_bounds(
    base_ms: int, max_ms: int, failures: int, seed: int
) -> None:
    delay = Backoff(base_ms, max_ms, random.Random(seed).random).delay(failures)
    assert 0.8 * min(base_ms, max_ms) / 1000 <= delay * 1.000001
    assert delay <= max_ms / 1000


def test_keys_are_counted_apart_and_forgotten_on_success() -> None:
    backoff = KeyedBackoff[str](Backoff(100, 1000, middle))
    assert backoff.handle_failure("a", 10.0) == pytest.approx(10.1)
    assert backoff.handle_failure("a", 11.0) == pytest.approx(11.2)
    assert backoff.handle_failure("b", 11.0) == pytest.approx(11.1)
    assert (backoff.failures("a"), backoff.failures("b"), backoff.failures("c")) == (2, 1, 0)
    assert not backoff.is_ready("a", 11.19)
    assert backoff.is_ready("a", 11.21)
    backoff.handle_success("a")
    assert backoff.failures("a") == 0
    assert backoff.is_ready("a", 0.0)
    assert backoff.handle_failure("a", 20.0) == pytest.approx(20.1)
