"""Threads for what a finalizer must not do itself: wait, log, or take a lock.

A finalizer may run anywhere, in the middle of a logging handler or of `threading` itself. The
thread that it has interrupted may hold any lock. `Thread.start` takes one, and waits; so a bare
thread, which nobody waits for, makes the thread that has a name.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_fast.net.process._detached import Detached


def detached(function: Callable[..., object], name: str) -> Detached:
    """Return what calls `function(*arguments)` in a daemon thread of this name.

    No Python code runs in the calling thread, and no module is needed. The call takes the arguments
    as a tuple. It raises RuntimeError if no thread can be started: there are too many, or the
    interpreter ends.
    """
    return Detached(function, name)
