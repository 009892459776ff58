"""Commands about the cluster, its quotas, leaders and replicas, on real Kafka."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from kafka_fast import Admin, Producer
from kafka_fast.admin import ConfigResource, ConfigResourceType
from kafka_fast.cli.main import main
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.conftest import start_or_skip
from tests.waiting import eventually

pytestmark = pytest.mark.broker

Told: TypeAlias = Callable[..., dict[str, Any]]


@pytest.fixture
def told(real_kafka: RealKafka, capsys: pytest.CaptureFixture[str]) -> Told:
    return teller(real_kafka, capsys)


def teller(kafka: RealKafka, capsys: pytest.CaptureFixture[str]) -> Told:
    """Return a function that runs a command and returns its JSON."""

    def tell(*words: str, status: int = 0) -> dict[str, Any]:
        capsys.readouterr()
        assert main([*words, "-b", kafka.bootstrap, "-o", "json"]) == status
        shown: dict[str, Any] = json.loads(capsys.readouterr().out)
        return shown

    return tell


@pytest.mark.needs_kafka("3.3", "the quorum")
def test_the_cluster(real_kafka: RealKafka, told: Told) -> None:
    cluster = told("cluster")
    assert cluster["cluster_id"] == real_kafka.cluster_id
    assert [node["node"] for node in cluster["nodes"]] == [1]
    features = {one["feature"]: one for one in told("cluster", "features")["features"]}
    level = features["metadata.version"]
    assert level["min_possible"] <= level["level"] <= level["max_possible"]
    quorum = told("cluster", "quorum")
    leaders = [one["node"] for one in quorum["replicas"] if one["role"] == "leader"]
    assert leaders == [quorum["leader"]]
    (log_dir,) = told("cluster", "log-dirs", "1")["log_dirs"]
    assert log_dir["error"] is None
    assert log_dir["usable_bytes"] <= log_dir["total_bytes"]


@pytest.mark.needs_kafka("3.3", "levels are checked")
def test_levels_of_features(told: Told) -> None:
    features = {one["feature"]: one for one in told("cluster", "features")["features"]}
    level = features["metadata.version"]["level"]
    refused = told("cluster", "upgrade", "metadata.version=999", "--dry-run", status=1)
    (error,) = refused["errors"]
    assert error["feature"] == "metadata.version"
    told("cluster", "downgrade", "metadata.version=999", "--yes", status=1)
    assert {one["feature"]: one for one in told("cluster", "features")["features"]} == features
    assert level is not None


@pytest.mark.needs_kafka("4.4", "controllers are unregistered")
def test_nodes_and_votes_that_stay(told: Told) -> None:
    def refused(*words: str, status: int = 1) -> str:
        (error,) = told("cluster", *words, status=status)["errors"]
        return str(error["error"])

    assert refused("unregister-broker", "1", "--yes", status=2) == "UsageError"
    assert refused("unregister-broker", "99", "--yes") == "BROKER_ID_NOT_REGISTERED"
    assert refused("unregister-controller", "99", "--yes") == "CONTROLLER_ID_NOT_REGISTERED"
    told("cluster", "unregister-broker", "99", "--dry-run")
    directory = ["--directory", "MkU3OEVBNTcwNTJENDM2Qg"]
    endpoint = ["--endpoint", "CONTROLLER://127.0.0.1:1"]
    assert refused("add-voter", "7", *directory, *endpoint) == "UNSUPPORTED_VERSION"
    assert refused("add-voter", "7", *endpoint, status=2) == "UsageError"
    assert refused("remove-voter", "7", *directory, "--yes") == "UNSUPPORTED_VERSION"


@pytest.mark.needs_kafka("3.9", "quorums that change")
def test_votes_of_a_dynamic_quorum(capsys: pytest.CaptureFixture[str]) -> None:
    overrides = {
        "controller.quorum.voters": "",
        "controller.quorum.bootstrap.servers": "127.0.0.1:1",  # a single node needs nobody
    }
    kafka = RealKafka(overrides=overrides, format_options=["--standalone"])
    start_or_skip(kafka)
    with kafka:
        told = teller(kafka, capsys)
        (voter,) = told("cluster", "quorum")["replicas"]
        planned = told("cluster", "remove-voter", "1", "--dry-run")["voters"]
        assert planned == [{"node": 1, "directory": voter["directory"], "outcome": "removed"}]
        (endpoint,) = voter["endpoints"]
        twice = ["add-voter", "1", "--directory", voter["directory"], "--endpoint", endpoint]
        (error,) = told("cluster", *twice, status=1)["errors"]
        assert error["error"] == "DUPLICATE_VOTER"
        absent = ["remove-voter", "7", "--directory", voter["directory"], "--yes"]
        (error,) = told("cluster", *absent, status=1)["errors"]
        assert error["error"] == "VOTER_NOT_FOUND"
        assert len(told("cluster", "quorum")["replicas"]) == 1


@pytest.mark.needs_kafka("2.8", "quotas of addresses")
def test_quotas(told: Told) -> None:
    user = f"quota-{uuid.uuid4().hex}"
    of = ["--user", user, "--client-id", "default"]
    limits = ["request_percentage=12.5", "producer_byte_rate=1e6"]
    assert told("quotas", "set", *of, *limits, "--dry-run")["dry_run"] is True
    assert told("quotas", "--user", user)["quotas"] == []
    assert len(told("quotas", "set", *of, *limits)["quotas"]) == 2
    values = {"request_percentage": 12.5, "producer_byte_rate": 1e6}
    entry = {"user": user, "client_id": "<default>", "ip": None, "values": values}
    eventually(lambda: told("quotas", "--user", user)["quotas"] == [entry], "the quotas")
    assert told("quotas", "list", "--user", user, "--only")["quotas"] == []
    told("quotas", "set", *of, "--delete", "request_percentage", "--delete", "producer_byte_rate")
    eventually(lambda: told("quotas", "--user", user)["quotas"] == [], "no quotas")
    refused = told("quotas", "set", *of, "no_such_quota=1", status=1)
    assert refused["errors"][0]["entity"] == f"user '{user}', client-id <default>"


@pytest.mark.needs_kafka("2.4", "unclean elections")
def test_elections(told: Told) -> None:
    topic = f"elected-{uuid.uuid4().hex}"
    told("topics", "create", topic, "--partitions", "2")
    for kind in ("--preferred", "--unclean"):
        elected = told("elect", kind, "--topic", topic, "--yes")
        assert [one["outcome"] for one in elected["partitions"]] == ["not_needed"] * 2
    absent = told("elect", "--preferred", "--partition", f"{topic}:7", status=1)
    assert absent["errors"][0]["partition"] == 7


@pytest.mark.needs_kafka("2.4", "replicas are moved by this API")
def test_replicas_move_and_come_back(
    real_kafka_cluster: RealKafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = teller(real_kafka_cluster, capsys)
    topic = f"reassigned-{uuid.uuid4().hex}"
    told("topics", "create", topic, "--assignment", "0:1", "--assignment", "1:1")
    with Producer(bootstrap_servers=real_kafka_cluster.bootstrap) as producer:
        for _ in range(16):  # no codec makes this smaller
            producer.send(topic, value=os.urandom(500_000), partition=0)
    plan, before = str(tmp_path / "plan.json"), str(tmp_path / "before.json")

    def throttles() -> dict[str, str | None]:
        """Return what is left of throttles, on a broker and on the topic."""
        resources = [
            ConfigResource(ConfigResourceType.TOPIC, topic),
            ConfigResource(ConfigResourceType.BROKER, "1"),
        ]
        with Admin(bootstrap_servers=real_kafka_cluster.bootstrap) as admin:
            described = admin.describe_configs(resources)
        return {
            name: entry.value
            for entries in described.values()
            for name, entry in entries.items()
            if "replication.throttled" in name and not entry.is_default and entry.value
        }

    exported = ["--export", plan, "--save-current", before]
    told("reassign", "plan", topic, "--brokers", "2,3", *exported)
    # Slower than the first fetch: this does not end by itself.
    moving = told("reassign", "run", plan, "--throttle", "1000", "--yes")
    assert [one["outcome"] for one in moving["partitions"]] == ["started"] * 2
    assert len(throttles()) == 4
    states = [one["state"] for one in told("reassign", "status", plan)["partitions"]]
    assert states[0] == "moving"
    refused = told("reassign", "run", before, "--yes", status=1)
    assert refused["errors"][0]["error"] == "REASSIGNMENT_IN_PROGRESS"
    beside = ["--throttle", "2000", "--additional", "--yes"]
    told("reassign", "run", plan, *beside)  # the same moves, with another throttle
    eventually(lambda: "2000" in throttles().values(), "the other throttle")
    late = told("reassign", "status", plan, "--wait", "--timeout", "0s", status=1)
    assert late["errors"][0]["error"] == "KafkaTimeoutError"
    cancelled = told("reassign", "cancel", plan, "--yes")
    assert cancelled["partitions"][0] == {"topic": topic, "partition": 0, "outcome": "cancelled"}
    eventually(lambda: throttles() == {}, "the end of the throttle")

    moved = told("reassign", "run", plan, "--throttle", "100000000", "--wait", "--yes")
    assert {one["outcome"] for one in moved["partitions"]} <= {"moved", "unchanged"}
    eventually(lambda: throttles() == {}, "the end of the throttle")  # brokers hear of it later

    def replicas() -> list[list[int]]:
        (described,) = told("topics", "describe", topic)["topics"]
        return [one["replicas"] for one in described["partitions"]]

    def states_of(file: str) -> list[str]:
        return [one["state"] for one in told("reassign", "status", file)["partitions"]]

    eventually(lambda: replicas() == [[2], [3]], "the new replicas")
    eventually(lambda: states_of(plan) == ["done", "done"], "the end of the moves")
    assert told("reassign", "status", before, "--wait")["partitions"][0]["state"] == "different"
    back = told("reassign", "run", before, "--wait", "--yes")
    assert [one["outcome"] for one in back["partitions"]] == ["moved"] * 2
    told("topics", "delete", topic, "--yes")
