"""Many seeds, on all processors: a world is one thread's work."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Protocol

import pytest

CHUNK = 10
"""Seeds that a process takes at a time."""

REPORTS_SHOWN = 3


class Judge(Protocol):
    """Runs one seed; a function of a module, so that another process finds it."""

    def __call__(self, seed: int, /) -> str | None:
        """Return a report if something is wrong."""


def asked_for(config: pytest.Config) -> Sequence[int]:
    """Return the seeds of --seed or --seeds."""
    only = config.getoption("--seed")
    return [only] if only is not None else range(config.getoption("--seeds"))


def failures(judge: Judge, seeds: Sequence[int]) -> list[tuple[int, str]]:
    """Return (seed, report) of those that fail, in order."""
    if len(seeds) <= CHUNK:
        return _judge(judge, seeds)
    chunks = [seeds[at : at + CHUNK] for at in range(0, len(seeds), CHUNK)]
    # Not forked: pytest has threads.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        os.cpu_count(), mp_context=context, initializer=settle_down
    ) as processes:
        found = processes.map(_judge, [judge] * len(chunks), chunks)
        return [failure for of_chunk in found for failure in of_chunk]


def text(failed: Sequence[tuple[int, str]]) -> str:
    """Return what to print of the failures."""
    reports = "\n\n".join(report for _, report in failed[:REPORTS_SHOWN])
    return f"{len(failed)} worlds failed, seeds {[seed for seed, _ in failed]}\n{reports}"


def settle_down() -> None:
    """Worlds break things on purpose, and make much that is soon garbage."""
    logging.disable(logging.ERROR)
    gc.set_threshold(100_000, 20, 20)


def _judge(judge: Judge, seeds: Iterable[int]) -> list[tuple[int, str]]:
    return [(seed, report) for seed in seeds if (report := judge(seed)) is not None]
