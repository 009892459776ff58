"""Progress: on a terminal only, with or without tqdm."""

from __future__ import annotations

import io
import sys

import pytest

from kafka_fast.cli.progress import NoProgress, StatusLine, make_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_in_a_pipe_or_when_quiet() -> None:
    pipe = io.StringIO()
    for progress in (make_progress(False, None, pipe), make_progress(True, None, Terminal())):
        assert isinstance(progress, NoProgress)
        progress.advance(1, 1)
        progress.close()
    assert pipe.getvalue() == ""


def test_a_line_without_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    terminal = Terminal()
    progress = make_progress(False, 4_000_000, terminal)
    assert isinstance(progress, StatusLine)
    progress.advance(1000, 1_000_000)
    progress.advance(1000, 1_000_000)
    progress.close()
    text = terminal.getvalue()
    assert text.endswith("\n")
    assert "2,000 records, 2.0 MB (50%)" in text.split("\r")[-1]


def test_the_line_is_not_rewritten_all_the_time() -> None:
    terminal = Terminal()
    progress = StatusLine(terminal, None)
    for _ in range(1000):
        progress.advance(1, 1)
    assert terminal.getvalue().count("\r") < 10


def test_a_bar_with_tqdm() -> None:
    pytest.importorskip("tqdm")
    terminal = Terminal()
    progress = make_progress(False, 2_000_000, terminal)
    progress.advance(1234, 2_000_000)
    progress.close()
    assert "2.00M/2.00M" in terminal.getvalue()
