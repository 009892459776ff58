"""`kafka-fast topics delete`: it asks on a terminal, and elsewhere needs --yes.

The question is on the page command-line.md.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from kafka_fast import Admin
from kafka_fast.cli.main import main
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.unit.cli.terminals import END, INTERRUPT, terminal


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(auto_create=False) as kafka:
        kafka.create_topic("orders", 12)
        kafka.create_topic("audit", 1)
        yield kafka


def delete(kafka: EmbeddedKafka, *words: str) -> int:
    return main(["topics", "delete", *words, "-b", kafka.bootstrap])


def names(kafka: EmbeddedKafka) -> set[str]:
    with Admin(bootstrap_servers=kafka.bootstrap) as admin:
        return {*admin.list_topics()}


QUESTION = (
    "kafka-fast: delete 2 topics with all records: orders (12 partitions), audit (1 partition)? "
    "[y/N] "
)


@pytest.mark.parametrize(
    ("keys", "status", "left"),
    [
        (b"y\n", 0, set()),
        (b"Yes\n", 0, set()),
        (b"n\n", 1, {"orders", "audit"}),
        (b"\n", 1, {"orders", "audit"}),
        (END, 1, {"orders", "audit"}),
        (INTERRUPT, 130, {"orders", "audit"}),
    ],
)
def test_the_answers(kafka: EmbeddedKafka, keys: bytes, status: int, left: set[str]) -> None:
    words = ["topics", "delete", "orders", "audit", "-o", "text", "-b", kafka.bootstrap]
    with terminal(*words, columns=120) as screen:
        screen.await_text(QUESTION)
        screen.type(keys)
        assert screen.end() == status
    if status == 0:
        assert screen.lines(120)[-3:] == [
            "TOPIC     OUTCOME",
            "orders    deleted",
            "audit     deleted",
        ]
    elif status == 1:
        assert screen.lines(120)[-1] == "kafka-fast: nothing was changed"
    assert names(kafka) == left


def test_in_a_pipe(kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]) -> None:
    assert delete(kafka, "orders") == 2
    assert capsys.readouterr().err == (
        "kafka-fast: this cannot be undone, and there is no terminal to ask on: give --yes\n"
    )
    assert names(kafka) == {"orders", "audit"}
    assert delete(kafka, "orders", "--yes") == 0
    assert capsys.readouterr().out == "TOPIC     OUTCOME\norders    deleted\n"
    assert names(kafka) == {"audit"}


def test_some_are_not_there(kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]) -> None:
    assert delete(kafka, "nothing", "orders", "-y", "-o", "json") == 1
    told = capsys.readouterr()
    report = json.loads(told.out)
    (error,) = report.pop("errors")
    assert report == {"dry_run": False, "topics": [{"topic": "orders", "outcome": "deleted"}]}
    assert (error["topic"], error["error"]) == ("nothing", "UNKNOWN_TOPIC_OR_PARTITION")
    assert "DeleteTopics of topic 'nothing'" in told.err
    assert delete(kafka, "nothing", "audit", "--yes", "--if-exists") == 0
    assert capsys.readouterr().out == (
        "TOPIC      OUTCOME\n"
        "nothing    does not exist\n"
        "audit      deleted\n"
    )  # fmt: skip


def test_dry_run(kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]) -> None:
    assert delete(kafka, "orders", "nothing", "--dry-run") == 1
    told = capsys.readouterr()
    assert told.out == "TOPIC     OUTCOME\norders    would be deleted\n"
    assert told.err.splitlines()[-1] == "kafka-fast: nothing was changed: --dry-run"
    assert delete(kafka, "orders", "--dry-run", "--yes", "-o", "json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "dry_run": True,
        "topics": [{"topic": "orders", "outcome": "deleted"}],
    }
    assert names(kafka) == {"orders", "audit"}


def test_where_nothing_is_there_nobody_is_asked(kafka: EmbeddedKafka) -> None:
    with terminal("topics", "delete", "nothing", "-b", kafka.bootstrap) as screen:
        assert screen.end() == 1
    assert "[y/N]" not in screen.text
    assert "there is no such topic" in screen.text
