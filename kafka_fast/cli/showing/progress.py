"""Progress on a terminal: tqdm's bar if tqdm is installed, else one line that is rewritten.

Messages may come meanwhile, from this thread and as log records from the clients' threads. They go
through `write_line`, which keeps them apart from the progress line.
"""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TextIO

REFRESH = 0.2
"""Seconds between two updates of the line."""

WIDTH = 78


class Progress(Protocol):
    """Shows the progress of a command."""

    def advance(self, records: int, size: int) -> None:
        """Add records, and the bytes of their input."""
        ...

    def write(self, line: str) -> None:
        """Write a message to the same stream. Any thread."""
        ...

    def close(self) -> None:
        """End the progress line, so that other output can follow."""
        ...


class NoProgress:
    """Shows nothing, for pipes and with `--quiet`."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream  # None: the parent process closed standard error

    def advance(self, records: int, size: int) -> None:
        """Do nothing."""

    def write(self, line: str) -> None:
        """Write the line."""
        if self._stream is not None:
            self._stream.write(f"{line}\n")
            self._stream.flush()

    def close(self) -> None:
        """Do nothing."""


class StatusLine:
    """One line with records, bytes and rate."""

    def __init__(self, stream: TextIO, total: int | None) -> None:
        self._stream = stream
        self._total = total
        self._records = 0
        self._size = 0
        self._start = time.monotonic()
        self._shown = 0.0
        # Reentrant: messages come from other threads, and from this one in the middle of a line, if
        # an object that is collected there warns.
        self._lock = threading.RLock()

    def advance(self, records: int, size: int) -> None:
        """Count, and rewrite the line if it is old enough."""
        self._records += records
        self._size += size
        now = time.monotonic()
        if now - self._shown >= REFRESH:
            self._shown = now
            with self._lock:
                self._show(now)

    def write(self, line: str) -> None:
        """Write the line in the place of the figures, and the figures again below it."""
        with self._lock:
            self._stream.write(f"\r{'':<{WIDTH}}\r{line}\n")
            if self._shown:
                self._show(time.monotonic())
            self._stream.flush()

    def close(self) -> None:
        """Write the final figures and end the line."""
        with self._lock:
            self._show(time.monotonic())
            self._stream.write("\n")
            self._stream.flush()

    def _show(self, now: float) -> None:
        rate = self._records / max(now - self._start, 1e-9)
        share = f" ({self._size / self._total:.0%})" if self._total else ""
        text = (
            f"{self._records:,} records, {self._size / 1e6:,.1f} MB{share}, {rate:,.0f} records/s"
        )
        self._stream.write(f"\r{text:<{WIDTH}}")
        self._stream.flush()


class Bar:
    """tqdm's bar over the bytes of the input, with the records behind it."""

    def __init__(self, tqdm: Any, stream: TextIO, total: int | None) -> None:
        self._tqdm = tqdm
        self._stream = stream
        self._bar = tqdm(total=total, file=stream, unit="B", unit_scale=True)
        self._records = 0

    def advance(self, records: int, size: int) -> None:
        """Count; tqdm limits its own output."""
        self._records += records
        self._bar.set_postfix_str(f"{self._records:,} records", refresh=False)
        self._bar.update(size)

    def write(self, line: str) -> None:
        """Write the line above the bar."""
        self._tqdm.write(line, file=self._stream)

    def close(self) -> None:
        """Leave the bar as it is and end the line."""
        self._bar.close()


_shown: list[Progress] = []  # progress with a line on the terminal; the last one counts


@contextmanager
def showing_progress(
    *, quiet: bool, total: int | None, stream: TextIO | None = None
) -> Iterator[Progress]:
    """Show progress, in a form that fits the stream, until the block ends.

    Args:
        quiet: show nothing.
        total: bytes of the whole input, if known.
        stream: standard error by default.
    """
    progress = _make_progress(quiet, total, stream or sys.stderr)
    _shown.append(progress)
    try:
        yield progress
    finally:
        _shown.remove(progress)
        progress.close()


class KeptLines:
    """Keeps messages for a screen that has its own place for them."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def advance(self, records: int, size: int) -> None:
        """Do nothing."""

    def write(self, line: str) -> None:
        """Keep the line."""
        self.lines.append(line)

    def close(self) -> None:
        """Do nothing."""


@contextmanager
def keeping_lines() -> Iterator[list[str]]:
    """Keep messages in a list until the block ends, and write none of them."""
    kept = KeptLines()
    _shown.append(kept)
    try:
        yield kept.lines
    finally:
        _shown.remove(kept)


def write_line(line: str) -> None:
    """Write a line to standard error, clear of any progress that is shown there. Any thread."""
    progress = _shown[-1] if _shown else NoProgress(sys.stderr)
    progress.write(line)


def _make_progress(quiet: bool, total: int | None, stream: TextIO | None) -> Progress:
    if quiet or stream is None or not stream.isatty():
        return NoProgress(stream)
    try:
        tqdm = importlib.import_module("tqdm").tqdm
    except ImportError:
        return StatusLine(stream, total)
    return Bar(tqdm, stream, total)
