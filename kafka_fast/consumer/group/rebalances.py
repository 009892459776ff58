"""What a member tells its user of rebalances, without knowledge of the user's consumer."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from kafka_fast.types import TopicPartition


class HearsOfRebalances(Protocol):
    """A listener of any kind of consumer; see `kafka_fast.RebalanceListener`."""

    def on_partitions_assigned(self, consumer: Any, partitions: list[TopicPartition]) -> object:
        """These partitions were added."""

    def on_partitions_revoked(self, consumer: Any, partitions: list[TopicPartition]) -> object:
        """These partitions are about to be given up."""

    def on_partitions_lost(self, consumer: Any, partitions: list[TopicPartition]) -> object:
        """These partitions were taken away without warning."""


class RebalanceEvent(NamedTuple):
    """One step of a rebalance, as `Consumer.metrics` and the log report it."""

    kind: str
    """`assigned`, `revoked` or `lost`."""
    partitions: frozenset[TopicPartition]
    generation: int
    """The group's generation, or with KIP-848 the member's epoch; -1 if the member has none."""
    reason: str
    seconds: float
    """Time that the user's side of this step took: commits and listener."""
