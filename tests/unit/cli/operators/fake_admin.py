"""An admin client that answers as a test says, for commands that the embedded broker cannot serve.

fake = faked(monkeypatch, describe_acls=[RULE], delete_acls=lambda filters: answered({...}))
main(["acls", "delete", "--all", "--yes"])
assert fake.calls == [...]
"""

from __future__ import annotations

import io
import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from typing_extensions import Self

from kafka_fast.cli.main import main
from tests.documentation.pages import ROOT, blocks
from tests.unit.cli.operators.scripted_admin import ScriptedAdmin


class FakeAdmin(ScriptedAdmin):
    """Stands for the class `Admin`, and for the one client that is made of it."""

    def __init__(self, answers: Mapping[str, object]) -> None:
        super().__init__()
        self.answers.update(answers)

    def __call__(self, config: Mapping[str, object]) -> Self:
        return self

    def entry(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Return name and arguments in one row, behind which stand the options, if there are."""
        return (name, *args, *([options] if options else []))


def faked(monkeypatch: pytest.MonkeyPatch, **answers: object) -> FakeAdmin:
    """Put a fake in the place of `Admin`.

    Args:
        monkeypatch: undoes it.
        answers: value or error by the name of the call, or a function that makes it.
    """
    fake = FakeAdmin(answers)
    monkeypatch.setattr("kafka_fast.Admin", fake)
    return fake


class _Keyboard(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, typed: str) -> None:
    """Let commands believe that there is somebody to ask, who has typed this."""
    monkeypatch.setattr(sys, "stdin", _Keyboard(typed))
    monkeypatch.setattr("kafka_fast.cli.frame.asking.is_terminal", lambda: True)


def report(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> dict[str, Any]:
    """Run a command; return what it has printed as JSON."""
    capsys.readouterr()
    assert main([*words, "-o", "json"]) == status
    shown: dict[str, Any] = json.loads(capsys.readouterr().out)
    return shown


def check_page(test: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Run the commands of docs/command-line.md that a test is named for; compare what they print.

    Args:
        test: the test's file.
        capsys: has what they print.
    """
    how = f"elsewhere, {Path(test).relative_to(ROOT)}"
    texts = [block.text for block in blocks("docs/command-line.md") if block.how == how]
    assert texts
    for commands, shown in zip(texts[::2], texts[1::2], strict=True):
        told = ""
        for command in commands.replace("\\\n", " ").splitlines():
            main(shlex.split(command.partition(" <")[0])[1:])
            captured = capsys.readouterr()
            told += captured.out + captured.err
        assert [line.split() for line in told.splitlines()] == [
            line.split() for line in shown.splitlines()
        ]
