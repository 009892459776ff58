"""The markers that end transactions, as the leader of a partition writes them."""

from __future__ import annotations

from dataclasses import dataclass

from kafka_fast.record import ControlType, build_control_batch, read_batches
from kafka_fast.testing.broker.partitions.cluster_topics import Partition
from kafka_fast.testing.broker.partitions.log import StoredBatch


@dataclass(frozen=True, slots=True)
class Marker:
    """The end of a producer's transaction."""

    producer_id: int
    epoch: int
    commit: bool
    coordinator_epoch: int
    version: int
    """Of transactions."""


def write_marker(partition: Partition, marker: Marker, unix_ms: int) -> None:
    """Append the marker to the log; what it ends becomes stable.

    Raises:
        BrokerError: the answer to the coordinator.
    """
    check_marker(partition, marker)
    log = partition.log
    data = build_control_batch(
        ControlType.COMMIT if marker.commit else ControlType.ABORT,
        base_offset=log.end_offset,
        producer_id=marker.producer_id,
        producer_epoch=marker.epoch,
        timestamp_ms=unix_ms,
        coordinator_epoch=marker.coordinator_epoch,
        leader_epoch=partition.leader_epoch,
    )
    (batch,) = read_batches(data)
    log.transactions.note(batch, log.end_offset)
    log.append(StoredBatch(log.end_offset, log.end_offset, unix_ms, data))
    remember_marker(partition, marker, unix_ms)


def check_marker(partition: Partition, marker: Marker) -> None:
    """Refuse a marker of a former epoch, or of a former coordinator.

    Raises:
        BrokerError: the answer to the coordinator.
    """
    partition.producers.check_marker(
        marker.producer_id,
        marker.epoch,
        marker.coordinator_epoch,
        marker.version,
        partition.log.transactions.is_open(marker.producer_id),
    )


def remember_marker(partition: Partition, marker: Marker, unix_ms: int) -> None:
    """Let the partition know of the end, without a record."""
    partition.producers.add_marker(
        marker.producer_id, marker.epoch, marker.coordinator_epoch, unix_ms
    )
