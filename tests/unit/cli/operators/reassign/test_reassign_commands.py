"""`kafka-fast reassign`: plans and their files, moves, and throttles that do not stay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kafka_fast import TopicPartition
from kafka_fast.admin import (
    AlterConfigOp,
    AlterConfigOpType,
    ClusterDescription,
    ClusterNode,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    PartitionReassignment,
    TopicDescription,
    TopicPartitionInfo,
)
from kafka_fast.cli.main import main
from kafka_fast.cli.operators.reassign import waiting
from kafka_fast.errors import (
    ClusterAuthorizationFailed,
    InvalidReplicaAssignment,
    KafkaTimeoutError,
    NoReassignmentInProgress,
    UnknownTopicOrPartition,
)
from tests.unit.cli.operators.fake_admin import (
    FakeAdmin,
    check_page,
    faked,
    on_a_terminal,
    report,
)
from tests.unit.cli.operators.scripted_admin import answered

ZERO, ONE = TopicPartition("orders", 0), TopicPartition("orders", 1)
TOPIC = ConfigResource(ConfigResourceType.TOPIC, "orders")
RACKS = {1: "a", 2: "b", 3: "a"}


class Cluster:
    """Remembers replicas, moves that never end by themselves, and settings."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.replicas = {ZERO: (1,), ONE: (1,)}
        self.moving: dict[TopicPartition, PartitionReassignment] = {}
        self.targets: dict[TopicPartition, tuple[int, ...]] = {}
        self.settings: dict[ConfigResource, dict[str, str]] = {}
        self.refused: dict[Any, Exception] = {}
        self.looks = 0
        self.is_stuck = False
        nodes = tuple(ClusterNode(one, f"kafka{one}", 9092, rack) for one, rack in RACKS.items())
        self.fake: FakeAdmin = faked(
            monkeypatch,
            describe_cluster=ClusterDescription("id", 1, nodes),
            describe_topics=self.describe_topics,
            list_topics=lambda include_internal: ["orders"],
            list_partition_reassignments=self.list_moves,
            alter_partition_reassignments=self.alter,
            describe_configs=self.describe_configs,
            incremental_alter_configs=self.alter_configs,
        )
        monkeypatch.setattr(waiting, "PAUSE", 0.0)
        monkeypatch.setattr(waiting, "_LOOK_PAUSE", 0.0)

    def describe_topics(self, names: Any) -> object:
        infos = tuple(
            TopicPartitionInfo(one.partition, 1, 1, brokers, brokers, ())
            for one, brokers in self.replicas.items()
        )
        topic = TopicDescription("orders", "id", is_internal=False, partitions=infos)
        absent = {name: UnknownTopicOrPartition("no") for name in names if name != "orders"}
        return answered({"orders": topic} if "orders" in names else {}, absent)

    def list_moves(self, partitions: Any = None) -> dict[TopicPartition, PartitionReassignment]:
        self.looks += 1
        if self.looks % 3 == 0 and not self.is_stuck:  # in this time all have moved
            self.end_moves()
        chosen = self.moving if partitions is None else partitions
        return {one: self.moving[one] for one in chosen if one in self.moving}

    def end_moves(self) -> None:
        for one in self.moving:
            self.replicas[one] = self.targets[one]
        self.moving = {}

    def alter(self, changes: Any) -> object:
        errors = {one: error for one, error in self.refused.items() if one in changes}
        for one, target in changes.items():
            if one in errors:
                continue
            if target is None:
                del self.moving[one]
                continue
            now = self.replicas[one]
            self.targets[one] = tuple(target)
            self.moving[one] = PartitionReassignment(
                (*now, *(b for b in target if b not in now)),
                tuple(b for b in target if b not in now),
                tuple(b for b in now if b not in target),
            )
        return answered({one: None for one in changes if one not in errors}, errors)  # type: ignore[arg-type]

    def describe_configs(self, resources: Any) -> object:
        def entry(name: str, value: str) -> ConfigEntry:
            source = ConfigSource.DYNAMIC_BROKER_CONFIG
            return ConfigEntry(name, value, source, is_read_only=False, is_sensitive=False)

        return answered(
            {
                one: {name: entry(name, text) for name, text in self.settings.get(one, {}).items()}
                for one in resources
            }
        )

    def alter_configs(self, configs: dict[ConfigResource, list[AlterConfigOp]]) -> object:
        errors = {one: error for one, error in self.refused.items() if one in configs}
        for resource, ops in configs.items():
            for op in ops if resource not in errors else ():
                of = self.settings.setdefault(resource, {})
                if op.op == AlterConfigOpType.DELETE:
                    del of[op.name]
                else:
                    of[op.name] = str(op.value)
        return answered({one: None for one in configs if one not in errors}, errors)  # type: ignore[arg-type]

    @property
    def is_throttled(self) -> bool:
        return any(self.settings.values())


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    return Cluster(monkeypatch)


@pytest.fixture
def plan(tmp_path: Path) -> str:
    return write(tmp_path, (0, [2, 1]), (1, [1]))


def write(folder: Path, *entries: tuple[int, list[int]]) -> str:
    file = folder / "plan.json"
    document = {
        "version": 1,
        "partitions": [
            {"topic": "orders", "partition": number, "replicas": brokers, "log_dirs": ["any"]}
            for number, brokers in entries
        ],
    }
    file.write_text(json.dumps(document))
    return str(file)


# ---- plan ----


def test_plan(cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    export, save = tmp_path / "new.json", tmp_path / "old.json"
    words = ["--replication-factor", "2", "--export", str(export), "--save-current", str(save)]
    told = report(capsys, "reassign", "plan", "orders", *words)
    assert told == {
        "version": 1,
        "partitions": [
            {"topic": "orders", "partition": 0, "replicas": [1, 2]},
            {"topic": "orders", "partition": 1, "replicas": [2, 3]},
        ],
    }
    assert json.loads(export.read_text()) == told
    assert [one["replicas"] for one in json.loads(save.read_text())["partitions"]] == [[1], [1]]
    assert main(["reassign", "plan", "orders", *words]) == 1  # no file is overwritten
    assert "File exists" in capsys.readouterr().err


def test_plan_for_some_brokers(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    told = report(capsys, "reassign", "plan", "orders", "no", "--brokers", "3,2", status=1)
    assert [one["replicas"] for one in told["partitions"]] == [[2], [3]]
    assert told["errors"][0]["topic"] == "no"
    assert main(["reassign", "plan", "orders", "--brokers", "3,9"]) == 2
    assert "there is no broker 9: there are 1, 2, 3" in capsys.readouterr().err
    words = ["--replication-factor", "4", "--ignore-racks"]
    assert main(["reassign", "plan", "orders", *words]) == 2
    assert "orders-0 cannot have 4 replicas" in capsys.readouterr().err


# ---- run ----


def test_run(cluster: Cluster, plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["reassign", "run", plan]
    assert main(words) == 2
    told = report(capsys, *words, "--dry-run")
    partitions = [
        {"topic": "orders", "partition": 0, "before": [1], "after": [2, 1], "outcome": "moved"},
        {"topic": "orders", "partition": 1, "before": [1], "after": [1], "outcome": "unchanged"},
    ]
    assert told == {"dry_run": True, "partitions": partitions}
    assert cluster.moving == {}
    told = report(capsys, *words, "--yes")
    assert told["partitions"][0]["outcome"] == "started"
    assert [*cluster.moving] == [ZERO]
    assert not cluster.is_throttled


def test_run_asks(
    cluster: Cluster,
    plan: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    on_a_terminal(monkeypatch, "n\n")
    assert main(["reassign", "run", plan]) == 1
    assert "move 1 partition? [y/N]" in capsys.readouterr().err
    assert cluster.moving == {}


def test_a_throttle_ends_with_the_moves(
    cluster: Cluster, plan: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["reassign", "run", plan, "--yes", "--throttle", "1000"]
    assert main([*words, "--wait"]) == 0
    captured = capsys.readouterr()
    assert "moved" in captured.out
    assert "throttles were removed: " in captured.err
    throttle = next(call for call in cluster.fake.calls if call[0] == "incremental_alter_configs")
    changes: Any = throttle[1]
    shown = {str(one): {op.name: op.value for op in ops} for one, ops in changes.items()}
    rates = {
        "leader.replication.throttled.rate": "1000",
        "follower.replication.throttled.rate": "1000",
    }
    assert shown == {
        "broker '1'": rates,
        "broker '2'": rates,
        "topic 'orders'": {
            "leader.replication.throttled.replicas": "0:1",
            "follower.replication.throttled.replicas": "0:2",
        },
    }
    assert not cluster.is_throttled


def test_a_broker_that_is_down_needs_no_throttle(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.replicas[ZERO] = (1, 9)
    plan = write(tmp_path, (0, [1, 2]))
    assert main(["reassign", "run", plan, "--yes", "--throttle", "1000"]) == 0
    assert {str(one) for one in cluster.settings} == {"broker '1'", "broker '2'", "topic 'orders'"}


def test_a_throttle_without_wait(
    cluster: Cluster, plan: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reassign", "run", plan, "--yes", "--throttle", "1000"]) == 0
    assert "status FILE --wait" in capsys.readouterr().err
    assert cluster.is_throttled
    told = report(capsys, "reassign", "status", plan, "--wait")
    assert [one["state"] for one in told["partitions"]] == ["done", "done"]
    assert not cluster.is_throttled


def test_nothing_moves_without_its_throttle(
    cluster: Cluster, plan: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.refused = {ConfigResource(ConfigResourceType.BROKER, "2"): ClusterAuthorizationFailed()}
    words = ["--yes", "--throttle", "1000", "--wait"]
    told = report(capsys, "reassign", "run", plan, *words, status=1)
    assert told["errors"][0]["resource"] == "broker '2'"
    assert cluster.targets == {}
    assert not cluster.is_throttled


def test_a_throttle_ends_if_nothing_has_begun(
    cluster: Cluster, plan: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.refused = {ZERO: InvalidReplicaAssignment("no such broker")}
    told = report(capsys, "reassign", "run", plan, "--yes", "--throttle", "1000", status=1)
    assert [one["outcome"] for one in told["partitions"]] == ["unchanged"]
    assert (told["errors"][0]["topic"], told["errors"][0]["partition"]) == ("orders", 0)
    assert not cluster.is_throttled


@pytest.mark.parametrize("call", ["list_partition_reassignments", "alter_partition_reassignments"])
@pytest.mark.parametrize("error", [KafkaTimeoutError("no answer"), KeyboardInterrupt()])
def test_an_interruption_tells_of_the_throttle(
    call: str,
    error: BaseException,
    cluster: Cluster,
    plan: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(*args: object) -> object:
        if call.startswith("list") and not cluster.moving:
            return {}
        raise error

    cluster.fake.answers[call] = broken
    status = 130 if isinstance(error, KeyboardInterrupt) else 1
    assert main(["reassign", "run", plan, "--yes", "--throttle", "1000", "--wait"]) == status
    assert "the throttle stays until kafka-fast reassign status" in capsys.readouterr().err


def test_a_move_that_somebody_gives_up(
    cluster: Cluster, plan: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.end_moves = cluster.moving.clear  # type: ignore[method-assign]
    told = report(capsys, "reassign", "run", plan, "--yes", "--wait", status=1)
    assert [one["outcome"] for one in told["partitions"]] == ["unchanged"]
    assert "somebody has given the move up" in told["errors"][0]["message"]


def test_partitions_that_are_not_there(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(tmp_path, (7, [1]))
    for words in (["run", file, "--yes"], ["status", file]):
        told = report(capsys, "reassign", *words, status=1)
        assert told["partitions"] == []
        assert told["errors"][0]["partition"] == 7


# ---- beside other moves ----


def test_nothing_moves_beside_other_moves_unless_told_so(
    cluster: Cluster, plan: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Regression: the throttle of what was moving already ended, as its list was replaced."""
    cluster.is_stuck = True
    cluster.alter({ONE: [1, 3]})
    words = ["reassign", "run", plan, "--yes", "--throttle", "1000"]
    told = report(capsys, *words, status=1)
    (error,) = told["errors"]
    assert error["error"] == "REASSIGNMENT_IN_PROGRESS"
    assert "orders-1 moving already: give --additional" in error["message"]
    assert not cluster.is_throttled
    assert main([*words, "--dry-run"]) == 0
    assert "give --additional" in capsys.readouterr().err
    # The plan has both: the one that is moving goes back where it was.
    assert main([*words, "--additional"]) == 0
    assert "is throttled anew" in capsys.readouterr().err
    assert {one: cluster.targets[one] for one in cluster.moving} == {ONE: (1,), ZERO: (2, 1)}


def test_the_throttle_is_of_all_moves(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.is_stuck = True
    cluster.alter({ONE: [3]})
    plan = write(tmp_path, (0, [2]))
    words = ["reassign", "run", plan, "--yes", "--throttle", "1000", "--additional"]
    assert main(words) == 0
    assert cluster.settings[TOPIC] == {
        "leader.replication.throttled.replicas": "1:1,0:1",
        "follower.replication.throttled.replicas": "1:3,0:2",
    }
    assert {str(one) for one in cluster.settings} == {
        "broker '1'",
        "broker '2'",
        "broker '3'",
        "topic 'orders'",
    }
    del cluster.moving[ZERO]
    assert main(["reassign", "status", plan, "--wait"]) == 0
    assert "throttles stay, because other partitions" in capsys.readouterr().err
    assert cluster.is_throttled
    cluster.is_stuck = False
    assert main(["reassign", "status", "--wait"]) == 0
    assert not cluster.is_throttled


def test_a_wait_that_takes_too_long(
    cluster: Cluster, plan: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.is_stuck = True
    words = ["--yes", "--throttle", "1000", "--wait", "--timeout", "0s"]
    told = report(capsys, "reassign", "run", plan, *words, status=1)
    assert told["errors"][0]["error"] == "KafkaTimeoutError"
    assert cluster.moving
    assert cluster.is_throttled
    assert main(["reassign", "status", plan, "--wait", "--timeout", "0s"]) == 1
    said = capsys.readouterr().err
    assert "the moves go on, and the throttle stays until" in said
    assert "1 partition had not moved when --timeout was over" in said
    assert main(["reassign", "status", plan, "--timeout", "1h"]) == 2


def test_brokers_hear_of_the_end_later(
    cluster: Cluster, plan: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Regression: a plan that was done was shown as different, if a broker had not heard of it."""
    cluster.alter({ZERO: [2, 1]})
    heard: list[int] = []
    describe = cluster.describe_topics

    def late(names: Any) -> object:
        heard.append(1)
        if len(heard) < 3:
            cluster.replicas, known = {ZERO: (1,), ONE: (1,)}, cluster.replicas
            answer = describe(names)
            cluster.replicas = known
            return answer
        return describe(names)

    cluster.fake.answers["describe_topics"] = late
    told = report(capsys, "reassign", "status", plan, "--wait")
    assert [one["state"] for one in told["partitions"]] == ["done", "done"]
    assert len(heard) == 3


# ---- status and cancel ----


def test_status(cluster: Cluster, plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reassign", "status"]) == 0
    assert "no partition is moving" in capsys.readouterr().err
    cluster.alter({ONE: [1, 3]})
    told = report(capsys, "reassign", "status", plan)
    assert [one["state"] for one in told["partitions"]] == ["different", "moving"]
    assert told["partitions"][1] == {
        "topic": "orders",
        "partition": 1,
        "replicas": [1, 3],
        "adding": [3],
        "removing": [],
        "state": "moving",
    }


def test_cancel(cluster: Cluster, plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reassign", "run", plan, "--yes", "--throttle", "1000"]) == 0
    cluster.looks = -9
    assert main(["reassign", "cancel", plan]) == 2
    told = report(capsys, "reassign", "cancel", plan, "--dry-run")
    assert told["partitions"] == [{"topic": "orders", "partition": 0, "outcome": "cancelled"}]
    assert cluster.is_throttled
    told = report(capsys, "reassign", "cancel", plan, "--yes")
    assert told["partitions"] == [{"topic": "orders", "partition": 0, "outcome": "cancelled"}]
    assert cluster.moving == {}
    assert not cluster.is_throttled


def test_cancel_leaves_the_throttle_of_others(
    cluster: Cluster, plan: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reassign", "run", plan, "--yes", "--throttle", "1000"]) == 0
    cluster.looks = -9
    cluster.alter({ONE: [1, 3]})
    cluster.refused = {ONE: NoReassignmentInProgress("it has ended")}
    assert main(["reassign", "cancel", "--all", "--yes"]) == 0
    assert "throttles stay, because other partitions are still moving" in capsys.readouterr().err
    assert cluster.is_throttled


@pytest.mark.parametrize("words", [["cancel", "--yes"], ["cancel", "plan.json", "--all", "--yes"]])
def test_misuse(words: list[str], cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reassign", *words]) == 2
    assert "say which moves" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "this is no JSON"),
        ("[" * 100_000, "its JSON is nested too deep"),
        ("[]", "expected {"),
        ('{"version": 2, "partitions": []}', "expected {"),
        ('{"version": 1, "partitions": []}', "it names no partition"),
        ('{"partitions": [{"topic": "a", "partition": 0, "replicas": []}]}', "not as expected"),
        ('{"partitions": [{"topic": "a", "partition": 0, "replicas": [1, 1]}]}', "as expected"),
        ('{"partitions": [{"topic": "a", "partition": 0, "replicas": [true]}]}', "as expected"),
        (
            '{"partitions": [{"topic": "a", "partition": 0, "replicas": [1], "log_dirs": ["/d"]}]}',
            "a-0 has log_dirs",
        ),
        (
            '{"partitions": [{"topic": "a", "partition": 0, "replicas": [1], "log_dirs": 5}]}',
            "a-0 has log_dirs",
        ),
        (
            json.dumps({"partitions": [{"topic": "a", "partition": 0, "replicas": [1]}] * 2}),
            "a-0 is named twice",
        ),
    ],
)
def test_a_wrong_file(
    text: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text)
    assert main(["reassign", "run", str(file), "--yes", "-b", "127.0.0.1:1"]) == 2
    assert why in capsys.readouterr().err


def test_the_page(
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Those of docs/command-line.md, word by word."""
    monkeypatch.chdir(tmp_path)
    check_page(__file__, capsys)
