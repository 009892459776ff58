"""The end of a transaction for the offsets of groups: they take effect, or are forgotten.

A group's offsets are one partition of the offsets topic to a transaction. As ordinary commits, they
are kept beside its log and not in it; only what the partition knows of the producer is the same.
"""

from __future__ import annotations

from kafka_fast.testing.broker.partitions.cluster_topics import Partition
from kafka_fast.testing.broker.partitions.coordinating import partition_for
from kafka_fast.testing.broker.partitions.markers import Marker, check_marker, remember_marker
from kafka_fast.testing.broker.state import ClusterState


def end_offsets(state: ClusterState, partition: Partition, marker: Marker, now: float) -> None:
    """End a transaction for all groups whose offsets are in a partition.

    Raises:
        BrokerError: the answer to the coordinator.
    """
    check_marker(partition, marker)
    count = len(state.topics[partition.topic].partitions)
    for group_id, offsets in state.offsets.items():
        if partition_for(group_id, count) == partition.index:
            offsets.end_transaction(marker.producer_id, commit=marker.commit)
    partition.log.transactions.close(marker.producer_id)
    remember_marker(partition, marker, state.unix_ms(now))
