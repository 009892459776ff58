"""`kafka-fast topics offsets` on the embedded broker."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from kafka_fast.cli.main import main
from kafka_fast.testing.broker.serving.server import EmbeddedKafka

Run = Callable[..., int]


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(auto_create=False) as kafka:
        kafka.create_topic("orders", 2)
        kafka.create_topic("audit", 1)
        kafka.produce("orders", ["x"] * 5, partition=0)
        kafka.produce("orders", ["x"] * 5, partition=0)
        kafka.delete_records("orders", 0, 5)
        yield kafka


@pytest.fixture
def run(kafka: EmbeddedKafka) -> Run:
    return lambda *words: main(["topics", "offsets", *words, "-b", kafka.bootstrap])


@pytest.mark.parametrize(
    ("words", "offsets"),
    [
        ("", ["10", "0"]),
        ("--at latest", ["10", "0"]),
        ("--at end --read-committed", ["10", "0"]),
        ("--at beginning", ["5", "0"]),
        ("--at earliest", ["5", "0"]),
        ("--at -1h", ["5", "-"]),
        ("--at now", ["-", "-"]),
        ("--partition 0", ["10"]),
    ],
)
def test_places(
    run: Run, capsys: pytest.CaptureFixture[str], words: str, offsets: list[str]
) -> None:
    assert run("orders", *words.split()) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert rows[0] == ["TOPIC", "PARTITION", "OFFSET"]
    assert rows[1:] == [["orders", str(index), at] for index, at in enumerate(offsets)]


def test_all_topics(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--partition", "1") == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["orders            1         0"]
    assert run("--partition", "9") == 0
    assert capsys.readouterr().err == "kafka-fast: there is no such partition\n"


def test_json(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("orders", "audit", "nothing", "--partition", "1", "--at", "-1h", "-o", "json") == 1
    report = json.loads(capsys.readouterr().out)
    errors = [(one["topic"], one.get("partition")) for one in report.pop("errors")]
    assert errors == [("nothing", None), ("audit", 1)]
    assert report == {
        "partitions": [
            {"topic": "orders", "partition": 1, "offset": None, "timestamp_ms": None,
             "leader_epoch": None}
        ]
    }  # fmt: skip


def test_bad_points(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("4711", "soon"):
        with pytest.raises(SystemExit) as caught:
            run("orders", "--at", text)
        assert caught.value.code == 2
    assert "4711 is an offset" in capsys.readouterr().err
    assert run("orders", "--at", "@1700000000") == 2
