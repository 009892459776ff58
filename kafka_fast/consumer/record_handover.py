"""Records on their way to the user, which come back if they do not reach them.

    Intake ── slices of streams ──────────────────► ┌────────────────┐ ── settle ──► the user
    Unread ── what an iteration had not reached ──► │ RecordHandover │
    where it all came from ◄──────────── take_back ─└────────────────┘

The frame of ours that is nearest to the user makes one before anything is taken, and returns what
`settle` returns. Whatever is raised in that frame, or below it, makes it call `take_back`, settled
or not: a call that raises has returned nothing. So an exception may come from anywhere in these
frames, as Ctrl-C does. Whoever takes something notes first how to bring it back.

Thread: the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kafka_fast.dataplane.fetch._consumer_records import ConsumerRecords
from kafka_fast.record._slices import RecordSlice
from kafka_fast.types import OffsetAndMetadata, TopicPartition


class Taken(NamedTuple):
    """What was noted before slices were taken from a partition.

    Attributes:
        partition: from which.
        position: where it stood.
        leader_epoch: there.
        bring_back: called with the handover and this note.
        place: what that function needs to know.
    """

    partition: TopicPartition
    position: int
    leader_epoch: int
    bring_back: Callable[[RecordHandover, Taken], None]
    place: Any


class RecordHandover:
    """What one call takes for its user."""

    __slots__ = ("is_settled", "rest", "rest_before", "slices", "taken", "undo_rest")

    def __init__(self) -> None:
        """Begin with nothing taken."""
        self.slices: list[RecordSlice] = []
        """Of what was fetched."""
        self.taken: list[Taken] = []
        """Where these come from."""
        self.rest: ConsumerRecords | None = None
        """Or what comes of an iteration that was left."""
        self.rest_before: Mapping[TopicPartition, OffsetAndMetadata] | None = None
        self.undo_rest: Callable[[], None] | None = None
        self.is_settled = False
        """Whether these records are on the last step of their way."""

    def __bool__(self) -> bool:
        """Tell whether there are records."""
        return bool(self.slices) or bool(self.rest)

    @property
    def before(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Where each partition stood of which something was taken."""
        before = {} if self.rest_before is None else dict(self.rest_before)
        for it in self.taken:
            before.setdefault(it.partition, OffsetAndMetadata(it.position, it.leader_epoch))
        return before

    def settle(self) -> ConsumerRecords:
        """Return what was taken: from here on it counts as handed over."""
        records = ConsumerRecords(self.slices) if self.rest is None else self.rest
        self.is_settled = True
        return records

    def take_back(self) -> None:
        """Nobody got what was taken: it comes next."""
        while self.taken:
            taken = self.taken.pop()
            taken.bring_back(self, taken)
        if self.undo_rest is not None:
            self.undo_rest()
        self.rest, self.rest_before, self.undo_rest = None, None, None
        self.is_settled = False
