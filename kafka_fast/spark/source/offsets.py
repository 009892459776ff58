"""Offsets by partition, and the JSON in which users and Spark's checkpoints write them.

    {"events": {"0": 23, "1": -1}}       offsets, or times in Unix ms
    {"events": [0, 1]}                   partitions

The form is that of Spark's own Kafka source: progress reports and checkpoints look the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeVar

from kafka_fast.errors import UsageError
from kafka_fast.types import TopicPartition

T = TypeVar("T")

Offsets: TypeAlias = dict[TopicPartition, int]

LATEST = -1
"""In users' JSON: the end of the partition."""
EARLIEST = -2
"""In users' JSON: the beginning of the partition."""

_LONG = range(-(2**63), 2**63)
_INT = range(2**31)


def to_plain(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Return offsets in JSON's types, sorted. PySpark writes them as text."""
    plain: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        plain.setdefault(topic, {})[str(partition)] = offset
    return plain


def from_plain(plain: Any) -> Offsets:
    """Return the offsets that `to_plain` made plain, or that a user wrote.

    Raises:
        ValueError: the form is another one.
    """
    return {
        TopicPartition(topic, _partition(int(number) if number.isdecimal() else number)): _long(at)
        for topic, offsets in _items(plain)
        for number, at in _items(offsets)
    }


def parse_offsets(text: str) -> Offsets:
    """Return the offsets of an option such as startingOffsets.

    Raises:
        UsageError: in the words of Spark's source.
    """
    return _parsed(text, from_plain, '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}')


def parse_timestamps(text: str) -> Offsets:
    """Return the Unix times in ms of an option such as startingOffsetsByTimestamp.

    Raises:
        UsageError: in the words of Spark's source.
    """
    return _parsed(text, from_plain, '{"topicA": {"0": 123456789, "1": 123456789}}')


def parse_partitions(text: str) -> list[TopicPartition]:
    """Return the partitions of the option assign.

    Raises:
        UsageError: in the words of Spark's source.
    """
    return _parsed(text, _partitions, '{"topicA":[0,1],"topicB":[0,1]}')


def describe(partitions: Iterable[TopicPartition]) -> str:
    """Return partitions as a message shows them."""
    return ", ".join(map(str, sorted(partitions)))


def _parsed(text: str, read: Callable[[Any], T], example: str) -> T:
    try:
        return read(json.loads(text))
    except ValueError:
        raise UsageError(f"Expected e.g. {example}, got {text}") from None


def _partitions(plain: Any) -> list[TopicPartition]:
    partitions: dict[TopicPartition, None] = {}
    for topic, numbers in _items(plain):
        if not isinstance(numbers, list):
            raise ValueError(numbers)  # noqa: TRY004  text of the user's
        partitions.update(
            dict.fromkeys(TopicPartition(topic, _partition(number)) for number in numbers)
        )
    return list(partitions)


def _items(plain: Any) -> Iterable[tuple[str, Any]]:
    if not isinstance(plain, dict):
        raise ValueError(plain)  # noqa: TRY004  text of the user's
    return plain.items()


def _partition(number: Any) -> int:
    if type(number) is not int or number not in _INT:
        raise ValueError(number)
    return number


def _long(number: Any) -> int:
    if type(number) is not int or number not in _LONG:
        raise ValueError(number)
    return number
