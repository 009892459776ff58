"""Reports: each form of `--output`, with and without the packages."""

from __future__ import annotations

import json
import sys

import pytest

from kafka_fast import TopicPartition
from kafka_fast.cli.showing.reports import Report, show
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable
from kafka_fast.errors import KafkaTimeoutError, MissingPackageError, UnknownTopicOrPartition

REPORT = Report(
    document={"topics": [{"topic": "ä", "replicas": (1, 2), "leader": None}]},
    table=ReportTable(
        (ReportColumn("TOPIC"), ReportColumn("REPLICAS"), ReportColumn("ID", is_wide=True)),
        [("ä", (1, 2), "x")],
    ),
)
EMPTY = Report(
    document={"topics": []},
    table=ReportTable((ReportColumn("TOPIC"),), []),
    when_empty="nothing",
)


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    show(REPORT, "json")
    assert capsys.readouterr().out == (
        '{"topics": [{"topic": "\\u00e4", "replicas": [1, 2], "leader": null}]}\n'
    )


def test_what_failed_is_in_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    report = Report(
        document={"topics": []},
        table=ReportTable((), []),
        errors={
            "a": UnknownTopicOrPartition("no"),
            TopicPartition("b", 1): KafkaTimeoutError("late"),
        },
    )
    show(report, "json")
    assert json.loads(capsys.readouterr().out) == {
        "topics": [],
        "errors": [
            {
                "topic": "a",
                "error": "UNKNOWN_TOPIC_OR_PARTITION",
                "message": "UNKNOWN_TOPIC_OR_PARTITION (3): no",
            },
            {"topic": "b", "partition": 1, "error": "KafkaTimeoutError", "message": "late"},
        ],
    }


def test_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    yaml = pytest.importorskip("yaml")
    show(REPORT, "yaml")
    text = capsys.readouterr().out
    assert yaml.safe_load(text) == {"topics": [{"topic": "ä", "replicas": [1, 2], "leader": None}]}
    assert text.isascii()


def test_yaml_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingPackageError, match="the extra cli") as caught:
        show(REPORT, "yaml")
    assert (caught.value.package, caught.value.extra) == ("PyYAML", "cli")


@pytest.mark.parametrize("form", [None, "text"])
def test_a_pipe_gets_text(form: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    show(REPORT, form)
    assert capsys.readouterr().out == "TOPIC    REPLICAS\nä        1,2\n"
    show(REPORT, "wide")
    assert capsys.readouterr().out == "TOPIC    REPLICAS    ID\nä        1,2         x\n"


def test_a_table_without_rich_is_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    show(REPORT, "table")
    assert capsys.readouterr().out == "TOPIC    REPLICAS\nä        1,2\n"


def test_nothing_to_show(capsys: pytest.CaptureFixture[str]) -> None:
    show(EMPTY, None)
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "kafka-fast: nothing\n")
    show(EMPTY, "json")
    assert capsys.readouterr().out == '{"topics": []}\n'
