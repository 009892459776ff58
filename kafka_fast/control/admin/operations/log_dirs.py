"""Operations on log directories: what they hold, and moves between those of one broker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

from kafka_fast.control.admin.operation import Operation
from kafka_fast.control.admin.types.log_dirs import (
    LogDir,
    ReplicaInfo,
    ReplicaLogDirInfo,
    TopicPartitionReplica,
)
from kafka_fast.control.arguments import checked_number, checked_partition, mapping_of, several
from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.control.metadata.metadata import by_topic
from kafka_fast.control.requests.call import AnswerSource
from kafka_fast.control.requests.meanings import Done, Meaning
from kafka_fast.control.requests.targets import AllNodes, NodeTarget
from kafka_fast.errors import ErrorCode, UsageError, broker_error, error_description
from kafka_fast.protocol.apis.log_dirs.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from kafka_fast.protocol.apis.log_dirs.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from kafka_fast.types import TopicPartition

NO_SUCH_REPLICA = (
    ErrorCode.REPLICA_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)
NO_REPLICA_YET = (
    "the broker has no such replica; if it gets this replica later, it puts it into this directory"
)


class ReplicaBrokers(NodeTarget[TopicPartitionReplica]):
    """The broker that each item names."""

    role = "its broker"

    def node(self, cluster: Cluster, key: TopicPartitionReplica) -> int:
        """Return the broker's id, whether the metadata name it or not."""
        return key.broker_id


def _error_code(answer: DescribeLogDirsResponse) -> int:
    """Return the error of the whole answer, which older brokers say with an empty list."""
    if answer.error_code or answer.results:
        return answer.error_code
    return ErrorCode.CLUSTER_AUTHORIZATION_FAILED


class DescribeLogDirs(Operation[int, dict[str, LogDir]]):
    """DescribeLogDirs of all partitions."""

    name = "describe_log_dirs"
    noun = "broker"
    permission = "DESCRIBE on the cluster"
    request_class = DescribeLogDirsRequest
    response_class = DescribeLogDirsResponse

    def __init__(self, brokers: Iterable[int] | None) -> None:
        """Take the ids of the brokers; None: all of them."""
        super().__init__(AllNodes(), brokers)

    def build(self, items: Sequence[int], version: int) -> DescribeLogDirsRequest:
        """Ask for all partitions."""
        return DescribeLogDirsRequest(topics=None)

    def outcomes(
        self, answer: DescribeLogDirsResponse, items: Sequence[int], source: AnswerSource
    ) -> Iterator[tuple[int, Meaning[dict[str, LogDir]]]]:
        """Return the directories of the broker, by their paths."""
        code = _error_code(answer)
        for item in items:  # each broker has a request of its own
            if code:
                yield item, self.refusal(item, code)
            else:
                yield item, Done({one.log_dir: self._log_dir(item, one) for one in answer.results})

    def _log_dir(self, item: int, result: DescribeLogDirsResult) -> LogDir:
        code = result.error_code
        text = f"{self.describe(item)}: log directory {result.log_dir}: "
        return LogDir(
            broker_error(code, text + error_description(code)) if code else None,
            result.total_bytes if result.total_bytes >= 0 else None,
            result.usable_bytes if result.usable_bytes >= 0 else None,
            dict(_replicas(result)),
            result.is_cordoned,
        )


def _replicas(result: DescribeLogDirsResult) -> Iterator[tuple[TopicPartition, ReplicaInfo]]:
    for topic in result.topics:
        for one in topic.partitions:
            info = ReplicaInfo(one.partition_size, one.offset_lag, one.is_future_key)
            yield TopicPartition(topic.name, one.partition_index), info


class DescribeReplicaLogDirs(Operation[TopicPartitionReplica, ReplicaLogDirInfo]):
    """DescribeLogDirs of some replicas."""

    name = "describe_replica_log_dirs"
    permission = "DESCRIBE on the cluster"
    request_class = DescribeLogDirsRequest
    response_class = DescribeLogDirsResponse

    def __init__(self, replicas: Iterable[TopicPartitionReplica]) -> None:
        """Take the replicas."""
        super().__init__(ReplicaBrokers(), _replicas_of(replicas))

    def build(self, items: Sequence[TopicPartitionReplica], version: int) -> DescribeLogDirsRequest:
        """Ask a broker for its replicas."""
        return DescribeLogDirsRequest(
            topics=[
                DescribableLogDirTopic(topic=topic, partitions=partitions)
                for topic, partitions in by_topic(map(_partition, items)).items()
            ]
        )

    def outcomes(
        self,
        answer: DescribeLogDirsResponse,
        items: Sequence[TopicPartitionReplica],
        source: AnswerSource,
    ) -> Iterator[tuple[TopicPartitionReplica, Meaning[ReplicaLogDirInfo]]]:
        """Return the directories of each replica; a directory that has failed tells nothing."""
        code = _error_code(answer)
        if code:
            yield from self.all_refused(items, code)
            return
        current: dict[TopicPartition, tuple[str, int]] = {}
        future: dict[TopicPartition, tuple[str, int]] = {}
        for result in answer.results:
            for partition, info in _replicas(result):
                place = future if info.is_future else current
                place[partition] = (result.log_dir, info.offset_lag)
        for item in items:
            now = current.get(_partition(item), (None, None))
            then = future.get(_partition(item), (None, None))
            yield item, Done(ReplicaLogDirInfo(*now, *then))


def _replicas_of(replicas: Iterable[TopicPartitionReplica]) -> list[TopicPartitionReplica]:
    """Return replicas that a user has given.

    Raises:
        TypeError: one is none.
        UsageError: there can be no such replica.
    """
    checked = several(replicas, "replicas")
    for one in checked:
        if not isinstance(one, TopicPartitionReplica):
            raise TypeError(f"a replica is a TopicPartitionReplica, not {one!r}")
        checked_partition((one.topic, one.partition))
        checked_number(one.broker_id, "the id of a broker")
    return checked


def _partition(replica: TopicPartitionReplica) -> TopicPartition:
    return TopicPartition(replica.topic, replica.partition)


class AlterReplicaLogDirs(Operation[TopicPartitionReplica, None]):
    """AlterReplicaLogDirs."""

    name = "alter_replica_log_dirs"
    permission = "ALTER on the cluster"
    words: ClassVar[Mapping[int, str]] = {
        **dict.fromkeys(NO_SUCH_REPLICA, NO_REPLICA_YET),
        ErrorCode.KAFKA_STORAGE_ERROR: "the broker cannot use this directory, or the one that the "
        "replica is in",
    }
    final = frozenset(words)
    request_class = AlterReplicaLogDirsRequest
    response_class = AlterReplicaLogDirsResponse

    def __init__(self, replicas: Mapping[TopicPartitionReplica, str]) -> None:
        """Take the path of the directory that each replica is to have.

        Raises:
            UsageError: a path is no text, or empty.
        """
        self._paths = mapping_of(replicas, "the paths of replicas")
        for replica, path in self._paths.items():
            if not isinstance(path, str) or not path:
                raise UsageError(f"{replica}: the path of a log directory is not {path!r}")
        super().__init__(ReplicaBrokers(), _replicas_of(self._paths))

    def build(
        self, items: Sequence[TopicPartitionReplica], version: int
    ) -> AlterReplicaLogDirsRequest:
        """Ask a broker for the moves."""
        by_path: dict[str, list[TopicPartition]] = {}
        for item in items:
            by_path.setdefault(self._paths[item], []).append(_partition(item))
        return AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDir(
                    path=path,
                    topics=[
                        AlterReplicaLogDirTopic(name=topic, partitions=numbers)
                        for topic, numbers in by_topic(partitions).items()
                    ],
                )
                for path, partitions in by_path.items()
            ]
        )

    def outcomes(
        self,
        answer: AlterReplicaLogDirsResponse,
        items: Sequence[TopicPartitionReplica],
        source: AnswerSource,
    ) -> Iterator[tuple[TopicPartitionReplica, Meaning[None]]]:
        """Return which moves the broker has begun."""
        broker_id = items[0].broker_id  # each broker has a request of its own
        for topic in answer.results:
            for one in topic.partitions:
                replica = TopicPartitionReplica(topic.topic_name, one.partition_index, broker_id)
                yield replica, self.done_or_refusal(replica, one.error_code)
