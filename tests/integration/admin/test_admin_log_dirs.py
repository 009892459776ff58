"""Log directories by the admin client, on real Kafka with two of them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_fast import Admin, Producer, TopicPartition
from kafka_fast.admin import NewTopic, ReplicaLogDirInfo, TopicPartitionReplica
from kafka_fast.cli.main import main
from kafka_fast.errors import KafkaTimeoutError, LogDirNotFound, UnknownTopicOrPartition
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.conftest import started
from tests.waiting import eventually

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    root: Path = tmp_path_factory.mktemp("log-dirs")
    return [str(root / "first"), str(root / "second")]


@pytest.fixture(scope="module")
def kafka(request: pytest.FixtureRequest, folders: list[str]) -> Iterator[RealKafka]:
    overrides = {"log.dirs": ",".join(folders)}
    with started(1, request.config.getoption("--kafka-version"), overrides) as made:
        yield made


@pytest.fixture(scope="module")
def admin(kafka: RealKafka) -> Iterator[Admin]:
    with Admin(bootstrap_servers=kafka.bootstrap) as made:
        yield made


@pytest.fixture
def topic(kafka: RealKafka) -> str:
    name = f"log-dirs-{uuid.uuid4().hex}"
    kafka.create_topic(name, 2)
    with Producer(bootstrap_servers=kafka.bootstrap) as producer:
        for _ in range(10):
            producer.send(name, b"x" * 1000, partition=0)
    return name


def test_log_dirs_are_described(admin: Admin, topic: str, folders: list[str]) -> None:
    dirs = admin.describe_log_dirs()[1]
    assert sorted(dirs) == sorted(folders)
    for one in dirs.values():
        assert one.error is None
        assert not one.is_cordoned
    replicas = {key: info for one in dirs.values() for key, info in one.replicas.items()}
    replica = replicas[TopicPartition(topic, 0)]
    assert replica.size > 10_000
    assert (replica.offset_lag, replica.is_future) == (0, False)
    assert replicas[TopicPartition(topic, 1)].size == 0


@pytest.mark.needs_kafka("3.3", "the size of volumes")
def test_volumes_have_a_size(admin: Admin) -> None:
    for one in admin.describe_log_dirs([1])[1].values():
        assert one.total_bytes is not None
        assert one.usable_bytes is not None
        assert one.total_bytes > one.usable_bytes > 0


def test_a_replica_moves(admin: Admin, topic: str, folders: list[str]) -> None:
    here = TopicPartitionReplica(topic, 0, 1)
    before = admin.describe_replica_log_dirs([here])[here]
    assert before.current_log_dir is not None
    assert before == ReplicaLogDirInfo(before.current_log_dir, 0, None, None)
    (other,) = set(folders) - {before.current_log_dir}
    admin.alter_replica_log_dirs({here: other}).raise_first()
    moved = ReplicaLogDirInfo(other, 0, None, None)
    eventually(lambda: admin.describe_replica_log_dirs([here])[here] == moved, "the move")


def test_the_command_line_moves_a_replica(
    kafka: RealKafka, topic: str, folders: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    def told(*words: str, status: int = 0) -> dict[str, Any]:
        capsys.readouterr()
        assert main(["cluster", *words, "-b", kafka.bootstrap, "-o", "json"]) == status
        shown: dict[str, Any] = json.loads(capsys.readouterr().out)
        return shown

    def places() -> list[tuple[str, bool]]:
        """Return where the replica is, and whether it is still copied there."""
        return [
            (one["directory"], replica["future"])
            for one in told("log-dirs", "1", "--topic", topic)["log_dirs"]
            for replica in one["replicas"]
            if replica["partition"] == 0
        ]

    ((place, _),) = places()
    (other,) = set(folders) - {place}
    move = ["move-replica", f"{topic}:0", "--broker", "1", "--to"]
    entry = {"topic": topic, "partition": 0, "node": 1, "from": place, "to": other}
    assert told(*move, other, "--dry-run")["replicas"] == [{**entry, "outcome": "started"}]
    assert places() == [(place, False)]
    assert told(*move, other)["replicas"] == [{**entry, "outcome": "started"}]
    eventually(lambda: places() == [(other, False)], "the move")
    assert told(*move, "/nowhere", status=1)["errors"][0]["error"] == "LOG_DIR_NOT_FOUND"
    absent = told("move-replica", f"{topic}:7", "--broker", "1", "--to", other, status=1)
    assert absent["errors"][0]["partition"] == 7


def test_what_cannot_move(admin: Admin, topic: str, folders: list[str]) -> None:
    here, there = TopicPartitionReplica(topic, 0, 1), TopicPartitionReplica(topic, 1, 1)
    absent = TopicPartitionReplica(f"{topic}-absent", 0, 1)
    result = admin.alter_replica_log_dirs({here: "/nowhere", there: folders[0], absent: folders[1]})
    assert isinstance(result.errors[here], LogDirNotFound)
    assert result[there] is None
    assert isinstance(result.errors[absent], UnknownTopicOrPartition)
    nothing = ReplicaLogDirInfo(None, None, None, None)
    assert admin.describe_replica_log_dirs([absent])[absent] == nothing
    admin.create_topics([NewTopic(absent.topic, 1, 1)]).raise_first()
    place = eventually(lambda: admin.describe_replica_log_dirs([absent])[absent].current_log_dir)
    assert place == folders[1]


def test_a_broker_that_is_not_there(admin: Admin) -> None:
    result = admin.describe_log_dirs([1, 9], timeout=0.5)
    assert list(result.succeeded) == [1]
    assert isinstance(result.errors[9], KafkaTimeoutError)
    assert "of broker 9" in str(result.errors[9])
