"""A consumer whose partitions have ends, up to which it reads once.

A partition is done when its *position* has reached its end. The offsets of records do not show
this: a range may end in a gap that compaction left, in a transaction marker or in aborted records.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import NoReturn

from kafka_fast.consumer.base import ConsumerBase
from kafka_fast.control.diagnosis.troubles import Reason
from kafka_fast.errors import KafkaTimeoutError
from kafka_fast.logs import count_of
from kafka_fast.net.waiting.steps import Invoke, Steps
from kafka_fast.records._consumer_records import ConsumerRecords
from kafka_fast.types import TopicPartition

WAIT = 0.05
"""Seconds between two looks at the positions: batches without records move them, too."""


class RangeReading(ConsumerBase):
    """What reads ranges, for callers of any kind: all that cannot wait."""

    @property
    def api_timeout(self) -> float:
        """Seconds that a call may take by default."""
        return self._settings.default_api_timeout

    def assign_ranges(self, ranges: Mapping[TopicPartition, range]) -> None:
        """Read each partition from the first offset of its range to the last."""
        with self._caller_lock:
            self._reading.ends.update({tp: span.stop for tp, span in ranges.items()})
            self._reading.assign(ranges)
            for partition, span in ranges.items():
                self._reading.seek(partition, span.start)

    def drop_finished(self) -> int:
        """Stop fetching partitions that are at their ends; return how many are left."""
        with self._caller_lock:
            at = self._reading.buffer.positions()
            left = [
                partition
                for partition in self._reading.buffer.partitions
                if partition not in at or at[partition].offset < self._reading.ends[partition]
            ]
            if len(left) < len(self._reading.buffer.partitions):
                self._reading.assign(left)
            return len(left)

    def timeout_error(self, what: str) -> KafkaTimeoutError:
        """Return a timeout error that names the unread partitions, and why they are not read."""
        with self._caller_lock:
            partitions = self._reading.buffer.partitions
            why = self._core.control.view.why_waiting_for_several(partitions, self._core.now())
            unread = Reason(f"unread: {why.text}", why.cause)
            return self._core.waits.timeout_error(what, None, unread)

    def end_in_background(self) -> None:
        """End, where nobody may wait for it: without a group there is no goodbye. Any thread."""
        self._finalizer.detach()
        self._core.end_in_background()

    def positions(self) -> dict[TopicPartition, int]:
        """Return the position of each partition that has one."""
        with self._caller_lock:
            return {
                partition: at.offset for partition, at in self._reading.buffer.positions().items()
            }


class RangeRecords:
    """The records of a consumer's ranges, poll by poll, as long as there is progress."""

    def __init__(
        self,
        consumer: RangeReading,
        poll: Callable[[float, int], object],
        timeout: float,
        max_records: int,
    ) -> None:
        """Record the time and the positions, from which progress is measured.

        Args:
            consumer: reads the ranges.
            poll: of that consumer; it may be a coroutine.
            timeout: seconds without any progress after which `next_records` raises.
            max_records: most records at a time.
        """
        self._consumer = consumer
        self._poll = poll
        self._timeout = timeout
        self._max_records = max_records
        self._moved = time.monotonic()  # when there was progress last
        self._before = consumer.positions()

    def next_records(self) -> Steps[ConsumerRecords | None]:
        """Return the next records; None: all partitions are at their ends.

        Raises:
            KafkaTimeoutError: there was no progress for too long.
        """
        while self._consumer.drop_finished():
            records: ConsumerRecords = yield Invoke(self._poll, (WAIT, self._max_records))
            if records:
                self._moved = time.monotonic()
                return records
            self._check_progress()
        return None

    def _check_progress(self) -> None:
        """Look at the positions, which batches without records move, too."""
        now = self._consumer.positions()
        if now != self._before:
            self._moved, self._before = time.monotonic(), now
        elif time.monotonic() - self._moved >= self._timeout:
            raise self._consumer.timeout_error(f"nothing arrived for {self._timeout:g} s")


class RangeHolder:
    """What holds the consumer of a range, for callers of any kind, and ends it if nobody does."""

    _consumer: RangeReading

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled and copied."""
        raise TypeError(
            "a RecordRange reads as it goes and cannot be pickled or copied: call read_range() "
            "where the records are needed"
        )

    def __del__(self) -> None:
        """End the consumer of a range that was not read to its end; wait for nothing."""
        if hasattr(self, "_consumer"):  # else its constructor has failed
            self._consumer.end_in_background()


def describe(ranges: Mapping[TopicPartition, range]) -> str:
    """Return the representation of a RecordRange."""
    records = sum(map(len, ranges.values()))
    return f"RecordRange({count_of(len(ranges), 'partition')}, {count_of(records, 'offset')})"
