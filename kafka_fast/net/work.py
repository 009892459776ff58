"""Functions that may block or take long, each called in a thread of its own.

A user's function, an identity provider or a key derivation may block or take long, and cannot be
interrupted. A login that waits too long gives its work up. The next login tries again, because the
function may have hung only once. Each call that never returns keeps a thread, so only a few pieces
of a client's login work may hang.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial

from kafka_fast.control.authentication.mechanism import WORK_TIMEOUT, Work
from kafka_fast.errors import ConnectionReason, KafkaConnectionError
from kafka_fast.logs import in_seconds, keep_name

__all__ = ["HANGING_MAX", "LoginWork", "call_in_thread"]

HANGING_MAX = 4
"""Pieces of work that were given up, and have not ended. Beyond that no more are begun."""


def call_in_thread(
    name: str, function: Callable[[], object], done: Callable[[object], None]
) -> None:
    """Call a function in a thread of its own, and `done` there with its result.

    What the function raises is its result. While the interpreter ends, CPython 3.12 and later start
    no thread; then this call blocks and does both in this thread.
    """

    def run() -> None:
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001  # SystemExit too: somebody waits
            result = error
        done(result)

    try:
        threading.Thread(target=keep_name(run), name=name, daemon=True).start()
    except RuntimeError:  # the interpreter ends, or the process is out of threads
        run()


class LoginWork:
    """The work of one client's logins. Thread: control."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        """Start with no work under way.

        Args:
            now: returns seconds.
        """
        self._now = now
        self._lock = threading.Lock()
        self._begun: dict[object, float] = {}  # what has not ended: when it began

    def run_work(self, work: Work, done: Callable[[object], None]) -> None:
        """Do a piece of work as `call_in_thread` does, unless too many pieces hang."""
        hangs = self._hangs(work)
        if hangs is not None:
            done(hangs)
            return
        key = object()
        with self._lock:
            self._begun[key] = self._now()
        call_in_thread("kf-login", work.function, partial(self._end, key, done))

    def _end(self, key: object, done: Callable[[object], None], result: object) -> None:
        with self._lock:
            del self._begun[key]
        done(result)

    def _hangs(self, work: Work) -> KafkaConnectionError | None:
        """Return why a piece of work is not begun, or None."""
        with self._lock:
            ages = [self._now() - began for began in self._begun.values()]
        hanging = [age for age in ages if age >= WORK_TIMEOUT]
        if len(hanging) < HANGING_MAX:
            return None
        return KafkaConnectionError(
            f"waits for a login: {work.what}, and {len(hanging)} earlier calls have not returned, "
            f"the first for {in_seconds(max(hanging))}",
            reason=ConnectionReason.LOGIN,
        )
