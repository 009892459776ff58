"""How large a batch a topic takes: asked for once, and waited for only a moment."""

from __future__ import annotations

import pytest

from kafka_fast.control.messages import SendRaw
from kafka_fast.control.producer.limits import (
    ASK_AGAIN,
    LIMIT_PATIENCE,
    MARGIN,
    BatchLimit,
    TopicLimits,
)
from kafka_fast.control.producer.producer_messages import BatchRow
from kafka_fast.errors import ErrorCode
from kafka_fast.protocol.apis.configs.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tests.unit.control.requests.rig import RequesterRig, request_of

MAX_AGE = 300.0


class World:
    """Limits, and which topics were settled when."""

    def __init__(self) -> None:
        self.rig = RequesterRig()
        self.settled: list[tuple[str, float]] = []
        self.limits = TopicLimits(
            self.rig.context(),
            on_settled=lambda topic, now: self.settled.append((topic, now)),
        )

    def asked(self, now: float) -> SendRaw:
        """Ask, and return the request."""
        self.limits.ask_limits("t", now)
        (sent,) = self.rig.tick(now)
        return sent

    def answer(self, sent: SendRaw, response: DescribeConfigsResponse, now: float) -> None:
        self.rig.now = now
        self.rig.answer(sent, response)


def answer(topic: str, error_code: int = 0, **configs: str | None) -> DescribeConfigsResponse:
    """Return what a broker says of a topic; underscores stand for dots."""
    entries = [
        DescribeConfigsResourceResult(name=name.replace("_", "."), value=value)
        for name, value in configs.items()
    ]
    result = DescribeConfigsResult(resource_name=topic, error_code=error_code, configs=entries)
    return DescribeConfigsResponse(results=[result])


@pytest.fixture
def world() -> World:
    world = World()
    world.rig.open(1)
    return world


def test_topics_that_are_asked_for_in_one_turn_share_a_request(world: World) -> None:
    topics = [f"t-{number}" for number in range(1000)]
    for topic in topics:
        world.limits.ask_limits(topic, 1.0)
    sent = world.rig.tick(1.0) + world.rig.tick(1.0)
    requests = [request_of(one) for one in sent]
    assert [
        resource.resource_name
        for request in requests
        if isinstance(request, DescribeConfigsRequest)
        for resource in request.resources
    ] == topics
    assert len(requests) == 2, "500 at a time: `ITEMS_AT_ONCE`"
    for one, some in zip(sent, (topics[:500], topics[500:]), strict=True):
        results = [answer(topic, max_message_bytes="5000").results[0] for topic in some]
        world.answer(one, DescribeConfigsResponse(results=results), 1.1)
    assert world.settled == [(topic, 1.1) for topic in topics]


def test_the_limits_of_a_topic_are_asked_for_once(world: World) -> None:
    assert not world.limits.is_settled("t", 9000, 1.0)
    sent = world.asked(1.0)
    assert not world.limits.is_settled("t", 9000, 1.0)
    world.limits.ask_limits("t", 1.1)
    assert world.rig.tick(1.1) == []
    request = request_of(sent)
    assert isinstance(request, DescribeConfigsRequest)
    assert [(resource.resource_type, resource.resource_name) for resource in request.resources] == [
        (2, "t")
    ]
    assert world.limits.limit("t", ErrorCode.MESSAGE_TOO_LARGE) is None
    assert world.settled == []
    world.answer(sent, answer("t", max_message_bytes="5000", segment_bytes="7000"), 1.2)
    assert world.settled == [("t", 1.2)]
    assert world.limits.is_settled("t", 9000, 1.2)
    assert world.limits.limit("t", ErrorCode.MESSAGE_TOO_LARGE) == 5000
    assert world.limits.limit("t", ErrorCode.RECORD_LIST_TOO_LARGE) == 7000


def test_limits_that_are_old_are_asked_for_again(world: World) -> None:
    world.answer(world.asked(1.0), answer("t", max_message_bytes="5000"), 1.2)
    assert world.limits.is_settled("t", 9000, 0.9 + MAX_AGE)
    assert not world.limits.is_settled("t", 9000, 1.0 + MAX_AGE)
    sent = world.asked(1.0 + MAX_AGE)
    world.answer(sent, answer("t", max_message_bytes="6000"), 1.1 + MAX_AGE)
    assert world.limits.limit("t", ErrorCode.MESSAGE_TOO_LARGE) == 6000


def test_a_broker_that_cannot_be_asked_settles_it() -> None:
    world = World()
    world.rig.open(1, DescribeConfigs=-1)
    world.limits.ask_limits("t", 1.0)
    assert world.rig.tick(1.0) == []
    assert world.settled == [("t", 1.0)]
    assert world.limits.limit("t", ErrorCode.MESSAGE_TOO_LARGE) is None


def test_without_a_connection_it_is_not_waited_for_long() -> None:
    world = World()
    world.limits.ask_limits("t", 1.0)
    assert world.rig.tick(1.0) == []
    assert world.settled == []
    world.rig.tick(1.0 + LIMIT_PATIENCE)
    assert world.settled == [("t", 1.0 + LIMIT_PATIENCE)]


@pytest.mark.parametrize(
    "response",
    [
        answer("t", 29),
        answer("t", ErrorCode.REQUEST_TIMED_OUT),
        answer("another", max_message_bytes="5"),
        answer("t", max_message_bytes=None),
        answer("t", max_message_bytes="a lot"),
        DescribeConfigsResponse(),
    ],
    ids=["refused", "failed", "of another topic", "a null", "no number", "nothing"],
)
def test_an_answer_without_a_limit_settles_it_as_well(
    world: World, response: DescribeConfigsResponse
) -> None:
    world.answer(world.asked(1.0), response, 1.5)
    assert world.settled == [("t", 1.5)]
    assert world.limits.limit("t", ErrorCode.MESSAGE_TOO_LARGE) is None


def test_a_link_that_breaks_settles_it(world: World) -> None:
    sent = world.asked(1.0)
    world.rig.now = 1.5
    world.rig.lose(sent)
    assert world.settled == [("t", 1.5)]


def test_an_answer_is_not_waited_for_long(world: World) -> None:
    sent = world.asked(1.0)
    assert world.rig.requester.next_deadline() == 1.0 + LIMIT_PATIENCE
    world.rig.tick(1.0 + LIMIT_PATIENCE)
    assert world.settled == [("t", 1.0 + LIMIT_PATIENCE)]
    world.answer(sent, answer("t", max_message_bytes="5000"), 9.0)
    assert len(world.settled) == 1


# ---- what is learnt ----


def row(wire_size: int, size: int | None = None) -> BatchRow:
    """A batch that was refused as too large."""
    size = wire_size if size is None else size
    return BatchRow(0, 1, 1, 0, ErrorCode.MESSAGE_TOO_LARGE, -1, 0, 9, size, wire_size, 1, False)


def known(world: World, limit: int, now: float = 1.0) -> None:
    """Let the brokers tell a topic's limit."""
    world.answer(world.asked(now), answer("t", max_message_bytes=str(limit)), now)


def test_batches_may_be_as_large_as_the_brokers_say(world: World) -> None:
    known(world, 3_000)
    assert world.limits.learn("t", [row(262_144)], 1.0) == BatchLimit(3_000, 3_000)
    assert world.limits.learnt("t") == BatchLimit(3_000, 3_000)
    assert world.limits.learnt("another") is None


def test_the_smaller_one_of_both_settings_counts(world: World) -> None:
    told = answer("t", max_message_bytes="9000", segment_bytes="7000")
    world.answer(world.asked(1.0), told, 1.0)
    assert world.limits.learn("t", [row(20_000)], 1.0) == BatchLimit(7_000, 7_000)


def test_without_an_answer_each_refusal_halves_the_limit(world: World) -> None:
    world.answer(world.asked(1.0), answer("t", 29), 1.0)
    assert world.limits.learn("t", [row(8_000), row(6_000)], 1.0) == BatchLimit(3_000, 3_000)
    assert world.limits.learn("t", [row(2_800)], 1.1) == BatchLimit(1_400, 1_400)
    assert world.limits.learn("t", [row(4_000)], 1.2) == BatchLimit(1_400, 1_400)


def test_compressed_batches_are_filled_further_but_not_to_the_brim(world: World) -> None:
    known(world, 1_000)
    limit = world.limits.learn("t", [row(2_000, 10_000), row(2_000, 8_000)], 1.0)
    assert limit == BatchLimit(int(4_000 * MARGIN), 1_000)


def test_a_refusal_that_contradicts_the_answer_asks_again(world: World) -> None:
    """The setting was lowered; or it is another one, and then there is no end to asking."""
    known(world, 9_000)
    assert world.limits.is_settled("t", 9_001, 50.0)
    assert not world.limits.is_settled("t", 9_000, 50.0)
    known(world, 4_000, 50.0)
    assert world.limits.learn("t", [row(9_000)], 50.0) == BatchLimit(4_000, 4_000)
    known(world, 4_000, 60.0)
    assert world.limits.is_settled("t", 3_000, 60.0 + ASK_AGAIN / 2)
    assert world.limits.learn("t", [row(3_000)], 60.0) == BatchLimit(1_500, 1_500)


def test_a_limit_in_use_is_asked_for_again_when_it_is_old(world: World) -> None:
    known(world, 3_000)
    world.limits.renew(2.0 + MAX_AGE)
    assert world.rig.tick(2.0 + MAX_AGE) == [], "nothing was ever too large"
    world.limits.learn("t", [row(4_000)], 3.0)
    world.limits.renew(0.9 + MAX_AGE)
    assert world.rig.tick(0.9 + MAX_AGE) == []
    world.limits.renew(2.0 + MAX_AGE)
    (sent,) = world.rig.tick(2.0 + MAX_AGE)
    assert world.limits.learnt("t") == BatchLimit(3_000, 3_000), "until there is an answer"
    world.answer(sent, answer("t", max_message_bytes="5000"), 3.0 + MAX_AGE)
    assert world.limits.learnt("t") == BatchLimit(5_000, 5_000)


def test_a_limit_that_nobody_tells_is_forgotten_when_it_is_old(world: World) -> None:
    world.answer(world.asked(1.0), answer("t", 29), 1.0)
    world.limits.learn("t", [row(4_000)], 1.0)
    world.limits.renew(2.0 + MAX_AGE)
    (sent,) = world.rig.tick(2.0 + MAX_AGE)
    world.answer(sent, answer("t", 29), 3.0 + MAX_AGE)
    assert world.limits.learnt("t") is None


def test_the_limits_of_a_topic_that_was_created_again_are_asked_for(world: World) -> None:
    known(world, 3_000)
    world.limits.learn("t", [row(4_000)], 1.0)
    world.limits.forget_topic("t")
    assert world.limits.learnt("t") is None
    assert not world.limits.is_settled("t", 4_000, 1.1)
    sent = world.asked(1.1)
    world.limits.forget_topic("t")
    world.answer(sent, answer("t", max_message_bytes="3000"), 1.2)
    assert world.settled[-1] == ("t", 1.2)
    assert not world.limits.is_settled("t", 4_000, 1.2), "the answer was about the old one"
    known(world, 8_000, 1.3)
    assert world.limits.limit("t", ErrorCode.MESSAGE_TOO_LARGE) == 8_000
