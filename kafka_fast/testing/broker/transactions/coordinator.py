"""The transactions of one broker: those whose partition of the transactions' topic it leads.

    a request ─► Transaction, which all brokers share ─► `refresh` ─► markers ─► partitions' leaders
                                                             └─► a timer, while one may time out

What a transaction became is seen by the next `refresh` of its coordinator, whoever changed it: a
client's request here, or a partition's leader that adds the partition itself. A marker that its
leader cannot write now is written when something has changed; one that a fault delays or refuses,
later. A coordinator that takes over goes on with the markers that are missing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kafka_fast.errors import (
    BrokerError,
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidRequest,
    InvalidTransactionTimeout,
    NotCoordinator,
    TransactionCoordinatorFenced,
)
from kafka_fast.testing.broker.faults import DelayRule, ErrorRule, Faults
from kafka_fast.testing.broker.groups.settings import OFFSETS_TOPIC
from kafka_fast.testing.broker.partitions.cluster_topics import Partition
from kafka_fast.testing.broker.partitions.coordinating import Leading
from kafka_fast.testing.broker.partitions.markers import Marker, write_marker
from kafka_fast.testing.broker.state import ClusterState
from kafka_fast.testing.broker.timers import Timers
from kafka_fast.testing.broker.transactions.offsets import end_offsets
from kafka_fast.testing.broker.transactions.settings import TRANSACTIONS_TOPIC, TransactionSettings
from kafka_fast.testing.broker.transactions.transaction import (
    PREPARED,
    State,
    TopicPartition,
    Transaction,
)
from kafka_fast.testing.broker.versions import WRITE_TXN_MARKERS

_MARKER_AGAIN = 0.1  # seconds, after a leader has refused one


@dataclass(frozen=True, slots=True)
class _Sweep:
    """Key of the timer that looks for transactions that have timed out."""


@dataclass(frozen=True, slots=True)
class _LateMarker:
    """Key of the timer of a marker that is written later."""

    transactional_id: str
    partition: TopicPartition


class TransactionCoordinator:
    """The transaction coordinator of one broker."""

    def __init__(self, node_id: int, state: ClusterState, timers: Timers, faults: Faults) -> None:
        """Coordinate nothing before `refresh` has seen what the broker leads.

        Args:
            node_id: of the broker.
            state: where the transactions are kept.
            timers: of the broker.
            faults: delays and errors of WriteTxnMarkers strike the markers, too.
        """
        self._state = state
        self._timers = timers
        self._faults = faults
        self._leading = Leading(node_id, TRANSACTIONS_TOPIC)
        self._seen_changes = -1
        self._sweeps = False  # whether the timer runs
        self._late: set[_LateMarker] = set()
        self._given_up: set[str] = set()  # transactional ids whose markers a leader has fenced

    @property
    def settings(self) -> TransactionSettings:
        """Return the settings of all transactions."""
        return self._state.settings.transactions

    # ---- leading ----

    def refresh(self, now: float) -> None:
        """Take over what the broker leads now, and write the markers that can be written."""
        changed = self._leading.take_changes(self._state)
        for transaction in self._state.transactions.values():
            if self._leading.partition_of(transaction.transactional_id) in changed:
                self._reload(transaction)
        if self._seen_changes == self._state.changes:
            return
        self._seen_changes = self._state.changes
        for transaction in list(self._state.transactions.values()):
            if not self._leading.coordinates(transaction.transactional_id):
                continue
            if transaction.state in PREPARED:
                self._write_markers(transaction, now)
            elif transaction.state is State.ONGOING:
                self._sweep_later(now)

    def forget_all(self) -> None:
        """Forget everything, as a broker does that dies."""
        self._leading.forget_all()
        self._seen_changes = -1
        self._sweeps = False
        self._late.clear()
        self._given_up.clear()

    def _reload(self, transaction: Transaction) -> None:
        """Forget what was under way for a transaction that came, or that went."""
        transaction.is_stuck = False
        self._given_up.discard(transaction.transactional_id)
        for late in [
            one for one in self._late if one.transactional_id == transaction.transactional_id
        ]:
            self._timers.cancel(late)
            self._late.discard(late)
        self._seen_changes = -1

    # ---- requests ----

    def check_coordinates(self, transactional_id: str, now: float) -> None:
        """Refuse a transactional id that is coordinated elsewhere.

        Raises:
            NotCoordinator
        """
        self.refresh(now)
        if not self._leading.coordinates(transactional_id):
            raise NotCoordinator(f"{transactional_id!r} is coordinated elsewhere")

    def find(self, transactional_id: str, now: float) -> Transaction | None:
        """Return what is known of a transactional id, if anything is.

        Raises:
            NotCoordinator
        """
        self.check_coordinates(transactional_id, now)
        return self._state.transactions.get(transactional_id)

    def transactions(self, now: float) -> list[Transaction]:
        """Return all that the broker coordinates."""
        self.refresh(now)
        return [
            one
            for one in self._state.transactions.values()
            if self._leading.coordinates(one.transactional_id)
        ]

    def renew(
        self, transactional_id: str, timeout_ms: int, expected: tuple[int, int] | None, now: float
    ) -> Transaction | None:
        """Give a producer its next epoch; None: its open transaction is aborted first.

        Args:
            transactional_id: of the producer.
            timeout_ms: of its transactions.
            expected: producer id and epoch that it has, if it says so (KIP-360).
            now: the time.

        Raises:
            BrokerError: the answer that the producer gets instead.
        """
        if not transactional_id:
            raise InvalidRequest("the transactional id is empty")
        if not 0 < timeout_ms <= self.settings.max_timeout_ms:
            raise InvalidTransactionTimeout(f"{timeout_ms} ms of {self.settings.max_timeout_ms}")
        state = self._state
        transaction = self.find(transactional_id, now)
        if transaction is None:
            transaction = Transaction(transactional_id, state.new_producer_id(), timeout_ms)
            transaction.epoch = state.settings.first_epoch - 1
            state.transactions[transactional_id] = transaction
        renewed = transaction.renew(timeout_ms, expected, state.new_producer_id)
        if not renewed:
            transaction.fence(state.transaction_version, state.new_producer_id)
        state.changes += 1
        return transaction if renewed else None

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        partitions: list[TopicPartition],
        now: float,
    ) -> None:
        """Take partitions into a producer's transaction.

        Raises:
            BrokerError: the answer that the producer gets instead.
        """
        transaction = self._known(transactional_id, now)
        transaction.add_partitions(producer_id, epoch, partitions, self._state.unix_ms(now))
        self._state.changes += 1

    def end_transaction(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        now: float,
        *,
        commit: bool,
        version: int,
    ) -> Transaction:
        """Decide how a producer's transaction ends; the markers follow.

        Args:
            transactional_id: of the producer.
            producer_id: of the same.
            epoch: of the same.
            now: the time.
            commit: whether the transaction is to take effect.
            version: of transactions, as the producer speaks it.

        Raises:
            BrokerError: the answer that the producer gets instead.
        """
        transaction = self._known(transactional_id, now)
        former = transaction.state
        transaction.decide_end(
            producer_id,
            epoch,
            commit=commit,
            version=version,
            unix_ms=self._state.unix_ms(now),
            new_id=self._state.new_producer_id,
            written=self._state.transaction_version,
        )
        if transaction.state is not former:
            self._state.changes += 1
        return transaction

    def _known(self, transactional_id: str, now: float) -> Transaction:
        if not transactional_id:
            raise InvalidRequest("the transactional id is empty")
        transaction = self.find(transactional_id, now)
        if transaction is None:
            raise InvalidProducerIdMapping(f"nothing is known of {transactional_id!r}")
        return transaction

    # ---- time ----

    def _sweep_later(self, now: float) -> None:
        if self._sweeps:
            return
        self._sweeps = True
        interval = self.settings.abort_interval_ms / 1000
        due = (math.floor(now / interval) + 1) * interval
        self._timers.schedule(_Sweep(), due, self._abort_late)

    def _abort_late(self, now: float) -> None:
        """Abort the transactions whose producers have not ended them in time."""
        self._sweeps = False
        unix_ms = self._state.unix_ms(now)
        for transaction in self.transactions(now):
            if transaction.state is not State.ONGOING:
                continue
            if transaction.started_ms + transaction.timeout_ms < unix_ms:
                if not transaction.is_stuck:
                    transaction.fence(self._state.transaction_version, self._state.new_producer_id)
            else:
                self._sweep_later(now)
        self._state.changes += 1

    # ---- markers ----

    def _write_markers(self, transaction: Transaction, now: float) -> None:
        for topic_partition in list(transaction.partitions):
            self._write_marker(transaction, topic_partition, now)
        if not transaction.partitions and transaction.transactional_id not in self._given_up:
            transaction.complete()
            self._state.changes += 1

    def _write_marker(
        self, transaction: Transaction, topic_partition: TopicPartition, now: float
    ) -> None:
        """Write the marker of one partition, if it can be written now."""
        late = _LateMarker(transaction.transactional_id, topic_partition)
        if late in self._late or transaction.transactional_id in self._given_up:
            return
        topic = self._state.topics.get(topic_partition[0])
        if topic is None or topic_partition[1] >= len(topic.partitions):
            del transaction.partitions[topic_partition]  # nobody will ever want it
            return
        partition = topic.partitions[topic_partition[1]]
        leader = self._state.nodes.get(partition.leader)
        if leader is None or not leader.serves:
            return
        delay = self._faults.take_rule(DelayRule, leader.node_id, WRITE_TXN_MARKERS)
        if delay is not None:
            self._put_off(late, now + delay.seconds)
            return
        refused = self._faults.take_error(leader.node_id, WRITE_TXN_MARKERS, *topic_partition)
        if refused is not None and not refused.applied:
            self._put_off(late, now + _MARKER_AGAIN)
            return
        self._append_marker(transaction, partition, refused, late, now)

    def _append_marker(
        self,
        transaction: Transaction,
        partition: Partition,
        refused: ErrorRule | None,
        late: _LateMarker,
        now: float,
    ) -> None:
        commit = transaction.state is State.PREPARE_COMMIT
        deciding = self._state.topics[TRANSACTIONS_TOPIC].partitions[
            self._leading.partition_of(transaction.transactional_id)
        ]
        marker = Marker(
            transaction.producer_id,
            transaction.epoch,
            commit,
            deciding.leader_epoch,
            transaction.version,
        )
        try:
            if partition.topic == OFFSETS_TOPIC:
                end_offsets(self._state, partition, marker, now)
            else:
                write_marker(partition, marker, self._state.unix_ms(now))
        except (InvalidProducerEpoch, TransactionCoordinatorFenced):
            # Kafka takes itself for a zombie, and sends no marker of this transaction any more.
            self._given_up.add(transaction.transactional_id)
            return
        except BrokerError:
            self._put_off(late, now + _MARKER_AGAIN)
            return
        self._state.changes += 1
        if refused is not None:  # written, but the coordinator does not know
            self._put_off(late, now + _MARKER_AGAIN)
        else:
            del transaction.partitions[partition.topic, partition.index]

    def _put_off(self, late: _LateMarker, due: float) -> None:
        self._late.add(late)

        def write(now: float) -> None:
            self._late.discard(late)
            self._seen_changes = -1
            self.refresh(now)

        self._timers.schedule(late, due, write)
