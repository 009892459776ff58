"""`kafka-fast groups reset` on the embedded broker."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_fast import Admin, Consumer, TopicPartition
from kafka_fast.cli.main import main
from kafka_fast.errors import GroupAuthorizationFailed
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import OFFSET_COMMIT
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


# ---- several groups, and files of Kafka's script ----


@pytest.fixture
def files(tmp_path: Path) -> Callable[[str], str]:
    """Write a file; return its name."""

    def write(text: str) -> str:
        file = tmp_path / "offsets.csv"
        file.write_text(text)
        return str(file)

    return write


def committed_of(kafka: EmbeddedKafka, *groups: str) -> list[dict[int, int]]:
    with Admin(bootstrap_servers=kafka.bootstrap) as admin:
        offsets = admin.list_consumer_group_offsets(dict.fromkeys(groups))
        return [
            {one.partition: at.offset for one, at in offsets[group].items() if at is not None}
            for group in groups
        ]


def reset(kafka: EmbeddedKafka, *words: str) -> int:
    return main(["groups", "reset", *words, "-b", kafka.bootstrap])


def test_a_csv_file_of_one_group(
    kafka: EmbeddedKafka,
    run: Run,
    files: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As kafka-consumer-groups --group audit --export has written it, and later offsets of ours."""
    file = files("orders,0,4\n\n orders , 1 , 700\n")
    assert run("--plan", file, "--yes", "-o", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [(one["from"], one["to"], one["requested"]) for one in told["partitions"]] == [
        (3, 4, 4),
        (None, 0, 700),
    ]
    assert committed(kafka) == {0: 4, 1: 0}
    assert reset(kafka, "--plan", file, "--yes") == 2
    assert reset(kafka, "audit", "other", "--plan", file, "--yes") == 2
    assert "line 1: it names no group, so the command line must name" in capsys.readouterr().err


def test_several_groups(
    kafka: EmbeddedKafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["audit", "grüße, du", "--to", "latest", "--topic", "orders"]
    assert reset(kafka, *words, "--dry-run", "--export", str(tmp_path / "a.json")) == 2
    assert "the plans of several groups are a file of CSV" in capsys.readouterr().err
    file = tmp_path / "plan.csv"
    assert reset(kafka, *words, "--dry-run", "--export", str(file)) == 0
    assert [line.split("    ")[0] for line in capsys.readouterr().out.splitlines()] == [
        "GROUP",
        *["audit"] * 2,
        *["grüße, du"] * 2,
    ]
    assert file.read_text() == (
        'audit,orders,0,10\naudit,orders,1,0\n"grüße, du",orders,0,10\n"grüße, du",orders,1,0\n'
    )
    assert committed_of(kafka, "audit", "grüße, du") == [{0: 3}, {}]
    assert reset(kafka, "--plan", str(file), "--yes", "-o", "json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["group"] for one in told["groups"]] == ["audit", "grüße, du"]
    assert [len(one["partitions"]) for one in told["groups"]] == [2, 2]
    assert committed_of(kafka, "audit", "grüße, du") == [{0: 10, 1: 0}] * 2
    file.write_text("audit,orders,0,1\nother,orders,0,2\n")
    assert reset(kafka, "other", "--plan", str(file), "--yes") == 0
    assert committed_of(kafka, "audit", "other") == [{0: 10, 1: 0}, {0: 2}]
    assert reset(kafka, "nobody", "--plan", str(file), "--yes") == 2
    assert "it has no offsets of group nobody" in capsys.readouterr().err


def test_one_group_is_exported_without_its_name(
    kafka: EmbeddedKafka, run: Run, tmp_path: Path
) -> None:
    file = tmp_path / "plan.csv"
    assert run("--to", "earliest", "--topic", "orders", "--dry-run", "--export", str(file)) == 0
    assert file.read_text() == "orders,0,0\norders,1,0\n"


def test_no_group_is_reset_if_one_cannot_be(
    kafka: EmbeddedKafka, files: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    file = files("audit,orders,0,1\nother,orders,7,1\n")
    assert reset(kafka, "--plan", file, "--yes", "-o", "json") == 1
    told = json.loads(capsys.readouterr().out)
    assert [one["partitions"] for one in told["groups"]] == [[], []]
    (error,) = told["errors"]
    assert (error["group"], error["topic"], error["partition"]) == ("other", "orders", 7)
    assert committed_of(kafka, "audit", "other") == [{0: 3}, {}]


def test_what_was_done_is_told_if_another_group_fails(
    kafka: EmbeddedKafka, files: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    kafka.faults.error(OFFSET_COMMIT, GroupAuthorizationFailed, count=1)
    file = files("audit,orders,0,1\nother,orders,0,2\n")
    assert reset(kafka, "--plan", file, "--yes", "-o", "json") == 1
    told = json.loads(capsys.readouterr().out)
    assert [one["group"] for one in told["errors"]] == ["audit"]
    assert [len(one["partitions"]) for one in told["groups"]] == [0, 1]
    assert committed_of(kafka, "audit", "other") == [{0: 3}, {0: 2}]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it names no partition"),
        ("\n\n", "it names no partition"),
        ("orders,0", "line 1: expected TOPIC,PARTITION,OFFSET or GROUP"),
        ("a,orders,0,1,2", "line 1: expected TOPIC,PARTITION,OFFSET or GROUP"),
        ("orders,0,1\norders,x,1", "line 2: 'x' is no number of a partition of 'orders'"),
        ("orders,2147483648,1", "is no number of a partition"),
        (",0,1", "is no number of a partition"),
        ("orders,0,-1", "line 1: '-1' is no offset"),
        ("orders,0,9223372036854775808", "is no offset"),
        ("orders,0,1\norders,0,2", "line 2: orders-0 of group audit is named twice"),
        ('"orders', "this is neither a plan nor CSV"),
        ('{"version": 1, "partitions": ' + "[" * 100_000, "this is no plan"),
    ],
)
def test_a_wrong_file(
    text: str,
    why: str,
    run: Run,
    files: Callable[[str], str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run("--plan", files(text), "--yes") == 2
    assert why in capsys.readouterr().err


def test_a_file_that_is_no_text(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plan"
    file.write_bytes(b"\xff,0,1")
    assert run("--plan", str(file), "--yes") == 2
    assert "this is neither a plan nor CSV" in capsys.readouterr().err
    assert main(["groups", "reset", "--to", "latest", "--yes", "-b", "127.0.0.1:1"]) == 2
    assert "say which group" in capsys.readouterr().err
