"""What polls return, one after the other, for ever: `Consumer.batches`."""

from __future__ import annotations

from kafka_fast.consumer.record_handover import RecordHandover
from kafka_fast.consumer.unread import Refill, Unread
from kafka_fast.dataplane.fetch._consumer_records import ConsumerRecords


class Batches:
    """An iterator, no generator: what is raised in a generator may concern what it yielded last."""

    def __init__(self, unread: Unread, refill: Refill) -> None:
        """Begin with nothing read.

        Args:
            unread: knows what is done.
            refill: waits for records, and takes them.
        """
        self._unread = unread
        self._refill = refill

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> ConsumerRecords:
        """Wait for records. All before are done."""
        handover = RecordHandover()
        try:
            self._refill(handover)
            return self._unread.settle(handover)
        except BaseException:  # Ctrl-C, too
            self._unread.take_back(handover)
            raise
