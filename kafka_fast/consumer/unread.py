"""What was taken in for an iteration and not reached by it: it comes with the next poll or loop.

A loop that is left has reached some of a poll's records. The others must neither be skipped nor
committed, and a pause, a seek or a rebalance concerns them as it does what is still buffered.
So what is done is known here: what was handed over, less what was not reached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kafka_fast.dataplane._consumer_records import ConsumerRecords, RecordIterator, iterate
from kafka_fast.net.reading import Reading
from kafka_fast.types import OffsetAndMetadata, TopicPartition


class Unread:
    """The rest of a consumer's iteration. User's thread only."""

    def __init__(self, reading: Reading, refill: Callable[[], ConsumerRecords]) -> None:
        """Begin with nothing.

        Args:
            reading: knows what was handed over, and tells of topics that were made anew.
            refill: waits for what an iteration needs next.
        """
        self._reading = reading
        self._refill = refill
        self._iterator: RecordIterator | None = None
        self._held: dict[TopicPartition, ConsumerRecords] = {}  # of partitions that are paused
        self._taken_from: ConsumerRecords | None = None  # by the last take, until that is settled
        # Of a topic that was made anew, too: the offsets would be taken for the new one's.
        reading.forget_with(self.forget)

    # Getters

    def first_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return where each partition goes on that has something unread."""
        parts = {**self._rest().by_partition(), **self._held}
        return {
            partition: OffsetAndMetadata(first.offset, first.leader_epoch)
            for partition, some in parts.items()
            for first in some[:1]
        }

    def done_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return where reading goes on behind what is done, for each partition that was read."""
        offsets = self._reading.intake.positions()
        for partition, first in self.first_offsets().items():
            if partition in offsets:
                offsets[partition] = first
        return offsets

    def _rest(self) -> ConsumerRecords:
        at = self._iterator
        return ConsumerRecords() if at is None else at.records[at.handed_out :]

    # Commands

    def iterator(self) -> RecordIterator:
        """Return the one iterator: a second loop goes on where the first was left."""
        if self._iterator is None:
            self._iterator = iterate(self._refill)
        return self._iterator

    def take(self, most: int) -> ConsumerRecords:
        """Return at most so many of the records that no iteration will hand over now."""
        rest = self._rest()
        if self._iterator is not None and rest:
            self._taken_from = rest
            self._iterator.put(rest[most:])
        return rest[:most]

    def settle(self) -> None:
        """What was taken, here or from what is buffered, is the user's now."""
        self._reading.intake.settle()
        self._taken_from = None

    def take_back(self) -> None:
        """Nobody got what was taken, unless that is settled: it comes next.

        A Ctrl-C on its way to the user would else cost these records: they would be committed.
        """
        self._reading.intake.take_back()
        if self._taken_from is not None and self._iterator is not None:
            self._iterator.put(self._taken_from)
            self._taken_from = None

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Hand over nothing more of these partitions."""
        gone = frozenset(partitions)
        self._take_out(gone)
        for partition in gone & self._held.keys():
            del self._held[partition]

    def hold(self, partitions: Iterable[TopicPartition]) -> None:
        """Hand over nothing of these partitions for now."""
        for partition, records in self._take_out(frozenset(partitions)).items():
            self._held[partition] = records

    def release(self, partitions: Iterable[TopicPartition]) -> None:
        """Hand over what was held of these partitions."""
        back = [self._held.pop(it) for it in partitions if it in self._held]
        if back:
            self.iterator().put(_joined([*back, self._rest()]))

    def _take_out(
        self, partitions: frozenset[TopicPartition]
    ) -> dict[TopicPartition, ConsumerRecords]:
        """Take these partitions' records out of the iteration; return them."""
        parts = self._rest().by_partition() if partitions else {}
        taken = {it: records for it, records in parts.items() if it in partitions}
        if taken:
            kept = [records for it, records in parts.items() if it not in taken]
            self.iterator().put(_joined(kept))
        return taken


def _joined(several: Iterable[ConsumerRecords]) -> ConsumerRecords:
    return ConsumerRecords([part for records in several for part in records.parts()])
