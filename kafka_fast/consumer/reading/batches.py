"""The iterator of `Consumer.batches`: one item per poll that returns records, without end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from kafka_fast.consumer.reading.record_handover import RecordHandover
from kafka_fast.records._consumer_records import ConsumerRecords

if TYPE_CHECKING:
    from kafka_fast.consumer.reading.user_cursor import Refill, UserCursor


class Batches:
    """An iterator over polls' records.

    This is not a generator, because an exception that is thrown into a generator may concern the
    records that it yielded last.
    """

    def __init__(self, cursor: UserCursor, refill: Refill) -> None:
        """Keep the arguments; the first `__next__` takes records.

        Args:
            cursor: knows which records are done.
            refill: waits for records, and takes them.
        """
        self._cursor = cursor
        self._refill = refill

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled and copied."""
        raise TypeError(
            "a loop over a consumer cannot be pickled or copied: make a Consumer where it is "
            "needed, and begin a loop there"
        )

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> ConsumerRecords:
        """Wait for records. Automatic commits cover all records that were returned before."""
        handover = RecordHandover()
        try:
            self._refill(handover)
            return self._cursor.settle(handover)
        except BaseException:  # Ctrl-C, too
            self._cursor.take_back(handover)
            raise
