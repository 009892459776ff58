"""`kafka-fast cluster`: what is shown of a cluster."""

from __future__ import annotations

import pytest

from kafka_fast import TopicPartition
from kafka_fast.admin import (
    ClusterDescription,
    ClusterNode,
    FeatureMetadata,
    FinalizedVersionRange,
    LogDir,
    QuorumInfo,
    QuorumReplica,
    RaftVoterEndpoint,
    ReplicaInfo,
    SupportedVersionRange,
)
from kafka_fast.cli.main import main
from kafka_fast.errors import KafkaStorageError, KafkaTimeoutError
from tests.unit.cli.operators.fake_admin import FakeAdmin, check_page, faked, report
from tests.unit.cli.operators.scripted_admin import answered

CLUSTER = ClusterDescription(
    "MkU3OEVBNTcwNTJENDM2Qg",
    2,
    (
        ClusterNode(1, "kafka1", 9092, "a"),
        ClusterNode(2, "kafka2", 9092, "b"),
        ClusterNode(3, "kafka3", 9092, None, is_fenced=True),
    ),
)
FEATURES = FeatureMetadata(
    {"metadata.version": FinalizedVersionRange(29, 29)},
    1234,
    {
        "metadata.version": SupportedVersionRange(7, 29),
        "kraft.version": SupportedVersionRange(0, 1),
    },
)
CAUGHT_UP = 1_772_323_200_000
QUORUM = QuorumInfo(
    3001,
    7,
    1000,
    (
        QuorumReplica(3001, "dir-1", 1002, CAUGHT_UP, CAUGHT_UP),
        QuorumReplica(3002, "dir-2", 1000, CAUGHT_UP, CAUGHT_UP),
    ),
    (QuorumReplica(1, None, -1, None, None),),
    {3001: (RaftVoterEndpoint("CONTROLLER", "kafka1", 9093),)},
)
REPLICAS = {
    TopicPartition("orders", 1): ReplicaInfo(500, 0, is_future=False),
    TopicPartition("orders", 0): ReplicaInfo(700, 3, is_future=True),
    TopicPartition("audit", 0): ReplicaInfo(100, 0, is_future=False),
}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeAdmin:
    dirs = {
        "/b": LogDir(KafkaStorageError("the disk is broken"), None, None, {}),
        "/a": LogDir(None, 10_000, 4_000, REPLICAS),
    }
    return faked(
        monkeypatch,
        describe_cluster=CLUSTER,
        describe_features=FEATURES,
        describe_metadata_quorum=QUORUM,
        describe_log_dirs=answered({1: dirs}, {2: KafkaTimeoutError("node 2 does not answer")}),
    )


def test_nodes(fake: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    told = report(capsys, "cluster", "describe", "--fenced")
    assert (told["cluster_id"], told["controller"]) == ("MkU3OEVBNTcwNTJENDM2Qg", 2)
    assert told["nodes"][2] == {
        "node": 3,
        "host": "kafka3",
        "port": 9092,
        "rack": None,
        "fenced": True,
    }
    assert fake.calls == [("describe_cluster", {"include_fenced_brokers": True})]


def test_features(fake: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    assert report(capsys, "cluster", "features") == {
        "epoch": 1234,
        "features": [
            {"feature": "kraft.version", "level": None, "min_possible": 0, "max_possible": 1},
            {"feature": "metadata.version", "level": 29, "min_possible": 7, "max_possible": 29},
        ],
    }


def test_quorum(fake: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    told = report(capsys, "cluster", "quorum")
    assert (told["leader"], told["leader_epoch"], told["high_watermark"]) == (3001, 7, 1000)
    assert [(one["node"], one["role"], one["lag"]) for one in told["replicas"]] == [
        (3001, "leader", 0),
        (3002, "voter", 2),
        (1, "observer", None),
    ]
    assert told["replicas"][0]["endpoints"] == ["CONTROLLER://kafka1:9093"]
    assert told["replicas"][1]["last_caught_up_ms"] == CAUGHT_UP


def test_log_dirs(fake: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    told = report(capsys, "cluster", "log-dirs", "--topic", "orders", status=1)
    first, second = told["log_dirs"]
    assert [one["partition"] for one in first["replicas"]] == [0, 1]
    assert first["replicas"][0] == {
        "topic": "orders",
        "partition": 0,
        "bytes": 700,
        "lag": 3,
        "future": True,
    }
    assert second["error"] == "KAFKA_STORAGE_ERROR"
    assert "the disk is broken" in second["message"]
    assert told["errors"][0]["node"] == 2
    assert main(["cluster", "log-dirs", "1", "2", "--replicas"]) == 1
    assert [line.split()[:3] for line in capsys.readouterr().out.splitlines()] == [
        ["TOPIC", "PARTITION", "NODE"],
        ["audit", "0", "1"],
        ["orders", "0", "1"],
        ["orders", "1", "1"],
    ]
    assert [*fake.calls[-1][1]] == [1, 2]  # type: ignore[misc]
    with pytest.raises(SystemExit):
        main(["cluster", "log-dirs", "x"])
    assert "expected the id of a node" in capsys.readouterr().err


def test_the_page(fake: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of docs/command-line.md, word by word."""
    check_page(__file__, capsys)
