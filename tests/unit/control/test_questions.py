"""What becomes of the control plane's own requests: asked once, repeated, said aside."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from kafka_fast.control.connection_key import ConnectionKey, Role
from kafka_fast.control.link import Link
from kafka_fast.control.negotiation import NodeVersions
from kafka_fast.control.plane import Command, Interject, Repeat, Response, SendRaw, StopRepeat
from kafka_fast.control.questions import Questions
from kafka_fast.errors import MalformedError, UnsupportedVersionError
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.api_versions import ApiVersion, ApiVersionsResponse
from kafka_fast.protocol.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafka_fast.protocol.apis.join_group import JoinGroupRequest, JoinGroupResponse
from kafka_fast.protocol.apis.sync_group import SyncGroupRequest, SyncGroupResponse

VERSION = 3
BEAT = HeartbeatRequest(group_id="g", generation_id=5, member_id="m")
EXPECTED, OTHER = HeartbeatResponse(), HeartbeatResponse(error_code=27)
JOIN, JOINED = JoinGroupRequest(group_id="g"), JoinGroupResponse(generation_id=6)


class Rig:
    """Questions, the commands that they give, and what they hear."""

    def __init__(self) -> None:
        self.commands: deque[Command] = deque()
        self.malformed: list[Any] = []
        self.heard: list[Any] = []
        self.sound: list[int] = []
        self.questions = Questions(
            "rig",
            self.commands,
            on_malformed=lambda *what: self.malformed.append(what),
            on_sound=lambda link, api_key: self.sound.append(api_key),
        )
        apis = (HeartbeatRequest, JoinGroupRequest)
        shared = [
            ApiVersion(api_key=it.api_key, min_version=VERSION, max_version=VERSION) for it in apis
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

    def repeat(self, **more: Any) -> Repeat:
        self.questions.repeat(
            self.link, BEAT, EXPECTED, self.take, self.lose, period=3.0, timeout=30.0, **more
        )
        command = self.command()
        assert isinstance(command, Repeat)
        return command

    def say(self, token: int) -> Interject:
        said = self.take_aside
        self.questions.interject(token, self.link, JOIN, JoinGroupResponse, said, timeout=300.0)
        command = self.command()
        assert isinstance(command, Interject)
        return command

    def take_aside(self, response: JoinGroupResponse, now: float) -> None:
        self.heard.append(("aside", response))

    def answer(self, token: int, response: Any) -> None:
        data = frame.encode_response(response, VERSION, 0)[4:]
        self.questions.handle_response(Response(7, token, data, 0), 1.0)

    def break_link(self, token: int) -> None:
        self.questions.handle_response(Response(7, token, None, 2), 1.0)


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_a_question_is_answered_once(rig: Rig) -> None:
    ask = rig.questions.ask
    assert ask(rig.link, BEAT, HeartbeatResponse, rig.take, rig.lose, timeout=30.0) == VERSION
    sent = rig.command()
    assert isinstance(sent, SendRaw)
    assert frame.decode_request(sent.frame[4:])[1] == BEAT
    assert rig.questions.load(rig.link) == 1
    rig.answer(sent.token, OTHER)
    rig.answer(sent.token, EXPECTED)
    assert rig.heard == [OTHER]
    assert rig.questions.load(rig.link) == 0


def test_a_repetition_is_heard_of_again_and_again(rig: Rig) -> None:
    command = rig.repeat(delay=1.0)
    assert (command.link_id, command.period, command.timeout, command.delay) == (7, 3.0, 30.0, 1.0)
    assert frame.decode_request(command.frame[4:])[1] == BEAT
    assert command.expected == frame.encode_response(EXPECTED, VERSION, 0)[8:]
    assert command.epoch_pos == 0
    for _ in range(3):
        rig.answer(command.token, OTHER)
    rig.break_link(command.token)
    rig.break_link(command.token)
    assert rig.heard == [OTHER, OTHER, OTHER, "KafkaConnectionError"]


def test_where_the_epoch_stands(rig: Rig) -> None:
    other = HeartbeatRequest(group_id="g", generation_id=~5, member_id="m")
    command = rig.repeat(other_epoch=other)
    assert command.frame[command.epoch_pos : command.epoch_pos + 4] == (5).to_bytes(4, "big")
    assert (
        command.frame[command.epoch_pos + 4 :]
        == frame.encode_request(other, VERSION, 0, "rig")[command.epoch_pos + 4 :]
    )


def test_what_is_said_aside_has_its_own_answer(rig: Rig) -> None:
    token = rig.repeat().token
    for heard in range(3):
        command = rig.say(token)
        assert (command.token, command.heard, command.timeout) == (token, heard, 300.0)
        assert frame.decode_request(command.frame[4:])[1] == JOIN
        rig.answer(command.aside, JOINED)
        rig.answer(command.aside, JOINED)
    rig.answer(token, OTHER)
    assert rig.say(token).heard == 4
    assert rig.heard == [("aside", JOINED)] * 3 + [OTHER]


def test_after_another_answer_what_was_said_aside_was_not_sent(rig: Rig) -> None:
    token = rig.repeat().token
    lost = rig.say(token)
    rig.answer(token, OTHER)
    rig.answer(lost.aside, JOINED)  # from nobody
    assert rig.heard == [OTHER]
    again = rig.say(token)
    assert again.heard == 1
    rig.answer(again.aside, JOINED)
    assert rig.heard == [OTHER, ("aside", JOINED)]


def test_a_link_that_breaks_is_told_once(rig: Rig) -> None:
    token = rig.repeat().token
    said = rig.say(token)
    rig.break_link(token)
    rig.answer(said.aside, JOINED)
    assert rig.heard == ["KafkaConnectionError"]
    assert rig.questions.load(rig.link) == 0


def test_a_repetition_that_has_ended_by_itself_is_known_once(rig: Rig) -> None:
    """Its user is stuck; of one that was stopped meanwhile that says nothing."""
    token = rig.repeat().token
    rig.say(token)
    assert rig.questions.handle_ended(token)
    assert not rig.questions.handle_ended(token)
    stopped = rig.repeat().token
    rig.questions.stop_repeat(stopped)
    assert not rig.questions.handle_ended(stopped)
    assert rig.questions.load(rig.link) == 0


def test_after_a_stop_nothing_is_heard(rig: Rig) -> None:
    token = rig.repeat().token
    said = rig.say(token)
    rig.questions.stop_repeat(token)
    assert rig.command() == StopRepeat(token)
    rig.questions.stop_repeat(token)
    assert not rig.commands
    for late in (token, said.aside):
        rig.answer(late, JOINED)
        rig.break_link(late)
    assert rig.heard == []
    assert rig.questions.load(rig.link) == 0


@pytest.mark.parametrize("is_aside", [True, False])
def test_an_answer_that_cannot_be_read_ends_it(rig: Rig, is_aside: bool) -> None:
    token = rig.repeat().token
    aside = rig.say(token).aside
    broken = Response(7, aside if is_aside else token, bytes(5), 0)
    rig.questions.handle_response(broken, 1.0)
    assert rig.heard == ["MalformedError"]
    ((bad, now),) = rig.malformed
    assert (bad.link.id, bad.version, now) == (7, VERSION, 1.0)
    assert bad.api_key == (JoinGroupResponse if is_aside else HeartbeatResponse).api_key
    assert isinstance(bad.error, MalformedError)
    assert not bad.was_well
    assert rig.sound == []
    rig.answer(token, OTHER)
    rig.answer(aside, JOINED)
    assert len(rig.heard) == 1


def test_what_the_node_does_not_know_is_not_said(rig: Rig) -> None:
    token = rig.repeat().token
    request = SyncGroupRequest(group_id="g")
    interject = rig.questions.interject
    with pytest.raises(UnsupportedVersionError, match="node 1"):
        interject(token, rig.link, request, SyncGroupResponse, rig.take, timeout=1.0)
    assert not rig.commands
    assert rig.say(token).heard == 0
