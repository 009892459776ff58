"""Topics are described page by page, or by Metadata; and awaited."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_fast import TopicPartition
from kafka_fast.admin import AdminResult, TopicDescription, TopicPartitionInfo
from kafka_fast.admin.workflows.topics import describe_topics, wait_until_topics_visible
from kafka_fast.control.admin.operations.topic_pages import (
    AwaitTopics,
    DescribeTopicPage,
    TopicPage,
)
from kafka_fast.control.admin.operations.topics import DescribeTopics
from kafka_fast.errors import (
    ErrorCode,
    KafkaTimeoutError,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
    UnsupportedVersionError,
    broker_error,
)
from tests.unit.admin.workflows.scripted import Ending, ScriptedSteps, finish, only

A, B, NOWHERE = "AQEBAQEBAQEBAQEBAQEBAQ", "AgICAgICAgICAgICAgICAg", "AwMDAwMDAwMDAwMDAwMDAw"
"""Ids of topics."""

ABSENT = broker_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "absent")


def topic(name: str, *partitions: int, topic_id: str | None = "id") -> TopicDescription:
    infos = tuple(TopicPartitionInfo(number, 1, 0, (1,), (1,), ()) for number in partitions)
    return TopicDescription(name, topic_id, is_internal=False, partitions=infos)


def page(*topics: TopicDescription, cursor: tuple[str, int] | None = None, **more: Any) -> Any:
    following = None if cursor is None else TopicPartition(*cursor)
    return TopicPage(topics, more.get("refused", {}), more.get("unsettled", frozenset()), following)


class Broker:
    """Has these pages, one after the other, and describes any topic by Metadata."""

    def __init__(self, *pages: Any) -> None:
        self.pages = list(pages)
        self.asked: list[tuple[list[str], TopicPartition | None]] = []
        self.by_metadata: list[str] = []

    def __call__(self, operation: Any) -> Any:
        if isinstance(operation, DescribeTopics):
            assert operation.items is not None
            self.by_metadata = operation.items
            return {name: topic(name, 99) for name in operation.items}
        assert isinstance(operation, DescribeTopicPage)
        request = operation.build([], 0)
        place = request.cursor
        cursor = None if place is None else TopicPartition(place.topic_name, place.partition_index)
        self.asked.append(([one.name for one in request.topics], cursor))
        following = self.pages.pop(0)
        return following if isinstance(following, Exception) else only(following)


def described(broker: Ending, *names: str, by_id: bool = False) -> Any:
    steps = ScriptedSteps(broker)
    result = finish(
        describe_topics(
            steps, names, by_id=by_id, include_authorized_operations=False, timeout=None
        )
    )
    assert isinstance(result, AdminResult)
    assert list(result) == list(dict.fromkeys(names))
    return result


def numbers(result: Any) -> dict[str, list[int]]:
    return {
        name: [one.partition for one in topic.partitions]
        for name, topic in result.succeeded.items()
    }


def test_topics_go_on_over_pages() -> None:
    broker = Broker(
        page(topic("a", 0), topic("b", 0, 1), cursor=("b", 2)),
        page(topic("b", 2, 3), cursor=("b", 4)),
        page(topic("b", 4), topic("c", 0)),
    )
    result = described(broker, "c", "b", "a", "b")
    assert numbers(result) == {"c": [0], "b": [0, 1, 2, 3, 4], "a": [0]}
    assert broker.asked == [
        (["a", "b", "c"], None),
        (["b", "c"], TopicPartition("b", 2)),
        (["b", "c"], TopicPartition("b", 4)),
    ]
    assert broker.by_metadata == []


def test_many_topics_are_asked_in_portions() -> None:
    names = [f"{number:04}" for number in range(501)]
    broker = Broker(page(*map(topic, names[:500])), page(topic(names[500])))
    assert len(described(broker, *names).succeeded) == 501
    assert [len(asked) for asked, _ in broker.asked] == [500, 1]


def by_id(*pages: Any) -> tuple[Any, list[Any]]:
    """Describe topics a and b by their ids, and an id of none, before a broker with pages."""
    plain = {A: topic("a", 99, topic_id=A), B: topic("b", 99, topic_id=B)}
    broker = Broker(*pages)

    def ending(operation: Any) -> Any:
        if isinstance(operation, DescribeTopics):
            return {one: plain.get(one, ABSENT) for one in operation.items or ()}
        return broker(operation)

    return described(ending, A, NOWHERE, B, by_id=True), broker.asked


def test_pages_tell_more_of_topics_that_are_asked_for_by_id() -> None:
    """A page names topics; one that was created again under a name is another."""
    result, asked = by_id(page(topic("a", 0, 1, topic_id=A), topic("b", 0, topic_id=NOWHERE)))
    assert numbers(result) == {A: [0, 1], B: [99]}
    assert isinstance(result.errors[NOWHERE], UnknownTopicOrPartition)
    assert asked == [(["a", "b"], None)]


def test_without_pages_topics_are_described_by_id_all_the_same() -> None:
    for failure in (UnsupportedVersionError("old"), KafkaTimeoutError("late")):
        result, _ = by_id(failure)
        assert numbers(result) == {A: [99], B: [99]}
        assert list(result.errors) == [NOWHERE]


def test_what_pages_do_not_settle_is_left_to_metadata() -> None:
    broker = Broker(page(topic("a", 0), refused={"b": ABSENT}, unsettled=frozenset({"c"})))
    result = described(broker, "a", "b", "c", "d")
    assert numbers(result) == {"a": [0], "c": [99], "d": [99]}
    assert isinstance(result.errors["b"], UnknownTopicOrPartition)
    assert broker.by_metadata == ["c", "d"]


def test_a_topic_that_goes_or_comes_back_between_pages() -> None:
    gone = Broker(page(topic("a", 0), cursor=("a", 1)), page(refused={"a": ABSENT}))
    assert isinstance(described(gone, "a").errors["a"], UnknownTopicOrPartition)
    again = Broker(page(topic("a", 0), cursor=("a", 1)), page(topic("a", 1, topic_id="new")))
    assert numbers(described(again, "a")) == {"a": [99]}


@pytest.mark.parametrize("cursor", [("a", 0), ("a", -1), ("0", 5), ("z", 0)])
def test_a_cursor_that_does_not_go_on(cursor: tuple[str, int]) -> None:
    broker = Broker(page(cursor=cursor))
    assert numbers(described(broker, "a", "b")) == {"a": [99], "b": [99]}
    twice = Broker(page(cursor=("a", 1)), page(cursor=("a", 1)))
    assert numbers(described(twice, "a", "b")) == {"a": [99], "b": [99]}


def test_old_brokers_and_ids_need_metadata() -> None:
    old = Broker(UnsupportedVersionError("no pages"))
    assert numbers(described(old, "a")) == {"a": [99]}
    topic_id = "AAECAwQFBgcICQoLDA0ODw"
    assert numbers(described(Broker(page()), topic_id, by_id=True)) == {topic_id: [99]}
    assert list(described(Broker())) == []


def test_a_topic_that_comes_back_while_later_pages_follow() -> None:
    broker = Broker(
        page(topic("a", 0), cursor=("a", 1)),
        page(topic("a", 1, topic_id="new"), cursor=("a", 2)),
        page(topic("a", 2, topic_id="new")),
    )
    assert numbers(described(broker, "a")) == {"a": [99]}


def test_what_fails_between_pages() -> None:
    broker = Broker(page(topic("a", 0), cursor=("b", 0)), KafkaTimeoutError("late"))
    result = described(broker, "a", "b", "c")
    assert numbers(result) == {"a": [0]}
    assert {name: str(error) for name, error in result.errors.items()} == {
        "b": "topic 'b': late",
        "c": "topic 'c': late",
    }
    assert broker.by_metadata == []


def test_a_topic_that_has_ended_keeps_its_outcome() -> None:
    """Each page refuses the topics that this client may not describe, also those after it."""
    denied = broker_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "no")
    refusing = page(topic("a", 0), cursor=("b", 0), refused={"c": denied})
    late = described(Broker(refusing, KafkaTimeoutError("late")), "a", "b", "c")
    assert numbers(late) == {"a": [0]}
    assert isinstance(late.errors["b"], KafkaTimeoutError)
    assert isinstance(late.errors["c"], TopicAuthorizationFailed)
    hasty = page(topic("a", 0), topic("c", 0), cursor=("b", 0))
    told = described(Broker(hasty, KafkaTimeoutError("late")), "a", "b", "c")
    assert numbers(told) == {"a": [0], "c": [0]}
    assert list(told.errors) == ["b"]


def test_a_topic_that_is_permitted_between_pages_is_described() -> None:
    denied = broker_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "no")
    refusing = page(topic("a", 0), cursor=("b", 0), refused={"c": denied})
    result = described(Broker(refusing, page(topic("b", 0), topic("c", 0))), "a", "b", "c")
    assert numbers(result) == {"a": [0], "b": [0], "c": [0]}
    assert result.errors == {}


# ---- topics that every node is to know ----


def test_nodes_are_asked_again_until_the_deadline() -> None:
    rounds: list[Any] = [
        {1: None, 2: KafkaTimeoutError("node 2 is silent")},
        {1: None},
    ]
    steps = ScriptedSteps(lambda operation: rounds.pop(0))
    finish(wait_until_topics_visible(steps, ["a", "a"], timeout=60.0))
    assert [type(one) for one in steps.carried_out] == [AwaitTopics, AwaitTopics]
    assert steps.carried_out[0].topics == ["a"]
    late = ScriptedSteps(lambda operation: {2: KafkaTimeoutError("node 2 is silent")})
    with pytest.raises(KafkaTimeoutError, match="node 2 is silent"):
        finish(wait_until_topics_visible(late, ["a"], timeout=0.0))


def test_a_refusal_ends_the_wait() -> None:
    denied = broker_error(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "no")
    steps = ScriptedSteps(lambda operation: {1: KafkaTimeoutError("late"), 2: denied})
    with pytest.raises(TopicAuthorizationFailed):
        finish(wait_until_topics_visible(steps, ["a"], timeout=60.0))


def test_no_topics_are_visible_at_once() -> None:
    steps = ScriptedSteps(lambda operation: {})
    finish(wait_until_topics_visible(steps, [], timeout=60.0))
    assert steps.carried_out == []
