"""What was taken in for an iteration and not reached by it: it comes with the next poll or loop.

A loop that is left has reached some of a poll's records. The others must neither be skipped nor
committed, and a pause, a seek or a rebalance concerns them as it does what is still buffered.
So what is done is known here: what was handed over, less what was not reached; and, where an
exception ends it all, less what the user was working on.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from kafka_fast.consumer.reading import Reading
from kafka_fast.consumer.record_handover import RecordHandover
from kafka_fast.dataplane.fetch._consumer_records import ConsumerRecords, RecordIterator, iterate
from kafka_fast.types import OffsetAndMetadata, TopicPartition

Refill: TypeAlias = Callable[[RecordHandover], None]


class _InHand(enum.Enum):
    """What the user was given last, and has not come back from."""

    NOTHING = 0
    RECORDS = 1
    ONE = 2


class Unread:
    """The rest of a consumer's iteration. User's thread only."""

    def __init__(self, reading: Reading, refill: Refill) -> None:
        """Begin with nothing.

        Args:
            reading: knows what was handed over, and tells of recreated topics.
            refill: waits for what an iteration needs next, and takes it.
        """
        self._reading = reading
        self._refill = refill
        self._iterator: RecordIterator | None = None
        self._held: dict[TopicPartition, ConsumerRecords] = {}  # of partitions that are paused
        self._handover = RecordHandover()  # the last one, under way or settled
        self._in_hand = _InHand.NOTHING
        # Since the user came back last: what he works on besides, has committed, and has moved.
        self._begun: dict[TopicPartition, OffsetAndMetadata] = {}
        self._committed: dict[TopicPartition, OffsetAndMetadata] = {}
        self._moved: set[TopicPartition] = set()
        self._failed: dict[TopicPartition, OffsetAndMetadata] = {}  # not to be taken for done
        # Of a recreated topic, too: the offsets would be taken for the new one's.
        reading.forget_with(self.forget)

    # Getters

    def first_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return where each partition goes on that has something unread."""
        return _firsts({**self._rest().by_partition(), **self._held})

    def done_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return where reading goes on behind what is done, for each partition that was read."""
        offsets = self._reading.intake.positions()
        for partition, first in self.first_offsets().items():
            if partition in offsets:
                offsets[partition] = first
        for undone in (self._failed, self._unsettled()):
            for partition, first in undone.items():
                if partition in offsets and first.offset < offsets[partition].offset:
                    offsets[partition] = first
        return offsets

    def _unsettled(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the firsts of what a poll has taken and its user has not got.

        There is something only while a signal's handler runs in the middle of that poll.
        """
        return {} if self._handover.is_settled else self._handover.before

    def _rest(self) -> ConsumerRecords:
        at = self._iterator
        return ConsumerRecords() if at is None else at.records[at.handed_out :]

    def _worked_on(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return where each partition goes on if what the user was given last is not done."""
        if self._in_hand is _InHand.RECORDS:
            return {} if self._handover.rest is not None else self._handover.before
        at = self._iterator
        if self._in_hand is _InHand.NOTHING or at is None or not at.handed_out:
            return {}
        one = at.records[at.handed_out - 1]
        partition = TopicPartition(one.topic, one.partition)
        return {partition: OffsetAndMetadata(one.offset, one.leader_epoch)}

    # Commands

    def come_back(self) -> None:
        """The user wants more: all that he was given before is done."""
        self._in_hand = _InHand.NOTHING
        if self._begun or self._committed or self._moved:
            self._begun, self._committed, self._moved = {}, {}, set()

    def note_committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """The user has said himself how much is done."""
        self._committed.update(offsets)

    def give_up(self) -> None:
        """An exception took the user away from what he was given last: that is not done."""
        begun = {**self._worked_on(), **self._begun}
        for partition, first in begun.items():
            if partition not in self._moved:
                said = self._committed.get(partition, first)
                self._failed[partition] = max(first, said._replace(metadata=""))

    def iterator(self) -> RecordIterator:
        """Return the one iterator: a second loop goes on where the first was left."""
        self.come_back()
        self._in_hand = _InHand.ONE
        return self._the_iterator()

    def _the_iterator(self) -> RecordIterator:
        if self._iterator is None:
            self._iterator = iterate(self._refill_one)
        return self._iterator

    def _refill_one(self) -> ConsumerRecords:
        handover = RecordHandover()
        try:
            self._refill(handover)
            records = self.settle(handover)
            self._in_hand = _InHand.ONE
            return records
        except BaseException:
            self.take_back(handover)
            raise

    def begin(self, handover: RecordHandover) -> None:
        """A call is about to take records for the user."""
        self._handover = handover

    def try_take(self, most: int, handover: RecordHandover) -> bool:
        """Take records that no iteration will hand over now; return whether there were any."""
        iterator = self._iterator
        if iterator is None or not (rest := self._rest()):
            return False
        taken = rest[:most]

        def undo() -> None:
            iterator.put(rest)
            self._begun = {}

        handover.rest_before = begun = _firsts(taken.by_partition())
        handover.undo_rest = undo
        handover.rest = taken
        iterator.put(rest[most:])
        self._begun = begun
        return True

    def settle(self, handover: RecordHandover) -> ConsumerRecords:
        """Return what was taken: it is the user's now."""
        records = handover.settle()
        self._in_hand = _InHand.RECORDS
        return records

    def take_back(self, handover: RecordHandover) -> None:
        """Nobody got what was taken: it comes next, and is not committed till then."""
        handover.take_back()
        if self._handover is handover:  # else nothing was begun: another thread has the turn
            self._in_hand = _InHand.NOTHING

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Hand over nothing more of these partitions."""
        gone = frozenset(partitions)
        self._moved |= gone
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
            self._go_on_with([*back, self._rest()])

    def _take_out(
        self, partitions: frozenset[TopicPartition]
    ) -> dict[TopicPartition, ConsumerRecords]:
        """Take these partitions' records out of the iteration; return them."""
        parts = self._rest().by_partition() if partitions else {}
        taken = {it: records for it, records in parts.items() if it in partitions}
        if taken:
            kept = [records for it, records in parts.items() if it not in taken]
            self._go_on_with(kept)
        return taken

    def _go_on_with(self, several: Iterable[ConsumerRecords]) -> None:
        """Iterate over these instead of the rest."""
        if self._in_hand is _InHand.ONE:  # the iterator will know it no more
            self._begun = {**self._worked_on(), **self._begun}
        joined = [part for records in several for part in records.parts()]
        self._the_iterator().put(ConsumerRecords(joined))


def _firsts(
    parts: Mapping[TopicPartition, ConsumerRecords],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return where each partition goes on before the first of these records."""
    return {
        partition: OffsetAndMetadata(first.offset, first.leader_epoch)
        for partition, some in parts.items()
        for first in some[:1]
    }
