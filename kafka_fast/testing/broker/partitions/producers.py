"""What a partition remembers of idempotent producers, with the rules of Kafka's own state manager.

For each producer id: its epoch and its last five batches. A batch that repeats one of the five is
answered as the first time; anything else must continue the sequence exactly. A producer that the
partition does not know may start at any sequence: its records may have been deleted.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from kafka_fast.errors import InvalidProducerEpoch, OutOfOrderSequenceNumber

CACHED_BATCHES = 5  # also the most that an idempotent producer may have in flight
MAX_SEQUENCE = 2**31 - 1


def last_sequence(base_sequence: int, record_count: int) -> int:
    """Return the sequence of a batch's last record; after 2^31 - 1 comes 0."""
    return (base_sequence + record_count - 1) % (MAX_SEQUENCE + 1)


@dataclass(frozen=True, slots=True)
class WrittenBatch:
    """What is kept of a batch that was appended, to answer its repetition."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    max_timestamp: int
    """Unix ms."""


@dataclass(slots=True)
class _Producer:
    epoch: int
    batches: deque[WrittenBatch] = field(default_factory=lambda: deque(maxlen=CACHED_BATCHES))


class ProducerStates:
    """The producers that one partition knows."""

    def __init__(self) -> None:
        self._producers: dict[int, _Producer] = {}

    def __contains__(self, producer_id: int) -> bool:
        """Tell whether the partition knows the producer."""
        return producer_id in self._producers

    def find_repeated(
        self, producer_id: int, epoch: int, base_sequence: int, record_count: int
    ) -> WrittenBatch | None:
        """Return the cached batch that has exactly these sequences in this epoch, if any."""
        producer = self._producers.get(producer_id)
        if producer is None or producer.epoch != epoch:
            return None
        last = last_sequence(base_sequence, record_count)
        for batch in producer.batches:
            if batch.base_sequence == base_sequence and batch.last_sequence == last:
                return batch
        return None

    def check(self, producer_id: int, epoch: int, base_sequence: int) -> None:
        """Refuse a batch that does not continue what the producer wrote before.

        Raises:
            InvalidProducerEpoch: the epoch is older than the last one seen.
            OutOfOrderSequenceNumber: a record is missing, or was seen too long ago to be cached.
        """
        producer = self._producers.get(producer_id)
        if producer is None:
            return
        if epoch < producer.epoch:
            raise InvalidProducerEpoch(
                f"epoch {epoch} of producer {producer_id} is older than {producer.epoch}"
            )
        if epoch > producer.epoch:
            if base_sequence != 0:
                raise OutOfOrderSequenceNumber(
                    f"producer {producer_id} starts epoch {epoch} at sequence {base_sequence}"
                )
            return
        expected = last_sequence(producer.batches[-1].last_sequence, 2)
        if base_sequence != expected:
            raise OutOfOrderSequenceNumber(
                f"producer {producer_id} epoch {epoch} sent sequence {base_sequence}, "
                f"expected {expected}"
            )

    def add_batch(self, producer_id: int, epoch: int, batch: WrittenBatch) -> None:
        """Remember a batch that was appended; an epoch higher than the last forgets the older."""
        producer = self._producers.get(producer_id)
        if producer is None or producer.epoch != epoch:
            producer = self._producers[producer_id] = _Producer(epoch)
        producer.batches.append(batch)

    def next_sequence(self, producer_id: int) -> int:
        """Return the sequence with which a producer would go on, 0 if it is not known."""
        producer = self._producers.get(producer_id)
        return 0 if producer is None else last_sequence(producer.batches[-1].last_sequence, 2)

    def expire(self, producer_id: int) -> None:
        """Drop the producer, as expiry does after `producer.id.expiration.ms`."""
        self._producers.pop(producer_id, None)
