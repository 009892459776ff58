"""assign, subscribe, subscribePattern."""

from __future__ import annotations

import pytest

from kafka_fast.errors import UsageError
from kafka_fast.spark.source.planning.subscription import subscription
from kafka_fast.types import TopicPartition


def test_topics() -> None:
    topics = subscription({"subscribe": " b, a,,b "})
    assert topics.topics_of([]) == ["a", "b"]
    assert topics.wants(TopicPartition("a", 7))


def test_partitions() -> None:
    topics = subscription({"assign": '{"t": [2, 0], "s": [1]}'})
    assert topics.topics_of([]) == ["s", "t"]
    assert topics.wants(TopicPartition("t", 2))
    assert not topics.wants(TopicPartition("t", 1))


def test_a_pattern_needs_to_match_a_part_only() -> None:
    topics = subscription({"subscribepattern": " ev[a-z] "})
    assert topics.topics_of(["ev1", "prev-events", "events"]) == ["events", "prev-events"]
    assert topics.wants(TopicPartition("events", 0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "One of the following options must be specified for Kafka source: subscribe, "),
        (
            {"subscribe": "a", "subscribepattern": "b"},
            "Only one of the following options can be specified",
        ),
        ({"subscribe": " , "}, "No topics to subscribe to as specified value"),
        ({"subscribe": "a, ev.*"}, "'ev.*' is no name of a topic: the option subscribePattern"),
        ({"subscribepattern": " "}, "Pattern to subscribe is empty"),
        ({"subscribepattern": "a++"}, "cannot be used"),
        ({"assign": "t"}, "No topicpartitions to assign as specified value for option 'assign'"),
        ({"assign": '{"t": 0}'}, "Expected e.g. "),
    ],
)
def test_refusals(options: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        subscription(options)
