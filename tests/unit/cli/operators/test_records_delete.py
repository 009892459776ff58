"""`kafka-fast records delete` on the embedded broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_fast import Consumer, TopicPartition
from kafka_fast.cli.main import main
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.unit.cli.terminals import terminal

FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(auto_create=False) as kafka:
        kafka.create_topic("orders", 2)
        for partition in (0, 1):
            kafka.produce("orders", ["x"] * 10, partition=partition)
        yield kafka


def delete(kafka: EmbeddedKafka, *words: str) -> int:
    return main(["records", "delete", *words, "-b", kafka.bootstrap])


def beginnings(kafka: EmbeddedKafka) -> list[int]:
    with Consumer(bootstrap_servers=kafka.bootstrap) as consumer:
        offsets = consumer.beginning_offsets([FIRST, SECOND])
    return [offsets[FIRST], offsets[SECOND]]


def test_offsets(kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]) -> None:
    assert delete(kafka, "orders", "0:4", "1:end", "--yes") == 0
    assert capsys.readouterr().out == (
        "TOPIC     PARTITION    BEGINNING    OUTCOME\n"
        "orders            0            4    deleted\n"
        "orders            1           10    deleted\n"
    )
    assert beginnings(kafka) == [4, 10]


def test_in_a_pipe(kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]) -> None:
    assert delete(kafka, "orders", "0:4") == 2
    assert "give --yes" in capsys.readouterr().err
    assert beginnings(kafka) == [0, 0]


def test_dry_run(kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]) -> None:
    assert delete(kafka, "orders", "0:4", "1:end", "--dry-run", "-o", "wide") == 0
    told = capsys.readouterr()
    assert told.out == (
        "TOPIC     PARTITION    BEGINNING    END    OUTCOME\n"
        "orders            0            4     10    4 offsets would be deleted\n"
        "orders            1           10     10    10 offsets would be deleted\n"
    )
    assert told.err == "kafka-fast: nothing was changed: --dry-run\n"
    assert delete(kafka, "orders", "0:11", "1:1", "7:1", "--dry-run", "-o", "json") == 1
    report = json.loads(capsys.readouterr().out)
    errors = report.pop("errors")
    assert report == {
        "dry_run": True,
        "partitions": [
            {
                "topic": "orders",
                "partition": 1,
                "outcome": "deleted",
                "beginning": 1,
                "deleted": 1,
                "end": 10,
            }
        ],
    }
    assert {(one["partition"], one["error"]) for one in errors} == {
        (0, "PositionError"),
        (7, "UNKNOWN_TOPIC_OR_PARTITION"),
    }
    assert beginnings(kafka) == [0, 0]


def test_on_a_terminal(kafka: EmbeddedKafka) -> None:
    words = ["records", "delete", "orders", "0:4", "1:end", "9:1", "-b", kafka.bootstrap]
    with terminal(*words, columns=120) as screen:
        screen.await_text(
            "TOPIC     PARTITION    BEGINNING    OUTCOME\n"
            "orders            0            4    4 offsets would be deleted\n"
            "orders            1           10    10 offsets would be deleted\n"
            "kafka-fast: delete the records of 14 offsets in 2 partitions? [y/N] "
        )
        screen.type(b"y\n")
        assert screen.end() == 1
    assert screen.lines(120)[-1].endswith("there is no partition orders-9")
    assert beginnings(kafka) == [4, 10]


def test_a_file_of_kafka(
    kafka: EmbeddedKafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "offsets.json"
    entries = [
        {"topic": "orders", "partition": 0, "offset": 3},
        {"topic": "orders", "partition": 1, "offset": -1},
    ]
    file.write_text(json.dumps({"partitions": entries, "version": 1}))
    assert delete(kafka, "--file", str(file), "--yes", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "dry_run": False,
        "partitions": [
            {"topic": "orders", "partition": 0, "outcome": "deleted", "beginning": 3},
            {"topic": "orders", "partition": 1, "outcome": "deleted", "beginning": 10},
        ],
    }
    assert delete(kafka, "orders", "0:1", "--file", str(file), "--yes") == 2
    assert "--file has the topics" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "this is no JSON"),
        ("[" * 100_000, "its JSON is nested too deep"),
        ("[]", "expected {"),
        ('{"partitions": [], "version": 2}', "expected {"),
        ('{"partitions": []}', "it names no partition"),
        ('{"partitions": [7]}', "7 is not as expected"),
        ('{"partitions": [{"topic": "a", "partition": 0}]}', "is not as expected"),
        ('{"partitions": [{"topic": "a", "partition": true, "offset": 1}]}', "not as expected"),
        ('{"partitions": [{"topic": "a", "partition": 0, "offset": -2}]}', "not as expected"),
        (
            json.dumps({"partitions": [{"topic": "a", "partition": 0, "offset": 1}] * 2}),
            "a-0 is named twice",
        ),
    ],
)
def test_a_wrong_file(
    text: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(text)
    assert main(["records", "delete", "-f", str(file), "--yes", "-b", "127.0.0.1:1"]) == 2
    assert why in capsys.readouterr().err


def test_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["records", "delete", "orders", "--yes", "-b", "127.0.0.1:1"]) == 2
    assert "say which records" in capsys.readouterr().err
    assert main(["records", "delete", "orders", "0:1", "0:2", "-y", "-b", "127.0.0.1:1"]) == 2
    assert "orders-0 is named twice" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        main(["records", "delete", "orders", "1"])
    assert caught.value.code == 2
    assert "expected PARTITION:OFFSET, such as 0:100, not '1'" in capsys.readouterr().err
