"""Limits of micro-batches."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafka_fast.spark.source.planning.rate_limit import Delay, limited
from kafka_fast.types import TopicPartition

A, B, C = (TopicPartition("t", number) for number in range(3))


def test_shares_are_in_proportion_and_nobody_starves() -> None:
    start = {A: 100, B: 0, C: 7}
    end = {A: 1100, B: 1, C: 7}
    assert limited(100, start, end) == {A: 199, B: 1, C: 7}
    assert limited(2000, start, end) == end


def test_a_partition_that_has_shrunk_stays_as_it_is() -> None:
    assert limited(10, {A: 100, B: 0}, {A: 50, B: 100}) == {A: 50, B: 10}


def test_large_limits_do_not_pass_the_end() -> None:
    assert limited(2**63 - 1, {A: 5}, {A: 8}) == {A: 8}


@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=6),
    st.integers(1, 10**6),
)
def test_every_batch_makes_progress_within_its_limit(
    sizes: list[tuple[int, int]], limit: int
) -> None:
    start = {TopicPartition("t", number): at for number, (at, _) in enumerate(sizes)}
    end = {TopicPartition("t", number): at + size for number, (at, size) in enumerate(sizes)}
    ends = limited(limit, start, end)
    taken = {partition: ends[partition] - start[partition] for partition in start}
    assert all(
        (taken[partition] > 0) == (end[partition] > start[partition]) for partition in start
    ) or limit >= sum(size for _, size in sizes)
    assert sum(taken.values()) <= max(limit, 1) + len(sizes)
    assert all(ends[partition] <= end[partition] for partition in start)


def test_a_batch_waits_for_enough_or_for_long_enough() -> None:
    delay = Delay(least=10, longest=60.0)
    assert not delay.holds_back({A: 0}, {A: 1}, now=1000.0)  # the first one
    assert delay.holds_back({A: 1}, {A: 10}, now=1001.0)
    assert not delay.holds_back({A: 1}, {A: 11}, now=1002.0)  # enough
    assert delay.holds_back({A: 11}, {A: 12}, now=1061.9)
    assert not delay.holds_back({A: 11}, {A: 12}, now=1062.0)  # late
    assert delay.holds_back({A: 12}, {A: 13}, now=1063.0)
