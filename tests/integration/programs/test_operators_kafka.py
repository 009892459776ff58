"""The commands of an operator on real Kafka: what the embedded broker cannot serve, and a life."""

from __future__ import annotations

import json
import re
import uuid
from pathlib import Path

import pytest

from kafka_fast import Admin
from kafka_fast.cli.main import main
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.documentation.pages import ROOT, blocks

pytestmark = pytest.mark.broker


def test_the_life_of_a_topic(real_kafka: RealKafka, capsys: pytest.CaptureFixture[str]) -> None:
    topic = f"operated-{uuid.uuid4().hex}"
    on = ["-b", real_kafka.bootstrap, "-o", "json"]

    def told(*words: str, status: int = 0) -> dict[str, object]:
        assert main([*words, *on]) == status
        report: dict[str, object] = json.loads(capsys.readouterr().out)
        return report

    create = ["topics", "create", topic, "--partitions", "2", "--config", "retention.ms=100000"]
    assert told(*create, "--dry-run")["dry_run"] is True
    assert told("topics", topic, status=1)["topics"] == []
    (created,) = told(*create)["topics"]  # type: ignore[misc]
    assert (created["outcome"], created["partitions"]) == ("created", 2)
    assert created["configs"]["retention.ms"] == "100000"
    (again,) = told(*create, "--if-not-exists")["topics"]  # type: ignore[misc]
    assert again["outcome"] == "exists"
    assert told("topics", "partitions", topic, "3", "--dry-run") == {
        "dry_run": True,
        "topics": [{"topic": topic, "outcome": "extended", "partitions": 3}],
    }
    assert told("topics", "partitions", topic, "3") == {
        "dry_run": False,
        "topics": [{"topic": topic, "outcome": "extended", "partitions": 3}],
    }
    pinned = ["--assignment", "3:1"]
    told("topics", "partitions", topic, "4", *pinned)
    refused = told("topics", "partitions", topic, "2", status=1)
    assert refused["topics"] == []
    assert "INVALID_PARTITIONS" in str(refused["errors"])
    (described,) = told("topics", "describe", topic)["topics"]  # type: ignore[misc]
    assert [one["partition"] for one in described["partitions"]] == [0, 1, 2, 3]
    (by_id,) = told("topics", "describe", "--by-id", described["id"])["topics"]  # type: ignore[misc]
    assert by_id == described
    assert told("records", "delete", topic, "0:end", "1:0", "--dry-run")["dry_run"] is True
    cut = told("records", "delete", topic, "0:end", "1:0", "--yes")
    assert [one["beginning"] for one in cut["partitions"]] == [0, 0]  # type: ignore[attr-defined]
    assert told("topics", "delete", topic, "--yes") == {
        "dry_run": False,
        "topics": [{"topic": topic, "outcome": "deleted"}],
    }
    with Admin(bootstrap_servers=real_kafka.bootstrap) as admin:
        assert topic not in admin.list_topics()


def test_the_pages_partitions(real_kafka: RealKafka, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of docs/command-line.md, word by word."""
    topic = f"orders-{uuid.uuid4().hex}"
    commands, shown = (
        block.text
        for block in blocks("docs/command-line.md")
        if block.how == f"elsewhere, {Path(__file__).relative_to(ROOT)}"
    )
    assert main(["topics", "create", topic, "--partitions", "3", "-b", real_kafka.bootstrap]) == 0
    capsys.readouterr()
    told = ""
    for command in commands.splitlines():
        words = command.replace("orders", topic).split()[1:]
        assert main([*words, "-b", real_kafka.bootstrap]) == 0
        captured = capsys.readouterr()
        told += captured.out + captured.err
    assert re.sub(" +", " ", told.replace(topic, "orders")) == re.sub(" +", " ", shown)
