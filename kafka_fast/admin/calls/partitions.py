"""The calls of `Admin` about partitions: who leads them, and who has their replicas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kafka_fast.admin.base import AdminCalls

if TYPE_CHECKING:
    from kafka_fast.admin.result import AdminResult
    from kafka_fast.control.admin.types.partitions import ElectionType, PartitionReassignment
    from kafka_fast.types import TopicPartition


class PartitionCalls(AdminCalls):
    """Partitions: elect their leaders, move their replicas to other brokers."""

    def elect_leaders(
        self,
        election_type: ElectionType,
        *,
        partitions: Iterable[TopicPartition] | None = None,
        timeout: float | None = None,
    ) -> AdminResult[TopicPartition, None]:
        """Make preferred replicas the leaders of partitions, or any that is alive.

        ElectLeaders; needs ALTER on the cluster. Since Kafka 2.2; unclean elections need 2.4. A
        partition that has its leader already is an ElectionNotNeeded, as in Java.

        Args:
            election_type: PREFERRED, or UNCLEAN, which may lose records.
            partitions: the partitions; None: all that need such an election. The result then has
                only these.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UsageError: there is no such type.
        """
        from kafka_fast.admin.workflows.partitions import elect_leaders

        return self._core.driver.run(
            elect_leaders(self._steps, election_type, partitions=partitions, timeout=timeout)
        )

    def alter_partition_reassignments(
        self,
        reassignments: Mapping[TopicPartition, Sequence[int] | None],
        *,
        allow_replication_factor_change: bool = True,
        timeout: float | None = None,
    ) -> AdminResult[TopicPartition, None]:
        """Move partitions to other brokers, or end such moves.

        AlterPartitionReassignments; needs ALTER on the cluster. Since Kafka 2.4. When this returns,
        the brokers have begun to copy: `list_partition_reassignments` has what is under way.

        Args:
            reassignments: ids of the brokers that each partition is to have, the preferred leader
                first; None: give up the move that is under way. A partition without one is a
                NoReassignmentInProgress.
            allow_replication_factor_change: whether a partition may get more or fewer replicas than
                it has. False needs Kafka 4.1.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UsageError: a partition is to have no replica.
        """
        from kafka_fast.control.admin.operations.partitions import AlterPartitionReassignments

        operation = AlterPartitionReassignments(
            reassignments, allow_replication_factor_change=allow_replication_factor_change
        )
        return self._core.driver.run(self._steps.run_items(operation, timeout))

    def list_partition_reassignments(
        self,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout: float | None = None,
    ) -> dict[TopicPartition, PartitionReassignment]:
        """Return the partitions that are moving to other brokers.

        ListPartitionReassignments; needs DESCRIBE on the cluster. Since Kafka 2.4.

        Args:
            partitions: look at these only; those that are not moving are left out. None: all.
            timeout: seconds; None: default.api.timeout.ms.
        """
        from kafka_fast.control.admin.operations.partitions import ListPartitionReassignments

        operation = ListPartitionReassignments(partitions)
        return self._core.driver.run(self._steps.run_one(operation, timeout))
