"""The package's loggers: each says the same thing only so often.

A client retries for as long as its user lets it, and a cluster may be away for a week. A message
is known by its logger, level and text before its arguments; it passes `BURST` times in `PERIOD`
seconds, and the first one after that tells how many were left out.
"""

from __future__ import annotations

import logging

BURST = 20
"""How often a message passes in a period."""

PERIOD = 60.0
"""Seconds."""

UNLIMITED = {"unlimited": True}
"""For `extra` of a record that always passes: one that counts what is told nowhere else."""

TEXTS_MAX = 1024
"""Texts that are remembered; more are only seen where a text is made of its arguments."""


class RateLimit(logging.Filter):
    """Lets the first few of a period pass. Any thread: a race miscounts, no more."""

    def __init__(self) -> None:
        """Begin with nothing said."""
        super().__init__()
        self._said: dict[tuple[int, object], tuple[float, int]] = {}  # -> since when, how often

    def forget(self) -> None:
        """Begin anew."""
        self._said.clear()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record passes; add to it what was left out."""
        if getattr(record, "unlimited", False):
            return True
        key = (record.levelno, record.msg)
        since, count = self._said.get(key, (record.created, 0))
        left_out = 0
        if record.created - since >= PERIOD:
            left_out = max(0, count - BURST)
            since, count = record.created, 0
        if len(self._said) >= TEXTS_MAX:
            self._said.clear()
        self._said[key] = (since, count + 1)
        if count >= BURST:
            return False
        if left_out:
            record.msg = f"{record.getMessage()} (and {left_out} times before)"
            record.args = ()
        return True


def get_logger(name: str) -> logging.Logger:
    """Return the logger of that name, with a limit."""
    logger = logging.getLogger(name)
    if not any(isinstance(it, RateLimit) for it in logger.filters):
        logger.addFilter(RateLimit())
    return logger
