"""`kafka-fast cluster`: what it changes, and what it asks before."""

from __future__ import annotations

import pytest

from kafka_fast import TopicPartition
from kafka_fast.admin import (
    FeatureUpdate,
    LogDir,
    QuorumInfo,
    QuorumReplica,
    RaftVoterEndpoint,
    ReplicaInfo,
    TopicPartitionReplica,
    UpgradeType,
)
from kafka_fast.cli.main import main
from kafka_fast.errors import (
    BrokerIdNotRegistered,
    FeatureUpdateFailed,
    KafkaStorageError,
    VoterNotFound,
)
from kafka_fast.values import replace
from tests.unit.cli.operators.fake_admin import (
    FakeAdmin,
    check_page,
    faked,
    on_a_terminal,
    report,
)
from tests.unit.cli.operators.scripted_admin import answered
from tests.unit.cli.operators.test_cluster_commands import CAUGHT_UP, CLUSTER, FEATURES, QUORUM

NEWCOMER = QuorumReplica(3004, "dir-4", 1002, CAUGHT_UP, CAUGHT_UP)
WITH_NEWCOMER = replace(QUORUM, observers=(*QUORUM.observers, NEWCOMER))
ZERO, ONE = TopicPartition("orders", 0), TopicPartition("orders", 1)
DIRS = {
    "/a": LogDir(None, 10, 4, {ZERO: ReplicaInfo(7, 0, is_future=False)}),
    "/b": LogDir(None, 10, 4, {ZERO: ReplicaInfo(3, 4, is_future=True)}),
}
YES = "--yes"


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeAdmin:
    known = replace(CLUSTER, nodes=CLUSTER.nodes[:2])  # without those that are fenced
    return faked(
        monkeypatch,
        describe_cluster=known,
        describe_features=FEATURES,
        describe_metadata_quorum=WITH_NEWCOMER,
        describe_log_dirs=lambda nodes: answered({nodes[0]: DIRS}),
        update_features=lambda updates, validate_only: answered(dict.fromkeys(updates)),
        add_raft_voter=None,
        remove_raft_voter=None,
        unregister_broker=None,
        unregister_controller=None,
        alter_replica_log_dirs=lambda moves: answered(dict.fromkeys(moves)),
    )


def changes(fake: FakeAdmin) -> list[object]:
    """Return the calls that change something."""
    return [call for call in fake.calls if not call[0].startswith("describe")]


# ---- features ----


@pytest.mark.parametrize(
    ("words", "kind", "outcome"),
    [
        (["upgrade", "metadata.version=29"], UpgradeType.UPGRADE, "upgraded"),
        (["downgrade", "metadata.version=29"], UpgradeType.SAFE_DOWNGRADE, "downgraded"),
        (
            ["downgrade", "metadata.version=29", "--unsafe"],
            UpgradeType.UNSAFE_DOWNGRADE,
            "downgraded",
        ),
        (["disable", "metadata.version"], UpgradeType.SAFE_DOWNGRADE, "disabled"),
    ],
)
def test_levels(
    words: list[str],
    kind: UpgradeType,
    outcome: str,
    fake: FakeAdmin,
    capsys: pytest.CaptureFixture[str],
) -> None:
    level = 0 if words[0] == "disable" else 29
    entry = {"feature": "metadata.version", "before": 29, "level": level, "outcome": outcome}
    for more in (["--dry-run"], [YES]):
        told = report(capsys, "cluster", *words, *more)
        assert told == {"dry_run": more != [YES], "features": [entry]}
    updates = {"metadata.version": FeatureUpdate(level, kind)}
    assert changes(fake) == [
        ("update_features", updates, {"validate_only": True}),
        ("update_features", updates, {"validate_only": False}),
    ]


def test_levels_ask(
    fake: FakeAdmin, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["cluster", "upgrade", "kraft.version=1"]
    assert main(words) == 2
    on_a_terminal(monkeypatch, "n\n")
    assert main(words) == 1
    said = capsys.readouterr().err
    assert "change the levels of features, which cannot always be taken back? [y/N]" in said
    assert "kraft.version         -        1" in said
    assert changes(fake) == []


def test_a_level_that_is_refused(fake: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    fake.answers["update_features"] = answered({}, {"kraft.version": FeatureUpdateFailed("no")})
    told = report(capsys, "cluster", "upgrade", "kraft.version=9", YES, status=1)
    assert told["features"] == []
    assert told["errors"][0]["feature"] == "kraft.version"
    assert told["errors"][0]["error"] == "FEATURE_UPDATE_FAILED"


@pytest.mark.parametrize("level", ["metadata.version", "a=-1", "a=x", "=1", "a=40000", "a=1.5"])
def test_a_wrong_level(level: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["cluster", "upgrade", level])
    assert caught.value.code == 2
    assert "expected FEATURE=LEVEL" in capsys.readouterr().err


def test_a_feature_that_is_named_twice(fake: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "upgrade", "a=1", "a=2", YES]) == 2
    assert "feature a is named twice" in capsys.readouterr().err


# ---- votes ----


def test_a_vote_is_given(fake: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["cluster", "add-voter", "3004", "--endpoint", "CONTROLLER://[::1]:9093"]
    told = report(capsys, *words, "--dry-run")
    voter = {"node": 3004, "directory": "dir-4", "outcome": "added"}
    assert told == {"dry_run": True, "voters": [voter]}
    assert changes(fake) == []
    assert report(capsys, *words)["voters"] == [voter]
    assert report(capsys, *words, "--directory", "d")["voters"][0]["directory"] == "d"
    endpoint = RaftVoterEndpoint("CONTROLLER", "::1", 9093)
    assert changes(fake) == [
        ("add_raft_voter", 3004, {"directory_id": "dir-4", "endpoints": [endpoint]}),
        ("add_raft_voter", 3004, {"directory_id": "d", "endpoints": [endpoint]}),
    ]


def test_a_vote_is_taken(
    fake: FakeAdmin, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["cluster", "remove-voter", "3002"]
    assert main(words) == 2
    on_a_terminal(monkeypatch, "n\ny\n")
    assert main(words) == 1
    said = capsys.readouterr().err
    assert "take the vote of controller 3002 away, so that 1 have one? [y/N]" in said
    assert main(words) == 0
    assert changes(fake) == [("remove_raft_voter", 3002, {"directory_id": "dir-2"})]
    fake.answers["remove_raft_voter"] = VoterNotFound("no")
    assert report(capsys, *words, YES, status=1)["errors"][0]["error"] == "VOTER_NOT_FOUND"


@pytest.mark.parametrize(
    ("info", "words", "why"),
    [
        (QUORUM, ["add-voter", "3004"], "the quorum knows no node 3004 without a vote"),
        (QUORUM, ["remove-voter", "1"], "the quorum knows no node 1 with a vote"),
        (
            replace(QUORUM, observers=(NEWCOMER, replace(NEWCOMER, directory_id="dir-5"))),
            ["add-voter", "3004"],
            "node 3004 is known with several directories: --directory dir-4, dir-5",
        ),
        (
            replace(QUORUM, voters=(replace(QUORUM.voters[0], directory_id=None),)),
            ["remove-voter", "3001"],
            "the directory of node 3001 is not known",
        ),
    ],
)
def test_a_directory_that_is_not_known(
    info: QuorumInfo,
    words: list[str],
    why: str,
    fake: FakeAdmin,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fake.answers["describe_metadata_quorum"] = info
    more = ["--endpoint", "C://h:1"] if words[0] == "add-voter" else [YES]
    assert main(["cluster", *words, *more]) == 2
    assert why in capsys.readouterr().err
    assert changes(fake) == []


@pytest.mark.parametrize("endpoint", ["kafka4:9093", "C://h", "C://h:0", "C://h:70000", "://h:1"])
def test_a_wrong_endpoint(endpoint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["cluster", "add-voter", "1", "--endpoint", endpoint])
    assert "expected an endpoint such as" in capsys.readouterr().err


# ---- nodes ----


def test_a_broker_is_forgotten(
    fake: FakeAdmin, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["cluster", "unregister-broker", "3"]
    entry = {"node": 3, "outcome": "unregistered"}
    assert report(capsys, *words, "--dry-run") == {"dry_run": True, "nodes": [entry]}
    assert main(words) == 2
    assert changes(fake) == []
    on_a_terminal(monkeypatch, "n\n")
    assert main(words) == 1
    assert "forget broker 3, which has stopped for good? [y/N]" in capsys.readouterr().err
    assert report(capsys, *words, YES)["nodes"] == [entry]
    assert changes(fake) == [("unregister_broker", 3)]
    fake.answers["unregister_broker"] = BrokerIdNotRegistered("no")
    told = report(capsys, *words, YES, status=1)
    assert told["errors"][0]["error"] == "BROKER_ID_NOT_REGISTERED"


def test_a_broker_that_runs_is_not_forgotten(
    fake: FakeAdmin, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cluster", "unregister-broker", "2", YES]) == 2
    assert "broker 2 is running, and would register itself again" in capsys.readouterr().err
    assert changes(fake) == []


def test_a_controller_is_forgotten(
    fake: FakeAdmin, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["cluster", "unregister-controller", "3004"]
    assert main([*words, "--dry-run"]) == 0
    on_a_terminal(monkeypatch, "n\n")
    assert main(words) == 1
    assert changes(fake) == []
    assert main([*words, YES]) == 0
    assert changes(fake) == [("unregister_controller", 3004)]


# ---- log directories ----


def test_a_replica_moves(fake: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["cluster", "move-replica", "orders:0,1", "--broker", "2", "--to", "/b"]
    told = report(capsys, *words, "--dry-run", status=1)
    entry = {**ZERO._asdict(), "node": 2, "from": "/a", "to": "/b", "outcome": "started"}
    assert told["replicas"] == [entry]
    assert "broker 2 has no replica of orders-1" in told["errors"][0]["message"]
    assert changes(fake) == []
    assert report(capsys, *words, status=1)["replicas"] == [entry]
    replica = TopicPartitionReplica("orders", 0, 2)
    assert changes(fake) == [("alter_replica_log_dirs", {replica: "/b"})]
    refused = answered({}, {replica: KafkaStorageError("broken")})
    fake.answers["alter_replica_log_dirs"] = refused
    told = report(capsys, *words, status=1)
    assert told["replicas"] == []
    assert [one["partition"] for one in told["errors"]] == [1, 0]


def test_a_directory_that_is_not_there(fake: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cluster", "move-replica", "orders:0", "--broker", "2", "--to", "/c"]) == 1
    assert "broker 2 has no directory /c: it has /a, /b" in capsys.readouterr().err


def test_the_page(fake: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of docs/command-line.md, word by word."""
    check_page(__file__, capsys)
