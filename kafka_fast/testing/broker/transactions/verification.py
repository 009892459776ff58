"""What the leader of a partition asks the coordinator before a transaction begins there.

Up to version 1 of transactions it asks whether the producer has added the partition; in version 2
it adds the partition itself (KIP-890).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka_fast.errors import (
    BrokerError,
    CoordinatorNotAvailable,
    InvalidProducerIdMapping,
    InvalidRequest,
    NotCoordinator,
    TransactionAbortable,
)
from kafka_fast.testing.broker.partitions.coordinating import deciding_partition
from kafka_fast.testing.broker.state import ClusterState
from kafka_fast.testing.broker.transactions.settings import TRANSACTIONS_TOPIC
from kafka_fast.testing.broker.transactions.transaction import TopicPartition, Transaction

Verdicts = Mapping[TopicPartition, BrokerError | None]


def verify_partitions(
    state: ClusterState,
    transactional_id: str,
    producer_id: int,
    epoch: int,
    partitions: Sequence[TopicPartition],
    now: float,
    *,
    add: bool,
) -> Verdicts:
    """Return for each partition why no transaction may begin there, None: it may.

    Args:
        state: of the cluster.
        transactional_id: that the producer names.
        producer_id: of the producer.
        epoch: of the same.
        partitions: to begin in.
        now: the time.
        add: take them into the transaction; otherwise they have to be in it.
    """
    try:
        transaction = _reach(state, transactional_id)
        if add:
            _add(state, transaction, producer_id, epoch, partitions, now)
            return dict.fromkeys(partitions)
        transaction.check_producer(producer_id, epoch)
    except BrokerError as error:
        return dict.fromkeys(partitions, error.with_traceback(None))  # no frames are kept alive
    return {
        (topic, index): None
        if (topic, index) in transaction.partitions
        else TransactionAbortable(f"{topic}-{index} is not in the transaction")
        for topic, index in partitions
    }


def _reach(state: ClusterState, transactional_id: str) -> Transaction:
    """Return the transaction if its coordinator can be reached."""
    if not transactional_id:
        raise InvalidRequest("the transactional id is empty")
    deciding = deciding_partition(state.topics, TRANSACTIONS_TOPIC, transactional_id)
    node = None if deciding is None else state.nodes.get(deciding.leader)
    if deciding is None or node is None:
        raise CoordinatorNotAvailable(f"nobody coordinates {transactional_id!r}")
    if not node.serves:
        raise NotCoordinator(f"node {node.node_id} does not answer")
    transaction = state.transactions.get(transactional_id)
    if transaction is None:
        raise InvalidProducerIdMapping(f"nothing is known of {transactional_id!r}")
    return transaction


def _add(
    state: ClusterState,
    transaction: Transaction,
    producer_id: int,
    epoch: int,
    partitions: Sequence[TopicPartition],
    now: float,
) -> None:
    transaction.add_partitions(
        producer_id,
        epoch,
        partitions,
        state.unix_ms(now),
        written=state.transaction_version,
    )
    state.changes += 1
