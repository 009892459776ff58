"""A classic member's signs of life: beside its join, and after it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafka_fast.config import consumer_settings
from kafka_fast.control.group.classic.session import Session
from kafka_fast.errors import KafkaConnectionError, KafkaError, UnsupportedVersionError
from kafka_fast.protocol.apis.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafka_fast.protocol.apis.groups.join_group import JoinGroupRequest, JoinGroupResponse

LINK: Any = "a link"
LOST = KafkaConnectionError("gone")
JOIN = JoinGroupRequest(group_id="g")
JOINED = JoinGroupResponse(generation_id=5, member_id="m")
REBALANCES = HeartbeatResponse(error_code=27)


class FakeRequests:
    """Writes down the heartbeats and the requests between, and how they end."""

    def __init__(self) -> None:
        self.started: dict[int, Any] = {}
        self.said: list[Any] = []
        self.stopped: list[int] = []
        self.refuses = False

    @property
    def running(self) -> list[int]:
        return [token for token in self.started if token not in self.stopped]

    def start_heartbeats(
        self, link: Any, body: Any, expected: Any, handle: Any, lose: Any, **more: Any
    ) -> int:
        token = len(self.started) + 1
        self.started[token] = (body, expected, handle, lose, more["epoch_field"])
        return token

    def send_between(
        self, token: int, link: Any, body: Any, response: Any, handle: Any, *, timeout: float
    ) -> None:
        if self.refuses:
            raise UnsupportedVersionError("too old")
        assert (token, timeout) == (self.running[-1], 300.0)
        self.said.append(handle)

    def stop_heartbeats(self, token: int) -> None:
        self.stopped.append(token)


class FakeCoordinator:
    """One that is there; writes down what it is asked, and that it has moved."""

    group_id = "g"

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.moved = 0

    def want_link(self, now: float) -> Any:
        return LINK

    def send_request(
        self, link: Any, body: Any, response: Any, handle: Any, lose: Any, **more: Any
    ) -> None:
        self.asked.append((body, handle, lose))

    def handle_heartbeats_lost(self, error: KafkaError, now: float) -> None:
        self.moved += 1


class SessionRig:
    def __init__(self) -> None:
        self.requests, self.coordinator = FakeRequests(), FakeCoordinator()
        self.heard: list[Any] = []
        context: Any = SimpleNamespace(
            settings=consumer_settings({"bootstrap.servers": "b:9092", "group.id": "g"}, {}),
            connections=SimpleNamespace(requests=self.requests),
        )
        coordinator: Any = self.coordinator
        self.session = Session(
            context,
            coordinator,
            on_heartbeat=lambda code, now: self.heard.append(code),
            on_moved=lambda now: self.heard.append("moved"),
        )

    def join(self) -> None:
        self.session.join(LINK, JOIN, self.take, self.lose, timeout=300.0)

    def take(self, response: JoinGroupResponse, now: float) -> None:
        self.heard.append(response)

    def lose(self, error: KafkaError, now: float) -> None:
        self.heard.append(error)

    def lose_link(self) -> None:
        self.requests.started[self.requests.running[-1]][3](LOST, 1.0)

    def lose_a_later_link(self) -> None:
        """Be a member, and lose the link of its heartbeats."""
        self.session.enter(5, "m")
        self.session.keep_alive(1.0, expect_rebalance=False)
        self.lose_link()


@pytest.fixture
def rig() -> SessionRig:
    """A member that has its id."""
    made = SessionRig()
    made.session.take_id("m")
    return made


def test_who_has_no_id_only_asks() -> None:
    rig = SessionRig()
    rig.join()
    ((body, handle, lose),) = rig.coordinator.asked
    assert body == JOIN
    handle(JOINED, 1.0)
    lose(LOST, 1.0)
    assert rig.heard == [JOINED, LOST]
    assert not rig.requests.started


def test_heartbeats_go_on_by_the_generation_that_the_join_brings(rig: SessionRig) -> None:
    rig.join()
    ((body, expected, *_, epoch_field),) = rig.requests.started.values()
    assert body == HeartbeatRequest(group_id="g", generation_id=-1, member_id="m")
    assert epoch_field == "generation_id"
    assert expected == HeartbeatResponse()
    rig.requests.said[0](JOINED, 1.0)
    assert rig.heard == [JOINED]
    rig.session.enter(5, "m")
    rig.session.keep_alive(1.0, expect_rebalance=False)
    assert rig.requests.running == [1]  # the same one


@pytest.mark.parametrize("answer", [JoinGroupResponse(error_code=25), JoinGroupResponse()])
def test_who_is_in_no_generation_is_silent(rig: SessionRig, answer: JoinGroupResponse) -> None:
    rig.join()
    rig.requests.said[0](answer, 1.0)
    assert rig.heard == [answer]
    assert rig.requests.running == []


def test_a_link_that_is_lost_ends_the_join(rig: SessionRig) -> None:
    rig.join()
    rig.lose_link()
    assert rig.heard == [LOST]
    assert rig.coordinator.moved == 1


def test_a_link_that_is_lost_after_the_join_moves_the_coordinator(rig: SessionRig) -> None:
    rig.join()
    rig.requests.said[0](JOINED, 1.0)
    rig.lose_link()
    assert rig.heard == [JOINED, "moved"]


@pytest.mark.parametrize("how", ["fall_silent", "lose_generation", "forget_membership"])
def test_who_falls_silent_hears_of_no_join(rig: SessionRig, how: str) -> None:
    """Nor of the link of another life."""
    rig.join()
    getattr(rig.session, how)()
    assert rig.requests.running == []
    rig.lose_a_later_link()
    assert rig.heard == ["moved"]


def test_a_join_that_cannot_be_said_leaves_nothing_behind(rig: SessionRig) -> None:
    rig.requests.refuses = True
    with pytest.raises(UnsupportedVersionError):
        rig.join()
    assert rig.requests.running == []
    rig.lose_a_later_link()
    assert rig.heard == ["moved"]


def test_another_answer_is_heard_once(rig: SessionRig) -> None:
    """Then it is Python's to say what the heartbeats are."""
    rig.session.enter(5, "m")
    rig.session.keep_alive(1.0, expect_rebalance=False)
    rig.requests.started[1][2](REBALANCES, 1.0)
    assert rig.heard == [27]
    assert rig.requests.running == []
    rig.session.keep_alive(1.0, expect_rebalance=True)
    assert rig.requests.started[2][1] == REBALANCES
