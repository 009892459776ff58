"""`kafka-fast lag` of all groups, and `--watch`: on terminals of all sizes, and in pipes."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from kafka_fast import Consumer, OffsetAndMetadata, TopicPartition
from kafka_fast.admin import GroupLag, GroupState, GroupType, PartitionLag
from kafka_fast.cli.lag.figures import figures_of
from kafka_fast.cli.lag.looks import GroupLook, Look, Row
from kafka_fast.cli.lag.watching import _screen
from kafka_fast.cli.main import main
from kafka_fast.errors import GroupAuthorizationFailed, GroupIdNotFound, KafkaTimeoutError
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import OFFSET_FETCH
from kafka_fast.values import replace
from tests.documentation.pages import blocks as blocks_of
from tests.unit.cli.operators.fake_admin import faked
from tests.unit.cli.operators.scripted_admin import answered
from tests.unit.cli.terminals import INTERRUPT, Terminal, terminal
from tests.waiting import TIMEOUT, killed

ROOT = Path(__file__).parents[3]
QUICK = ["--every", "1s"]
LONG = "a-topic-whose-name-has-no-room-on-a-narrow-terminal"


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(auto_create=False) as kafka:
        kafka.create_topic("orders", 3)
        kafka.create_topic(LONG, 1)
        for partition in range(3):
            kafka.produce("orders", ["x"] * 10 * (partition + 1), partition=partition)
        commit(kafka, "audit", {("orders", 0): 4, ("orders", 1): 20})
        commit(kafka, "billing", {(LONG, 0): 0})
        yield kafka


def commit(kafka: EmbeddedKafka, group: str, offsets: dict[tuple[str, int], int]) -> None:
    with Consumer(bootstrap_servers=kafka.bootstrap, group_id=group) as consumer:
        consumer.commit({TopicPartition(*partition): at for partition, at in offsets.items()})


# ---- all groups ----


def lag_of(group: str, **lags: int) -> GroupLag:
    partitions = (
        PartitionLag(TopicPartition(topic, 0), OffsetAndMetadata(0), 0, lag, lag)
        for topic, lag in lags.items()
    )
    return GroupLag(group, GroupType.CONSUMER, GroupState.EMPTY, tuple(partitions))


UNCOMMITTED = PartitionLag(TopicPartition("orders", 1), None, 2, 30, 30)
AUDIT = lag_of("audit", orders=4, bills=2)
AUDIT = replace(AUDIT, partitions=(*AUDIT.partitions, UNCOMMITTED))
GROUPS = {"billing": lag_of("billing"), "audit": AUDIT}


@pytest.mark.parametrize("command", [["lag"], ["groups", "lag"]])
def test_all_groups(
    command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    faked(monkeypatch, consumer_group_lag=lambda groups=None, topics=None: answered(GROUPS))
    assert main(command) == 0
    shown = capsys.readouterr()
    assert [line.split() for line in shown.out.splitlines()] == [
        ["GROUP", "STATE", "PARTITIONS", "LAG"],
        ["audit", "Empty", "3", "34"],
        ["billing", "Empty", "0", "0"],
        ["TOTAL", "34"],
    ]
    assert shown.err == ""
    words = ["--reset", "latest", "-o", "json"]
    assert main([*command, *words]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["total_lag"] == 6
    assert [one["group"] for one in told["groups"]] == ["audit", "billing"]
    assert main([*command, "audit", *words]) == 0
    assert json.loads(capsys.readouterr().out) == told["groups"][0]


def test_other_forms(
    kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on = ["-b", kafka.bootstrap]
    assert main(["lag", "audit", "-o", "wide", *on]) == 0
    shown = capsys.readouterr()
    head, *rows = [line.split() for line in shown.out.splitlines() if line.strip(" \u2500")]
    assert head == ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "BEGINNING"]
    assert rows[2:] == [["orders", "2", "none", "30", "30", "0"], ["TOTAL", "36"]]
    assert "1 partition has no committed offset" in shown.err
    yaml = pytest.importorskip("yaml")
    assert main(["lag", "audit", "-o", "yaml", *on]) == 0
    told = yaml.safe_load(capsys.readouterr().out)
    assert main(["lag", "audit", "-o", "json", *on]) == 0
    assert json.loads(capsys.readouterr().out) == told
    assert main(["lag", "audit", "-o", "yaml", "--watch", *on]) == 2
    faked(monkeypatch, consumer_group_lag=answered(GROUPS))
    assert main(["lag", "-o", "wide"]) == 0
    assert ["audit", "Empty", "3", "34", "1"] in [
        line.split() for line in capsys.readouterr().out.splitlines()
    ]


def test_groups_of_which_too_little_is_known(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hidden = replace(lag_of("hidden"), members_error=KafkaTimeoutError("no answer"))
    errors = {"secret": GroupAuthorizationFailed("no"), "gone": GroupIdNotFound("no")}
    answer = answered({**GROUPS, "hidden": hidden}, errors)
    faked(monkeypatch, consumer_group_lag=answer)
    assert main(["lag", "-o", "json"]) == 1
    shown = capsys.readouterr()
    told = json.loads(shown.out)
    assert [one["group"] for one in told["groups"]] == ["audit", "billing"]
    assert [(one["group"], one["error"]) for one in told["errors"]] == [
        ("secret", "GROUP_AUTHORIZATION_FAILED"),
        ("hidden", "KafkaTimeoutError"),
    ]
    assert len(shown.err.splitlines()) == 2
    faked(monkeypatch, consumer_group_lag=answered({}))
    assert main(["lag"]) == 0
    assert capsys.readouterr().out.split()[-2:] == ["TOTAL", "0"]


def test_a_group_that_is_not_there_in_json(
    kafka: EmbeddedKafka, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lag", "nobody", "-b", kafka.bootstrap, "-o", "json"]) == 1
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert error["error"] == "GROUP_ID_NOT_FOUND"
    assert main(["lag", "audit", "no-such", "-b", kafka.bootstrap, "-o", "json"]) == 1
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert error["error"] == "UNKNOWN_TOPIC_OR_PARTITION"
    assert "there is no topic 'no-such'" in error["message"]


# ---- in a pipe ----


def blocks(process: subprocess.Popen[str], is_whole: Callable[[str], bool]) -> Iterator[str]:
    """Yield what the process prints, block by block."""
    assert process.stdout is not None
    block = ""
    for line in process.stdout:
        block += line
        if is_whole(block):
            yield block
            block = ""


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)]
)
def test_in_a_pipe(kafka: EmbeddedKafka, number: signal.Signals, status: int) -> None:
    command = [sys.executable, "-m", "kafka_fast", "lag", "audit", "--watch", *QUICK]
    with (
        subprocess.Popen(
            [*command, "-b", kafka.bootstrap],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        ) as process,
        killed(process),
    ):
        tables = blocks(process, lambda block: block.endswith("\n\n"))
        first = next(tables)
        assert re.match(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ\n", first)
        assert "\x1b" not in first
        assert [line.split() for line in first.splitlines()[1:3]] == [
            ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "CHANGE"],
            ["orders", "0", "4", "10", "6"],
        ]
        kafka.produce("orders", ["x"] * 5, partition=0)
        later = next(table for table in tables if " 15 " in table)
        assert ["orders", "0", "4", "15", "11", "+5"] in [
            line.split() for line in later.splitlines()
        ]
        process.send_signal(number)
        assert process.wait(TIMEOUT) == status


def test_json_lines(kafka: EmbeddedKafka) -> None:
    command = [sys.executable, "-m", "kafka_fast", "lag", "audit", "--watch", *QUICK, "-o", "json"]
    with (
        subprocess.Popen(
            [*command, "-b", kafka.bootstrap], stdout=subprocess.PIPE, text=True, cwd=ROOT
        ) as process,
        killed(process),
    ):
        lines = blocks(process, lambda block: True)
        first, second = (json.loads(next(lines)) for _ in range(2))
        assert first["time_ms"] < second["time_ms"]
        assert first["total_lag"] == second["total_lag"] == 36
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT) == 130


def test_a_look_that_fails_does_not_end_it(kafka: EmbeddedKafka) -> None:
    more = ["-X", "default.api.timeout.ms=1000", "-X", "retry.backoff.ms=10"]
    command = [sys.executable, "-m", "kafka_fast", "lag", "audit", "--watch", *QUICK, *more]
    with (
        subprocess.Popen(
            [*command, "-b", kafka.bootstrap],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        ) as process,
        killed(process),
    ):
        tables = blocks(process, lambda block: block.endswith("\n\n"))
        next(tables)
        kafka.faults.error(OFFSET_FETCH, GroupAuthorizationFailed)
        assert process.stderr is not None
        while "GROUP_AUTHORIZATION_FAILED" not in process.stderr.readline():
            assert process.poll() is None
        kafka.heal()
        kafka.produce("orders", ["x"] * 5, partition=0)
        assert next(table for table in tables if " 15 " in table)
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT) == 130


def test_a_first_look_that_fails(capsys: pytest.CaptureFixture[str]) -> None:
    quick = ["-X", "default.api.timeout.ms=100"]
    assert main(["lag", "audit", "--watch", "-b", "127.0.0.1:1", *quick]) == 1
    assert main(["lag", "audit", "--watch", "--every", "0s", "-b", "127.0.0.1:1"]) == 2
    assert "--every is longer than nothing" in capsys.readouterr().err


# ---- on a terminal ----


def drawn(screen: Terminal, text: str) -> None:
    """Wait until a whole screen with this text is drawn."""
    screen.await_text(text)
    screen.await_text("\x1b[J")


def test_on_a_terminal(kafka: EmbeddedKafka) -> None:
    with terminal("lag", "audit", "--watch", *QUICK, "-b", kafka.bootstrap) as screen:
        drawn(screen, "CHANGE")
        title, head, *rows = screen.lines()
        assert re.fullmatch(r"group audit, Empty, 20\S+Z, every 1 s", title)
        assert head.split() == ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "CHANGE"]
        assert [row.split() for row in rows[:4]] == [
            ["orders", "0", "4", "10", "6"],
            ["orders", "1", "20", "20", "0"],
            ["orders", "2", "none", "30", "30"],
            ["TOTAL", "36"],
        ]
        assert rows[4].startswith("kafka-fast: 1 partition has no committed offset")
        assert all(cell.bold for cell in list(screen.screen().buffer[1].values())[:5])
        kafka.produce("orders", ["x"] * 5, partition=0)
        drawn(screen, "+5")
        screen.type(INTERRUPT)
        assert screen.end() == 130
    assert screen.text.count("\x1b[?1049h") == screen.text.count("\x1b[?1049l") == 1
    left = screen.text.partition("\x1b[?1049l")[2]
    assert "TOTAL" in left, "the last table stays"
    assert "\x1b" not in left


def test_a_terminal_that_is_narrow_and_grows(kafka: EmbeddedKafka) -> None:
    kafka.create_topic("many", 30)
    for partition in range(30):
        kafka.produce("many", ["x"] * (partition + 1), partition=partition)
    names = ("lag", "billing", "many", LONG)
    with terminal(*names, "--watch", *QUICK, "-b", kafka.bootstrap, columns=85) as screen:
        drawn(screen, "TOTAL")
        lines = screen.lines(85)
        assert len(lines) <= 24
        assert re.search(r"\.\.\. and \d+ more that are less behind", "\n".join(lines))
        shown = [line.split()[1] for line in lines if line.startswith("many")]
        assert shown[-1] == "29", "those that are most behind"
        assert shown == sorted(shown, key=int)
        screen.resize(40, 8)
        drawn(screen, "TOTAL")
        lines = screen.lines(40, 8)
        assert len(lines) <= 8
        assert lines[1].split() == ["TOPIC", "PARTITION", "LAG", "CHANGE"]
        assert lines[-2].startswith("TOTAL")
        screen.resize(120, 50)
        drawn(screen, LONG)
        lines = screen.lines(120, 50)
        assert sum(line.startswith("many") for line in lines) == 30
        screen.type(INTERRUPT)
        assert screen.end() == 130


def test_without_colours_and_on_a_terminal_that_can_nothing(kafka: EmbeddedKafka) -> None:
    words = ["lag", "audit", "--watch", *QUICK, "-b", kafka.bootstrap]
    with terminal(*words, environment={"NO_COLOR": "1"}) as screen:
        drawn(screen, "TOTAL")
        assert screen.lines()[0].startswith("group audit, ")
        assert "\x1b[1m" not in screen.text
        screen.type(INTERRUPT)
        assert screen.end() == 130
    with terminal(*words, environment={"TERM": "dumb"}) as screen:
        screen.await_text("TOTAL")
        screen.type(INTERRUPT)
        assert screen.end() == 130
        assert "\x1b" not in screen.text


def test_a_terminal_that_does_not_tell_its_size(kafka: EmbeddedKafka) -> None:
    words = ["lag", "audit", "--watch", *QUICK, "-b", kafka.bootstrap]
    with terminal(*words, columns=0) as screen:
        drawn(screen, "TOTAL")
        screen.type(INTERRUPT)
        assert screen.end() == 130


def test_sigterm_leaves_the_terminal_as_it_was(kafka: EmbeddedKafka) -> None:
    with terminal("lag", "audit", "--watch", *QUICK, "-b", kafka.bootstrap) as screen:
        drawn(screen, "TOTAL")
        screen.process.terminate()
        assert screen.end() == 143
    assert "\x1b[?1049l" in screen.text


def test_messages_stay_below_the_table(kafka: EmbeddedKafka) -> None:
    with terminal("lag", "audit", "no-such", "--watch", *QUICK, "-b", kafka.bootstrap) as screen:
        drawn(screen, "there is no topic")
        assert screen.lines()[-1].startswith("kafka-fast: there is no topic 'no-such'")
        screen.type(INTERRUPT)
        assert screen.end() == 130


# ---- figures ----


def test_no_line_is_wider_than_the_terminal() -> None:
    figures = figures_of(look(("x" * 90, 123_456), ("short", None)), has_change=True)
    for width in range(1, 120):
        lines = figures.narrow_lines(width)
        assert max(map(len, lines)) <= width
        if width >= 40:
            assert "123456" in lines[1]
            assert lines[1].startswith("xxxx")
    assert figures.narrow_lines(200)[1].startswith("x" * 90)


def look(*lags: tuple[str, int | None]) -> Look:
    rows = tuple(Row(TopicPartition(topic, 0), 0, 0, lag, lag) for topic, lag in lags)
    return Look(0, (GroupLook("g", "Empty", rows),), is_of_all=False, reset="earliest")


def test_changes_are_by_partition() -> None:
    before, now = look(("a", 5), ("b", 7), ("c", None)), look(("b", 7), ("a", 3), ("d", 1))
    figures = figures_of(now, before, has_change=True)
    assert [(name, change) for name, *_, change in figures.rows] == [
        ("b", "0"),
        ("a", "-2"),
        ("d", ""),
    ]
    assert figures.total[-2:] == ("11", "-1")
    assert figures_of(before, None, has_change=True).rows[2][-2:] == ("-", "")


def test_the_page() -> None:
    """What docs/command-line.md shows of `--watch` is what is drawn."""

    def seen(end: int) -> Look:
        rows = [(4, end, end - 4), (20, 20, 0), (None, 30, 30)]
        return Look(
            1_772_323_200_000,
            (
                GroupLook(
                    "audit",
                    "Empty",
                    tuple(
                        Row(TopicPartition("orders", number), 0, *row)
                        for number, row in enumerate(rows)
                    ),
                ),
            ),
            is_of_all=False,
            reset="earliest",
        )

    how = f"elsewhere, {Path(__file__).relative_to(ROOT)}"
    (shown,) = [block.text for block in blocks_of("docs/command-line.md") if block.how == how]
    args = argparse.Namespace(group="audit", every=timedelta(seconds=1))
    drawn_text = _screen(seen(15), seen(10), os.terminal_size((100, 24)), [], args)
    lines = re.sub(r"\x1b\[[0-9]*[A-Za-z]", "", drawn_text).split("\r\n")
    assert [line.rstrip() for line in lines[:-1]] == shown.rstrip().split("\n")
    assert lines[-1].startswith("kafka-fast: 1 partition has no committed offset")
