"""Which partition of an internal topic decides who coordinates a group or a transaction.

The leader of that partition is the coordinator. Who leads may change at any time; `Leading` tells
a coordinator what has changed since it looked last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kafka_fast.testing.broker.partitions.cluster_topics import Partition, Topic


class Led(Protocol):
    """What a coordinator sees of the cluster (`ClusterState`)."""

    topics: dict[str, Topic]
    leader_changes: int


class Leading:
    """What one broker leads of an internal topic."""

    def __init__(self, node_id: int, topic: str) -> None:
        """Lead nothing before `take_changes`.

        Args:
            node_id: of the broker.
            topic: whose partitions decide.
        """
        self._node_id = node_id
        self._topic = topic
        self._led: dict[int, int] = {}  # partition -> leader epoch
        self._partitions = 0
        self._seen_changes = -1

    def take_changes(self, state: Led) -> frozenset[int]:
        """Look who leads now; return the partitions that came, went, or came back meanwhile."""
        if self._seen_changes == state.leader_changes:
            return frozenset()
        self._seen_changes = state.leader_changes
        topic = state.topics.get(self._topic)
        partitions = [] if topic is None else topic.partitions
        self._partitions = len(partitions)
        before = self._led
        self._led = {
            partition.index: partition.leader_epoch
            for partition in partitions
            if partition.leader == self._node_id
        }
        return frozenset(
            index for index in {*before, *self._led} if before.get(index) != self._led.get(index)
        )

    def forget_all(self) -> None:
        """Lead nothing, as a broker does that dies."""
        self._led.clear()
        self._seen_changes = -1

    def partition_of(self, key: str) -> int:
        """Return the partition that decides about a group or a transactional id."""
        return partition_for(key, self._partitions)

    def leads(self, index: int) -> bool:
        """Tell whether the broker leads a partition."""
        return index in self._led

    def coordinates(self, key: str) -> bool:
        """Tell whether the broker coordinates a group or a transactional id."""
        return self.partition_of(key) in self._led


def partition_for(key: str, partitions: int) -> int:
    """Return the partition that holds a group or a transactional id: by Java's hash of the key."""
    units = key.encode("utf-16-be", "surrogatepass")
    value = 0
    for pos in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[pos : pos + 2], "big")) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >> 31 else value
    return 0 if signed == -(1 << 31) or not partitions else abs(signed) % partitions


def deciding_partition(topics: Mapping[str, Topic], topic: str, key: str) -> Partition | None:
    """Return the partition whose leader coordinates `key`, None if there is no such topic yet."""
    internal = topics.get(topic)
    if internal is None:
        return None
    return internal.partitions[partition_for(key, len(internal.partitions))]
