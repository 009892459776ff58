"""Which requests a rule strikes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kafka_fast.errors import NotLeaderOrFollower
from kafka_fast.testing.broker.faults import CutRule, DelayRule, DropRule, Faults

PRODUCE, FETCH = 0, 1


@pytest.fixture
def faults() -> Faults:
    return Faults(random.Random(42))


def test_an_error_is_found_for_its_partition_only(faults: Faults) -> None:
    faults.error(PRODUCE, NotLeaderOrFollower, topic="t", partition=1)
    assert faults.take_error(1, PRODUCE, "t", 0) is None
    assert faults.take_error(1, PRODUCE, "u", 1) is None
    assert faults.take_error(1, FETCH, "t", 1) is None
    struck = faults.take_error(1, PRODUCE, "t", 1)
    assert struck is not None
    assert struck.code == NotLeaderOrFollower.code


def test_count_and_skip(faults: Faults) -> None:
    rule = faults.delay(0.5, api=FETCH, node=2, count=2, skip=1)
    strikes = [faults.take_rule(DelayRule, 2, FETCH) is rule for _ in range(5)]
    assert strikes == [False, True, True, False, False]
    assert rule.used_up


def test_another_node_is_spared(faults: Faults) -> None:
    faults.drop(node=2)
    assert faults.take_rule(DropRule, 1, FETCH) is None
    assert faults.take_rule(CutRule, 2, FETCH) is None
    assert faults.take_rule(DropRule, 2, FETCH) is not None


def test_the_seed_decides_what_probability_strikes() -> None:
    def run(seed: int) -> list[bool]:
        faults = Faults(random.Random(seed))
        faults.drop(probability=0.3)
        return [faults.take_rule(DropRule, 1, FETCH) is not None for _ in range(200)]

    assert run(1) == run(1)
    assert run(1) != run(2)
    assert 30 < sum(run(1)) < 90


def test_cancel_and_clear(faults: Faults) -> None:
    rule = faults.cut(10)
    rule.cancel()
    assert faults.take_rule(CutRule, 1, FETCH) is None
    faults.cut(20)
    faults.limit_versions({FETCH: (4, 8)})
    faults.clear()
    assert faults.take_rule(CutRule, 1, FETCH) is None
    assert faults.version_range(PRODUCE, 3, 13) == (3, 13)


def test_version_limits_only_narrow(faults: Faults) -> None:
    faults.limit_versions({FETCH: (0, 8), PRODUCE: (14, 20)})
    assert faults.version_range(FETCH, 4, 18) == (4, 8)
    assert faults.version_range(PRODUCE, 3, 13) is None
    assert faults.version_range(18, 0, 5) is None


@pytest.mark.parametrize(
    "match", [{"probability": 1.5}, {"count": -1}, {"skip": -1}, {"topic": "t"}, {"partition": 0}]
)
def test_rules_that_could_never_strike(faults: Faults, match: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"probability|negative|single"):
        faults.drop(**match)


def test_zero_is_no_error(faults: Faults) -> None:
    with pytest.raises(ValueError, match="not an error"):
        faults.error(PRODUCE, 0)
