"""What is said in heartbeats, and to whom: on the embedded broker in virtual time."""

from __future__ import annotations

import itertools

import pytest

from kafka_fast.control.group.member import Subscription
from kafka_fast.errors import UnsupportedVersionError
from kafka_fast.protocol.apis.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatResponse
from kafka_fast.testing.broker.handlers import OFFERED
from tests.unit.control.group.consumer_protocol.groups import inner, make, two_members

HEARTBEAT = 68
RETRIABLE = (14, 15, 16)  # the coordinator loads, is not available, is another one


def test_nothing_is_said_twice() -> None:
    """In quiet times one heartbeat goes out each interval, and no answer comes up."""
    world = make()
    one, _ = two_members(world)
    world.run(6.0)
    before = one.requests
    world.run(50.0)
    assert 9 <= one.requests - before <= 11
    assert inner(one).next_deadline() == float("inf")


def test_brokers_that_do_not_speak_it() -> None:
    world = make()
    world.cluster.faults.limit_versions(
        {api_key: OFFERED[api_key] for api_key in OFFERED if api_key != HEARTBEAT}
    )
    member = world.join("a", ["t"])
    world.run_until(lambda: bool(member.errors))
    assert isinstance(member.errors[0], UnsupportedVersionError)
    assert "group.protocol=classic" in str(member.errors[0])


def test_brokers_of_its_first_version_match_no_patterns() -> None:
    world = make()
    world.cluster.faults.limit_versions({**OFFERED, HEARTBEAT: (0, 0)})
    member = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    inner(member).subscribe(Subscription(regex="t"), world.now)
    world.run_until(lambda: bool(member.errors))
    assert "re.compile" in str(member.errors[0])
    assert "classic" not in str(member.errors[0])


def test_a_throttled_answer_changes_nothing() -> None:
    world = make()
    member = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))

    def script(response: ConsumerGroupHeartbeatResponse, node: int) -> None:
        response.throttle_time_ms = 100

    world.cluster.faults.script(HEARTBEAT, script)
    before = member.requests
    world.run(60.0)
    assert 9 <= member.requests - before <= 13
    assert member.kinds() == ["assigned"]


def test_an_interval_that_changes_is_kept() -> None:
    world = make()
    member = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))

    def script(response: ConsumerGroupHeartbeatResponse, node: int) -> None:
        response.heartbeat_interval_ms = 1000

    world.cluster.faults.script(HEARTBEAT, script)
    world.run(10.0)
    before = member.requests
    world.run(10.0)
    assert 9 <= member.requests - before <= 11


@pytest.mark.parametrize("code", [None, *RETRIABLE])
def test_answers_that_come_while_python_cannot_run(code: int | None) -> None:
    """Three assignments wait to be heard, behind an error that passes or not: no epoch is lost."""
    world = make(8)
    one, *others = [world.join(name, ["t"]) for name in "abcd"]
    world.run_until(lambda: world.stable("t") and all(member.owned for member in (one, *others)))
    world.run(6.0)
    one.hold_gil()
    codes = [] if code is None else [code]

    def script(response: ConsumerGroupHeartbeatResponse, node: int) -> None:
        if codes and response.member_id == inner(one).member_id:
            response.error_code, response.assignment = codes.pop(), None
            response.member_epoch = response.heartbeat_interval_ms = 0

    world.cluster.faults.script(HEARTBEAT, script)
    world.run(6.0)
    assert not codes
    for other in others:
        world.leave(other)
        world.run(6.0)
    heard = one.core.heard
    one.release_gil(world.now)
    world.run_until(lambda: len(one.owned) == 8)
    assert one.core.heard - heard >= 3
    assert "lost" not in one.kinds()


def test_a_coordinator_that_calls_us_by_other_names_is_not_talked_at() -> None:
    """Regression: each of them began everything anew, as fast as it was answered."""
    world = make()
    member = world.join("a", ["t"])
    world.run_until(lambda: world.stable("t"))
    names = itertools.count()

    def script(response: ConsumerGroupHeartbeatResponse, node: int) -> None:
        response.member_id = f"name-{next(names)}"

    world.cluster.faults.script(HEARTBEAT, script)
    before = member.requests
    world.run(50.0)
    assert 9 <= member.requests - before <= 11
    assert member.kinds() == ["assigned"]
