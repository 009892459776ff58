"""Progress on a terminal: tqdm's bar if it is installed, else one line that is rewritten."""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any, Protocol, TextIO

REFRESH = 0.2
"""Seconds between two updates of the line."""


class Progress(Protocol):
    """Shows how far something is."""

    def advance(self, records: int, size: int) -> None:
        """Add records, and the bytes of input that they were made of."""
        ...

    def close(self) -> None:
        """Leave the line, so that other output can follow."""
        ...


class NoProgress:
    """Shows nothing: pipes, and those who asked for quiet."""

    def advance(self, records: int, size: int) -> None:
        """Do nothing."""

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

    def advance(self, records: int, size: int) -> None:
        """Count, and rewrite the line if it is old enough."""
        self._records += records
        self._size += size
        now = time.monotonic()
        if now - self._shown >= REFRESH:
            self._shown = now
            self._show(now)

    def close(self) -> None:
        """Write the final figures and end the line."""
        self._show(time.monotonic())
        self._stream.write("\n")
        self._stream.flush()

    def _show(self, now: float) -> None:
        rate = self._records / max(now - self._start, 1e-9)
        share = f" ({self._size / self._total:.0%})" if self._total else ""
        text = (
            f"{self._records:,} records, {self._size / 1e6:,.1f} MB{share}, {rate:,.0f} records/s"
        )
        self._stream.write(f"\r{text:<78}")
        self._stream.flush()


class Bar:
    """tqdm's bar over the bytes of the input, with the records behind it."""

    def __init__(self, tqdm: Any, stream: TextIO, total: int | None) -> None:
        self._bar = tqdm(total=total, file=stream, unit="B", unit_scale=True)
        self._records = 0

    def advance(self, records: int, size: int) -> None:
        """Count; tqdm limits its own output."""
        self._records += records
        self._bar.set_postfix_str(f"{self._records:,} records", refresh=False)
        self._bar.update(size)

    def close(self) -> None:
        """Leave the bar as it is and end the line."""
        self._bar.close()


def make_progress(quiet: bool, total: int | None, stream: TextIO | None = None) -> Progress:
    """Return what fits the stream.

    Args:
        quiet: show nothing.
        total: bytes of the whole input, if known.
        stream: standard error by default.
    """
    stream = stream or sys.stderr
    if quiet or not stream.isatty():
        return NoProgress()
    try:
        tqdm = importlib.import_module("tqdm").tqdm
    except ImportError:
        return StatusLine(stream, total)
    return Bar(tqdm, stream, total)
