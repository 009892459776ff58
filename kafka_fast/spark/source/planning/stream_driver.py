"""What a stream does between its micro-batches, in one process of the driver's machine.

    initial   ─► once in the life of a checkpoint, kept where a restart finds it
    latest    ─► the end of the next micro-batch: all there is, limited, or nothing yet
    ranges    ─► its tasks
    commit    ─► the micro-batch is done: shown as progress of a group

Thread: one. PySpark is not known here.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from kafka_fast.errors import KafkaError, UsageError
from kafka_fast.logs import get_logger
from kafka_fast.spark.source.offsets import Offsets
from kafka_fast.spark.source.options import SourceOptions
from kafka_fast.spark.source.planning import data_loss
from kafka_fast.spark.source.planning.bounds import Bound, is_moving, is_named
from kafka_fast.spark.source.planning.initial_offsets import UNSAFE, InitialOffsets
from kafka_fast.spark.source.planning.offset_reader import OffsetReader
from kafka_fast.spark.source.planning.planning import plan
from kafka_fast.spark.source.planning.ranges import OffsetRange, split
from kafka_fast.spark.source.planning.rate_limit import Delay, limited
from kafka_fast.types import OffsetAndMetadata, TopicPartition

logger = get_logger(__name__)


class Committer(Protocol):
    """The part of a consumer with a group that is used here."""

    def commit(self, upto: dict[TopicPartition, OffsetAndMetadata]) -> None:
        """Commit offsets for the group."""


class StreamDriver:
    """The driver's side of one stream.

    Args:
        reader: asks the brokers.
        options: the query's.
        start: where a new stream begins.
        store: keeps the first offsets; None: they are not kept.
        group: commits for the group of commitOffsetsToGroup; None: there is none.
        clock: monotonic seconds.
        ends_first: whether Spark asks a new stream for the end of its first micro-batch before it
            asks for its beginning, as PySpark before 4.2 does.
    """

    def __init__(
        self,
        reader: OffsetReader,
        options: SourceOptions,
        start: Bound,
        *,
        store: InitialOffsets | None = None,
        group: Committer | None = None,
        clock: Callable[[], float] = time.monotonic,
        ends_first: bool = False,
    ) -> None:
        self._ends_first = ends_first
        self._reader = reader
        self._options = options
        self._start = start
        self._store = store
        self._group = group
        self._clock = clock
        least = options.min_offsets
        self._delay = None if least is None else Delay(least, options.max_delay)
        self._at: Offsets | None = None  # the end of the micro-batch that was planned last
        self._first: Offsets | None = None  # where the stream begins, if Spark has asked for it
        self._is_available_now = False
        self._all: Offsets | None = None  # all that an AvailableNow query reads
        self.newest: Offsets | None = None
        """The ends of the logs, as they were seen last; None: not yet."""

    def initial(self) -> Offsets:
        """Return where the stream begins.

        Spark asks again if no micro-batch was committed; the answer is then the same.

        Raises:
            UsageError: the answer could be another one then, and is not kept.
        """
        offsets = None if self._store is None else self._store.load()
        if offsets is None:
            is_unsafe = self._store is None and is_moving(self._start)
            if is_unsafe and not self._options.allow_unsafe_latest:
                raise UsageError(UNSAFE)
            offsets = self._reader.resolve(self._start, is_start=True)
            if self._store is not None:
                self._store.save(offsets)
        self._at = self._first = offsets
        return offsets

    def read_available_now(self) -> None:
        """Read no more than what is there when the next micro-batch is planned."""
        self._is_available_now = True

    def latest(self, start: Offsets | None, *, unlimited: bool = False) -> Offsets:
        """Return the end of the next micro-batch; if this is `start`, there is none yet.

        Args:
            start: where the micro-batch begins. None, from PySpark before 4.2: where the last one
                ended, as far as this process knows.
            unlimited: whether to take all there is.
        """
        start = self._at if start is None else start
        self.newest = self._ends(start)
        self._at = self.newest if unlimited else self._limited(start, self.newest)
        return self._at

    def _ends(self, start: Offsets | None) -> Offsets:
        if not self._is_available_now:
            return self._reader.latest(start)
        if self._all is None:
            self._all = self._reader.latest(start)
        else:
            self._reader.partitions(start or ())  # refuses a topic that was created again
        return self._all

    def _limited(self, start: Offsets | None, ends: Offsets) -> Offsets:
        limit = self._options.max_offsets
        if limit is None and self._delay is None:
            return ends
        if start is None:
            logger.warning(
                "this micro-batch has no limit: PySpark before 4.2 does not say where it begins"
            )
            return ends
        new = ends.keys() - start.keys()
        begins = {**self._reader.earliest(new), **start} if new else start
        if self._delay is not None and self._delay.holds_back(begins, ends, self._clock()):
            return start
        return ends if limit is None else limited(limit, begins, ends)

    def ranges(self, start: Offsets, end: Offsets) -> list[OffsetRange]:
        """Return the ranges of a micro-batch's tasks.

        Raises:
            DataLossError: partitions or records are gone, unless the query goes on without them.
        """
        self._at = end
        if self._ends_first and start == self._first:
            start = self._before(end, start)
        new = end.keys() - start.keys()
        there = new & set(self._reader.partitions(end)) if new else set()
        earliest = self._reader.earliest(sorted(there)) if there else {}
        options = self._options
        planned = plan(
            start,
            end,
            earliest,
            lambda reason: data_loss.report(reason, fail=options.fail_on_data_loss),
        )
        return split(
            self._reader.named(planned), options.min_partitions, options.max_records_per_partition
        )

    def _before(self, end: Offsets, first: Offsets) -> Offsets:
        """Return where the first micro-batch begins, which must not be behind its end.

        What came between the two questions is in the next micro-batch.
        """
        return {
            partition: at if is_named(self._start, partition) else min(at, end.get(partition, at))
            for partition, at in first.items()
        }

    def commit(self, end: Offsets) -> None:
        """Show that all records before these offsets are done; a failure is only logged."""
        if self._group is None:
            return
        try:
            self._group.commit({partition: OffsetAndMetadata(at) for partition, at in end.items()})
        except KafkaError as error:
            logger.warning("the stream's progress was not committed to its group: %s", error)
