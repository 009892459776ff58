"""The calls of `aio.Admin` about log directories.

Made of `admin/calls/log_dirs.py` by `python -m tests.shells`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from kafka_fast.admin.base import AdminCalls

if TYPE_CHECKING:
    from kafka_fast.admin.result import AdminResult
    from kafka_fast.control.admin.types.log_dirs import (
        LogDir,
        ReplicaLogDirInfo,
        TopicPartitionReplica,
    )


class AsyncLogDirCalls(AdminCalls):
    """Log directories: what they hold, and moves between those of one broker."""

    async def describe_log_dirs(
        self, brokers: Iterable[int] | None = None, *, timeout: float | None = None
    ) -> AdminResult[int, dict[str, LogDir]]:
        """Return the log directories of brokers, by their paths, with all replicas in them.

        DescribeLogDirs; needs DESCRIBE on the cluster.

        Args:
            brokers: ids of brokers; None: all brokers of the cluster.
            timeout: seconds; None: default.api.timeout.ms. An id that no broker has fails then.
        """
        from kafka_fast.control.admin.operations.log_dirs import DescribeLogDirs

        return await self._driver.run(self._steps.run_items(DescribeLogDirs(brokers), timeout))

    async def describe_replica_log_dirs(
        self, replicas: Iterable[TopicPartitionReplica], *, timeout: float | None = None
    ) -> AdminResult[TopicPartitionReplica, ReplicaLogDirInfo]:
        """Return in which log directories replicas are, and to which they are moving.

        DescribeLogDirs; needs DESCRIBE on the cluster.

        Args:
            replicas: each with the id of its broker, which is asked.
            timeout: as in `describe_log_dirs`.
        """
        from kafka_fast.control.admin.operations.log_dirs import DescribeReplicaLogDirs

        operation = DescribeReplicaLogDirs(replicas)
        return await self._driver.run(self._steps.run_items(operation, timeout))

    async def alter_replica_log_dirs(
        self, replicas: Mapping[TopicPartitionReplica, str], *, timeout: float | None = None
    ) -> AdminResult[TopicPartitionReplica, None]:
        """Move replicas to other log directories of their brokers.

        AlterReplicaLogDirs; needs ALTER on the cluster. When this returns, a broker has begun to
        copy: `describe_replica_log_dirs` tells how far it is. A replica that the broker does not
        have is an UnknownTopicOrPartition, a NotLeaderOrFollower or a ReplicaNotAvailable. If the
        broker gets it later, before its next start, it puts the replica into this directory.

        Args:
            replicas: the absolute path of the directory that each replica is to have.
            timeout: as in `describe_log_dirs`.

        Raises:
            UsageError: a path is no text, or empty.
        """
        from kafka_fast.control.admin.operations.log_dirs import AlterReplicaLogDirs

        operation = AlterReplicaLogDirs(replicas)
        return await self._driver.run(self._steps.run_items(operation, timeout))
