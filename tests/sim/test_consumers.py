"""Groups by the hundred: `--seeds N` says how many, `--seed S` runs one of them and prints it.

Each seed is a cluster, users with consumers that come and go, and faults; the shipped consumers run
in virtual time, and the ledger compares what users were given, and what was committed, with what
the brokers' logs hold.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from kafka_fast.net.process import process_life
from tests.sim.seeds import check, check_processes
from tests.sim.worlds.groups.group_checker import Wrong
from tests.sim.worlds.groups.group_plan import CANCELS, make_group_plan
from tests.sim.worlds.groups.group_users import User
from tests.sim.worlds.groups.group_world import GroupResult, GroupWorld, run_group_seed


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Warnings of groups that break are what these worlds are made of."""
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


def run_blocking(seed: int) -> GroupResult:
    """Run a world as it was before some of its users were tasks of asyncio."""
    plan = make_group_plan(seed)
    users = tuple(replace(user, cancels=None) for user in plan.users)
    return GroupWorld(replace(plan, users=users)).run()


def judge(seed: int) -> str | None:
    """Return a report of the seed if it fails."""
    result = run_group_seed(seed)
    return result.report() if result.faults else None


def test_every_promise_is_kept_in_every_group(seeds: Sequence[int]) -> None:
    check(judge, seeds)


def test_a_world_ends_the_consumer_of_a_user_who_crashed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: the end of the process waited for it in virtual time, forever."""
    monkeypatch.setattr(User, "_poll", lambda self: 1 / 0)
    before = set(process_life.living)
    result = run_group_seed(0)
    assert any(fault.kind is Wrong.CRASHED for fault in result.faults)
    assert set(process_life.living) <= before


def test_a_seed_gives_the_same_log_again() -> None:
    for seed in range(1_000_000, 1_000_004):
        first, second = run_group_seed(seed), run_group_seed(seed)
        assert first.log == second.log
        assert first.actions == second.actions
        assert len(first.log) > 10


def test_a_seed_gives_the_same_log_in_another_process() -> None:
    name = "tests.sim.worlds.groups.group_world.run_group_seed"
    check_processes(name, range(2_000_000, 2_000_004))


def test_the_plans_of_the_first_seeds_touch_every_choice() -> None:
    plans = [make_group_plan(seed) for seed in range(200)]
    assert {len(plan.users) for plan in plans} == {1, 2, 3, 4, 6}
    assert {plan.config.get("group.protocol", "classic") for plan in plans} == {
        "classic",
        "consumer",
    }
    strategies = {plan.config.get("partition.assignment.strategy") for plan in plans}
    assert {"range", "roundrobin", "sticky", "cooperative-sticky"} < strategies
    users = [user for plan in plans for user in plan.users]
    assert {user.commits for user in users} == {"auto", "sync", "async", "record", "listener"}
    assert {user.instance is None for user in users} == {True, False}
    assert {user.cancels for user in users} == set(CANCELS)
    resets = {plan.config["auto.offset.reset"] for plan in plans if plan.trims}
    assert resets == {"earliest", "latest", "none", "by_duration:PT2S"}
    assert {plan.recreations for plan in plans} == {0, 1, 2}
    assert {plan.changes_mind for plan in plans} == {0.0, 0.02, 0.1}
    calm = [plan for plan in plans if plan.is_calm and plan.holds_gil]
    assert {plan.logins is None for plan in calm} == {True, False}
    fickle = {plan.config.get("group.protocol", "classic") for plan in plans if plan.changes_mind}
    assert fickle == {"classic", "consumer"}
    assert {(plan.pattern is None, plan.broker_side) for plan in plans} >= {
        (True, False),
        (False, False),
        (False, True),
    }


def test_a_member_that_waits_for_its_user_beats_no_faster_than_it_should() -> None:
    """Regression: to an answer that it did not expect by then it answered at once, for seconds."""
    result = run_blocking(389)
    assert not result.faults, result.report()
    assert sum("command StartHeartbeats" in line for line in result.log) < 2_000


def test_a_link_that_waits_for_the_next_heartbeat_is_not_idle() -> None:
    """Regression: with connections.max.idle.ms below the heartbeats' interval no member stayed."""
    result = run_blocking(385)
    assert not result.faults, result.report()


def test_a_loop_begins_with_nothing_that_others_may_have() -> None:
    """Regression: what an earlier loop had left was handed over after the member was fenced."""
    result = run_blocking(111)
    assert not result.faults, result.report()


def test_a_commit_is_of_the_topic_that_it_was_made_for() -> None:
    """Regression: sent again after a topic was made anew, it was stored for the new one."""
    result = run_blocking(3247)
    assert not result.faults, result.report()


def test_a_static_member_that_came_too_late_for_a_generation_owns_nothing_of_it() -> None:
    """Regression of the checker: who is kept by name was taken for an owner beside the new one."""
    result = run_blocking(3294)
    assert not result.faults, result.report()


def test_a_wait_for_records_ends_with_nothing_that_others_may_have() -> None:
    """Regression: records that came with the news that the member is fenced were handed over."""
    result = run_blocking(2154)
    assert not result.faults, result.report()


@pytest.mark.parametrize("seed", [478, 857, 1381])
def test_a_loop_hands_over_nothing_of_a_topic_that_was_made_anew(seed: int) -> None:
    """Regression: it did, and committed the old offset for the new topic."""
    result = run_blocking(seed)
    assert not result.faults, result.report()


def test_a_loop_that_hears_of_a_new_topic_drops_none_of_its_records() -> None:
    """Regression: those that came in the same wait as the news were dropped with the old ones."""
    result = run_blocking(84)
    assert not result.faults, result.report()


def test_a_user_who_holds_the_gil_has_polled_before() -> None:
    """Regression of the checker: a loop over records of an earlier poll was taken for a poll."""
    result = run_blocking(1147)
    assert not result.faults, result.report()


@pytest.mark.parametrize("seed", [47, 79, 573])
def test_a_cancelled_commit_before_a_revocation_leaves_no_listener_untold(seed: int) -> None:
    """Regression: the partitions were given up, and the listener never heard of it."""
    result = run_group_seed(seed)
    assert any(": cancelled" in line for line in result.log)
    assert not result.faults, result.report()


def test_interrupted_work_on_a_partition_that_came_back_in_one_poll_is_not_committed() -> None:
    """Regression: it was given up, taken again and read in the same poll, and counted as moved."""
    result = run_group_seed(1687)
    assert not result.faults, result.report()


def test_automatic_commits_do_not_pile_up() -> None:
    """Regression: with an interval of 0 the last commit of a close waited for 23 others."""
    result = run_group_seed(2249)
    assert not result.faults, result.report()


def test_a_node_that_refuses_at_once_is_not_tried_without_end() -> None:
    """Regression: with reconnect.backoff.ms=0 the client turned in circles."""
    result = run_group_seed(1724)
    assert not result.faults, result.report()


@pytest.mark.parametrize("way", ["goes on", "ends", "closes again"])
def test_closes_are_cancelled_in_all_ways(way: str) -> None:
    seeds = itertools.islice(filter(has_tasks, itertools.count()), 100)
    assert any(f"the loop {way}" in line for seed in seeds for line in run_group_seed(seed).log)


def has_tasks(seed: int) -> bool:
    return any(user.cancels for user in make_group_plan(seed).users)
