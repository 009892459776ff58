"""`kafka-fast topics create` on the embedded broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_fast import Admin
from kafka_fast.cli.main import main
from kafka_fast.testing.broker.serving.server import EmbeddedKafka


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(brokers=2, auto_create=False) as kafka:
        yield kafka


def create(kafka: EmbeddedKafka, *words: str) -> int:
    return main(["topics", "create", *words, "-b", kafka.bootstrap])


def names(kafka: EmbeddedKafka) -> set[str]:
    with Admin(bootstrap_servers=kafka.bootstrap) as admin:
        return {*admin.list_topics()}


def test_text(kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]) -> None:
    assert create(kafka, "a", "b", "--partitions", "3", "--replication-factor", "2") == 0
    told = capsys.readouterr()
    assert told.out == (
        "TOPIC    PARTITIONS    REPLICAS    OUTCOME\n"
        "a                 3           2    created\n"
        "b                 3           2    created\n"
    )
    assert told.err == ""
    assert names(kafka) == {"a", "b"}


def test_settings_and_a_file(
    kafka: EmbeddedKafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both are called --config, here and in Kafka's scripts."""
    file = tmp_path / "a=b.properties"
    file.write_text("client.id=me\n")
    settings = ["--config", "retention.ms=-1", "--config", "cleanup.policy=compact"]
    assert create(kafka, "a", *settings, "--config", str(file), "-o", "json") == 0
    (topic,) = json.loads(capsys.readouterr().out)["topics"]
    assert (topic["configs"]["retention.ms"], topic["configs"]["cleanup.policy"]) == (
        "-1",
        "compact",
    )
    assert create(kafka, "b", "--config", "retention.ms") == 1
    assert "retention.ms: No such file" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        create(kafka, "b", "--config", "retention.ms=1", "--config", "retention.ms=1")
    assert caught.value.code == 2
    assert "retention.ms is given twice" in capsys.readouterr().err
    assert create(kafka, "b", "--config", "retention=1") == 1
    assert "retention" in capsys.readouterr().err
    assert names(kafka) == {"a"}


def test_assignments(kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]) -> None:
    pinned = ["--assignment", "1:1,2", "--assignment", "0:2,1"]
    assert create(kafka, "a", *pinned, "-o", "json") == 0
    capsys.readouterr()
    with Admin(bootstrap_servers=kafka.bootstrap) as admin:
        partitions = admin.describe_topics(["a"])["a"].partitions
    assert [partition.replicas for partition in partitions] == [(2, 1), (1, 2)]
    assert create(kafka, "b", *pinned, "--partitions", "2") == 2
    assert "leave --partitions" in capsys.readouterr().err
    assert create(kafka, "b", *pinned, "--assignment", "1:2,1") == 2
    assert "partition 1 is assigned twice" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["--assignment", "1,2"],
        ["--assignment", "0:"],
        ["--partitions", "0"],
        ["--replication-factor", "x"],
    ],
)
def test_misuse(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["topics", "create", "a", *words])
    assert caught.value.code == 2
    assert "expected" in capsys.readouterr().err


def test_one_that_is_there(kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]) -> None:
    kafka.create_topic("a", 1)
    assert create(kafka, "a", "b") == 1
    told = capsys.readouterr()
    assert "b    " in told.out
    assert told.err.startswith("kafka-fast: TOPIC_ALREADY_EXISTS (36): CreateTopics of topic 'a'")
    assert create(kafka, "a", "--if-not-exists") == 0
    assert capsys.readouterr().out == (
        "TOPIC    PARTITIONS    REPLICAS    OUTCOME\n"
        "a                 -           -    exists already\n"
    )
    assert create(kafka, "a", "--if-not-exists", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "dry_run": False,
        "topics": [
            {
                "topic": "a",
                "outcome": "exists",
                "id": None,
                "partitions": None,
                "replication_factor": None,
                "configs": None,
            }
        ],
    }


def test_dry_run(kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]) -> None:
    assert create(kafka, "a", "--dry-run") == 0
    told = capsys.readouterr()
    assert told.out == (
        "TOPIC    PARTITIONS    REPLICAS    OUTCOME\n"
        "a                 1           2    would be created\n"
    )
    assert told.err == "kafka-fast: nothing was changed: --dry-run\n"
    assert create(kafka, "a", "--replication-factor", "3", "--dry-run") == 1
    assert "INVALID_REPLICATION_FACTOR" in capsys.readouterr().err
    assert names(kafka) == set()
