"""Progress: on a terminal only, with or without tqdm; messages come between."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from kafka_fast.cli.showing.progress import NoProgress, StatusLine, showing_progress, write_line
from tests.waiting import TIMEOUT


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_in_a_pipe_or_when_quiet() -> None:
    for quiet, stream in ((False, io.StringIO()), (True, Terminal())):
        with showing_progress(quiet=quiet, total=None, stream=stream) as progress:
            assert isinstance(progress, NoProgress)
            progress.advance(1, 1)
        assert stream.getvalue() == ""


def test_without_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: a standard error that was closed at the start ended the command."""
    monkeypatch.setattr(sys, "stderr", None)
    with showing_progress(quiet=False, total=None) as progress:
        progress.advance(1, 1)
        write_line("nobody hears it")


def test_a_line_without_tqdm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tqdm", None)
    terminal = Terminal()
    with showing_progress(quiet=False, total=4_000_000, stream=terminal) as progress:
        assert isinstance(progress, StatusLine)
        progress.advance(1000, 1_000_000)
        progress.advance(1000, 1_000_000)
    text = terminal.getvalue()
    assert text.endswith("\n")
    assert "2,000 records, 2.0 MB (50%)" in text.split("\r")[-1]


def test_the_line_is_not_rewritten_all_the_time() -> None:
    terminal = Terminal()
    progress = StatusLine(terminal, None)
    for _ in range(1000):
        progress.advance(1, 1)
    assert terminal.getvalue().count("\r") < 10


def test_a_message_in_the_middle_of_a_line() -> None:
    """Regression: a warning of an object that was collected there waited for its own thread."""

    class Collecting(Terminal):
        def flush(self) -> None:
            if "left" not in self.getvalue():
                progress.write("one was left open")

    terminal = Collecting()
    progress = StatusLine(terminal, None)
    thread = threading.Thread(target=progress.advance, args=(1, 1), daemon=True)
    thread.start()
    thread.join(TIMEOUT)
    assert not thread.is_alive()
    assert "one was left open\n" in terminal.getvalue()


def test_a_bar_with_tqdm() -> None:
    pytest.importorskip("tqdm")
    terminal = Terminal()
    with showing_progress(quiet=False, total=2_000_000, stream=terminal) as progress:
        progress.advance(1234, 2_000_000)
    assert "2.00M/2.00M" in terminal.getvalue()


def screen(text: str) -> list[str]:
    """Return the lines that a terminal shows of what was written to it."""
    lines, column = [""], 0
    for character in text.replace("\x1b[A", ""):
        if character == "\r":
            column = 0
        elif character == "\n":
            lines.append("")
            column = 0
        else:
            lines[-1] = lines[-1][:column].ljust(column) + character + lines[-1][column + 1 :]
            column += 1
    return [line.rstrip() for line in lines]


@pytest.mark.parametrize("with_tqdm", [True, False])
def test_a_message_does_not_break_the_line(
    with_tqdm: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if with_tqdm:
        pytest.importorskip("tqdm")
    else:
        monkeypatch.setitem(sys.modules, "tqdm", None)
    terminal = Terminal()
    with showing_progress(quiet=False, total=100, stream=terminal) as progress:
        progress.advance(10, 10)
        other = threading.Thread(target=write_line, args=["kafka-fast: from another thread"])
        other.start()
        other.join()
        write_line("kafka-fast: from this one")
        progress.advance(90, 90)
    shown = screen(terminal.getvalue())
    messages = [line for line in shown if "kafka-fast" in line]
    assert messages == ["kafka-fast: from another thread", "kafka-fast: from this one"]
    assert "100" in shown[-2] or "100" in shown[-1], "the figures are the last line"


def test_after_the_progress_messages_go_to_standard_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with showing_progress(quiet=False, total=100, stream=Terminal()):
        pass
    write_line("later")
    assert capsys.readouterr().err == "later\n"
