"""Without the packages of the extra `cli` every command does its work, plainly."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.unit.cli.terminals import INTERRUPT, hiding, terminal

ROOT = Path(__file__).parents[3]
EXTRA = ("rich", "yaml", "tqdm", "shtab")
"""What pyproject.toml has in the extra."""


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as kafka:
        kafka.create_topic("orders", 2)
        kafka.produce("orders", ["a", "b"], partition=0)
        yield kafka


def run(
    kafka: EmbeddedKafka, *words: str, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    code = hiding(EXTRA) + "from kafka_fast.cli.main import main; sys.exit(main())"
    command = [sys.executable, "-c", code, *words, "-b", kafka.bootstrap]
    return subprocess.run(command, input=stdin, capture_output=True, cwd=ROOT, timeout=60)


def test_the_extra_is_this_one() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (line,) = [line for line in text.splitlines() if line.startswith("cli = [")]
    names = {entry.split(">=")[0].strip() for entry in line.partition("[")[2].split('"')[1::2]}
    assert names == {"rich", "PyYAML", "tqdm", "shtab"}


def test_in_a_pipe(kafka: EmbeddedKafka) -> None:
    done = run(kafka, "topics", "orders")
    assert (done.returncode, done.stdout.split()) == (
        0,
        [b"TOPIC", b"PARTITIONS", b"orders", b"2"],
    )
    assert run(kafka, "topics", "orders", "-o", "table").stdout == done.stdout
    assert json.loads(run(kafka, "topics", "orders", "-o", "json").stdout)["topics"]
    assert run(kafka, "produce", "sent", stdin=b"1\n2\n").returncode == 0
    assert run(kafka, "consume", "sent", "--tail", "1").stdout == b"2\n"
    assert run(kafka, "lag", "nobody", "orders").returncode == 0


def test_what_needs_a_package_says_so(kafka: EmbeddedKafka) -> None:
    done = run(kafka, "topics", "orders", "-o", "yaml")
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"pip install PyYAML" in done.stderr
    assert b"Traceback" not in done.stderr


def test_on_a_terminal(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    on = ["-b", kafka.bootstrap]
    with terminal("topics", "orders", *on, without=EXTRA) as screen:
        assert screen.end() == 0
        assert screen.lines() == ["TOPIC     PARTITIONS", "orders             2"]
    with terminal("lag", "nobody", "orders", "--watch", *on, without=EXTRA) as screen:
        screen.await_text("TOTAL")
        screen.type(INTERRUPT)
        assert screen.end() == 130
    file = tmp_path / "lines"
    file.write_text("1\n2\n")
    with terminal("produce", "sent", "-f", str(file), *on, without=EXTRA) as screen:
        assert screen.end() == 0
        assert "2 records" in screen.text
