"""What a KIP-848 member tells, and when it tells it again."""

from __future__ import annotations

from kafka_fast.config import consumer_settings
from kafka_fast.control.group.consumer_protocol.heartbeat_builder import HeartbeatBuilder
from kafka_fast.control.group.consumer_protocol.reconciliation import NOTHING, Ids
from kafka_fast.control.group.member import Subscription

TOPIC, OTHER = b"t" * 16, b"o" * 16
OWNED: Ids = frozenset({(TOPIC, 1), (TOPIC, 0), (OTHER, 3)})
NAMES = Subscription(frozenset({"b", "a"}))
REGEX = Subscription(regex="in-.*")


def make(**given: object) -> HeartbeatBuilder:
    settings = consumer_settings(
        {
            "bootstrap.servers": "127.0.0.1:9092",
            "group.id": "g",
            "group.protocol": "consumer",
            "max.poll.interval.ms": 60_000,
            **given,
        }
    )
    return HeartbeatBuilder(settings, "g", "me")


def test_who_joins_tells_everything() -> None:
    request = make(**{"client.rack": "r1", "group.remote.assignor": "range"}).make(
        0, NAMES, NOTHING, NOTHING
    )
    assert (request.group_id, request.member_id, request.member_epoch) == ("g", "me", 0)
    assert request.instance_id is None
    assert request.rack_id == "r1"
    assert request.rebalance_timeout_ms == 60_000
    assert request.server_assignor == "range"
    assert request.subscribed_topic_names == ["a", "b"]
    assert request.subscribed_topic_regex is None
    assert request.topic_partitions == []


def test_after_that_only_what_is_new_is_told() -> None:
    builder = make()
    builder.make(0, NAMES, NOTHING, NOTHING)
    assert not builder.is_news(NAMES, NOTHING)
    assert builder.is_news(NAMES, OWNED)
    request = builder.make(5, NAMES, OWNED, OWNED)
    assert [(topic.topic_id, topic.partitions) for topic in request.topic_partitions or ()] == [
        (OTHER, [3]),
        (TOPIC, [0, 1]),
    ]
    assert request.subscribed_topic_names is None
    assert request.rebalance_timeout_ms == -1
    assert not builder.is_news(NAMES, OWNED)
    request = builder.make(5, Subscription(frozenset({"c"})), OWNED, OWNED)
    assert request.subscribed_topic_names == ["c"]
    assert request.topic_partitions is None


def test_what_is_told_is_what_is_held() -> None:
    builder = make()
    builder.make(0, NAMES, NOTHING, NOTHING)
    request = builder.make(5, NAMES, frozenset({(TOPIC, 0)}), OWNED)
    assert sum(len(topic.partitions) for topic in request.topic_partitions or ()) == 3


def test_after_a_lost_answer_everything_is_told_again() -> None:
    builder = make()
    builder.make(0, NAMES, NOTHING, NOTHING)
    builder.make(5, NAMES, OWNED, OWNED)
    builder.tell_all_again()
    assert builder.is_news(NAMES, OWNED)
    request = builder.make(5, NAMES, OWNED, OWNED)
    assert request.member_epoch == 5
    assert request.rebalance_timeout_ms == 60_000
    assert request.subscribed_topic_names == ["a", "b"]
    assert request.topic_partitions


def test_an_expression_is_taken_back() -> None:
    builder = make()
    request = builder.make(0, REGEX, NOTHING, NOTHING)
    assert (request.subscribed_topic_regex, request.subscribed_topic_names) == ("in-.*", [])
    request = builder.make(5, NAMES, NOTHING, NOTHING)
    assert (request.subscribed_topic_regex, request.subscribed_topic_names) == ("", ["a", "b"])
    builder.tell_all_again()  # perhaps that was lost
    assert builder.make(5, NAMES, NOTHING, NOTHING).subscribed_topic_regex == ""


def test_goodbye() -> None:
    assert make().leaving_heartbeat().member_epoch == -1
    static = make(**{"group.instance.id": "one"}).leaving_heartbeat()
    assert (static.member_epoch, static.instance_id) == (-2, "one")
