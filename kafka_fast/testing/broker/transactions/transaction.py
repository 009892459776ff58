"""One transactional id as its coordinator keeps it: identity, state, partitions. Pure: no clock.

    Empty ──add──► Ongoing ──end──► PrepareCommit ──all markers──► CompleteCommit ──add──► Ongoing
      ▲               │ └─────────► PrepareAbort  ──all markers──► CompleteAbort  ──add──► Ongoing
      │               └─fence─────►      ▲ version 2: also an abort of nothing
      └── a new epoch, from each state that is neither Ongoing nor Prepare…

Version 1 of the protocol leaves the epoch to InitProducerId. In version 2 each end brings the next
epoch, so a request that comes late belongs to an epoch that is over (KIP-890). The rules and their
order are those of Kafka's TransactionCoordinator and TransactionMetadata.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import NoReturn

from kafka_fast.errors import (
    BrokerError,
    ConcurrentTransactions,
    InvalidProducerIdMapping,
    InvalidTxnState,
    ProducerFenced,
    UnknownServerError,
    UnsupportedVersion,
)

NONE = -1  # no producer id, no epoch, no time
MAX_EPOCH = 2**15 - 1  # only to fence with; no producer gets this one
BUMPS_FROM_VERSION = 2  # of the protocol: since then each end brings a new epoch

TopicPartition = tuple[str, int]


class State(enum.Enum):
    """Kafka's names of a transaction's states."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"  # no transaction is seen in this state, nor in the next: requests may name them
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


PREPARED = frozenset({State.PREPARE_COMMIT, State.PREPARE_ABORT})


@dataclass(slots=True)
class Transaction:
    """A transactional id, its producer, and the transaction that this one has open, if any."""

    transactional_id: str
    producer_id: int
    timeout_ms: int
    epoch: int = NONE
    last_epoch: int = NONE
    """The epoch before this one, if its producer asked for the new one itself."""
    previous_id: int = NONE
    """The producer id before this one."""
    next_id: int = NONE
    """The producer id that the producer goes on with when the markers are written."""
    state: State = State.EMPTY
    partitions: dict[TopicPartition, None] = field(default_factory=dict)
    """That were added; while the transaction ends, those that lack their marker."""
    started_ms: int = NONE
    """Unix ms of the first partition."""
    version: int = 0
    """Of the protocol that the last end was decided by."""
    is_stuck: bool = False
    """A step could not be written (see `_refuse_version`): Kafka does nothing for it any more."""

    @property
    def is_changing(self) -> bool:
        """Tell whether a step is not done yet: markers are missing. Then nothing else begins."""
        return self.is_stuck or self.state in PREPARED

    @property
    def may_expire(self) -> bool:
        """Tell whether no transaction is open, nor about to end."""
        return self.state is not State.ONGOING and not self.is_changing

    # ---- identity ----

    @property
    def is_exhausted(self) -> bool:
        """Tell whether the next epoch is kept for fencing."""
        return self.epoch >= MAX_EPOCH - 1

    def renew(
        self, timeout_ms: int, expected: tuple[int, int] | None, new_id: Callable[[], int]
    ) -> bool:
        """Go on to a new epoch; False: an open transaction has to be aborted first.

        Args:
            timeout_ms: of the transactions that follow.
            expected: producer id and epoch of a producer that goes on after an error (KIP-360).
            new_id: makes a producer id.

        Raises:
            ProducerFenced: `expected` is over.
            ConcurrentTransactions: the transaction is about to end.
        """
        self._check_quiet()
        if expected is not None and not self._may_renew(*expected):
            raise ProducerFenced(f"{expected} is not the producer of {self.transactional_id!r}")
        if self.state is State.ONGOING:
            return False
        if self.is_exhausted and (expected is None or expected[1] == self.epoch):
            self.last_epoch = NONE if expected is None else self.epoch
            self.previous_id, self.producer_id, self.epoch = self.producer_id, new_id(), 0
        else:
            self.epoch, self.last_epoch = self._next_epoch(expected)
            self.previous_id = self.producer_id
        self.timeout_ms = timeout_ms
        self.started_ms = NONE
        self.state = State.EMPTY
        return True

    def _may_renew(self, producer_id: int, epoch: int) -> bool:
        return (
            self.epoch == NONE
            or producer_id == self.producer_id
            or (producer_id == self.previous_id and epoch >= MAX_EPOCH - 1)
        )

    def _next_epoch(self, expected: tuple[int, int] | None) -> tuple[int, int]:
        """Return the epoch to begin, and what is to be known as the last one."""
        if self.is_exhausted:
            raise UnknownServerError("Kafka did not expect another epoch than the last here")
        if expected is None:
            return self.epoch + 1, NONE
        epoch = expected[1]
        if self.epoch == NONE or epoch == self.epoch:
            return self.epoch + 1, self.epoch
        if epoch == self.last_epoch:  # its answer was lost
            return self.epoch, self.last_epoch
        raise ProducerFenced(f"epoch {epoch} of {self.transactional_id!r} is not {self.epoch}")

    def _check_quiet(self) -> None:
        if self.is_changing:
            raise ConcurrentTransactions(f"{self.transactional_id!r} is changing")

    def _check_identity(self, producer_id: int, epoch: int) -> None:
        if producer_id != self.producer_id:
            raise InvalidProducerIdMapping(
                f"producer {producer_id} is not {self.producer_id} of {self.transactional_id!r}"
            )
        if epoch != self.epoch:
            raise ProducerFenced(f"epoch {epoch} of {self.transactional_id!r} is not {self.epoch}")

    @property
    def next_identity(self) -> tuple[int, int]:
        """Return producer id and epoch with which the producer goes on after the end."""
        return (self.producer_id, self.epoch) if self.next_id == NONE else (self.next_id, 0)

    # ---- partitions ----

    def add_partitions(
        self,
        producer_id: int,
        epoch: int,
        partitions: Collection[TopicPartition],
        unix_ms: int,
        *,
        written: int | None = None,
    ) -> None:
        """Take partitions into the transaction, and begin one with the first of them.

        Args:
            producer_id: of the producer that writes to them.
            epoch: of the same.
            partitions: to take in.
            unix_ms: the time, at which a transaction may begin.
            written: version of transactions that the cluster can write, for a step of version 2;
                None: the step is of version 1.

        Raises:
            BrokerError: the answer.
        """
        self._check_quiet()
        self._check_identity(producer_id, epoch)
        if self.state is State.ONGOING and self.partitions.keys() >= set(partitions):
            return
        if written == 0:
            raise self._refuse_version()
        if self.state is not State.ONGOING:
            self.state = State.ONGOING
            self.started_ms = unix_ms
        self.partitions.update(dict.fromkeys(partitions))

    def check_producer(self, producer_id: int, epoch: int) -> None:
        """Refuse a producer that cannot have a transaction open.

        Raises:
            BrokerError: the answer.
        """
        self._check_identity(producer_id, epoch)
        self._check_quiet()

    # ---- the end ----

    def decide_end(
        self,
        producer_id: int,
        epoch: int,
        *,
        commit: bool,
        version: int,
        unix_ms: int,
        new_id: Callable[[], int],
        written: int,
    ) -> None:
        """Decide how the transaction ends, or confirm what was decided.

        Args:
            producer_id: of the producer that asks.
            epoch: of the same.
            commit: whether it is to take effect.
            version: of the protocol that the producer speaks.
            unix_ms: the time, for an abort that no partition was added for.
            new_id: makes a producer id, for the epoch after the last one.
            written: version of transactions that the cluster can write.

        Raises:
            BrokerError: the answer.
        """
        if version >= BUMPS_FROM_VERSION:
            if self._may_end_epoch(producer_id, epoch, commit):
                if written == 0:
                    raise self._refuse_version()
                if self.state is not State.ONGOING:
                    self.started_ms = unix_ms  # nothing was added: the producer does not know
                self._prepare(commit)
                self._bump(new_id)
            return
        self._check_identity(producer_id, epoch)
        self._check_quiet()
        complete = State.COMPLETE_COMMIT if commit else State.COMPLETE_ABORT
        if self.state is complete:
            return
        if self.state is not State.ONGOING:
            self._refuse_end(commit)
        self._prepare(commit)
        self.version = 0

    def _may_end_epoch(self, producer_id: int, epoch: int, commit: bool) -> bool:
        """Tell whether an end of version 2 is new; False: it was decided like that before.

        A producer repeats a request whose answer was lost with the epoch before the present one, or
        with the last one of all, if it goes on with another producer id.
        """
        self._check_quiet()
        overflowed = producer_id == self.previous_id and epoch == MAX_EPOCH - 1 and self.epoch == 0
        repeats = self.epoch == epoch + 1 or overflowed
        if producer_id != self.producer_id and not overflowed:
            raise InvalidProducerIdMapping(
                f"producer {producer_id} is not {self.producer_id} of {self.transactional_id!r}"
            )
        complete = self.state in (State.COMPLETE_COMMIT, State.COMPLETE_ABORT)
        if epoch != self.epoch and not (complete and repeats):
            raise ProducerFenced(f"epoch {epoch} of {self.transactional_id!r} is not {self.epoch}")
        if complete and repeats:
            if commit is not (self.state is State.COMPLETE_COMMIT):
                self._refuse_end(commit)
            return False
        if self.state is not State.ONGOING and commit:
            self._refuse_end(commit)
        return True

    def fence(self, version: int, new_id: Callable[[], int]) -> None:
        """Abort the open transaction in the place of its producer, whose epoch is over.

        Args:
            version: of the protocol that the cluster has.
            new_id: makes a producer id, for the epoch after the last one.
        """
        self._prepare(False)
        if version >= BUMPS_FROM_VERSION:
            self._bump(new_id)
        else:
            self.epoch, self.last_epoch, self.version = self.epoch + 1, NONE, 0

    def _prepare(self, commit: bool) -> None:
        self.state = State.PREPARE_COMMIT if commit else State.PREPARE_ABORT

    def _bump(self, new_id: Callable[[], int]) -> None:
        self.next_id = new_id() if self.is_exhausted else NONE
        self.epoch, self.last_epoch = self.epoch + 1, self.epoch
        self.version = BUMPS_FROM_VERSION

    def _refuse_end(self, commit: bool) -> NoReturn:
        raise InvalidTxnState(
            f"{self.transactional_id!r} is {self.state.value}: no {'commit' if commit else 'abort'}"
        )

    def complete(self) -> None:
        """Note that all markers are written."""
        self.state = (
            State.COMPLETE_COMMIT if self.state is State.PREPARE_COMMIT else State.COMPLETE_ABORT
        )
        self.partitions.clear()
        if self.next_id != NONE:
            self.previous_id, self.producer_id = self.producer_id, self.next_id
            self.epoch, self.next_id = 0, NONE

    # ---- what Kafka cannot write ----

    def _refuse_version(self) -> BrokerError:
        """Return the error of a step of version 2 where the cluster has version 0.

        Kafka notices only when it writes the step down, and never gets over it: until the id moves
        to another coordinator, whatever is asked for it is CONCURRENT_TRANSACTIONS.
        """
        self.is_stuck = True
        return UnsupportedVersion("transaction.version is 0: no step of version 2 can be written")
