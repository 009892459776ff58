"""Which transactions a partition's log holds: the open ones, and where the aborted ones were.

Told by the batches themselves, as in Kafka: a transactional batch opens its producer's
transaction, a control batch ends it. Who coordinates them is in `broker/transactions`; tests may
plant others.
"""

from __future__ import annotations

from dataclasses import dataclass

from kafka_fast.record import ControlType, RecordBatch


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """An entry of the index that a fetch with read_committed is answered from."""

    producer_id: int
    first_offset: int
    """Of its first record in this partition."""
    last_offset: int
    """Of the marker that aborted it."""


class Transactions:
    """The transactions of one partition."""

    def __init__(self) -> None:
        self._open: dict[int, int] = {}  # producer id -> first offset
        self._aborted: list[AbortedTransaction] = []  # in the order of their markers

    def note(self, batch: RecordBatch, base_offset: int) -> None:
        """Open or end a transaction, as the batch that is appended at `base_offset` says."""
        if batch.is_control:
            self._end(batch, base_offset)
        elif batch.is_transactional:
            self._open.setdefault(batch.producer_id, base_offset)

    def open(self, producer_id: int, offset: int) -> None:
        """Open a producer's transaction without a batch; one that is open goes on."""
        self._open.setdefault(producer_id, offset)

    def close(self, producer_id: int) -> None:
        """End a producer's transaction without a marker in the log."""
        self._open.pop(producer_id, None)

    def first_open_offset(self, end_offset: int) -> int:
        """Return where the oldest open transaction begins, `end_offset` if none is open."""
        return min(self._open.values(), default=end_offset)

    def aborted_from(self, offset: int) -> list[AbortedTransaction]:
        """Return the aborted transactions that end at `offset` or later, in order of their markers.

        Kafka stops where its sparse offset index says that the fetched bytes end, which for a log
        of a few kilobytes is the end: a reader is told of transactions that it does not get to.
        """
        return [one for one in self._aborted if one.last_offset >= offset]

    def first_offset(self, producer_id: int) -> int:
        """Return where a producer's open transaction begins, -1: it has none here."""
        return self._open.get(producer_id, -1)

    def is_open(self, producer_id: int) -> bool:
        """Tell whether the producer has an open transaction in this partition."""
        return producer_id in self._open

    def _end(self, batch: RecordBatch, offset: int) -> None:
        kind = batch.control_record().type
        if kind not in (ControlType.ABORT, ControlType.COMMIT):
            return
        first = self._open.pop(batch.producer_id, None)
        if kind == ControlType.ABORT and first is not None:
            self._aborted.append(AbortedTransaction(batch.producer_id, first, offset))
