"""Many seeds, a few in each test: so workers share them, and a failure names its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

PER_TEST = 10
"""Seconds of work, not minutes."""

REPORTS_SHOWN = 3

PRINT_DIGEST = """
import hashlib, logging, pkgutil
logging.disable(logging.ERROR)
run = pkgutil.resolve_name({name!r})
log = [line for seed in {seeds!r} for line in run(seed).log]
print(hashlib.sha256("\\n".join(log).encode()).hexdigest(), len(log))
"""

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


def check_processes(name: str, seeds: Sequence[int]) -> None:
    """Fail if what runs seeds (by its dotted name) logs other things in another process.

    String hashes differ from process to process: no decision may hang on the order of a set.
    """
    digests = set()
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(Path.cwd())}
        code = PRINT_DIGEST.format(name=name, seeds=seeds)
        run = subprocess.run(
            [sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, check=True
        )
        digests.add(run.stdout)
    (digest,) = digests
    assert int(digest.split()[1]) > 10 * len(seeds)
