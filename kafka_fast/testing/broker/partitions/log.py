"""The log of one partition: record batches in offset order, kept as the bytes that came.

Works per batch, never per record. Batches arrive checked and with their offsets assigned; who
wrote them is the business of producers.py, whose transaction they are in that of transactions.py.
Between two batches offsets may be missing, as compaction leaves a log.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kafka_fast.testing.broker.partitions.transactions import Transactions

Piece = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class StoredBatch:
    """One record batch of the log."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    """Unix ms of its latest record."""
    data: bytes | bytearray
    """Header and records, offset and leader epoch patched in."""


class PartitionLog:
    """Batches of one partition between `start_offset` and `end_offset`."""

    def __init__(self, retention_bytes: int = -1) -> None:
        """Make an empty log; whole batches beyond `retention_bytes` leave at the front (-1: never).

        The newest batch stays whatever its size.
        """
        self.start_offset = 0  # of the first record that can be read
        self.end_offset = 0  # that the next record gets
        self.size = 0  # bytes of all batches
        self.retention_bytes = retention_bytes
        self.transactions = Transactions()
        self._batches: list[StoredBatch] = []
        self._last_offsets: list[int] = []  # of each batch, for the binary search
        self._epoch_starts: list[tuple[int, int]] = []  # (leader epoch, first offset), ascending

    def __iter__(self) -> Iterator[StoredBatch]:
        """Iterate over the batches, oldest first."""
        return iter(self._batches)

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self._batches)

    @property
    def last_stable_offset(self) -> int:
        """Return the offset up to which every transaction has ended."""
        return self.transactions.first_open_offset(self.end_offset)

    def begin_epoch(self, leader_epoch: int) -> None:
        """Note that what is appended from now on belongs to this leader epoch."""
        if self._epoch_starts and self._epoch_starts[-1][1] == self.end_offset:
            self._epoch_starts.pop()  # that leader wrote nothing
        self._epoch_starts.append((leader_epoch, self.end_offset))

    def append(self, batch: StoredBatch) -> None:
        """Add the batch at the end; beyond `end_offset` it leaves a gap before itself."""
        if batch.base_offset < self.end_offset:
            raise ValueError(f"batch at {batch.base_offset}, log ends at {self.end_offset}")
        self._batches.append(batch)
        self._last_offsets.append(batch.last_offset)
        self.end_offset = batch.last_offset + 1
        self.size += len(batch.data)
        if 0 <= self.retention_bytes < self.size:
            self._retain()

    def replace(self, batches: Iterable[StoredBatch]) -> None:
        """Put these batches in the place of all there were: what compaction has left of them."""
        self._batches = list(batches)
        self._last_offsets = [batch.last_offset for batch in self._batches]
        self.size = sum(len(batch.data) for batch in self._batches)

    def read(self, offset: int, upper: int, max_bytes: int, at_least_one: bool) -> list[Piece]:
        """Return the bytes from the batch that holds `offset` on, cut at `max_bytes`.

        They come in pieces, uncopied: whoever waits for more of them throws them away. As in Kafka
        the cut may go through the last batch but never through the first: that one is
        left out if it is larger, or with `at_least_one` returned whole (KIP-74).

        Args:
            offset: where to start; if it is missing, at the next batch.
            upper: batches that begin here or later are not for the reader.
            max_bytes: of all batches together.
            at_least_one: whether the first batch comes whatever its size.
        """
        first = bisect_left(self._last_offsets, offset)
        if first == len(self._batches) or self._batches[first].base_offset >= upper:
            return []
        if max_bytes < len(self._batches[first].data):
            return [self._batches[first].data] if at_least_one else []
        pieces: list[Piece] = []
        for i in range(first, len(self._batches)):
            data = self._batches[i].data
            if self._batches[i].base_offset >= upper:
                break
            if len(data) >= max_bytes:
                pieces.append(memoryview(data)[:max_bytes])
                break
            pieces.append(data)
            max_bytes -= len(data)
        return pieces

    def batches_reaching(self, timestamp: int) -> Iterator[StoredBatch]:
        """Iterate over the batches that claim a record at `timestamp` (Unix ms) or later."""
        return (batch for batch in self._batches if batch.max_timestamp >= timestamp)

    def batch_of_max_timestamp(self) -> StoredBatch | None:
        """Return the first batch whose latest record is the latest of the log."""
        return max(self._batches, key=lambda batch: batch.max_timestamp, default=None)

    def epoch_at(self, offset: int) -> int:
        """Return the leader epoch under which `offset` was written, -1 if the log never held it."""
        index = bisect_right([start for _, start in self._epoch_starts], offset) - 1
        return self._epoch_starts[index][0] if index >= 0 else -1

    def end_of_epoch(self, leader_epoch: int) -> tuple[int, int]:
        """Return which epoch ended where, as seen from `leader_epoch` (KIP-320).

        The epoch is the asked one or the last before it that wrote something; its end is where the
        next one begins, of the current epoch the end of the log. (-1, -1): it is not known here.
        """
        if leader_epoch < 0 or not self._epoch_starts or leader_epoch > self._epoch_starts[-1][0]:
            return -1, -1
        if leader_epoch == self._epoch_starts[-1][0]:
            return leader_epoch, self.end_offset
        index = bisect_right([epoch for epoch, _ in self._epoch_starts], leader_epoch)
        end = self._epoch_starts[index][1]
        return (self._epoch_starts[index - 1][0], end) if index else (leader_epoch, end)

    def truncate(self, offset: int) -> None:
        """Drop the records from `offset` on; a batch that holds `offset` goes as a whole."""
        if not self.start_offset <= offset <= self.end_offset:
            raise ValueError(f"{offset} is outside {self.start_offset} to {self.end_offset}")
        count = bisect_left(self._last_offsets, offset)
        if count < len(self._batches):
            offset = min(offset, self._batches[count].base_offset)
        self.replace(self._batches[:count])
        self.end_offset = max(offset, self.start_offset)
        self._epoch_starts = [one for one in self._epoch_starts if one[1] < self.end_offset]

    def delete_before(self, offset: int) -> None:
        """Move the start of the log up to `offset`; batches wholly below it are dropped."""
        if not self.start_offset <= offset <= self.end_offset:
            raise ValueError(f"{offset} is outside {self.start_offset} to {self.end_offset}")
        self.start_offset = offset
        self._drop_front(bisect_left(self._last_offsets, offset))
        older = bisect_right([start for _, start in self._epoch_starts], offset)
        if older > 0:  # the epoch that wrote the new first record begins there now
            self._epoch_starts[:older] = [(self._epoch_starts[older - 1][0], offset)]

    def _retain(self) -> None:
        excess = self.size - self.retention_bytes
        count = 0
        while count < len(self._batches) - 1 and excess > 0:
            excess -= len(self._batches[count].data)
            count += 1
        if count:
            self.start_offset = self._batches[count].base_offset
            self._drop_front(count)

    def _drop_front(self, count: int) -> None:
        self.size -= sum(len(batch.data) for batch in self._batches[:count])
        del self._batches[:count]
        del self._last_offsets[:count]
