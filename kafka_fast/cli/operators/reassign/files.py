"""Files of kafka-reassign-partitions: which brokers partitions are to have."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, TypeGuard

from kafka_fast import TopicPartition
from kafka_fast.errors import UsageError

Assignment: TypeAlias = "Mapping[TopicPartition, Sequence[int]]"


def document_of(assignment: Assignment) -> dict[str, object]:
    """Return what a file holds, and what `plan` prints as JSON."""
    return {
        "version": 1,
        "partitions": [
            {"topic": one.topic, "partition": one.partition, "replicas": list(brokers)}
            for one, brokers in assignment.items()
        ],
    }


def write_assignment(name: str, assignment: Assignment) -> None:
    """Write a file, which must not exist.

    Raises:
        OSError: there is such a file, or it cannot be made.
    """
    with Path(name).open("x", encoding="utf-8") as file:
        file.write(json.dumps(document_of(assignment)) + "\n")


def read_assignment(name: str) -> dict[TopicPartition, tuple[int, ...]]:
    """Return what a file says.

    Raises:
        OSError: it cannot be read.
        UsageError: it is not as it must be.
    """
    try:
        document = json.loads(Path(name).read_bytes())
    except ValueError as error:
        raise UsageError(f"{name}: this is no JSON: {error}") from error
    entries = document.get("partitions") if isinstance(document, dict) else None
    if not isinstance(entries, list) or document.get("version", 1) != 1:
        raise UsageError(f'{name}: expected {{"version": 1, "partitions": [...]}}')
    assignment: dict[TopicPartition, tuple[int, ...]] = {}
    for entry in entries:
        partition, brokers = _of_entry(name, entry)
        if partition in assignment:
            raise UsageError(f"{name}: {partition} is named twice")
        assignment[partition] = brokers
    if not assignment:
        raise UsageError(f"{name}: it names no partition")
    return assignment


def _of_entry(name: str, entry: Any) -> tuple[TopicPartition, tuple[int, ...]]:
    fields = entry if isinstance(entry, dict) else {}
    topic, number, brokers = (fields.get(key) for key in ("topic", "partition", "replicas"))
    if not (
        isinstance(topic, str)
        and _is_number(number)
        and isinstance(brokers, list)
        and brokers
        and all(map(_is_number, brokers))
        and len(set(brokers)) == len(brokers)
    ):
        raise UsageError(
            f"{name}: {json.dumps(entry)} is not as expected: topic, partition, and replicas, "
            "which are ids of brokers"
        )
    log_dirs = fields.get("log_dirs") or ()
    if not isinstance(log_dirs, (list, tuple)) or any(log_dir != "any" for log_dir in log_dirs):
        raise UsageError(
            f"{name}: {topic}-{number} has log_dirs: kafka-fast moves replicas between brokers, "
            "and Admin.alter_replica_log_dirs between the directories of one"
        )
    return TopicPartition(topic, number), tuple(brokers)


def _is_number(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value < 2**31
