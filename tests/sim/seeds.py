"""Many seeds, a few in each test: so workers share them, and a failure names its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

PER_TEST = 10
"""Seconds of work, not minutes."""

REPORTS_SHOWN = 3

Judge = Callable[[int], str | None]
"""Runs one seed; returns a report if something is wrong."""


def asked_for(config: pytest.Config) -> list[Sequence[int]]:
    """Return the seeds of --seed or --seeds, in pieces."""
    only = config.getoption("--seed")
    if only is not None:
        return [range(only, only + 1)]
    end = config.getoption("--seeds")
    return [range(first, min(first + PER_TEST, end)) for first in range(0, end, PER_TEST)]


def check(judge: Judge, seeds: Sequence[int]) -> None:
    """Fail with the reports of the seeds that fail."""
    failed = {seed: report for seed in seeds if (report := judge(seed)) is not None}
    reports = "\n\n".join(list(failed.values())[:REPORTS_SHOWN])
    assert not failed, f"{len(failed)} worlds failed, seeds {list(failed)}\n{reports}"
