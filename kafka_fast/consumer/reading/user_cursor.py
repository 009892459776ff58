"""A cursor: how far a user is in its records, and what a loop took of them but did not reach.

Records that a loop did not reach come with the next poll or loop.

A loop that is left has reached only some of a poll's records. The others must be neither skipped
nor committed. A pause, a seek or a rebalance applies to them as it does to buffered records.

So this module knows how far the user is:

* *handed over*: all that polls and loops have returned, without what a loop has not reached.
  `commit()` without arguments commits that.
* *covered*: handed over, and done as far as one can see. The user has asked for the next records,
  or has committed them. The last record of a loop is also covered if the loop was left without an
  exception; see `_record_loop.pyx`. An automatic commit commits that, and no more.

What was handed over and is not covered is *in hand*.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeAlias

from kafka_fast.consumer.reading.reading_side import ReadingSide
from kafka_fast.consumer.reading.record_handover import RecordHandover
from kafka_fast.records._consumer_records import ConsumerRecords, RecordIterator, iterate
from kafka_fast.types import OffsetAndMetadata, TopicPartition

Refill: TypeAlias = Callable[[RecordHandover], None]


class _InHand(enum.Enum):
    """The kind of the last thing that the user got, and may still be working on."""

    NOTHING = 0
    """The user has asked for the next records."""
    RECORDS = 1
    """The records of a poll."""
    ONE = 2
    """A record of a loop. The iterator knows whether the loop was left."""


class UserCursor:
    """How far a consumer's user is, and the records that loops left unread. User's thread only."""

    def __init__(self, reading: ReadingSide, refill: Refill) -> None:
        """Register `drop_partitions` with `reading`, which calls it when a topic was recreated.

        Args:
            reading: knows the positions, and reports recreated topics.
            refill: waits for the next records of an iteration, and takes them.
        """
        self._reading = reading
        self._refill = refill
        self._iterator: RecordIterator | None = None
        self._held: dict[TopicPartition, ConsumerRecords] = {}  # by paused partition
        self._handover = RecordHandover()  # the last one, under way or settled
        self._in_hand = _InHand.NOTHING
        # First offsets of what is in hand besides the last thing that the user got.
        self._begun: dict[TopicPartition, OffsetAndMetadata] = {}
        # What the user has committed by hand of the records in hand.
        self._committed: dict[TopicPartition, OffsetAndMetadata] = {}
        # Partitions that were dropped: what is in hand of them does not count any more.
        self._moved: set[TopicPartition] = set()
        # First offsets in hand when the user stopped reading: no commit passes them.
        self._given_up: dict[TopicPartition, OffsetAndMetadata] = {}
        # Records of a recreated topic are forgotten: their offsets mean nothing in the new topic.
        reading.forget_with(self.drop_partitions)

    # ---- getters ----

    def first_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the first unread offset of each partition that has unread records."""
        return _firsts({**self._rest().by_partition(), **self._held})

    def handed_over(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offset behind the last record that was handed over, by partition.

        Once `give_up` was called, records that were in hand do not count.
        """
        offsets = self._reading.buffer.positions()
        for partition, first in self.first_offsets().items():
            if partition in offsets:
                offsets[partition] = first
        return _before(_before(offsets, self._given_up), self._unsettled())

    def covered(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the offset behind the last covered record, by partition."""
        return _before(self.handed_over(), self._first_in_hand(is_interrupted=False))

    def _unsettled(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the positions before the records that a poll has taken but not yet returned.

        There are any only while a signal handler runs in the middle of that poll.
        """
        return {} if self._handover.is_settled else self._handover.before

    def _rest(self) -> ConsumerRecords:
        at = self._iterator
        return ConsumerRecords() if at is None else at.records[at.handed_out :]

    def _first_in_hand(self, *, is_interrupted: bool) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the first offset in hand, by partition; see `give_up` for the argument."""
        at = self._iterator
        if self._in_hand is _InHand.ONE and at is not None and at.is_left and not is_interrupted:
            return {}
        begun = {**self._last_taken(), **self._begun}
        return {
            partition: max(first, self._committed.get(partition, first)._replace(metadata=""))
            for partition, first in begun.items()
            if partition not in self._moved
        }

    def _last_taken(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the first offset, by partition, of the last thing that the user got."""
        if self._in_hand is _InHand.RECORDS:
            return {} if self._handover.rest is not None else self._handover.before
        at = self._iterator
        if self._in_hand is _InHand.NOTHING or at is None or not at.handed_out:
            return {}
        one = at.records[at.handed_out - 1]
        partition = TopicPartition(one.topic, one.partition)
        return {partition: OffsetAndMetadata(one.offset, one.leader_epoch)}

    # ---- commands ----

    def cover_handed_over(self) -> None:
        """Note that the user asks for more: all records that the user got before are covered."""
        self._note_in_hand(_InHand.NOTHING)
        if self._begun or self._committed or self._moved or self._given_up:
            self._begun, self._committed, self._moved, self._given_up = {}, {}, set(), {}

    def _note_in_hand(self, what: _InHand) -> None:
        """Note what the user has from now on.

        A partition may have been revoked, or moved, and come back before that in the same poll.
        """
        self._in_hand = what
        if self._iterator is not None and what is not _InHand.ONE:
            self._iterator.detach()  # a loop that goes on has to ask, which says that it has one
        if self._moved:
            self._moved = set()

    def note_committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Note offsets that the user has committed by hand."""
        self._committed.update(offsets)

    def give_up(self, *, is_interrupted: bool) -> None:
        """Note that the user stops reading: what is in hand is not handed over for commits.

        Args:
            is_interrupted: whether an exception is on its way. The last record of a loop that was
                left before is in hand, too: the user may have worked on it behind the loop.
        """
        self._given_up.update(self._first_in_hand(is_interrupted=is_interrupted))

    def interrupt(self) -> None:
        """Make the loop ask the consumer before its next record. Any thread."""
        if self._iterator is not None:
            self._iterator.interrupt()

    def the_iterator(self) -> RecordIterator:
        """Return what all loops take their records from: each goes on where the last was left."""
        if self._iterator is None:
            self._iterator = iterate(self._refill_one)
        return self._iterator

    def _refill_one(self) -> ConsumerRecords:
        handover = RecordHandover()
        try:
            self._refill(handover)
            return self.iterate_over_taken(handover)
        except BaseException:
            self.take_back(handover)
            raise

    def iterate_over_taken(self, handover: RecordHandover) -> ConsumerRecords:
        """Have the iterator go on with taken records; return these."""
        iterator = self.the_iterator()
        if handover.undo_rest is None:
            handover.undo_rest = partial(iterator.put, ConsumerRecords())
        records = self.settle(handover)
        iterator.put(records)
        self.note_reached()
        return records

    def reach_next_record(self) -> None:
        """Note that the next record goes to the user; wait for it if need be.

        Called after `cover_handed_over`.
        """
        if self.the_iterator().has_next():
            self.note_reached()
        else:
            self._refill_one()

    def note_reached(self) -> None:
        """Note that the iterator's next record goes to the user, after `cover_handed_over`."""
        self._note_in_hand(_InHand.ONE)

    def begin_handover(self, handover: RecordHandover) -> None:
        """Note the handover of a call that is about to take records."""
        self._handover = handover

    def try_take(self, most: int, handover: RecordHandover) -> bool:
        """Take records that an earlier iteration left; return whether there were any."""
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
        """Return the taken records, which the user now has."""
        # First: a signal handler that closes, in between, commits none of these records.
        self._note_in_hand(_InHand.RECORDS)
        return handover.settle()

    def take_back(self, handover: RecordHandover) -> None:
        """Give taken records back: the user did not get them. They come next, uncommitted."""
        handover.take_back()
        if self._handover is handover:  # otherwise another thread holds the lock
            self._note_in_hand(_InHand.NOTHING)

    # The position of a partition is behind its unread records. So these are dropped only after the
    # partition was moved or given up, and are never without a place in between: a signal handler
    # that closes there would commit them.

    def drop_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget all records of partitions that are not read any more, or of a recreated topic."""
        gone = frozenset(partitions)
        self._moved |= gone
        self.drop_unread(gone)

    def drop_unread(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop the unread records of partitions that the user has moved.

        What the user has of these partitions stays uncovered, wherever the position is now.
        """
        gone = frozenset(partitions)
        dropped, others = self._split_rest(gone)
        if dropped:
            self._iterate_over(others)
        for partition in gone & self._held.keys():
            del self._held[partition]

    def hold(self, partitions: Iterable[TopicPartition]) -> None:
        """Hold the unread records of paused partitions back."""
        held, others = self._split_rest(frozenset(partitions))
        if held:
            self._held.update(held)
            self._iterate_over(others)

    def release(self, partitions: Iterable[TopicPartition]) -> None:
        """Put records of resumed partitions back into the iteration."""
        back = {tp: self._held[tp] for tp in partitions if tp in self._held}
        if back:
            self._iterate_over([*back.values(), self._rest()])
            for partition in back:
                del self._held[partition]

    def _split_rest(
        self, partitions: frozenset[TopicPartition]
    ) -> tuple[dict[TopicPartition, ConsumerRecords], list[ConsumerRecords]]:
        """Return what the iteration still has of these partitions, and what it has of others."""
        those, others = {}, []
        for partition, records in self._rest().by_partition().items() if partitions else ():
            if partition in partitions:
                those[partition] = records
            else:
                others.append(records)
        return those, others

    def _iterate_over(self, several: Iterable[ConsumerRecords]) -> None:
        """Iterate over these records instead of the rest."""
        if self._in_hand is _InHand.ONE:  # `put` makes the iterator forget its last record
            self._begun = {**self._last_taken(), **self._begun}
        joined = [part for records in several for part in records.parts()]
        self.the_iterator().put(ConsumerRecords(joined))


def _before(
    offsets: dict[TopicPartition, OffsetAndMetadata],
    limits: Mapping[TopicPartition, OffsetAndMetadata],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return these offsets, none of them behind its limit."""
    for partition, limit in limits.items():
        if partition in offsets and limit.offset < offsets[partition].offset:
            offsets[partition] = limit
    return offsets


def _firsts(
    parts: Mapping[TopicPartition, ConsumerRecords],
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the offset of each partition's first record."""
    return {
        partition: OffsetAndMetadata(first.offset, first.leader_epoch)
        for partition, some in parts.items()
        for first in some[:1]
    }
