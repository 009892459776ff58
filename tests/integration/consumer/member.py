"""A member of a group in a process of its own, which can be killed.

    python -m tests.integration.consumer.member TOPIC JOURNAL poll|loop|batches PROPERTIES

PROPERTIES are JSON: '{"bootstrap.servers": …}'.

Reads until its standard input ends, which also happens when whoever started it dies, and leaves
in peace. Writes down what it is done with before it comes back for more (`group_journal`).
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Collection, Iterable, Iterator

from kafka_fast import Consumer, ConsumerRecord, RebalanceListener, TopicPartition
from kafka_fast.errors import WakeupError
from tests.integration.consumer.group_journal import (
    ASSIGNED,
    LOST,
    REVOKED,
    journal_lines,
    listener_line,
)

POLL_TIMEOUT = 1.0


class Journal(RebalanceListener):
    """A file that outlives its writer: each entry is in the kernel before the next step."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def done(self, records: Iterable[ConsumerRecord]) -> None:
        rows = [(record.partition, record.offset, record.value or b"") for record in records]
        self._write(journal_lines(rows, time.monotonic()))

    def on_partitions_assigned(
        self, consumer: Consumer, partitions: Collection[TopicPartition]
    ) -> None:
        self._heard(ASSIGNED, partitions)

    def on_partitions_revoked(
        self, consumer: Consumer, partitions: Collection[TopicPartition]
    ) -> None:
        self._heard(REVOKED, partitions)

    def on_partitions_lost(
        self, consumer: Consumer, partitions: Collection[TopicPartition]
    ) -> None:
        self._heard(LOST, partitions)

    def _heard(self, kind: str, partitions: Collection[TopicPartition]) -> None:
        self._write(
            listener_line(kind, [partition.partition for partition in partitions], time.monotonic())
        )

    def _write(self, lines: bytes) -> None:
        while lines:
            lines = lines[os.write(self._file, lines) :]


def steps(consumer: Consumer, way: str) -> Iterator[Iterable[ConsumerRecord]]:
    """Read forever, in one of the three ways that there are."""
    if way == "loop":
        for record in consumer:
            yield (record,)
    elif way == "batches":
        yield from consumer.batches()
    else:
        while True:
            yield consumer.poll(POLL_TIMEOUT)


def main() -> None:
    """Be a member until standard input ends."""
    topic, path, way, config = sys.argv[1:]
    journal = Journal(path)
    ended = threading.Event()
    with Consumer(json.loads(config)) as consumer:

        def watch() -> None:
            sys.stdin.buffer.read()
            ended.set()
            consumer.wakeup()

        threading.Thread(target=watch, daemon=True).start()
        consumer.subscribe([topic], listener=journal)
        try:
            for records in steps(consumer, way):
                journal.done(records)
        except WakeupError:
            if not ended.is_set():
                raise


if __name__ == "__main__":
    main()
