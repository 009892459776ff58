"""The package's loggers: each says the same thing only so often, and what is waited for.

A client retries for as long as its user lets it, and a cluster may be away for a week. A message
is known by its logger, level and text before its arguments, or by the kind that it names (for
`extra`, where the whole text is an argument); it passes `BURST` times in `PERIOD`
seconds, and the first one after that tells how many were left out.

Whoever waits for something says so once, when the wait has become long: see `LongWait`. No clock is
read here: `now` comes with each call, and is virtual in a simulation.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from typing import NamedTuple

from kafka_fast.instants import NEVER

BURST = 20
"""How often a message passes in a period."""

PERIOD = 60.0
"""Seconds."""

UNLIMITED = {"unlimited": True}
"""For `extra` of a record that always passes: one that counts what is told nowhere else."""

WAIT = {"kind": "wait"}
"""For `extra` of a record that tells of a long wait."""

TEXTS_MAX = 1024
"""Texts that are remembered; more are only seen where a text is made of its arguments."""

LONG = 3.0
"""Seconds after which a wait is long."""

AGAIN = 1.0
"""Seconds from one look at what is waited for to the next, once a wait is long."""


def count_of(count: int, unit: str) -> str:
    """Return a number with its unit, for messages: "1 record", "2 records"."""
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


def in_seconds(duration: float) -> str:
    """Return a duration for messages: "0.8 ms", "0.3 s", "60 s"."""
    if 0 < duration < 0.1:
        return f"{duration * 1000:.3g} ms"
    return f"{duration:.0f} s" if duration >= 100 else f"{duration:.3g} s"


class Waiting(NamedTuple):
    """What is waited for.

    Attributes:
        text: a sentence for the user.
        level: of the log; INFO if to wait for this is normal.
        key: waits for the same have the same one, whatever their texts.
    """

    text: str
    level: int = logging.WARNING
    key: Hashable = None


_is_telling: ContextVar[bool] = ContextVar("is_telling", default=False)  # of a wait, in a thread


def tell(logger: logging.Logger, waiting: Waiting) -> None:
    """Log what is waited for.

    Whoever handles the record may send it to Kafka, and wait for the same: that is not told again.
    """
    if _is_telling.get():
        return
    token = _is_telling.set(True)
    try:
        logger.log(waiting.level, "%s", waiting.text, extra=WAIT)
    finally:
        _is_telling.reset(token)


class LongWait:
    """Logs what is waited for when that has lasted for `LONG` seconds, and only once.

    A wait that comes to be one for something else is another wait. Thread: that of its owner.
    """

    __slots__ = ("_began", "_key", "_logger", "_look_at", "_told")

    def __init__(self, logger: logging.Logger) -> None:
        """Begin with nothing that is waited for.

        Args:
            logger: takes what is said.
        """
        self._logger = logger
        self._began: float | None = None
        self._look_at = NEVER
        self._key: Hashable = None  # of what was waited for at the last look
        self._told: set[Hashable] = set()

    def end(self) -> None:
        """What was waited for has come, or is not waited for any more."""
        if self._began is not None:
            self._began = None
            self._look_at = NEVER
            self._key = None
            self._told.clear()

    @property
    def is_told(self) -> bool:
        """Whether the log says what is waited for."""
        return bool(self._told)

    @property
    def deadline(self) -> float:
        """When to look next; infinity while nothing is waited for."""
        return self._look_at

    def look(self, now: float, describe: Callable[[float], Waiting | None]) -> Waiting | None:
        """Note that something is waited for, and say what if that is due.

        Args:
            now: the time.
            describe: called with the time when the wait is long; returns what is waited for; None:
                nothing that has to be said yet.

        Returns:
            What has been said now.
        """
        if self._began is None:
            self._began = now
            self._look_at = now + LONG
        if now < self._look_at:
            return None
        self._look_at = now + AGAIN
        found = describe(now)
        if found is None or found.key in self._told:
            self._key = None if found is None else found.key
            return None
        if self._told and found.key != self._key:  # something else: see whether that lasts, too
            self._key = found.key
            self._look_at = now + LONG
            return None
        self._told.add(found.key)
        self._key = found.key
        tell(self._logger, found)
        return found


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
        key = (record.levelno, getattr(record, "kind", record.msg))
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
