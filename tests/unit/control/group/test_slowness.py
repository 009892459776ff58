"""How long a rebalance takes is told: when it ends, and while it is slow."""

from __future__ import annotations

import logging

import pytest

from kafka_fast.control.group.slowness import SLOW
from tests.unit.control.group.world import World


@pytest.fixture(name="log")
def everything_from_info_on(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, logger="kafka_fast.group")
    return caplog


def lines(log: pytest.LogCaptureFixture, level: int) -> list[str]:
    ours = [record for record in log.records if record.name == "kafka_fast.group"]
    return [record.getMessage() for record in ours if record.levelno == level]


def test_the_end_of_a_rebalance_names_partitions_and_time(log: pytest.LogCaptureFixture) -> None:
    world = World()
    world.cluster.create_topic("t", 2)
    world.join("a", ["t"])
    took = world.run_until(lambda: world.stable("t"))
    assert lines(log, logging.WARNING) == []
    (end,) = (line for line in lines(log, logging.INFO) if "generation" in line)
    begin, _, after = end.partition(", after ")
    assert begin == "group g: generation 1: 2 partitions (t-0, t-1)"
    assert float(after.removesuffix(" s")) == pytest.approx(took, abs=0.5)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_that_holds_the_others_up_is_warned(
    log: pytest.LogCaptureFixture, protocol: str
) -> None:
    settings = {"partition_assignment_strategy": "range"} if protocol == "classic" else {}
    world = World(group_protocol=protocol, **settings)
    world.cluster.create_topic("t", 4)
    slow = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    slow.next_poll = world.now + 60.0
    world.join("b", ["t"])
    world.run(SLOW - 1.0)
    assert lines(log, logging.WARNING) == []
    world.run(20.0)
    told = lines(log, logging.WARNING)
    assert any(
        "the rebalance has taken 10 s: this consumer has to give up" in line for line in told
    )
    world.run_until(lambda: world.stable("t"), 120.0)
    assert len(lines(log, logging.WARNING)) == len(told), "each slow rebalance is warned of once"


def test_a_member_that_waits_for_others_says_for_whom(log: pytest.LogCaptureFixture) -> None:
    world = World(partition_assignment_strategy="range")
    world.cluster.create_topic("t", 4)
    slow = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    slow.next_poll = world.now + 60.0
    world.join("b", ["t"])
    world.run(30.0)
    told = lines(log, logging.WARNING)
    assert any("answers JoinGroup once all members have joined" in line for line in told)


def test_a_pattern_without_topics_is_no_rebalance(log: pytest.LogCaptureFixture) -> None:
    world = World()
    world.cluster.pause(1)
    world.join("a", "t.*")
    world.run(30.0)
    assert lines(log, logging.WARNING) == []
