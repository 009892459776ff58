"""Which partitions a query reads: the options assign, subscribe and subscribePattern."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kafka_fast.consumer.arguments import is_pattern
from kafka_fast.errors import UsageError
from kafka_fast.spark.source.offsets import parse_partitions
from kafka_fast.spark.source.planning.java_regex import from_java
from kafka_fast.types import TopicPartition

STRATEGIES = ("subscribe", "subscribePattern", "assign")


class SourceSubscription(NamedTuple):
    """Partitions, topics or a pattern; the other two are empty."""

    partitions: tuple[TopicPartition, ...] = ()
    topics: tuple[str, ...] = ()
    pattern: str = ""
    """In Java's syntax."""

    def topics_of(self, existing: Iterable[str]) -> list[str]:
        """Return the topics to look at.

        Args:
            existing: all topics that are not internal; used for a pattern only.
        """
        if self.pattern:
            matcher = from_java(self.pattern)
            # As in Spark's source, it is enough that a part of the name matches.
            return sorted(name for name in existing if matcher.search(name))
        return sorted({*self.topics, *(partition.topic for partition in self.partitions)})

    def wants(self, partition: TopicPartition) -> bool:
        """Return whether a partition of one of these topics is read."""
        return not self.partitions or partition in self.partitions


def subscription(options: Mapping[str, str]) -> SourceSubscription:
    """Return what the options say.

    Args:
        options: all options; names in lower case.

    Raises:
        UsageError: None or several are given, or one is empty or malformed; in Spark's words.
    """
    strategies = [name for name in STRATEGIES if name.lower() in options]
    if len(strategies) != 1:
        how_many = "Only one" if strategies else "One"
        verb = "can" if strategies else "must"
        raise UsageError(
            f"{how_many} of the following options {verb} be specified for Kafka source: "
            f"{', '.join(STRATEGIES)}. See the docs for more details."
        )
    name = strategies[0]
    value = options[name.lower()]
    if name == "assign":
        return SourceSubscription(partitions=_assigned(value))
    if name == "subscribe":
        topics = tuple(dict.fromkeys(filter(None, map(str.strip, value.split(",")))))
        if not topics:
            raise UsageError(
                f"No topics to subscribe to as specified value for option 'subscribe' is '{value}'"
            )
        for topic in topics:
            if is_pattern(topic):
                raise UsageError(
                    f"'{topic}' is no name of a topic: the option subscribePattern takes a pattern"
                )
        return SourceSubscription(topics=topics)
    pattern = value.strip()
    if not pattern:
        raise UsageError(
            "Pattern to subscribe is empty as specified value for option 'subscribePattern' is "
            f"'{value}'"
        )
    from_java(pattern)  # a mistake shows on the driver
    return SourceSubscription(pattern=pattern)


def _assigned(value: str) -> tuple[TopicPartition, ...]:
    if not value.strip().startswith("{"):
        raise UsageError(
            f"No topicpartitions to assign as specified value for option 'assign' is '{value}'"
        )
    return tuple(sorted(parse_partitions(value)))
