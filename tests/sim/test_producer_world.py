"""Worlds by the hundred: `--seeds N` says how many, `--seed S` runs one of them and prints it.

Each seed is a cluster, a configuration, users and faults; the shipped planes run in virtual time,
and the checker compares what users were told with what the brokers' logs hold.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence

from tests.sim.seeds import check, check_processes
from tests.sim.worlds import make_plan, run_seed


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


def test_a_seed_gives_the_same_log_in_another_process() -> None:
    check_processes("tests.sim.worlds.run_seed", range(2_000_000, 2_000_010))


def test_the_plans_of_the_first_seeds_touch_every_choice() -> None:
    plans = [make_plan(seed) for seed in range(300)]
    for name in ("acks", "compression.type", "linger.ms", "retries", "max.request.size"):
        assert len({plan.config[name] for plan in plans}) >= 3, name
    assert {plan.nodes for plan in plans} == {1, 2, 3, 4}
    assert {plan.version for plan in plans} == {"newest", "2.1", "2.8", "3.9"}
    assert len({plan.cancels for plan in plans}) == 3
    assert {len(plan.task_flushes) for plan in plans} == {0, 1, 3}
    logins = [plan.logins for plan in plans if plan.logins is not None]
    assert 0 < len(logins) < len(plans)
    assert {login.lifetime_ms for login in logins} >= {0, 300, 1_000, 60_000}
    assert (
        {login.rotates for login in logins} == {login.has_work for login in logins} == {True, False}
    )
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
