"""Pieces of work of a login, each in a thread of its own.

A user's function, an identity provider or a key derivation may block or take long, and cannot be
interrupted. At the end of the process, when CPython 3.12 and later can start no thread, the control
thread does the work itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


def run_work(function: Callable[[], object], done: Callable[[object], None]) -> None:
    """Call `function` in a thread, and `done` there with its result, or with what it has raised.

    While the interpreter ends, this call blocks and does both in this thread.
    """

    def work() -> None:
        try:
            result = function()
        except BaseException as error:  # noqa: BLE001  # SystemExit too: a login waits
            result = error
        done(result)

    try:
        threading.Thread(target=work, name="kf-login", daemon=True).start()
    except RuntimeError:  # the interpreter ends, or the process is out of threads
        work()
