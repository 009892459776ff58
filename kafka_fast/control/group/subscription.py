"""What a member wants to read, as far as it is known: names, or what a pattern matches."""

from __future__ import annotations

import logging

from kafka_fast.config import ConsumerSettings
from kafka_fast.control.cluster import Cluster
from kafka_fast.control.group.member import Subscription
from kafka_fast.logs import Waiting


class SubscribedTopics:
    """Keeps the metadata of what a member subscribes to. Control thread only."""

    def __init__(self, cluster: Cluster, settings: ConsumerSettings) -> None:
        """Begin with no subscription."""
        self._cluster = cluster
        self._exclude_internal = settings.exclude_internal_topics
        self._wanted = Subscription()
        self._matched: frozenset[str] | None = None  # by the pattern

    @property
    def topics(self) -> frozenset[str] | None:
        """The topics by name; None while nobody knows what the pattern matches."""
        return self._wanted.topics if self._wanted.pattern is None else self._matched

    @property
    def subscription(self) -> Subscription | None:
        """What the coordinator is to know of it: a pattern only if that is its to match."""
        if self._wanted.regex is not None:
            return self._wanted
        return None if self.topics is None else Subscription(self.topics)

    def waits_for(self) -> Waiting | None:
        """Return why there is nothing to read; None if there is something. Any thread."""
        wanted, topics = self._wanted, self.topics
        if topics is None:
            return Waiting("the names of all topics are not known yet", key="names")
        if wanted.pattern is not None and not topics:
            text = f"no topic matches the pattern {wanted.pattern.pattern!r} (yet)"
            return Waiting(text, key="pattern")
        refusals = [self._cluster.refusal(topic) for topic in sorted(topics)]
        if not refusals or None in refusals:
            return None
        # Of topics that are not there, and of those that are forbidden, the user hears otherwise.
        return Waiting(f"the brokers answer {refusals[0]}", logging.DEBUG, "refused")

    def replace(self, subscription: Subscription, now: float) -> None:
        """Subscribe to this and to nothing else."""
        self._wanted = subscription
        self._matched = None
        self._cluster.want_all_topics(subscription.pattern is not None)
        for topic in sorted(subscription.topics):  # a set's order differs from run to run
            self._cluster.want_topic(topic, now)
        self.refresh(now)

    def refresh(self, now: float) -> bool:
        """Look again at what the pattern matches; whether that has changed."""
        pattern = self._wanted.pattern
        if pattern is None or self._cluster.all_topics is None:
            return False
        matched = frozenset(
            topic.name
            for topic in self._cluster.all_topics
            if pattern.fullmatch(topic.name) and not (topic.is_internal and self._exclude_internal)
        )
        for topic in sorted(matched):
            self._cluster.want_topic(topic, now)
        changed = matched != self._matched
        self._matched = matched
        return changed

    def follow(self, topics: frozenset[str], now: float) -> bool:
        """Keep these topics' metadata as well; whether all that can be known of them is."""
        known = True
        for topic in sorted(topics):
            self._cluster.want_topic(topic, now)
            if self._cluster.partition_count(topic) is None and not self._cluster.error(topic):
                known = False
        return known
