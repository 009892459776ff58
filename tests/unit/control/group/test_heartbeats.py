"""One heartbeat at a time: kept, said, stopped, lost."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_fast.control.group.heartbeats import Heartbeats
from kafka_fast.errors import KafkaConnectionError
from kafka_fast.protocol.apis.groups.heartbeat import HeartbeatRequest, HeartbeatResponse

BODY, EXPECTED, OTHER = HeartbeatRequest(), HeartbeatResponse(), HeartbeatResponse(error_code=27)
LINK: Any = "a link"


class FakeRequests:
    """Writes down the heartbeats, and how they end."""

    def __init__(self) -> None:
        self.started: dict[int, tuple[Any, Any]] = {}
        self.said: list[tuple[int, Any, Any]] = []
        self.stopped: list[int] = []
        self.told: dict[str, object] = {}

    def start_heartbeats(
        self, link: Any, body: Any, expected: Any, handle: Any, handle_lost: Any, **told: object
    ) -> int:
        token = len(self.started) + 1
        self.started[token] = (handle, handle_lost)
        self.told = told
        return token

    def send_between(
        self, token: int, link: Any, body: Any, response: Any, handle: Any, *, timeout: float
    ) -> None:
        assert (link, response, timeout) == (LINK, HeartbeatResponse, 30.0)
        self.said.append((token, body, handle))

    def stop_heartbeats(self, token: int) -> None:
        self.stopped.append(token)


class HeartbeatsRig:
    def __init__(self) -> None:
        self.requests = FakeRequests()
        self.heard: list[Any] = []
        requests: Any = self.requests
        self.heartbeats: Heartbeats[HeartbeatResponse] = Heartbeats(
            requests,
            lambda response, now: self.heard.append((response, self.heartbeats.is_running)),
            lambda error, now: self.heard.append((error, self.heartbeats.is_running)),
            timeout=30.0,
        )

    def keep(self) -> None:
        self.heartbeats.keep_sending(LINK, BODY, EXPECTED, period=3.0, delay=1.0)


@pytest.fixture
def rig() -> HeartbeatsRig:
    return HeartbeatsRig()


def test_one_is_kept(rig: HeartbeatsRig) -> None:
    assert not rig.heartbeats.is_running
    rig.keep()
    assert rig.heartbeats.is_running
    assert rig.requests.told == {
        "period": 3.0,
        "timeout": 30.0,
        "delay": 1.0,
        "epoch_field": None,
    }
    rig.keep()
    assert rig.requests.stopped == [1]


def test_other_answers_are_heard_and_it_goes_on(rig: HeartbeatsRig) -> None:
    rig.keep()
    handle, _ = rig.requests.started[1]
    handle(OTHER, 5.0)
    handle(OTHER, 8.0)
    assert rig.heard == [(OTHER, True)] * 2
    assert rig.requests.stopped == []


def test_a_link_that_is_gone_ends_it(rig: HeartbeatsRig) -> None:
    rig.keep()
    error = KafkaConnectionError("gone")
    rig.requests.started[1][1](error, 5.0)
    assert rig.heard == [(error, False)]


def test_a_request_goes_between_two(rig: HeartbeatsRig) -> None:
    rig.keep()
    heard: list[Any] = []
    rig.heartbeats.send_between(
        BODY, HeartbeatResponse, lambda response, now: heard.append(response)
    )
    ((token, body, handle),) = rig.requests.said
    assert (token, body) == (1, BODY)
    handle(EXPECTED, 5.0)
    assert heard == [EXPECTED]
    assert rig.heartbeats.is_running


def test_after_a_stop_there_is_none(rig: HeartbeatsRig) -> None:
    rig.keep()
    rig.heartbeats.stop_sending()
    rig.heartbeats.stop_sending()
    assert rig.requests.stopped == [1]
    assert not rig.heartbeats.is_running
