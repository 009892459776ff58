"""The package's loggers, with a limit on repeated messages; and the log lines about long waits.

A client retries for as long as its user lets it, and a cluster may be away for a week. So the same
message passes `BURST` times in `PERIOD` seconds, and the first message after that says how many
were left out. Messages are the same if logger, level and text without arguments are equal. If the
whole text of a message is an argument, its `extra` names a kind, which counts instead.

Each line about a client begins with that client's id: "[orders-writer] node 2 is back". Threads of
one client are named after it (`name_thread`), and so are the lines that they log. A thread of the
user's may use several clients, so what logs there has the log of one client (`ClientLog`).

A wait is logged once, when it has become long: see `LongWait`. No clock is read here: `now` comes
with each call, and is virtual in a simulation.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from kafka_fast.instants import NEVER

BURST = 20
"""How often a message passes in a period."""

PERIOD = 60.0
"""Length of a period in seconds."""

UNLIMITED = {"unlimited": True}
"""The `extra` of a message that always passes, such as a count that is reported nowhere else."""

WAIT = {"kind": "wait"}
"""The `extra` of a message about a long wait."""

RECOVERY = {"kind": "recovery"}
"""The `extra` of a message that a trouble is over, of which there was a WARNING."""

TEXTS_MAX = 1024
"""Texts that are remembered; more come only from code that formats texts before it logs them."""

NAMED = 10
"""Most partitions, or other things, that one message names."""

LONG = 3.0
"""Seconds after which a wait is long."""

AGAIN = 1.0
"""Seconds between two looks at the reason of a long wait."""


def count_of(count: int, unit: str) -> str:
    """Return a number with its unit, for messages: "1 record", "2 records"."""
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


def some_of(things: Iterable[object], most: int = NAMED) -> str:
    """Return the first few of these as text, and how many more there are."""
    rest = iter(things)
    text = ", ".join(map(str, islice(rest, most)))
    more = sum(1 for _ in rest)
    return f"{text} and {more} more" if more else text


def all_of(partitions: Collection[tuple[str, int]]) -> str:
    """Return a number of partitions with their names: "2 partitions (t-0, t-1)"."""
    counted = count_of(len(partitions), "partition")
    return f"{counted} ({some_of(sorted(partitions))})" if partitions else counted


def in_seconds(duration: float) -> str:
    """Return a duration for messages: "0.8 ms", "0.3 s", "60 s"."""
    if 0 < duration < 0.1:
        return f"{duration * 1000:.3g} ms"
    return f"{duration:.0f} s" if duration >= 100 else f"{duration:.3g} s"


_client_id: ContextVar[str] = ContextVar("client_id", default="")  # of this thread; "": any


def name_thread(client_id: str) -> None:
    """Have all lines that this thread logs begin with a client's id. For a client's own threads."""
    _client_id.set(client_id)


def keep_name(function: Callable[[], object]) -> Callable[[], object]:
    """Return a function for a new thread, whose lines begin as those of this thread do."""
    client_id = _client_id.get()

    def run() -> object:
        name_thread(client_id)
        return function()

    return run


@contextmanager
def naming(client_id: str) -> Iterator[None]:
    """Have the lines of this block begin with a client's id: the client is being made."""
    token = _client_id.set(client_id)
    try:
        yield
    finally:
        _client_id.reset(token)


if TYPE_CHECKING:
    _Adapter = logging.LoggerAdapter[logging.Logger]
else:  # not subscriptable in Python 3.10
    _Adapter = logging.LoggerAdapter


class ClientLog(_Adapter):
    """A logger for the lines of one client, on whichever thread they are logged. Any thread."""

    def __init__(self, name: str, client_id: str) -> None:
        """Take the name of the logger, and the id of the client."""
        super().__init__(get_logger(name), {"client_id": client_id})

    def process(
        self, msg: Any, kwargs: MutableMapping[str, Any]
    ) -> tuple[Any, MutableMapping[str, Any]]:
        """Give a line the client's id, beside the `extra` of its own."""
        kwargs["extra"] = {**(kwargs.get("extra") or {}), **(self.extra or {})}
        return msg, kwargs


Log: TypeAlias = logging.Logger | ClientLog
"""Where lines go: of one client, or of whichever client the thread works for."""


class Waiting(NamedTuple):
    """The reason of a wait."""

    text: str
    """A sentence for the user."""
    level: int = logging.WARNING
    """Level of the log line; INFO if the wait is normal."""
    key: Hashable = None
    """Equal for the same reason, whatever the texts."""


_is_telling: ContextVar[bool] = ContextVar("is_telling", default=False)  # a wait, in this thread


def tell(logger: Log, waiting: Waiting) -> None:
    """Log the reason of a wait.

    A log handler may send the line to Kafka and so wait for the same reason; that is not logged.
    """
    if _is_telling.get():
        return
    token = _is_telling.set(True)
    try:
        logger.log(waiting.level, "%s", waiting.text, extra=WAIT)
    finally:
        _is_telling.reset(token)


class LongWait:
    """Logs the reason of a wait after `LONG` seconds, and each reason only once.

    If the reason changes, the new one is logged once it has lasted, too. Thread: the owner's.
    """

    __slots__ = ("_began", "_key", "_logger", "_look_at", "_told")

    def __init__(self, logger: Log) -> None:
        """Start without a wait; the first `log_if_long` begins one.

        Args:
            logger: gets the log lines.
        """
        self._logger = logger
        self._began: float | None = None
        self._look_at = NEVER
        self._key: Hashable = None  # of the reason at the last look
        self._told: set[Hashable] = set()

    def end_wait(self) -> None:
        """End the wait; the next one logs its reasons anew."""
        if self._began is not None:
            self._began = None
            self._look_at = NEVER
            self._key = None
            self._told.clear()

    @property
    def is_told(self) -> bool:
        """Whether a reason of this wait was logged."""
        return bool(self._told)

    @property
    def deadline(self) -> float:
        """When to look next; infinity without a wait."""
        return self._look_at

    def log_if_long(
        self, now: float, describe: Callable[[float], Waiting | None]
    ) -> Waiting | None:
        """Note that the wait goes on, and log its reason if that is due.

        Args:
            now: the time.
            describe: called with the time when the wait is long. It returns the reason; None: there
                is nothing to log yet.

        Returns:
            The reason that was logged in this call, if any.
        """
        if self._began is None:
            self._began = now
            self._look_at = now + LONG
        if now < self._look_at:
            return None
        self._look_at = now + AGAIN
        waiting = describe(now)
        if waiting is None or waiting.key in self._told:
            self._key = None if waiting is None else waiting.key
            return None
        if self._told and waiting.key != self._key:  # a new reason: see whether it lasts
            self._key = waiting.key
            self._look_at = now + LONG
            return None
        self._told.add(waiting.key)
        self._key = waiting.key
        tell(self._logger, waiting)
        return waiting


class RateLimit(logging.Filter):
    """Lets the first messages of a period pass, and names their client.

    Any thread: a race only miscounts.
    """

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[int, object], tuple[float, int]] = {}  # -> since when, how often

    def forget_messages(self) -> None:
        """Forget all messages."""
        self._said.clear()

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the message passes; add its client, and how many were left out."""
        left_out = 0 if getattr(record, "unlimited", False) else self._left_out(record)
        if left_out is None:
            return False
        if left_out:
            record.msg = f"{record.getMessage()} (and {left_out} times before)"
            record.args = ()
        client_id = record.client_id = getattr(record, "client_id", None) or _client_id.get()
        if client_id and record.args and isinstance(record.args, tuple):
            record.msg = f"[%s] {record.msg}"
            record.args = (client_id, *record.args)
        elif client_id:
            record.args = (client_id, record.getMessage())
            record.msg = "[%s] %s"
        return True

    def _left_out(self, record: logging.LogRecord) -> int | None:
        """Return how many messages before this one were left out; None: this one is, too."""
        key = (record.levelno, getattr(record, "kind", record.msg))
        since, count = self._said.get(key, (record.created, 0))
        left_out = 0
        if record.created - since >= PERIOD:
            left_out = max(0, count - BURST)
            since, count = record.created, 0
        if len(self._said) >= TEXTS_MAX:
            self._said.clear()
        self._said[key] = (since, count + 1)
        return None if count >= BURST else left_out


def get_logger(name: str) -> logging.Logger:
    """Return the logger of that name, with a limit."""
    logger = logging.getLogger(name)
    if not any(isinstance(log_filter, RateLimit) for log_filter in logger.filters):
        logger.addFilter(RateLimit())
    return logger
