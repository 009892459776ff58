"""How large a batch a topic takes: asked for once, and waited for only a moment."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_fast.control.connection_key import ConnectionKey, Role
from kafka_fast.control.instants import NEVER
from kafka_fast.control.link import Link
from kafka_fast.control.negotiation import NodeVersions
from kafka_fast.control.plane import Command, Response, SendRaw
from kafka_fast.control.producer.limits import (
    PATIENCE,
    TopicLimits,
)
from kafka_fast.control.questions import Questions
from kafka_fast.errors import ErrorCode
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.api_versions import ApiVersion, ApiVersionsResponse
from kafka_fast.protocol.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)

VERSION = 4
MAX_AGE = 300.0


class Rig:
    """Limits, what they send, and which topics were settled when."""

    def __init__(self) -> None:
        self.commands: deque[Command] = deque()
        self.settled: list[tuple[str, float]] = []
        self.questions = Questions(
            "rig",
            self.commands,
            on_malformed=lambda message, now: None,
            on_sound=lambda link, api_key: None,
        )
        context: Any = SimpleNamespace(
            links=SimpleNamespace(questions=self.questions),
            settings=SimpleNamespace(request_timeout=30.0, metadata_max_age=MAX_AGE),
        )
        self.limits = TopicLimits(
            context, on_settled=lambda topic, now: self.settled.append((topic, now))
        )
        self.link = self.node(DescribeConfigsRequest.api_key)

    def node(self, *api_keys: int) -> Link:
        """Return a link to a node that knows these APIs."""
        shared = [
            ApiVersion(api_key=it, min_version=VERSION, max_version=VERSION) for it in api_keys
        ]
        versions = NodeVersions("node 1", ApiVersionsResponse(api_keys=shared))
        return Link(7, ConnectionKey(Role.DATA, 1), versions)

    def asked(self) -> list[SendRaw]:
        """Return what was sent since the last call."""
        sent = [it for it in self.commands if isinstance(it, SendRaw)]
        self.commands.clear()
        return sent

    def answer(self, question: SendRaw, response: DescribeConfigsResponse, now: float) -> None:
        data = frame.encode_response(response, VERSION, 0)[4:]
        self.questions.handle_response(Response(7, question.token, data, 0), now)


def answer(topic: str, error_code: int = 0, **configs: str | None) -> DescribeConfigsResponse:
    """Return what a broker says of a topic; underscores stand for dots."""
    found = [
        DescribeConfigsResourceResult(name=name.replace("_", "."), value=value)
        for name, value in configs.items()
    ]
    result = DescribeConfigsResult(resource_name=topic, error_code=error_code, configs=found)
    return DescribeConfigsResponse(results=[result])


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_the_limits_of_a_topic_are_asked_for_once(rig: Rig) -> None:
    assert not rig.limits.is_settled("t", 1.0)
    rig.limits.ask("t", rig.link, 1.0)
    rig.limits.ask("t", rig.link, 1.1)
    (question,) = rig.asked()
    _, request = frame.decode_request(question.frame[4:])
    assert isinstance(request, DescribeConfigsRequest)
    assert [(it.resource_type, it.resource_name) for it in request.resources] == [(2, "t")]
    assert rig.limits.limit("t", ErrorCode.MESSAGE_TOO_LARGE) is None
    assert rig.settled == []
    rig.answer(question, answer("t", max_message_bytes="5000", segment_bytes="7000"), 1.2)
    assert rig.settled == [("t", 1.2)]
    assert rig.limits.is_settled("t", 1.2)
    assert rig.limits.limit("t", ErrorCode.MESSAGE_TOO_LARGE) == 5000
    assert rig.limits.limit("t", ErrorCode.RECORD_LIST_TOO_LARGE) == 7000
    assert rig.limits.next_deadline() == NEVER


def test_limits_that_are_old_are_asked_for_again(rig: Rig) -> None:
    rig.limits.ask("t", rig.link, 1.0)
    rig.answer(*rig.asked(), answer("t", max_message_bytes="5000"), 1.2)
    assert rig.limits.is_settled("t", 0.9 + MAX_AGE)
    assert not rig.limits.is_settled("t", 1.0 + MAX_AGE)
    rig.limits.ask("t", rig.link, 1.0 + MAX_AGE)
    rig.answer(*rig.asked(), answer("t", max_message_bytes="6000"), 1.1 + MAX_AGE)
    assert rig.limits.limit("t", ErrorCode.MESSAGE_TOO_LARGE) == 6000


@pytest.mark.parametrize("api_keys", [None, ()], ids=["no link", "an old broker"])
def test_where_nobody_can_be_asked_nothing_is_waited_for(
    rig: Rig, api_keys: tuple[int, ...] | None
) -> None:
    link = None if api_keys is None else rig.node(*api_keys)
    rig.limits.ask("t", link, 1.0)
    assert rig.settled == [("t", 1.0)]
    assert rig.asked() == []
    assert rig.limits.limit("t", ErrorCode.MESSAGE_TOO_LARGE) is None


@pytest.mark.parametrize(
    "response",
    [
        answer("t", 29),
        answer("another", max_message_bytes="5"),
        answer("t", max_message_bytes=None),
        answer("t", max_message_bytes="a lot"),
        DescribeConfigsResponse(),
    ],
    ids=["refused", "of another topic", "a null", "no number", "nothing"],
)
def test_an_answer_without_a_limit_settles_it_as_well(
    rig: Rig, response: DescribeConfigsResponse
) -> None:
    rig.limits.ask("t", rig.link, 1.0)
    rig.answer(*rig.asked(), response, 1.5)
    assert rig.settled == [("t", 1.5)]
    assert rig.limits.limit("t", ErrorCode.MESSAGE_TOO_LARGE) is None


def test_a_link_that_breaks_settles_it(rig: Rig) -> None:
    rig.limits.ask("t", rig.link, 1.0)
    (question,) = rig.asked()
    rig.questions.handle_response(Response(7, question.token, None, 0), 1.5)
    assert rig.settled == [("t", 1.5)]


def test_an_answer_is_not_waited_for_long_but_still_of_use(rig: Rig) -> None:
    rig.limits.ask("t", rig.link, 1.0)
    (question,) = rig.asked()
    assert rig.limits.next_deadline() == 1.0 + PATIENCE
    rig.limits.tick(0.9 + PATIENCE)
    assert rig.settled == []
    rig.limits.tick(1.0 + PATIENCE)
    assert rig.settled == [("t", 1.0 + PATIENCE)]
    rig.answer(question, answer("t", max_message_bytes="5000"), 9.0)
    assert len(rig.settled) == 1
    assert rig.limits.limit("t", ErrorCode.MESSAGE_TOO_LARGE) == 5000
