"""What a partition remembers of producers, with the rules of Kafka's own state manager.

For each producer id: its epoch, its last five batches, and who ended its last transaction. A batch
that repeats one of the five is answered as the first time; anything else must continue the sequence
exactly. A producer that the partition does not know may start at any sequence: its records may have
been deleted. In version 2 of transactions it starts at 0.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from kafka_fast.errors import (
    InvalidProducerEpoch,
    OutOfOrderSequenceNumber,
    TransactionCoordinatorFenced,
)

CACHED_BATCHES = 5  # also the most that an idempotent producer may have in flight
MAX_SEQUENCE = 2**31 - 1
NO_EPOCH = -1
_EPOCHS_GROW_FROM_VERSION = 2  # of transactions: their markers have an epoch of their own


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
class Producer:
    """One producer as a partition knows it."""

    producer_id: int
    epoch: int
    batches: deque[WrittenBatch] = field(default_factory=lambda: deque(maxlen=CACHED_BATCHES))
    """Of this epoch."""
    coordinator_epoch: int = NO_EPOCH
    """Of the coordinator that ended the last transaction."""
    last_timestamp: int = -1
    """Unix ms, of the last record or marker."""

    @property
    def last_sequence(self) -> int:
        """Return the sequence of the last record, -1: none of this epoch."""
        return self.batches[-1].last_sequence if self.batches else -1

    @property
    def next_sequence(self) -> int:
        """Return the sequence with which the producer goes on."""
        return last_sequence(self.batches[-1].last_sequence, 2) if self.batches else 0


@dataclass(slots=True)
class _Beginning:
    """What was tried to begin a transaction with (Kafka's VerificationStateEntry)."""

    epoch: int
    lowest_sequence: int
    starts_at_zero: bool


class ProducerStates:
    """The producers that one partition knows."""

    def __init__(self) -> None:
        self._producers: dict[int, Producer] = {}
        self._beginnings: dict[int, _Beginning] = {}  # by producer id

    def __contains__(self, producer_id: int) -> bool:
        """Tell whether the partition knows the producer."""
        return producer_id in self._producers

    def __iter__(self) -> Iterator[Producer]:
        """Iterate over the producers."""
        return iter(self._producers.values())

    def epoch(self, producer_id: int) -> int:
        """Return the epoch of a producer, NO_EPOCH if it is not known."""
        producer = self._producers.get(producer_id)
        return NO_EPOCH if producer is None else producer.epoch

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
        self.check_epoch(producer_id, epoch)
        producer = self._producers.get(producer_id)
        beginning = self._beginnings.get(producer_id)
        if beginning is not None and (
            base_sequence > beginning.lowest_sequence
            or (beginning.starts_at_zero and producer is None and base_sequence != 0)
        ):
            raise OutOfOrderSequenceNumber(
                f"producer {producer_id} begins a transaction at sequence {base_sequence}, "
                f"not at {0 if beginning.starts_at_zero else beginning.lowest_sequence}"
            )
        if producer is None:
            return
        if epoch > producer.epoch:
            if base_sequence != 0:
                raise OutOfOrderSequenceNumber(
                    f"producer {producer_id} starts epoch {epoch} at sequence {base_sequence}"
                )
            return
        if base_sequence != producer.next_sequence:
            raise OutOfOrderSequenceNumber(
                f"producer {producer_id} epoch {epoch} sent sequence {base_sequence}, "
                f"expected {producer.next_sequence}"
            )

    def check_epoch(self, producer_id: int, epoch: int) -> None:
        """Refuse an epoch that is over.

        Raises:
            InvalidProducerEpoch
        """
        known = self.epoch(producer_id)
        if epoch < known:
            raise InvalidProducerEpoch(
                f"epoch {epoch} of producer {producer_id} is older than {known}"
            )

    def add_batch(self, producer_id: int, epoch: int, batch: WrittenBatch) -> None:
        """Remember a batch that was appended; an epoch higher than the last forgets the older."""
        producer = self._at_epoch(producer_id, epoch)
        producer.batches.append(batch)
        producer.last_timestamp = batch.max_timestamp
        self._beginnings.pop(producer_id, None)

    def next_sequence(self, producer_id: int) -> int:
        """Return the sequence with which a producer would go on, 0 if it is not known."""
        producer = self._producers.get(producer_id)
        return 0 if producer is None else producer.next_sequence

    def expire(self, producer_id: int) -> None:
        """Drop the producer, as expiry does after `producer.id.expiration.ms`."""
        self._producers.pop(producer_id, None)

    # ---- transactions ----

    def begin(
        self, producer_id: int, epoch: int, base_sequence: int, *, starts_at_zero: bool
    ) -> None:
        """Note the batch that may begin a transaction, before anything else is known of it.

        Should it be refused, no later batch can take its place. As in Kafka the first one decides
        for those after it whether they are of version 2.

        Args:
            producer_id: of the batch.
            epoch: of the same.
            base_sequence: of the same.
            starts_at_zero: the request is of version 2 of transactions.
        """
        known = self._beginnings.get(producer_id)
        if known is None:
            self._beginnings[producer_id] = _Beginning(epoch, base_sequence, starts_at_zero)
        elif epoch > known.epoch:
            known.epoch, known.lowest_sequence = epoch, base_sequence
        elif epoch == known.epoch:
            known.lowest_sequence = min(known.lowest_sequence, base_sequence)

    def touch(self, producer_id: int, epoch: int, unix_ms: int) -> None:
        """Remember a write that has no sequence: offsets that a transaction commits."""
        self._at_epoch(producer_id, epoch).last_timestamp = unix_ms

    def check_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, version: int, is_open: bool
    ) -> None:
        """Refuse a marker of a former epoch, or of a former coordinator.

        Args:
            producer_id: whose transaction is to end.
            epoch: of the marker.
            coordinator_epoch: of who sends it.
            version: of transactions; from 2 on the marker of an open one has an epoch of its own.
            is_open: whether there is an open one.

        Raises:
            InvalidProducerEpoch, TransactionCoordinatorFenced
        """
        producer = self._producers.get(producer_id)
        if producer is None:
            return
        self.check_epoch(producer_id, epoch)
        if version >= _EPOCHS_GROW_FROM_VERSION and is_open and epoch == producer.epoch:
            raise InvalidProducerEpoch(f"epoch {epoch} of producer {producer_id} is still open")
        if coordinator_epoch < producer.coordinator_epoch:
            raise TransactionCoordinatorFenced(
                f"coordinator epoch {coordinator_epoch} is older than {producer.coordinator_epoch}"
            )

    def add_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, unix_ms: int
    ) -> None:
        """Remember a marker; one of a new epoch forgets the batches of the old."""
        producer = self._at_epoch(producer_id, epoch)
        producer.coordinator_epoch = coordinator_epoch
        producer.last_timestamp = unix_ms

    def _at_epoch(self, producer_id: int, epoch: int) -> Producer:
        producer = self._producers.get(producer_id)
        if producer is None:
            producer = self._producers[producer_id] = Producer(producer_id, epoch)
        elif producer.epoch != epoch:
            producer.epoch = epoch
            producer.batches.clear()
        return producer
