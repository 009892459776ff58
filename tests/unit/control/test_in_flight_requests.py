"""What becomes of the control plane's own requests: asked once, heartbeats, between."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from kafka_fast.control.connections.connection_key import ConnectionKey, Role
from kafka_fast.control.connections.links import Link
from kafka_fast.control.connections.negotiation import NodeVersions
from kafka_fast.control.in_flight_requests import InFlightRequests
from kafka_fast.control.messages import (
    ClientCommand,
    RawResponse,
    SendBetween,
    SendRaw,
    StartHeartbeats,
    StopHeartbeats,
)
from kafka_fast.errors import MalformedError, UnsupportedVersionError
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.cluster.api_versions import ApiVersion, ApiVersionsResponse
from kafka_fast.protocol.apis.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafka_fast.protocol.apis.groups.join_group import JoinGroupRequest, JoinGroupResponse
from kafka_fast.protocol.apis.groups.sync_group import SyncGroupRequest, SyncGroupResponse

VERSION = 3
BEAT = HeartbeatRequest(group_id="g", generation_id=5, member_id="m")
EXPECTED, OTHER = HeartbeatResponse(), HeartbeatResponse(error_code=27)
JOIN, JOINED = JoinGroupRequest(group_id="g"), JoinGroupResponse(generation_id=6)


class InFlightRig:
    """Requests in flight, the commands that they give, and what they hear."""

    def __init__(self) -> None:
        self.commands: deque[ClientCommand] = deque()
        self.malformed: list[Any] = []
        self.heard: list[Any] = []
        self.sound: list[int] = []
        self.throttled: list[tuple[int, int]] = []
        self.requests = InFlightRequests(
            "rig",
            self.commands,
            on_malformed=lambda *what: self.malformed.append(what),
            on_sound=lambda link, api_key: self.sound.append(api_key),
            on_throttled=lambda link, ms, now: self.throttled.append((link.id, ms)),
        )
        apis = (HeartbeatRequest, JoinGroupRequest)
        shared = [
            ApiVersion(api_key=api.api_key, min_version=VERSION, max_version=VERSION)
            for api in apis
        ]
        versions = NodeVersions("node 1", ApiVersionsResponse(api_keys=shared))
        self.link = Link(7, ConnectionKey(Role.DATA, 1), versions)

    def take(self, response: Any, now: float) -> None:
        self.heard.append(response)

    def lose(self, error: Exception, now: float) -> None:
        self.heard.append(type(error).__name__)

    def command(self) -> Any:
        """Return the one command that was given since the last call."""
        (command,) = self.commands
        self.commands.clear()
        return command

    def start(self, **more: Any) -> StartHeartbeats:
        self.requests.start_heartbeats(
            self.link, BEAT, EXPECTED, self.take, self.lose, period=3.0, timeout=30.0, **more
        )
        command = self.command()
        assert isinstance(command, StartHeartbeats)
        return command

    def say(self, token: int) -> SendBetween:
        said = self.take_between
        self.requests.send_between(token, self.link, JOIN, JoinGroupResponse, said, timeout=300.0)
        command = self.command()
        assert isinstance(command, SendBetween)
        return command

    def take_between(self, response: JoinGroupResponse, now: float) -> None:
        self.heard.append(("between", response))

    def answer(self, token: int, response: Any) -> None:
        data = frame.encode_response(response, VERSION, 0)[4:]
        self.requests.handle_response(RawResponse(7, token, data, 0), 1.0)

    def break_link(self, token: int) -> None:
        self.requests.handle_response(RawResponse(7, token, None, 2), 1.0)


@pytest.fixture
def rig() -> InFlightRig:
    return InFlightRig()


def test_any_answer_may_announce_a_pause(rig: InFlightRig) -> None:
    rig.requests.send_request(rig.link, BEAT, HeartbeatResponse, rig.take, rig.lose, timeout=30.0)
    rig.answer(rig.command().token, HeartbeatResponse(throttle_time_ms=700))
    assert rig.throttled == [(7, 700)]
    started = rig.start()
    rig.answer(started.token, HeartbeatResponse(throttle_time_ms=800))
    rig.answer(started.token, OTHER)
    assert rig.throttled == [(7, 700), (7, 800)]


def test_a_question_is_answered_once(rig: InFlightRig) -> None:
    ask = rig.requests.send_request
    assert ask(rig.link, BEAT, HeartbeatResponse, rig.take, rig.lose, timeout=30.0) == VERSION
    sent = rig.command()
    assert isinstance(sent, SendRaw)
    assert frame.decode_request(sent.frame[4:])[1] == BEAT
    assert rig.requests.waiting_on(rig.link) == 1
    rig.answer(sent.token, OTHER)
    rig.answer(sent.token, EXPECTED)
    assert rig.heard == [OTHER]
    assert rig.requests.waiting_on(rig.link) == 0


def test_a_repetition_is_heard_of_again_and_again(rig: InFlightRig) -> None:
    command = rig.start(delay=1.0)
    assert (command.link_id, command.period, command.timeout, command.delay) == (7, 3.0, 30.0, 1.0)
    assert frame.decode_request(command.frame[4:])[1] == BEAT
    assert command.expected == frame.encode_response(EXPECTED, VERSION, 0)[8:]
    assert command.epoch_pos == 0
    for _ in range(3):
        rig.answer(command.token, OTHER)
    rig.break_link(command.token)
    rig.break_link(command.token)
    assert rig.heard == [OTHER, OTHER, OTHER, "KafkaConnectionError"]


def test_where_the_epoch_stands(rig: InFlightRig) -> None:
    other = HeartbeatRequest(group_id="g", generation_id=~5, member_id="m")
    command = rig.start(epoch_field="generation_id")
    assert command.frame[command.epoch_pos : command.epoch_pos + 4] == (5).to_bytes(4, "big")
    assert (
        command.frame[command.epoch_pos + 4 :]
        == frame.encode_request(other, VERSION, 0, "rig")[command.epoch_pos + 4 :]
    )


def test_a_request_between_has_its_own_answer(rig: InFlightRig) -> None:
    token = rig.start().token
    for heard in range(3):
        command = rig.say(token)
        assert (command.token, command.heard, command.timeout) == (token, heard, 300.0)
        assert frame.decode_request(command.frame[4:])[1] == JOIN
        rig.answer(command.own_token, JOINED)
        rig.answer(command.own_token, JOINED)
    rig.answer(token, OTHER)
    assert rig.say(token).heard == 4
    assert rig.heard == [("between", JOINED)] * 3 + [OTHER]


def test_after_another_answer_the_request_between_was_not_sent(rig: InFlightRig) -> None:
    token = rig.start().token
    lost = rig.say(token)
    rig.answer(token, OTHER)
    rig.answer(lost.own_token, JOINED)  # from nobody
    assert rig.heard == [OTHER]
    again = rig.say(token)
    assert again.heard == 1
    rig.answer(again.own_token, JOINED)
    assert rig.heard == [OTHER, ("between", JOINED)]


def test_a_link_that_breaks_is_told_once(rig: InFlightRig) -> None:
    token = rig.start().token
    said = rig.say(token)
    rig.break_link(token)
    rig.answer(said.own_token, JOINED)
    assert rig.heard == ["KafkaConnectionError"]
    assert rig.requests.waiting_on(rig.link) == 0


def test_a_repetition_that_has_ended_by_itself_is_known_once(rig: InFlightRig) -> None:
    """Its user is stuck; of one that was stopped meanwhile that says nothing."""
    token = rig.start().token
    rig.say(token)
    assert rig.requests.handle_ended(token)
    assert not rig.requests.handle_ended(token)
    stopped = rig.start().token
    rig.requests.stop_heartbeats(stopped)
    assert not rig.requests.handle_ended(stopped)
    assert rig.requests.waiting_on(rig.link) == 0


def test_after_a_stop_nothing_is_heard(rig: InFlightRig) -> None:
    token = rig.start().token
    said = rig.say(token)
    rig.requests.stop_heartbeats(token)
    assert rig.command() == StopHeartbeats(token)
    rig.requests.stop_heartbeats(token)
    assert not rig.commands
    for late in (token, said.own_token):
        rig.answer(late, JOINED)
        rig.break_link(late)
    assert rig.heard == []
    assert rig.requests.waiting_on(rig.link) == 0


@pytest.mark.parametrize("is_between", [True, False])
def test_an_answer_that_cannot_be_read_ends_it(rig: InFlightRig, is_between: bool) -> None:
    token = rig.start().token
    between = rig.say(token).own_token
    broken = RawResponse(7, between if is_between else token, bytes(5), 0)
    rig.requests.handle_response(broken, 1.0)
    assert rig.heard == ["MalformedError"]
    ((bad, now),) = rig.malformed
    assert (bad.link.id, bad.version, now) == (7, VERSION, 1.0)
    assert bad.api_key == (JoinGroupResponse if is_between else HeartbeatResponse).api_key
    assert isinstance(bad.error, MalformedError)
    assert not bad.was_well
    assert rig.sound == []
    rig.answer(token, OTHER)
    rig.answer(between, JOINED)
    assert len(rig.heard) == 1


def test_what_the_node_does_not_know_is_not_said(rig: InFlightRig) -> None:
    token = rig.start().token
    request = SyncGroupRequest(group_id="g")
    send_between = rig.requests.send_between
    with pytest.raises(UnsupportedVersionError, match="node 1"):
        send_between(token, rig.link, request, SyncGroupResponse, rig.take, timeout=1.0)
    assert not rig.commands
    assert rig.say(token).heard == 0
