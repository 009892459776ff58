"""The topics that a member subscribes to: by name, or all that match a pattern."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from kafka_fast.config import ConsumerSettings
from kafka_fast.control.group.member import Subscription
from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.control.metadata.metadata import ListedTopic
from kafka_fast.logs import Waiting


class SubscribedTopics:
    """Keeps the metadata of the topics that a member subscribes to. Control thread only."""

    def __init__(self, cluster: Cluster, settings: ConsumerSettings) -> None:
        self._cluster = cluster
        self._exclude_internal = settings.exclude_internal_topics
        self._wanted = Subscription()
        self._seen: frozenset[ListedTopic] | None = None  # the topics that it was matched against
        self._matched: frozenset[str] | None = None  # topics that the pattern matches

    @property
    def topics(self) -> frozenset[str] | None:
        """The names of the topics; None until it is known what the pattern matches."""
        return self._wanted.topics if self._wanted.pattern is None else self._matched

    @property
    def subscription(self) -> Subscription | None:
        """The subscription for the coordinator: names, or a regex that the coordinator matches."""
        if self._wanted.regex is not None:
            return self._wanted
        return None if self.topics is None else Subscription(self.topics)

    def why_waiting(self) -> Waiting | None:
        """Return why there is nothing to read; None if there is something. Any thread."""
        subscription, topics = self._wanted, self.topics
        if topics is None:
            return Waiting("the names of all topics are not known yet", key="names")
        if subscription.pattern is not None and not topics:
            text = f"no topic matches the pattern {subscription.pattern.pattern!r} (yet)"
            return Waiting(text, key="pattern")
        refusals = [self._cluster.refusal(topic) for topic in sorted(topics)]
        if not refusals or None in refusals:
            return None
        # Errors and warnings of `WatchedTopics` tell the user of missing and forbidden topics.
        return Waiting(f"the brokers answer {refusals[0]}", logging.DEBUG, "refused")

    def replace(self, subscription: Subscription, now: float) -> None:
        """Replace the subscription."""
        self._wanted = subscription
        self._matched = self._seen = None
        self._cluster.want_all_topics(subscription.pattern is not None)
        for topic in sorted(subscription.topics):  # a set's order differs from run to run
            self._cluster.want_topic(topic, now)
        self.refresh(now)

    def refresh(self, now: float) -> bool:
        """Match the pattern again; return whether the result has changed."""
        pattern, every = self._wanted.pattern, self._cluster.all_topics
        if pattern is None or every is None or every is self._seen:
            return False
        self._seen = every
        matched = frozenset(
            topic.name
            for topic in every
            if pattern.fullmatch(topic.name) and not (topic.is_internal and self._exclude_internal)
        )
        for topic in sorted(matched):
            self._cluster.want_topic(topic, now)
        changed = matched != self._matched
        self._matched = matched
        return changed

    def follow(self, topics: Iterable[str], now: float) -> None:
        """Keep these topics' metadata too."""
        for topic in topics:
            self._cluster.want_topic(topic, now)

    def knows(self, topics: Iterable[str]) -> bool:
        """Tell whether the cluster has answered for all of these topics. Any thread."""
        return all(
            self._cluster.partition_count(topic) is not None or self._cluster.error(topic)
            for topic in topics
        )
