"""Replicas that do not lead: how far behind they are, and which of them is closest (KIP-392).

All replicas share one log. One that lags shows less of it; tests say how much.
"""

from __future__ import annotations

from kafka_fast.testing.broker.partitions.cluster_topics import Partition
from kafka_fast.testing.broker.state import ClusterState


def end_at(partition: Partition, node_id: int) -> int:
    """Return where the log ends as a node has it."""
    if node_id == partition.leader:
        return partition.log.end_offset
    return min(
        partition.replica_ends.get(node_id, partition.log.end_offset), partition.log.end_offset
    )


def closest_replica(
    state: ClusterState, partition: Partition, rack: str, offset: int
) -> int | None:
    """Return the replica in the client's rack that has `offset`, None if the leader will do.

    The rule of Kafka's RackAwareReplicaSelector: in sync, in the same rack, the furthest ahead.
    """
    if not (state.settings.closest_replica and rack):
        return None
    near = [
        node_id
        for node_id in partition.isr
        if state.nodes[node_id].alive
        and state.nodes[node_id].rack == rack
        and partition.log.start_offset <= offset <= end_at(partition, node_id)
    ]
    if not near or partition.leader in near:
        return None
    return max(near, key=lambda node_id: (end_at(partition, node_id), -node_id))
