"""Threads for what a finalizer must not do itself: wait, log, or take a lock.

A finalizer may run anywhere, in the middle of a logging handler or of `threading` itself. The
thread that it has interrupted may hold any lock. `Thread.start` takes one, and waits; so a bare
thread, which nobody waits for, makes the thread that has a name.
"""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

Detached = Callable[[tuple[Any, ...]], object]
"""Takes the arguments; raises RuntimeError if no thread can be started: there are too many, or the
interpreter ends.
"""


def detached(function: Callable[..., object], name: str) -> Detached:
    """Return what calls `function(*arguments)` in a daemon thread of this name.

    No Python code runs in the calling thread, and no module is needed.
    """
    return partial(_thread.start_new_thread, partial(_start, function, name))


def _start(function: Callable[..., object], name: str, *arguments: Any) -> None:
    threading.Thread(target=function, name=name, args=arguments, daemon=True).start()
