"""Records on their way to the user. Records that do not reach the user go back to their source.

    FetchBuffer ── slices of streams ─────────────► ┌────────────────┐ ── settle ──► the user
    UserCursor ─── records that a loop left ──────► │ RecordHandover │
    FetchBuffer, UserCursor ◄─────────── take_back ─└────────────────┘

The outermost function of ours (`Consumer.poll`, for example) makes a handover before it takes
records, and returns the result of `settle`. If any exception is raised in that function or below
it, the function calls `take_back`, settled or not, because a call that raises returns no records.
So an exception such as Ctrl-C may come at any point. Before code takes records, it notes in the
handover how to bring them back.

Each of these functions has its own `try`. A context manager would not do, nor steps: a signal
handler may raise in `__exit__`, or in the driver, when the records have been settled already.

Thread: the user's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from kafka_fast.record._slices import RecordSlice
from kafka_fast.records._consumer_records import ConsumerRecords
from kafka_fast.types import OffsetAndMetadata, TopicPartition


class Taken(NamedTuple):
    """A note that is written before slices are taken from a partition."""

    partition: TopicPartition
    """The partition."""
    position: int
    """Its position before."""
    leader_epoch: int
    """The leader epoch at that position."""
    bring_back: Callable[[RecordHandover, Taken], None]
    """Gives the records back; called with the handover and this note."""
    place: Any
    """Data for `bring_back`."""


class RecordHandover:
    """The records that one call takes for its user."""

    __slots__ = ("is_settled", "rest", "rest_before", "slices", "taken", "undo_rest")

    def __init__(self) -> None:
        self.slices: list[RecordSlice] = []
        """Slices of fetched records."""
        self.taken: list[Taken] = []
        """One note for each partition that these slices come from."""
        self.rest: ConsumerRecords | None = None
        """Instead of slices: records that an earlier iteration did not reach."""
        self.rest_before: Mapping[TopicPartition, OffsetAndMetadata] | None = None
        """First offset in `rest` by partition."""
        self.undo_rest: Callable[[], None] | None = None
        """Gives the iteration what it had before."""
        self.is_settled = False
        """Whether `settle` has returned the records."""

    def __bool__(self) -> bool:
        """Tell whether there are records."""
        return bool(self.slices) or bool(self.rest)

    @property
    def before(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The position, before the call, of each partition whose records were taken."""
        before = {} if self.rest_before is None else dict(self.rest_before)
        for note in self.taken:
            before.setdefault(note.partition, OffsetAndMetadata(note.position, note.leader_epoch))
        return before

    def settle(self) -> ConsumerRecords:
        """Return the taken records, which now count as handed over."""
        records = ConsumerRecords(self.slices) if self.rest is None else self.rest
        self.is_settled = True
        return records

    def take_back(self) -> None:
        """Give the taken records back; they come next."""
        while self.taken:
            taken = self.taken.pop()
            taken.bring_back(self, taken)
        if self.undo_rest is not None:
            self.undo_rest()
        self.rest, self.rest_before, self.undo_rest = None, None, None
        self.is_settled = False
