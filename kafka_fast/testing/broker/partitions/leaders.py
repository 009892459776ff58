"""Whether a broker leads a partition, and the hint for those who asked the wrong one (KIP-951)."""

from __future__ import annotations

from kafka_fast.errors import (
    FencedLeaderEpoch,
    NotLeaderOrFollower,
    UnknownLeaderEpoch,
    UnknownTopicOrPartition,
)
from kafka_fast.protocol.apis.records import fetch, produce
from kafka_fast.testing.broker.partitions.cluster_topics import Partition, Topic
from kafka_fast.testing.broker.received_request import ReceivedRequest
from kafka_fast.testing.broker.state import ClusterState, Node

NO_EPOCH = -1  # the client does not say which leader epoch it knows


def led_partition(
    request: ReceivedRequest,
    topic: Topic,
    index: int,
    epoch: int = NO_EPOCH,
    *,
    or_followed: bool = False,
) -> Partition:
    """Return the partition if the asked broker leads it.

    Args:
        request: whose node is asked.
        topic: the topic.
        index: of the partition.
        epoch: the leader epoch that the client knows, or NO_EPOCH.
        or_followed: a replica will do (KIP-392).

    Raises:
        UnknownTopicOrPartition: the topic has no such partition.
        NotLeaderOrFollower: another broker leads it, or none does.
        FencedLeaderEpoch: the client's epoch is older.
        UnknownLeaderEpoch: the client's epoch is newer.
    """
    if not 0 <= index < len(topic.partitions):
        raise UnknownTopicOrPartition(f"topic {topic.name!r} has no partition {index}")
    partition = topic.partitions[index]
    is_replica = or_followed and request.node_id in partition.replicas
    if partition.leader != request.node_id and not is_replica:
        raise NotLeaderOrFollower(f"node {partition.leader} leads {topic.name}-{index}")
    if epoch != NO_EPOCH and epoch < partition.leader_epoch:
        raise FencedLeaderEpoch(f"epoch {epoch} of {topic.name}-{index} is over")
    if epoch > partition.leader_epoch:
        raise UnknownLeaderEpoch(f"epoch {epoch} of {topic.name}-{index} is not known here")
    return partition


class LeaderHints:
    """Collects the leaders that an answer names, for its list of endpoints."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._nodes: dict[int, Node] = {}

    def for_produce(self, partition: Partition) -> produce.LeaderIdAndEpoch:
        """Return the hint for a Produce answer."""
        self._note(partition)
        return produce.LeaderIdAndEpoch(
            leader_id=partition.leader, leader_epoch=partition.leader_epoch
        )

    def for_fetch(self, partition: Partition) -> fetch.LeaderIdAndEpoch:
        """Return the hint for a Fetch answer."""
        self._note(partition)
        return fetch.LeaderIdAndEpoch(
            leader_id=partition.leader, leader_epoch=partition.leader_epoch
        )

    def produce_endpoints(self) -> list[produce.NodeEndpoint]:
        """Return where the named leaders listen."""
        return [
            produce.NodeEndpoint(node_id=n.node_id, host=n.host, port=n.port, rack=n.rack)
            for n in self._nodes.values()
        ]

    def fetch_endpoints(self) -> list[fetch.NodeEndpoint]:
        """Return where the named leaders listen."""
        return [
            fetch.NodeEndpoint(node_id=n.node_id, host=n.host, port=n.port, rack=n.rack)
            for n in self._nodes.values()
        ]

    def _note(self, partition: Partition) -> None:
        node = self._state.nodes.get(partition.leader)
        if node is not None:
            self._nodes[node.node_id] = node
