"""Worlds by the hundred: `--seeds N` says how many, `--seed S` runs one of them and prints it.

Each seed is a cluster, a configuration, users and faults; the shipped planes run in virtual time,
and the checker compares what users were told with what the brokers' logs hold.
"""

from __future__ import annotations

import gc
import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from kafka_fast.testing.simulation import make_plan, run_seed
from tests.sim.seeds import check


def judge(seed: int) -> str | None:
    """Return a report of the seed if it fails."""
    result = run_seed(seed)
    return result.report() if result.anomalies else None


def test_every_promise_is_kept_in_every_world(seeds: Sequence[int]) -> None:
    check(judge, seeds)


def test_a_seed_gives_the_same_log_again() -> None:
    for seed in range(1_000_000, 1_000_010):
        first, second = run_seed(seed), run_seed(seed)
        assert first.log == second.log
        assert first.traces == second.traces
        assert len(first.log) > 10


PRINT_DIGEST = """
import hashlib
from kafka_fast.testing.simulation import run_seed
log = [line for seed in range(2_000_000, 2_000_010) for line in run_seed(seed).log]
print(hashlib.sha256("\\n".join(log).encode()).hexdigest())
"""


def test_a_seed_gives_the_same_log_in_another_process() -> None:
    """String hashes differ from process to process: no decision may hang on the order of a set."""
    digests = set()
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(Path.cwd())}
        run = subprocess.run(
            [sys.executable, "-c", PRINT_DIGEST],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(run.stdout)
    assert len(digests) == 1
    assert len(digests.pop().strip()) == hashlib.sha256().digest_size * 2


def test_the_plans_of_the_first_seeds_touch_every_choice() -> None:
    plans = [make_plan(seed) for seed in range(300)]
    for name in ("acks", "compression.type", "linger.ms", "retries", "max.request.size"):
        assert len({plan.config[name] for plan in plans}) >= 3, name
    assert {plan.nodes for plan in plans} == {1, 2, 3, 4}
    assert {plan.version for plan in plans} == {"newest", "2.1", "2.8", "3.9"}
    for flag in ("recreates_topics", "forgets_producers", "closes_early"):
        assert {getattr(plan, flag) for plan in plans} == {True, False}, flag


def test_worlds_leave_nothing_behind() -> None:
    """Neither cycles that only the collector finds nor, by and by, memory."""
    run_seed(0)
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(3):
        run_seed(0)
        gc.collect()
    assert len(gc.get_objects()) - before < 200
