"""Commands about the cluster, its quotas, leaders and replicas, on real Kafka."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from kafka_fast.cli.main import main
from kafka_fast.testing._kafka.real_kafka import RealKafka
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
