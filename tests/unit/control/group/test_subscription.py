"""What a pattern subscribes to."""

from __future__ import annotations

import re

import pytest

from kafka_fast.config import consumer_settings
from kafka_fast.control.group.member import Subscription
from kafka_fast.control.group.subscription import SubscribedTopics
from kafka_fast.control.metadata.cluster import Cluster
from tests.unit.control.metadata.metadata_answers import answer, broker, topic

NOW = 1.0


def subscribed(pattern: str | re.Pattern[str], **config: object) -> frozenset[str] | None:
    """Return what a pattern matches in a cluster that has an internal topic, too."""
    settings = consumer_settings({"bootstrap.servers": "kafka:9092", "group.id": "g", **config})
    cluster = Cluster(settings, lambda: 0.5)
    topics = SubscribedTopics(cluster, settings)
    topics.replace(Subscription(pattern=re.compile(pattern)), NOW)
    assert topics.topics is None, "nobody has told what there is"
    assert cluster.poll_request(NOW) is not None
    there = [topic(name, ((1, 0),)) for name in ("orders", "orders.eu", "__consumer_offsets")]
    there[-1].is_internal = True
    cluster.handle_response(answer(*there, brokers=[broker(1)]), NOW, 12)
    topics.refresh(NOW)
    return topics.topics


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("orders", {"orders"}),
        ("orders.*", {"orders", "orders.eu"}),
        ("rders", set()),
        (re.compile("ORDERS", re.IGNORECASE), {"orders"}),
    ],
)
def test_whole_names_are_matched(pattern: str | re.Pattern[str], matched: set[str]) -> None:
    assert subscribed(pattern) == matched


def test_internal_topics_are_matched_only_if_they_are_not_excluded() -> None:
    assert subscribed(".*") == {"orders", "orders.eu"}
    topics = subscribed(".*", **{"exclude.internal.topics": False})
    assert topics == {"orders", "orders.eu", "__consumer_offsets"}


def test_topics_are_asked_for_in_the_order_of_their_names() -> None:
    """Regression: in a set's order, a simulation went another way in each process."""
    settings = consumer_settings({"bootstrap.servers": "kafka:9092", "group.id": "g"})
    cluster = Cluster(settings, lambda: 0.5)
    names = [f"topic-{number}" for number in range(10, 50)]
    SubscribedTopics(cluster, settings).replace(Subscription(frozenset(names)), NOW)
    request = cluster.poll_request(NOW)
    assert request is not None
    assert request.topics is not None
    assert [asked.name for asked in request.topics] == names
