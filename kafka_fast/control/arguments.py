"""Checks of what users give to clients, each with one form of error.

A wrong argument raises in the call that got it. Unchecked, it would raise in the control thread,
where requests are framed and nodes are looked for, and end the whole client.

Thread: the user's.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

from kafka_fast.config import why_unsendable
from kafka_fast.errors import UsageError
from kafka_fast.types import OffsetAndMetadata, TopicPartition

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
E = TypeVar("E", bound=enum.Enum)

LAST_NUMBER = 2**31 - 1
"""Of a partition, and the highest id of a node."""

LAST_OFFSET = 2**63 - 1
"""Of a log."""

NO_EPOCH = -1


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
    problem = why_unsendable(name)
    if problem is not None:
        raise UsageError(f"{what}: {problem}")
    return name


def checked_integer(number: object, what: str) -> int:
    """Return a number as an int.

    Raises:
        TypeError: it is no integer.
    """
    try:
        if not isinstance(number, bool):
            return operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        pass
    raise TypeError(f"{what} is an int, not {number!r}")


def checked_number(number: object, what: str) -> int:
    """Return the number of a partition, or the id of a node.

    Raises:
        TypeError: it is no integer.
        UsageError: it is negative, or too large.
    """
    index = checked_integer(number, what)
    if not 0 <= index <= LAST_NUMBER:
        raise UsageError(f"{what} cannot be {index}")
    return index


def checked_offset(offset: object, what: str) -> int:
    """Return an offset in a log.

    Raises:
        TypeError: it is no integer.
        UsageError: it is negative, or too large.
    """
    index = checked_integer(offset, what)
    if not 0 <= index <= LAST_OFFSET:
        raise UsageError(f"{what} cannot be {index}")
    return index


def checked_choice(kind: type[E], value: object, what: str) -> E:
    """Return a member of an enumeration, if brokers know what it means.

    Args:
        kind: the enumeration.
        value: a member, or its value.
        what: names it in an error.

    Raises:
        UsageError: it is no member, or stands for what this version does not know.
    """
    try:
        member = None if isinstance(value, bool) else kind(value)
    except ValueError:
        member = None
    if member is not None and member.name != "UNKNOWN":
        return member
    choices = ", ".join(one.name for one in kind if one.name != "UNKNOWN")
    raise UsageError(f"{what} cannot be {value!r}: {kind.__name__} has {choices}")


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
    return checked_partitions(several(partitions, "partitions"))


def checked_partitions(partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
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


def offset_to_read(given: object, partition: TopicPartition) -> OffsetAndMetadata:
    """Return the offset of the record to read next, with its leader epoch and metadata.

    Raises:
        TypeError: a part of it has another type.
        UsageError: there can be no such offset, leader epoch or metadata.
    """
    at = given if isinstance(given, OffsetAndMetadata) else OffsetAndMetadata(given)  # type: ignore[arg-type]
    offset = checked_offset(at.offset, f"an offset of {partition}")
    epoch = checked_integer(at.leader_epoch, f"a leader epoch of {partition}")
    if not NO_EPOCH <= epoch <= LAST_NUMBER:
        raise UsageError(f"{epoch} is no leader epoch of {partition}")
    note = checked_name(at.metadata, f"the note beside an offset of {partition}")
    return OffsetAndMetadata(offset, epoch, note)
