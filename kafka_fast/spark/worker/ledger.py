"""A task's account of its own records: the futures of its bulk calls, and their outcomes.

The producer's own counters are not used, because they include records of earlier tasks. The number
of open futures is bounded here; the producer's buffer.memory bounds the records.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kafka_fast.errors import DeliveryError, KafkaTimeoutError, Outcome
from kafka_fast.spark.errors import KafkaDeliveryError
from kafka_fast.spark.report import UNKNOWN_PARTITION, ReportRow
from kafka_fast.types import BatchResult

MAX_OPEN_FUTURES = 256
MAX_SAMPLES = 5
LEAST_CERTAIN_FIRST = (Outcome.MAYBE_WRITTEN, Outcome.REJECTED, Outcome.NOT_SENT)


@dataclass(slots=True)
class Totals:
    """Sums for one partition of a topic; `ReportRow` says what the fields mean."""

    records: int = 0
    bytes: int = 0
    base_offset: int = -1
    last_offset: int = -1
    errors: int = 0
    first_error: DeliveryError | None = None


@dataclass(slots=True)
class Failures:
    """All failed records of the task."""

    count: int = 0
    collateral: int = 0
    """Those that were refused only because of others in their batches."""
    outcomes: set[Outcome] = field(default_factory=set)
    samples: list[DeliveryError] = field(default_factory=list)


class Ledger:
    """The account of one attempt of one task.

    Args:
        task: number of the Spark partition.
        attempt: number of the attempt.
        delivery_timeout: seconds to wait for records after the input's end.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        task: int,
        attempt: int,
        delivery_timeout: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._task = task
        self._attempt = attempt
        self._delivery_timeout = delivery_timeout
        self._clock = clock
        self._started = clock()
        self._open: deque[tuple[str | None, Any]] = deque()
        self._totals: dict[tuple[str | None, int], Totals] = {}
        self._failures = Failures()
        self._records = 0
        self.unsettled = False
        """Whether records may still be under way: their outcome was not known in time."""

    def add_future(self, topic: str | None, future: Any) -> None:
        """Add the BatchFuture of a bulk call.

        Args:
            topic: topic of all its records; None if they differ.
            future: the call's BatchFuture.
        """
        self._records += len(future)
        self._open.append((topic, future))
        while self._open and self._open[0][1].done():
            self._settle(*self._open.popleft(), timeout=None)
        # A wait sends open batches before they are full, so it is the last resort.
        while len(self._open) > MAX_OPEN_FUTURES:
            self._settle(*self._open.popleft(), timeout=self._delivery_timeout)

    def close(self) -> None:
        """Wait until the outcome of every record is known, or delivery.timeout.ms has passed."""
        deadline = self._clock() + self._delivery_timeout
        while self._open:
            remaining = max(0.0, deadline - self._clock())
            self._settle(*self._open.popleft(), timeout=remaining)

    def error(self) -> KafkaDeliveryError | None:
        """Return the error for the task's failed records; None if there are none."""
        failures = self._failures
        if failures.count == 0:
            return None
        first = failures.samples[0]
        outcome = next(each for each in LEAST_CERTAIN_FIRST if each in failures.outcomes)
        others = ""
        if failures.collateral:
            others = f", {failures.collateral} of them because of others in their batches"
        return KafkaDeliveryError(
            f"{failures.count} of {self._records} records were not delivered ({outcome.value})"
            f"{others}; the first: {first}",
            outcome=outcome,
            count=failures.count,
            first=first,
            samples=failures.samples,
        )

    def rows(self) -> list[ReportRow]:
        """Return one row for each partition with delivered or failed records."""
        seconds = self._clock() - self._started
        rows = [
            ReportRow(
                task=self._task,
                attempt=self._attempt,
                topic=topic,
                partition=partition,
                records=totals.records,
                bytes=totals.bytes,
                base_offset=totals.base_offset,
                last_offset=totals.last_offset,
                errors=totals.errors,
                first_error=None if totals.first_error is None else str(totals.first_error),
                seconds=seconds,
            )
            for (topic, partition), totals in self._totals.items()
        ]
        return sorted(rows, key=lambda row: (row.topic or "", row.partition))

    def _settle(self, topic: str | None, future: Any, timeout: float | None) -> None:
        """Enter the outcome of the records of one call."""
        try:
            result: BatchResult = future.result(timeout)
        except KafkaTimeoutError as error:
            self.unsettled = True
            unknown = DeliveryError(
                f"delivery not known in time: {error}",
                outcome=Outcome.MAYBE_WRITTEN,
                count=len(future),
                first=error,
            )
            self._fail((topic, UNKNOWN_PARTITION), len(future), unknown)
            return
        for tp, delivered in result.partitions.items():
            totals = self._totals.setdefault(tp, Totals())
            totals.records += delivered.records
            totals.bytes += delivered.bytes
            if delivered.base_offset >= 0:
                known = totals.base_offset >= 0
                totals.base_offset = (
                    min(totals.base_offset, delivered.base_offset)
                    if known
                    else delivered.base_offset
                )
                totals.last_offset = max(totals.last_offset, delivered.last_offset)
        if result.failed:
            for _, failure in future.failed():
                partition = UNKNOWN_PARTITION if failure.partition is None else failure.partition
                self._fail((failure.topic or topic, partition), 1, failure)

    def _fail(self, where: tuple[str | None, int], count: int, error: DeliveryError) -> None:
        totals = self._totals.setdefault(where, Totals())
        totals.errors += count
        if totals.first_error is None or totals.first_error.is_collateral > error.is_collateral:
            totals.first_error = error
        failures = self._failures
        failures.count += count
        failures.collateral += count if error.is_collateral else 0
        failures.outcomes.add(error.outcome)
        if error not in failures.samples:
            failures.samples.append(error)
            failures.samples.sort(key=lambda sample: sample.is_collateral)  # those come last
            del failures.samples[MAX_SAMPLES:]
