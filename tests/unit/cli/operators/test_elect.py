"""`kafka-fast elect`: which partitions it is about, and when it asks."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_fast import TopicPartition
from kafka_fast.admin import ElectionType, TopicDescription, TopicPartitionInfo
from kafka_fast.cli.main import main
from kafka_fast.errors import (
    ElectionNotNeeded,
    PreferredLeaderNotAvailable,
    UnknownTopicOrPartition,
)
from tests.unit.cli.operators.fake_admin import (
    FakeAdmin,
    check_page,
    faked,
    on_a_terminal,
    report,
)
from tests.unit.cli.operators.scripted_admin import answered

ORDERS = [TopicPartition("orders", number) for number in range(4)]
LEADERS = {"orders": [1, 3, None, 2], "audit": [2]}
REPLICAS = (1, 2, 3)


def topic(name: str) -> TopicDescription:
    infos = tuple(
        TopicPartitionInfo(number, leader, 1, REPLICAS, (2, 3), ())
        for number, leader in enumerate(LEADERS[name])
    )
    return TopicDescription(name, "id", is_internal=False, partitions=infos)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeAdmin:
    def describe(names: Any) -> object:
        there = {name: topic(name) for name in names if name in LEADERS}
        absent = {name: UnknownTopicOrPartition("no") for name in names if name not in there}
        return answered(there, absent)

    def elect(kind: ElectionType, *, partitions: Any) -> object:
        errors = {
            ORDERS[2]: PreferredLeaderNotAvailable("it is not in sync"),
            ORDERS[3]: ElectionNotNeeded("it leads already"),
        }
        if kind == ElectionType.UNCLEAN:
            errors = {}
        failed = {one: errors[one] for one in partitions if one in errors}
        return answered({one: None for one in partitions if one not in failed}, failed)

    return faked(
        monkeypatch,
        list_topics=lambda include_internal: [*LEADERS],
        describe_topics=describe,
        elect_leaders=elect,
    )


def outcomes(told: dict[str, Any]) -> list[tuple[str, int, str]]:
    return [(one["topic"], one["partition"], one["outcome"]) for one in told["partitions"]]


def test_all_partitions(fake: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    told = report(capsys, "elect", "--preferred", status=1)
    assert outcomes(told) == [
        ("audit", 0, "elected"),
        ("orders", 1, "elected"),
        ("orders", 3, "not_needed"),
    ]
    assert told["errors"][0]["error"] == "PREFERRED_LEADER_NOT_AVAILABLE"
    assert (told["errors"][0]["topic"], told["errors"][0]["partition"]) == ("orders", 2)
    assert told["partitions"][0]["leader_before"] == 2


def test_some_partitions(fake: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--partition", "orders:0", "--partition", "orders:1", "--partition", "orders:9"]
    told = report(capsys, "elect", "--preferred", *words, "--topic", "absent", status=1)
    assert outcomes(told) == [("orders", 0, "not_needed"), ("orders", 1, "elected")]
    assert [one.get("partition") for one in told["errors"]] == [None, 9]
    (elected,) = (call for call in fake.calls if call[0] == "elect_leaders")
    assert elected[1] is ElectionType.PREFERRED
    assert [*elected[2]["partitions"]] == [ORDERS[1]]  # type: ignore[index]


def test_dry_run(fake: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    told = report(capsys, "elect", "--unclean", "--dry-run")
    assert outcomes(told) == [("orders", 2, "elected")]
    assert "elect_leaders" not in [call[0] for call in fake.calls]
    assert main(["elect", "--unclean", "--topic", "audit", "--dry-run"]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith("not needed")


def test_unclean_asks(
    fake: FakeAdmin, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["elect", "--unclean"]) == 2
    assert "give --yes" in capsys.readouterr().err
    assert fake.calls == []
    assert outcomes(report(capsys, "elect", "--unclean", "--yes")) == [("orders", 2, "elected")]
    on_a_terminal(monkeypatch, "n\n")
    assert main(["elect", "--unclean"]) == 1
    assert "1 partition that may not have all records? [y/N]" in capsys.readouterr().err
    assert [call[0] for call in fake.calls].count("elect_leaders") == 1


def test_nothing_is_needed(fake: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    fake.answers["list_topics"] = []
    assert main(["elect", "--preferred"]) == 0
    assert "no partition needs such an election" in capsys.readouterr().err


@pytest.mark.parametrize("words", ["", "--preferred --unclean", "--preferred --partition orders"])
def test_misuse(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["elect", *words.split()])
    assert caught.value.code == 2


def test_the_page(fake: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of docs/command-line.md, word by word."""
    check_page(__file__, capsys)
