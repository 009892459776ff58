"""Messages on standard error: the command line's own ones, log records and warnings.

    say ──────────────────────────────┐
    loggers kafka_fast.* ─► LogLines ─┼─► `kafka-fast: ...`, above the progress if that is shown
    warnings ─────────────────────────┘

Without `-v`, log records are shown from WARNING on. Of those at INFO, two kinds are shown: what is
waited for, because a user who waits wants to know why, and that a trouble is over.
"""

from __future__ import annotations

import logging
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from kafka_fast.cli.showing.progress import write_line
from kafka_fast.cli.showing.tables import printable
from kafka_fast.logs import RECOVERY

LOGGER = "kafka_fast"

LINE_ENDS = "\n\t"
"""What messages of several lines have. A broker's own words are one line."""

DETAILS = "%(asctime)s %(levelname)s %(name)s: %(message)s"
"""The form of log records with -v."""


def say(text: str) -> None:
    """Write a message for people. What is not printable in it is escaped, but for line ends.

    Any thread.
    """
    write_line(f"kafka-fast: {printable(text, kept=LINE_ENDS)}")


def is_terminal() -> bool:
    """Return whether standard error is a terminal, so that a user reads messages at once."""
    return sys.stderr is not None and sys.stderr.isatty()


class LogLines(logging.Handler):
    """Shows log records as messages."""

    def emit(self, record: logging.LogRecord) -> None:
        """Show one record. Any thread."""
        try:
            say(self.format(record) if self.formatter else _without_client(record))
        except Exception:  # noqa: BLE001  as in every handler: logging must not break its caller
            self.handleError(record)


def _without_client(record: logging.LogRecord) -> str:
    """Return the text of a record: a command has one client, which need not be named."""
    return record.getMessage().removeprefix(f"[{getattr(record, 'client_id', '')}] ")


_WAIT = re.compile(r"\bwait(s|ing)\b")


def is_for_everybody(record: logging.LogRecord) -> bool:
    """Return whether a log record is shown without -v."""
    if record.levelno == logging.INFO:
        if getattr(record, "kind", None) == RECOVERY["kind"]:
            return True
        return _WAIT.search(record.getMessage()) is not None
    return record.levelno >= logging.WARNING


@contextmanager
def showing_logs(verbosity: int) -> Iterator[None]:
    """Show log records and Python's warnings until the block ends.

    Args:
        verbosity: how often -v was given: 0 shows the records of `is_for_everybody`, 1 all from
            INFO on, 2 all.
    """
    handler = LogLines()
    if verbosity:
        handler.setFormatter(logging.Formatter(DETAILS))
    else:
        handler.addFilter(is_for_everybody)
    logger = logging.getLogger(LOGGER)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG if verbosity > 1 else logging.INFO)
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: object = None,
    line: str | None = None,
) -> None:
    say(str(message))
