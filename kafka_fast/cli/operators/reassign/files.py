"""Files of kafka-reassign-partitions: which brokers partitions are to have."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from kafka_fast import TopicPartition
from kafka_fast.cli.operators.partition_files import is_int32, read_partitions
from kafka_fast.errors import UsageError

Assignment: TypeAlias = "Mapping[TopicPartition, Sequence[int]]"

_EXPECTED = "replicas, which are ids of brokers"


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
    return read_partitions(name, partial(_replicas_of_entry, name), _EXPECTED)


def _replicas_of_entry(
    name: str, partition: TopicPartition, fields: Mapping[str, Any]
) -> tuple[int, ...] | None:
    brokers = fields.get("replicas")
    if not (
        isinstance(brokers, list)
        and brokers
        and all(map(is_int32, brokers))
        and len(set(brokers)) == len(brokers)
    ):
        return None
    log_dirs = fields.get("log_dirs") or ()
    if not isinstance(log_dirs, (list, tuple)) or any(log_dir != "any" for log_dir in log_dirs):
        raise UsageError(
            f"{name}: {partition} has log_dirs: kafka-fast reassign moves replicas between "
            "brokers, and kafka-fast cluster move-replica between the directories of one"
        )
    return tuple(brokers)
