"""Files of JSON that name partitions, as Kafka's scripts read and write them.

{"version": 1, "partitions": [{"topic": "orders", "partition": 0, ...}]}
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

from kafka_fast import TopicPartition
from kafka_fast.errors import UsageError

V = TypeVar("V")

_SHOWN = 200
"""Most characters of an entry that a message shows."""


def read_partitions(
    name: str, value_of: Callable[[TopicPartition, dict[str, Any]], V | None], expected: str
) -> dict[TopicPartition, V]:
    """Return what a file says of each partition.

    Args:
        name: of the file.
        value_of: returns what an entry says of its partition; None: it is not as it must be.
        expected: what an entry has beside topic and partition, for the message.

    Raises:
        OSError: the file cannot be read.
        UsageError: it is not as it must be.
    """
    document = read_json(name)
    entries = document.get("partitions") if isinstance(document, dict) else None
    if not isinstance(entries, list) or document.get("version", 1) != 1:
        raise UsageError(f'{name}: expected {{"version": 1, "partitions": [...]}}')
    values: dict[TopicPartition, V] = {}
    for entry in entries:
        fields = entry if isinstance(entry, dict) else {}
        topic, number = fields.get("topic"), fields.get("partition")
        value = None
        if isinstance(topic, str) and is_int32(number):
            partition = TopicPartition(topic, number)
            value = value_of(partition, fields)
        if value is None:
            raise UsageError(
                f"{name}: {shortened(entry)} is not as expected: topic, partition, and {expected}"
            )
        if partition in values:
            raise UsageError(f"{name}: {partition} is named twice")
        values[partition] = value
    if not values:
        raise UsageError(f"{name}: it names no partition")
    return values


def read_json(name: str) -> Any:
    """Return what a file holds.

    Raises:
        OSError: it cannot be read.
        UsageError: it is no JSON, or nested deeper than Python reads it.
    """
    try:
        return json.loads(Path(name).read_bytes())
    except ValueError as error:
        raise UsageError(f"{name}: this is no JSON: {error}") from error
    except RecursionError:
        raise UsageError(f"{name}: its JSON is nested too deep") from None


def is_int32(value: object) -> TypeGuard[int]:
    """Return whether a value is a number of a partition or of a broker."""
    return type(value) is int and 0 <= value < 2**31


def shortened(entry: object) -> str:
    """Return an entry of a file for a message."""
    try:
        text = json.dumps(entry)
    except RecursionError:  # it may be nested almost too deep to be read
        return "an entry"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
