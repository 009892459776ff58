"""`kafka-fast completion`: what the shells make of its scripts.

The page command-line.md says where they go.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_fast.cli.commands import commands_below, whole_parser
from kafka_fast.cli.main import main

pytest.importorskip("shtab")

ASKED = """
cd "${{1%/*}}"
source "$1"
COMP_WORDS=(kafka-fast {words}) COMP_CWORD={at} COMPREPLY=()
_shtab_kafka_fast
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.fixture
def script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["completion", "bash"]) == 0
    path = tmp_path / "kafka-fast"
    path.write_text(capsys.readouterr().out)
    return path


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("top", {"topics"}),
        ("topics de", {"describe", "delete"}),
        ("topics create --if", {"--if-not-exists"}),
        ("topics list --output j", {"json"}),
        ("records delete --y", {"--yes"}),
        ("topics list --config kafka", {"kafka-fast"}),
        ("records delete --file kafka", {"kafka-fast"}),
        ("groups reset --plan kafka", {"kafka-fast"}),
        ("groups lag --wa", {"--watch"}),
        ("consume --tail-", {"--tail-together"}),
        ("consume --value-as dou", {"double"}),
        ("cluster add", {"add-voter"}),
    ],
)
def test_bash_completes(script: Path, words: str, offered: set[str]) -> None:
    asked = ASKED.format(words=words, at=len(words.split()))
    done = subprocess.run(
        ["bash", "-c", asked, "bash", str(script)], capture_output=True, text=True, check=True
    )
    assert {word.strip() for word in done.stdout.split()} == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell(shell: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert all(word in text for word in ("topics", "describe", "under-replicated"))
    program = shutil.which(shell)
    if program is not None:
        path = tmp_path / "script"
        path.write_text(text)
        subprocess.run([program, "-n", str(path)], check=True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_option_and_every_choice_is_there(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    words = set(re.findall(r"[\w.@-]+", capsys.readouterr().out))
    missing = [
        f"{command.prog} {text}"
        for command in commands_below(whole_parser())
        for action in command._actions
        if action.help != argparse.SUPPRESS  # an option that is only there to be refused
        for text in [*action.option_strings, *map(str, action.choices or ())]
        if text not in words and text.lstrip("-") not in words
    ]
    assert missing == []


def test_without_the_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 2
    assert "needs the package shtab: pip install shtab" in capsys.readouterr().err
