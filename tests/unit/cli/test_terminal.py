"""The commands as somebody has them who sits at a terminal: a pseudo terminal stands for it."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_fast.errors import NotEnoughReplicas, TopicAuthorizationFailed
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import PRODUCE
from tests.unit.cli.terminals import END, INTERRUPT, terminal
from tests.waiting import TIMEOUT

BANNER = "kafka-fast: one record a line, Ctrl-D ends"


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as kafka:
        yield kafka


def values(kafka: EmbeddedKafka, topic: str) -> list[bytes | None]:
    return [record.value for record in kafka.records(topic)]


def test_records_are_typed(kafka: EmbeddedKafka) -> None:
    """Regression: a bar stood where the user was to type, and nothing told how to end."""
    with terminal("produce", "typed", "-b", kafka.bootstrap) as screen:
        screen.await_text(BANNER)
        screen.type(b"one\n")
        kafka.wait_for_records("typed", 1)
        screen.type(b"two\nthree")
        screen.type(END + END)  # the first one hands over the line as it is
        assert screen.end() == 0
    assert values(kafka, "typed") == [b"one", b"two", b"three"]
    assert screen.text.startswith(f"{BANNER}\n")
    assert "records/s" not in screen.text
    assert "B/s" not in screen.text


def test_what_fails_is_said_at_once(kafka: EmbeddedKafka) -> None:
    kafka.create_topic("failing", 1)
    with terminal("produce", "failing", "-b", kafka.bootstrap, "-K", ":") as screen:
        screen.await_text(BANNER)
        kafka.faults.error(PRODUCE, TopicAuthorizationFailed, topic="failing", count=1)
        screen.type(b"k:one\n")
        screen.await_text("kafka-fast: not delivered (rejected): TOPIC_AUTHORIZATION_FAILED")
        screen.type(b"no key\n")
        screen.await_text("kafka-fast: line 2: no key separator b':' in it")
        screen.type(b"k:two\n")
        kafka.wait_for_records("failing", 1)
        screen.type(END)
        assert screen.end() == 1
    assert values(kafka, "failing") == [b"two"]
    last = screen.text.splitlines()[-1]
    assert last.startswith("kafka-fast: 2 of 3 records were not delivered: TOPIC_AUTHORIZATION")


def test_ctrl_c_ends_typing(kafka: EmbeddedKafka) -> None:
    with terminal("produce", "stopped", "-b", kafka.bootstrap) as screen:
        screen.await_text(BANNER)
        screen.type(b"one\n")
        kafka.wait_for_records("stopped", 1)
        screen.type(INTERRUPT)
        assert screen.end() == 130
    assert screen.text.endswith("kafka-fast: interrupted after 1 record\n"), "behind the echo of ^C"


def test_ctrl_c_ends_the_wait_for_what_was_typed(kafka: EmbeddedKafka) -> None:
    kafka.create_topic("waiting", 1)
    kafka.faults.error(PRODUCE, NotEnoughReplicas, topic="waiting")
    try:
        with terminal("produce", "waiting", "-b", kafka.bootstrap) as screen:
            screen.await_text(BANNER)
            screen.type(b"one\n")
            screen.await_text("NOT_ENOUGH_REPLICAS")
            screen.type(INTERRUPT)
            kafka.heal()
            assert screen.end() == 130
    finally:
        kafka.heal()


def test_quiet(kafka: EmbeddedKafka) -> None:
    with terminal("produce", "quiet", "-q", "-b", kafka.bootstrap) as screen:
        screen.type(b"one\n" + END)
        assert screen.end() == 0
    assert screen.text.splitlines()[0] == "one", "the terminal's own echo"
    assert "kafka-fast" not in screen.text


def test_who_reads_from_the_end_is_told(kafka: EmbeddedKafka) -> None:
    kafka.produce("read", ["old"])
    with terminal("consume", "read", "-b", kafka.bootstrap, "-n", "1") as screen:
        screen.await_text("kafka-fast: new records only (--from beginning: ")
        deadline = time.monotonic() + TIMEOUT
        while screen.process.poll() is None:  # one of these is behind the end that it found
            assert time.monotonic() < deadline
            kafka.produce("read", ["new"])
            screen.read(0.05)
        assert screen.end() == 0
    assert screen.text.splitlines()[-1] == "new"


def test_a_bar_where_it_does_not_disturb(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    pytest.importorskip("tqdm")
    file = tmp_path / "lines"
    file.write_bytes(b"line\n" * 1000)
    with terminal("produce", "file", "-b", kafka.bootstrap, "-f", str(file)) as screen:
        assert screen.end() == 0
    assert "1,000 records" in screen.text


def test_no_bar_where_records_may_come_out_of_a_pipe(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    """Regression: the reader of the pipe writes to the same terminal, among the bar's lines."""
    kafka.produce("piped", ["x"] * 1000)
    arguments = ["consume", "piped", "-b", kafka.bootstrap, "--until", "end"]
    with (tmp_path / "out").open("wb") as file, terminal(*arguments, output=file) as screen:
        assert screen.end() == 0
    assert "1,000 records" in screen.text, "a file: nothing else is on the terminal"
    with terminal(*arguments, output=subprocess.PIPE) as screen:
        assert screen.process.stdout is not None
        with screen.process.stdout as pipe:
            assert pipe.read() == b"x\n" * 1000
        assert screen.end() == 0
    assert screen.text == ""


def test_log_records_stand_above_the_bar(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    """A warning of the client's own threads, in the middle of a bar."""
    file = tmp_path / "lines"
    file.write_bytes(b"line\n" * 10)
    kafka.create_topic("warned", 1)
    kafka.faults.error(PRODUCE, NotEnoughReplicas, topic="warned", count=2)
    with terminal("-v", "produce", "warned", "-b", kafka.bootstrap, "-f", str(file)) as screen:
        assert screen.end() == 0
    shown = [line for line in screen.text.replace("\r", "\n").splitlines() if "NOT_ENOUGH" in line]
    assert shown
    assert all(line.lstrip().startswith("kafka-fast: ") for line in shown)


def test_a_signal_while_nothing_comes(kafka: EmbeddedKafka) -> None:
    kafka.create_topic("silent", 1)
    with terminal("consume", "silent", "-b", kafka.bootstrap) as screen:
        screen.await_text("new records only")
        screen.process.send_signal(signal.SIGTERM)
        assert screen.end() == 143
