"""The table of commands: what a command loads, and where a verb stands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kafka_fast.cli.main import main

ROOT = Path(__file__).parents[3]
LOADED = """
import sys
from kafka_fast.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print(*sorted(sys.modules), file=sys.stderr)
"""
HEAVY = ("rich", "yaml", "shtab", "tqdm", "kafka_fast.consumer", "kafka_fast.producer")


def loaded(*words: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *words], cwd=ROOT, capture_output=True, text=True
    )
    return set(done.stderr.split()) & {*HEAVY, "kafka_fast.admin"}


def test_a_command_loads_what_it_needs() -> None:
    nobody = ["-b", "127.0.0.1:1", "-X", "default.api.timeout.ms=1", "-X", "request.timeout.ms=1"]
    assert loaded("topics", *nobody) == {"kafka_fast.admin"}
    assert loaded("topics", "create", "--help") == set()
    assert loaded("info") == set()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("topics --describe orders", "use: kafka-fast topics describe"),
        ("topics -v --list", "use: kafka-fast topics list"),
        ("records --delete orders", "use: kafka-fast records delete"),
        ("topics orders describe", "describe is a command: use kafka-fast topics describe ..."),
        ("topics -b x:1 delete", "kafka-fast topics list ... if it is a name"),
    ],
)
def test_a_verb_in_a_wrong_place(words: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 2
    assert text in capsys.readouterr().err


def test_a_noun_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["records"])
    assert caught.value.code == 2
    assert "COMMAND" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["topics", "-v", "--help"])
    assert "describe" in capsys.readouterr().out


def test_an_unknown_command_sees_all_others(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["topic"])
    assert caught.value.code == 2
    told = capsys.readouterr().err
    assert all(name in told for name in ("topics", "produce", "completion"))
