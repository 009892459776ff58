"""Operations on log directories: each version of their requests, and what answers mean."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from kafka_fast import TopicPartition
from kafka_fast.admin import ReplicaInfo, ReplicaLogDirInfo, TopicPartitionReplica
from kafka_fast.control.admin.operations.log_dirs import (
    AlterReplicaLogDirs,
    DescribeLogDirs,
    DescribeReplicaLogDirs,
)
from kafka_fast.control.requests.meanings import Retry
from kafka_fast.errors import (
    ClusterAuthorizationFailed,
    ErrorCode,
    KafkaStorageError,
    LogDirNotFound,
    ReplicaNotAvailable,
    UsageError,
)
from kafka_fast.protocol.apis.log_dirs.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from kafka_fast.protocol.apis.log_dirs.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from tests.unit.control.admin.operations.trying import meanings, refused, sent, values, versions

HERE = TopicPartitionReplica("t", 0, 1)
THERE = TopicPartitionReplica("t", 1, 1)
OTHER = TopicPartitionReplica("u", 0, 1)


def log_dir(path: str, *partitions: tuple[str, int, bool], code: int = 0, **more: Any) -> Any:
    return DescribeLogDirsResult(
        error_code=code,
        log_dir=path,
        topics=[
            DescribeLogDirsTopic(
                name=topic,
                partitions=[
                    DescribeLogDirsPartition(
                        partition_index=partition,
                        partition_size=100,
                        offset_lag=3,
                        is_future_key=is_future,
                    )
                ],
            )
            for topic, partition, is_future in partitions
        ],
        **more,
    )


def test_log_dirs_are_described() -> None:
    for version in versions(DescribeLogDirs):
        operation = DescribeLogDirs([1])
        assert sent(operation, version).topics is None
        more = {"total_bytes": 10, "usable_bytes": 5} if version >= 4 else {}
        if version >= 5:
            more["is_cordoned"] = True
        answer = DescribeLogDirsResponse(
            results=[
                log_dir("/a", ("t", 0, False), ("u", 1, True), **more),
                log_dir("/b", code=ErrorCode.KAFKA_STORAGE_ERROR),
            ]
        )
        dirs = values(operation, answer, version)[1]
        assert list(dirs) == ["/a", "/b"]
        first, second = dirs["/a"], dirs["/b"]
        assert first.replicas == {
            TopicPartition("t", 0): ReplicaInfo(100, 3, is_future=False),
            TopicPartition("u", 1): ReplicaInfo(100, 3, is_future=True),
        }
        sizes = (10, 5) if version >= 4 else (None, None)
        assert (first.error, first.total_bytes, first.usable_bytes) == (None, *sizes)
        assert first.is_cordoned == (version >= 5)
        assert isinstance(second.error, KafkaStorageError)
        assert "of broker 1: log directory /b" in str(second.error)
        assert second.total_bytes is None
        assert str(pickle.loads(pickle.dumps(second)).error) == str(second.error)


def test_all_nodes_or_some_are_asked() -> None:
    assert DescribeLogDirs(None).items is None
    assert DescribeLogDirs([2, 1, 2]).items == [2, 1]


@pytest.mark.parametrize("code", [0, ErrorCode.CLUSTER_AUTHORIZATION_FAILED])
def test_an_empty_answer_means_that_it_is_not_permitted(code: int) -> None:
    answer = DescribeLogDirsResponse(error_code=code)
    operations: list[Any] = [DescribeLogDirs([1]), DescribeReplicaLogDirs([HERE])]
    for operation in operations:
        (meaning,) = meanings(operation, answer, 3).values()
        error = refused(meaning)
        assert isinstance(error, ClusterAuthorizationFailed)
        assert "needs DESCRIBE on the cluster" in str(error)


def test_replicas_are_found_in_their_log_dirs() -> None:
    operation = DescribeReplicaLogDirs([HERE, THERE, OTHER])
    for version in versions(DescribeReplicaLogDirs):
        topics = {one.topic: one.partitions for one in sent(operation, version).topics}
        assert topics == {"t": [0, 1], "u": [0]}
    answer = DescribeLogDirsResponse(
        results=[
            log_dir("/a", ("t", 0, False), ("t", 1, False), ("foreign", 0, False)),
            log_dir("/b", ("t", 1, True)),
            log_dir("/c", code=ErrorCode.KAFKA_STORAGE_ERROR),
        ]
    )
    assert values(operation, answer, 4) == {
        HERE: ReplicaLogDirInfo("/a", 3, None, None),
        THERE: ReplicaLogDirInfo("/a", 3, "/b", 3),
        OTHER: ReplicaLogDirInfo(None, None, None, None),
    }


def test_replicas_are_moved() -> None:
    operation = AlterReplicaLogDirs({HERE: "/a", THERE: "/b", OTHER: "/a"})
    for version in versions(AlterReplicaLogDirs):
        dirs = {
            one.path: {topic.name: topic.partitions for topic in one.topics}
            for one in sent(operation, version).dirs
        }
        assert dirs == {"/a": {"t": [0], "u": [0]}, "/b": {"t": [1]}}
    codes = [
        0,
        ErrorCode.LOG_DIR_NOT_FOUND,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT,
    ]
    answer = AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic_name="t",
                partitions=[
                    AlterReplicaLogDirPartitionResult(partition_index=number, error_code=code)
                    for number, code in enumerate(codes)
                ],
            )
        ]
    )
    read = meanings(operation, answer, 2)
    assert values(operation, AlterReplicaLogDirsResponse(), 2) == {}
    error = refused(read[THERE])
    assert isinstance(error, LogDirNotFound)
    assert "AlterReplicaLogDirs of t-1 on broker 1" in str(error)
    absent = refused(read[TopicPartitionReplica("t", 2, 1)])
    assert isinstance(absent, ReplicaNotAvailable)
    assert "puts it into this directory" in str(absent)
    assert isinstance(read[TopicPartitionReplica("t", 3, 1)], Retry)


@pytest.mark.parametrize("path", ["", None])
def test_a_path_is_text(path: Any) -> None:
    with pytest.raises(UsageError, match="t-0 on broker 1"):
        AlterReplicaLogDirs({HERE: path})
