"""`kafka-fast groups reset` on the embedded broker."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_fast import Admin, Consumer, TopicPartition
from kafka_fast.cli.main import main
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.unit.cli.terminals import terminal
from tests.waiting import eventually

Run = Callable[..., int]
PARTITION = TopicPartition("orders", 0)


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(auto_create=False) as kafka:
        kafka.create_topic("orders", 2)
        kafka.produce("orders", ["x"] * 10, partition=0)
        with Consumer(bootstrap_servers=kafka.bootstrap, group_id="audit") as consumer:
            consumer.commit({PARTITION: 3})
        yield kafka


@pytest.fixture
def run(kafka: EmbeddedKafka) -> Run:
    return lambda *words: main(["groups", "reset", "audit", *words, "-b", kafka.bootstrap])


def committed(kafka: EmbeddedKafka) -> dict[int, int]:
    with Admin(bootstrap_servers=kafka.bootstrap) as admin:
        offsets = admin.list_consumer_group_offsets({"audit": None})["audit"]
        return {one.partition: at.offset for one, at in offsets.items() if at is not None}


@pytest.mark.parametrize(
    ("words", "offset"),
    [
        ("--to earliest", 0),
        ("--to beginning", 0),
        ("--to latest", 10),
        ("--to current", 3),
        ("--to 7", 7),
        ("--to 700", 10),
        ("--to -1h", 0),
        ("--to now", 10),
        ("--to 2020-01-01T00:00Z", 0),
        ("--by 1h30m", 0),
        ("--by 0s", 10),
        ("--shift -2", 1),
        ("--shift +2", 5),
        ("--shift 100", 10),
    ],
)
def test_places(kafka: EmbeddedKafka, run: Run, words: str, offset: int) -> None:
    assert run(*words.split(), "--yes") == 0
    assert committed(kafka) == {0: offset}


def test_what_is_said(kafka: EmbeddedKafka, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--to", "700", "--dry-run") == 0
    told = capsys.readouterr()
    assert told.out == (
        "TOPIC     PARTITION    FROM    TO    OUTCOME\n"
        "orders            0       3    10    would be reset, not to 700\n"
    )
    assert told.err == "kafka-fast: nothing was changed: --dry-run\n"
    assert committed(kafka) == {0: 3}
    assert run("--to", "700", "--topic", "orders", "--yes", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "dry_run": False,
        "group": "audit",
        "partitions": [
            {"topic": "orders", "partition": index, "outcome": "reset", "from": at, "to": end,
             "requested": 700, "clamped": True, "beginning": 0, "end": end}
            for index, (at, end) in enumerate([(3, 10), (None, 0)])
        ],
    }  # fmt: skip
    assert committed(kafka) == {0: 10, 1: 0}


def test_nothing_is_reset_if_a_partition_cannot_be(
    kafka: EmbeddedKafka, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--to", "earliest", "--partition", "orders:0,7", "--yes", "-o", "json") == 1
    told = capsys.readouterr()
    report = json.loads(told.out)
    assert report["partitions"] == []
    assert [(one["topic"], one["partition"]) for one in report["errors"]] == [("orders", 7)]
    assert "nothing was reset" in told.err
    assert committed(kafka) == {0: 3}
    assert run("--to", "earliest", "--topic", "nothing", "--yes") == 1
    words = ["--shift", "1", "-b", kafka.bootstrap, "--yes"]
    assert main(["groups", "reset", "nobody", *words]) == 2
    assert "group nobody has committed nothing: name topics" in capsys.readouterr().err


def test_a_plan(
    kafka: EmbeddedKafka, run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = str(tmp_path / "plan.json")
    assert run("--to", "latest", "--dry-run", "--export", file) == 0
    kafka.produce("orders", ["x"], partition=0)
    assert run("--plan", file, "--yes") == 0
    assert committed(kafka) == {0: 10}
    assert run("--plan", file, "--topic", "orders", "--yes") == 2
    Path(file).write_text("{}")
    assert run("--plan", file, "--yes") == 2
    assert f"{file}: this is no plan" in capsys.readouterr().err


@pytest.mark.parametrize(("key", "status", "offset"), [(b"y\n", 0, 10), (b"n\n", 1, 3)])
def test_the_plan_is_shown_first(
    kafka: EmbeddedKafka, key: bytes, status: int, offset: int
) -> None:
    words = ["groups", "reset", "audit", "--to", "latest", "-b", kafka.bootstrap]
    with terminal(*words, columns=120) as screen:
        screen.await_text("kafka-fast: reset group audit in 1 partition? [y/N] ")
        assert "orders            0       3    10    would be reset" in screen.lines(120)
        screen.type(key)
        assert screen.end() == status
    assert committed(kafka) == {0: offset}


@pytest.mark.parametrize(
    "words",
    [
        "--to yesterday",
        "--to earliest --shift 1",
        "--shift much",
        "--by -1h",
        "--by 1h30",
        "--to earliest --partition orders",
        "",
    ],
)
def test_bad_arguments(run: Run, words: str) -> None:
    with pytest.raises(SystemExit) as caught:
        run(*words.split())
    assert caught.value.code == 2


def test_a_group_with_members_is_refused_before_anybody_is_asked(
    kafka: EmbeddedKafka, run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    with Consumer(bootstrap_servers=kafka.bootstrap, group_id="audit", client_id="ada") as consumer:
        consumer.subscribe(["orders"])
        eventually(lambda: consumer.poll(0.02) or consumer.assignment())
        assert run("--to", "latest", "--yes") == 1
        told = capsys.readouterr()
        assert "group audit has members, which would go on where they are: ada (" in told.err
        assert run("--to", "latest", "--dry-run") == 0
        told = capsys.readouterr()
        assert "stop them first" in told.err
    assert committed(kafka)[0] == 3
