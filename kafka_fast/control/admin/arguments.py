"""Checks of what users give to operations.

A wrong argument raises in the call that got it. Unchecked, it would raise in the control thread,
where coordinators, leaders and nodes are looked for, and end the whole client.

Thread: the user's.
"""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, TypeVar

from kafka_fast.control.requests.targets import (
    AllNodes,
    Coordinator,
    CoordinatorOfEach,
    Leaders,
    OneNode,
    Target,
)
from kafka_fast.errors import AuthenticationError, KafkaError, UsageError, reworded
from kafka_fast.secret import Secret
from kafka_fast.types import TopicPartition

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

LONGEST_NAME = 2**15 - 1
"""Bytes of a text that brokers read. Of a longer one they close the connection."""

LAST_NUMBER = 2**31 - 1
"""Of a partition, and the highest id of a node."""


def several(values: Iterable[K], what: str) -> list[K]:
    """Return what a user has given several of.

    Args:
        values: a list or the like.
        what: names it in an error.

    Raises:
        TypeError: it is no list; or one text, whose letters would be taken for names.
    """
    if isinstance(values, str):
        raise TypeError(f"{what} are a list or a set, not the string {values!r}")
    if isinstance(values, (bytes, bytearray)) or not isinstance(values, Iterable):
        raise TypeError(f"{what} are a list or a set, not {values!r}")
    return list(values)


def names_of(names: Iterable[str], what: str = "the ids of groups") -> list[str]:
    """Return names that a user has given.

    Args:
        names: the names.
        what: names them in an error.

    Raises:
        TypeError: one name is given where several are meant, or one is no text.
        UsageError: a name cannot be sent.
    """
    return [checked_name(name, what) for name in several(names, what)]


def mapping_of(mapping: Mapping[K, V], what: str) -> dict[K, V]:
    """Return what a user has given by item.

    Raises:
        TypeError: it is no mapping.
    """
    if not isinstance(mapping, Mapping):
        kind = type(mapping).__name__  # it may hold passwords, so it is not shown
        raise TypeError(f"{what} come in a mapping, not in a {kind}")
    return dict(mapping)


def checked_name(name: object, what: str) -> str:
    """Return a name, if it can be sent.

    Args:
        name: of a group, a topic, …
        what: names it, or those that it is one of, in an error.

    Raises:
        TypeError: it is no text.
        UsageError: it is too long, or cannot be written in UTF-8.
    """
    if not isinstance(name, str):
        raise TypeError(f"{what}: {name!r} is no text")
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        raise UsageError(f"{what}: {name!r} cannot be written in UTF-8") from None
    if length > LONGEST_NAME:
        raise UsageError(f"{what}: {name[:20]!r}… has {length} bytes, and may have {LONGEST_NAME}")
    return name


def checked_number(number: object, what: str) -> int:
    """Return the number of a partition, or the id of a node.

    Raises:
        TypeError: it is no integer.
        UsageError: it is negative, or too large.
    """
    try:
        index = operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{what} is an int, not {number!r}") from None
    if not 0 <= index <= LAST_NUMBER:
        raise UsageError(f"{what} cannot be {index}")
    return index


def checked_partition(partition: object) -> TopicPartition:
    """Return a partition; any tuple of topic and number will do.

    Raises:
        TypeError: it is none.
        UsageError: there can be no such partition.
    """
    if not isinstance(partition, tuple) or len(partition) != 2:
        raise TypeError(f"a partition is a TopicPartition(topic, number), not {partition!r}")
    topic = checked_name(partition[0], "the name of a topic")
    return TopicPartition(
        topic, checked_number(partition[1], f"the number of a partition of {topic!r}")
    )


def partitions_of(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Return partitions that a user has given.

    Raises:
        TypeError: one is none; or one is given where several are meant.
        UsageError: there can be no such partition.
    """
    if isinstance(partitions, TopicPartition):
        raise TypeError(f"partitions are a list or a set: [{partitions!r}]")
    return _checked_partitions(several(partitions, "partitions"))


def _checked_partitions(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
    """Return partitions after their check: there may be a hundred thousand of few topics."""
    checked: list[TopicPartition] = []
    topics: set[str] = set()
    for one in partitions:
        is_known = (
            type(one) is TopicPartition and type(one[1]) is int and 0 <= one[1] <= LAST_NUMBER
        )
        if not is_known or type(one[0]) is not str or one[0] not in topics:
            checked.append(checked_partition(one))
            topics.add(checked[-1].topic)
        else:
            checked.append(one)
    return checked


def told_secret(secret: Secret, name: str, what: str) -> bytes:
    """Return a secret in UTF-8. Any thread that may block.

    Args:
        secret: a text, or a user's function.
        name: of the secret, as "password".
        what: needs it, in an error.

    Raises:
        UsageError: the user's function failed, or the text is none that can be sent.
        KafkaError: the user's function raised an OSError, which may pass.
    """
    from kafka_fast.control.authentication.revealing import revealed

    failure: KafkaError
    try:
        return revealed(secret, name)
    except AuthenticationError as error:
        failure = UsageError(f"{what} {error}")
    except KafkaError as error:
        failure = reworded(error, f"{what} {error}")
    raise failure


def items_for(target: Target[Any], items: Iterable[Any] | None) -> list[Any] | None:
    """Return the items of an operation, each once, after a check of what finds their nodes.

    Args:
        target: where they go.
        items: what a user has given; None: all nodes.

    Raises:
        TypeError: they are no list, or one has another type.
        UsageError: there can be no such item.
    """
    if isinstance(target, Coordinator):
        checked_name(target.key, "the id of a group")
    if isinstance(target, OneNode):
        checked_number(target.node_id, "the id of a node")
    if items is None and isinstance(target, AllNodes):
        return None
    keys: list[Any] = several(items, "items")  # type: ignore[arg-type]
    if isinstance(target, CoordinatorOfEach):
        keys = [checked_name(item, "an id") for item in keys]
    elif isinstance(target, Leaders):
        keys = _checked_partitions(keys)
    elif isinstance(target, AllNodes):
        keys = [checked_number(item, "the id of a node") for item in keys]
    return list(dict.fromkeys(keys))
