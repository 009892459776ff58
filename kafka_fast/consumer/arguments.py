"""Checks of what callers give a consumer, beyond what all clients check (`control.arguments`).

Thread: the user's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from kafka_fast.control.arguments import (
    checked_integer,
    checked_name,
    checked_partition,
    checked_partitions,
    mapping_of,
    offset_to_read,
    several,
)
from kafka_fast.control.group.member import Subscription
from kafka_fast.errors import UsageError
from kafka_fast.times import query_ms
from kafka_fast.types import OffsetAndMetadata, TopicPartition

TOPIC = "the name of a topic"
"""What it is called in errors."""

LONGEST_REASON = 255
"""Characters of a reason that a coordinator gets."""

_LISTENS = ("on_partitions_assigned", "on_partitions_revoked", "on_partitions_lost")

_SIGNS = frozenset(r"^$*+?()[]{}|\\")
"""What regular expressions have, and no topic's name."""


def topic_name(given: object) -> str:
    """Return the name of a topic."""
    name = checked_name(given, TOPIC)
    if not name or name.isspace():
        raise UsageError("the name of a topic must not be empty")
    if is_pattern(name):
        raise UsageError(
            f"{name!r} is no name of a topic; subscribe(pattern={_pattern_meant(name)!r}) reads "
            "the topics whose whole names match"
        )
    return name


def is_pattern(name: str) -> bool:
    """Return whether this is a regular expression, and so no name of a topic."""
    return not _SIGNS.isdisjoint(name)


def _pattern_meant(name: str) -> str:
    """Return the pattern that another client's user, or a shell's, most likely means.

    librdkafka takes a name for a pattern if a ^ is its first letter. Such a pattern need not match
    the end of a name.
    """
    body = re.sub(r"(?<![.\])}])\*", ".*", name.removeprefix("^"))
    if body.endswith("$"):
        return body[:-1]
    return body if not name.startswith("^") or body.endswith(".*") else f"{body}.*"


def topic_names(given: Iterable[str]) -> frozenset[str]:
    """Return the names of topics without duplicates; a str is one name."""
    if isinstance(given, re.Pattern):
        raise TypeError(f"topics go by name; a pattern is given as pattern={given!r}")
    return frozenset(
        map(topic_name, [given] if isinstance(given, str) else several(given, "topics"))
    )


def subscription(
    topics: Iterable[str] | None, pattern: str | re.Pattern[str] | None, *, broker_side: bool
) -> Subscription | None:
    """Return a subscription by names or by a pattern; None for an empty list of names.

    Args:
        topics: names of topics.
        pattern: a regular expression, instead of names.
        broker_side: whether brokers match patterns: a str is then in RE2 syntax and not compiled.
    """
    if (topics is None) == (pattern is None):
        raise UsageError("subscribe takes topics or a pattern")
    if topics is not None:
        names = topic_names(topics)
        return Subscription(names) if names else None
    if isinstance(pattern, str) and broker_side:
        if not pattern:
            raise UsageError("an empty pattern matches no topic")
        return Subscription(regex=checked_name(pattern, "a pattern"))
    return Subscription(pattern=_compiled(pattern))


def _compiled(pattern: Any) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"the pattern {pattern!r} is no regular expression: {error}") from None
    except TypeError:
        compiled = None
    if compiled is None or not isinstance(compiled.pattern, str):
        raise TypeError(f"a pattern is a str, or compiled from one, not {pattern!r}")
    if not compiled.pattern:
        raise UsageError("an empty pattern matches no topic")
    return compiled


def topic_partition(given: Any) -> TopicPartition:
    """Return a partition as a TopicPartition; any tuple of topic and number will do."""
    partition = checked_partition(given)
    topic_name(partition.topic)
    return partition


def topic_partitions(given: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Return partitions in their order, without duplicates."""
    if isinstance(given, TopicPartition):
        raise TypeError(f"partitions are a list or a set: [{given!r}]")
    if isinstance(given, str):
        raise TypeError(
            f"partitions are wanted, not the topic {given!r}: [TopicPartition({given!r}, 0)]; "
            "subscribe() takes topics"
        )
    own = list(dict.fromkeys(checked_partitions(several(given, "partitions"))))
    for topic in dict.fromkeys(partition.topic for partition in own):
        topic_name(topic)
    return own


def one_by_one(
    partitions: tuple[TopicPartition, ...], method: str, parameter: str = "*partitions"
) -> tuple[TopicPartition, ...]:
    """Return partitions that a method takes as arguments of their own.

    Other clients' methods of that name may take a list, so a list is told how to call this one.
    """
    for argument in partitions:
        is_partition = isinstance(argument, tuple) and isinstance(next(iter(argument), ""), str)
        if isinstance(argument, Iterable) and not isinstance(argument, str) and not is_partition:
            raise TypeError(
                f"a partition is a TopicPartition(topic, number), not {argument!r}: {method} is "
                f"called as {method}({parameter})"
            )
    return partitions


def offsets_to_read(
    given: Mapping[TopicPartition, int | OffsetAndMetadata],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the offsets to read next, by partition; see `offset_to_read`."""
    own = ((topic_partition(partition), at) for partition, at in given.items())
    return {partition: offset_to_read(at, partition) for partition, at in own}


def times_by_partition(given: Mapping[TopicPartition, Any]) -> dict[TopicPartition, int]:
    """Return the times at which records are looked for, in Unix ms."""
    times = mapping_of(given, "times by partition")
    own = ((topic_partition(partition), time) for partition, time in times.items())
    return {partition: unix_ms(time, partition) for partition, time in own}


def on_commit(given: Any) -> Any:
    """Return a callback of a commit, or None."""
    if given is not None and not callable(given):
        raise TypeError(f"{given!r} cannot be called; a callback is called with offsets and error")
    return given


def rebalance_listener(given: Any) -> Any:
    """Return what hears of rebalances, or None."""
    if given is None:
        return None
    missing = [name for name in _LISTENS if not callable(getattr(given, name, None))]
    if isinstance(given, type) or missing:
        lacks = f": it has no {missing[0]}" if missing else ", which is a class"
        raise TypeError(f"a listener is a RebalanceListener, not {given!r}{lacks}")
    return given


def rebalance_reason(given: Any) -> str:
    """Return why a group is to share out its partitions again, as much of it as Java sends."""
    return checked_name(given[:LONGEST_REASON] if isinstance(given, str) else given, "the reason")


def most_records(given: Any) -> int:
    """Return how many records a call may bring."""
    most = checked_integer(given, "max_records")
    if most < 1:
        raise UsageError(f"max_records must be at least 1, not {most}")
    return most


def unix_ms(given: object, what: object = "") -> int:
    """Return a time at which records are looked for, in Unix ms. Messages name `what`."""
    return query_ms(given, f"a time of {what}" if what else "a time")
