"""Waiting for what another thread or process makes true."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

TIMEOUT = 300.0 if "KAFKA_FAST_EMULATOR" in os.environ else 60.0
"""Seconds: a real cluster takes half a minute to notice that a node has died.

An emulated processor is ten times slower.
"""


def eventually(
    probe: Callable[[], T | None], what: str = "the condition", *, timeout: float = TIMEOUT
) -> T:
    """Call `probe` until what it returns is true, and return that."""
    deadline = time.monotonic() + timeout
    while not (answer := probe()):
        assert time.monotonic() < deadline, f"waited {timeout:.0f} s for {what}, not {answer!r}"
        time.sleep(0.005)
    return answer


@contextmanager
def killed(process: subprocess.Popen[Any]) -> Iterator[None]:
    """Kill a process that a failing test leaves behind: Popen waits for it forever."""
    try:
        yield
    finally:
        process.kill()
