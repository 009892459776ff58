"""Coordinators: found for many keys at once, kept, found again, or refused."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_fast.control.connections.connection_key import ConnectionKey, Role
from kafka_fast.control.requests.any_node import SILENT_NODE_PATIENCE
from kafka_fast.control.requests.targets import CoordinatorKind
from kafka_fast.errors import ErrorCode, KafkaConnectionError, KafkaError
from kafka_fast.protocol.apis.cluster.find_coordinator import Coordinator, FindCoordinatorResponse
from tests.unit.control.requests.rig import BACKOFF, RequesterRig, request_of

GROUP = CoordinatorKind.GROUP
TRANSACTION = CoordinatorKind.TRANSACTION


def found(key: str, node_id: int = 2, code: int = 0, host: str = "two") -> Coordinator:
    return Coordinator(key=key, node_id=node_id, host=host, port=9092, error_code=code)


@pytest.fixture
def rig() -> RequesterRig:
    rig = RequesterRig()
    rig.open(1)
    return rig


def want(rig: RequesterRig, key: str = "g", kind: CoordinatorKind = GROUP) -> Any:
    return rig.requester.coordinators.want_link(kind, key, rig.now)


def test_keys_of_a_kind_are_looked_up_together(rig: RequesterRig) -> None:
    for key in ("a", "b", "a"):
        assert want(rig, key) is None
    want(rig, "t", TRANSACTION)
    groups, transactions = rig.tick()
    assert request_of(groups).coordinator_keys == ["a", "b"]
    assert request_of(groups).key_type == GROUP
    assert request_of(transactions).coordinator_keys == ["t"]
    assert request_of(transactions).key_type == TRANSACTION


def test_a_silent_node_does_not_hold_a_look_up_up(rig: RequesterRig) -> None:
    """Regression: a node that was stopped kept it until request.timeout.ms."""
    rig.open(3)
    want(rig)
    (silent,) = rig.tick()
    (beside,) = rig.tick(rig.now + SILENT_NODE_PATIENCE)
    assert {silent.link_id, beside.link_id} == {10, 30}
    rig.answer(beside, FindCoordinatorResponse(coordinators=[found("g")]))
    assert rig.requester.coordinators.node(GROUP, "g") is not None


def test_a_broker_that_takes_one_key_at_a_time_is_asked_one_by_one() -> None:
    rig = RequesterRig()
    rig.open(1, FindCoordinator=3)
    want(rig, "a")
    want(rig, "b")
    first, second = rig.tick()
    assert [request_of(sent).key for sent in (first, second)] == ["a", "b"]
    rig.answer(second, FindCoordinatorResponse(node_id=2, host="two", port=9092))
    coordinators = rig.requester.coordinators
    assert coordinators.node(GROUP, "a") is None
    assert str(coordinators.node(GROUP, "b")) == "node 2 at two:9092"


def test_it_has_a_connection_of_its_own(rig: RequesterRig) -> None:
    want(rig)
    rig.answer(*rig.tick(), FindCoordinatorResponse(coordinators=[found("g")]))
    assert want(rig) is None
    assert rig.wanted == [ConnectionKey(Role.COORDINATOR, 2)]
    link = rig.open(2, Role.COORDINATOR)
    assert want(rig) is link
    assert rig.requester.coordinators.why_waiting(GROUP, "g") is None


def test_one_that_has_moved_is_looked_for_again_after_a_pause(rig: RequesterRig) -> None:
    coordinators = rig.requester.coordinators
    want(rig)
    rig.answer(*rig.tick(), FindCoordinatorResponse(coordinators=[found("g")]))
    coordinators.handle_moved(GROUP, "g", "an old answer", rig.now, by=3)
    assert coordinators.node(GROUP, "g") is not None, "it is another node that says so"
    coordinators.handle_moved(GROUP, "g", "NOT_COORDINATOR", rig.now, by=2)
    assert want(rig) is None
    assert rig.tick() == []
    assert len(rig.tick(rig.now + BACKOFF)) == 1


def test_one_that_is_followed_is_looked_for_again_although_nobody_asks(rig: RequesterRig) -> None:
    """Regression: a member that waited for its next try waited forever."""
    coordinators = rig.requester.coordinators
    coordinators.follow(GROUP, "g", lambda error: None)
    want(rig)
    rig.answer(*rig.tick(), FindCoordinatorResponse(coordinators=[found("g")]))
    coordinators.handle_moved(GROUP, "g", "NOT_COORDINATOR", rig.now)
    assert rig.requester.next_deadline() == rig.now + BACKOFF
    rig.answer(*rig.tick(rig.now + BACKOFF), FindCoordinatorResponse(coordinators=[found("g", 1)]))
    node = coordinators.node(GROUP, "g")
    assert node is not None
    assert node.id == 1
    assert rig.wanted == [ConnectionKey(Role.COORDINATOR, 2), ConnectionKey(Role.COORDINATOR, 1)]


@pytest.mark.parametrize("role", [Role.DATA, Role.CONTROL, Role.COORDINATOR])
def test_one_that_cannot_be_reached_is_looked_for_again(rig: RequesterRig, role: Role) -> None:
    coordinators = rig.requester.coordinators
    want(rig)
    rig.answer(*rig.tick(), FindCoordinatorResponse(coordinators=[found("g")]))
    error = KafkaConnectionError("refused")
    coordinators.handle_connect_failed(ConnectionKey(role, 2), error, rig.now)
    assert (coordinators.node(GROUP, "g") is None) is (role is Role.COORDINATOR)


@pytest.mark.parametrize(
    "answer",
    [
        found("g", code=ErrorCode.COORDINATOR_NOT_AVAILABLE),
        found("g", host=""),
        found("another"),
    ],
    ids=["not available", "no address", "another key"],
)
def test_what_is_no_coordinator_is_asked_for_again(rig: RequesterRig, answer: Coordinator) -> None:
    want(rig)
    rig.answer(*rig.tick(), FindCoordinatorResponse(coordinators=[answer]))
    assert rig.requester.coordinators.node(GROUP, "g") is None
    assert len(rig.tick(rig.now + BACKOFF)) == 1


def test_a_refusal_is_told_and_the_next_look_up_waits_longer_each_time(rig: RequesterRig) -> None:
    told: list[KafkaError] = []
    rig.requester.coordinators.follow(GROUP, "g", told.append)
    waits = []
    for _ in range(3):
        want(rig)
        (sent,) = rig.tick(max(rig.now, rig.requester.next_deadline()))
        refusal = found("g", code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        rig.answer(sent, FindCoordinatorResponse(coordinators=[refusal]))
        want(rig)
        waits.append(round(rig.requester.next_deadline() - rig.now, 2))
    assert len(told) == 3
    assert "coordinator of group 'g'" in str(told[0])
    assert waits == [BACKOFF, 2 * BACKOFF, 4 * BACKOFF]
