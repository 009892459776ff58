"""How much Python runs: a measure of work that is the same on every machine.

    work_of(lambda: assign(200)) < 3 * work_of(lambda: assign(100))

Times vary with the machine and its load. What is counted here are the lines that the interpreter
runs, so a test can tell work that grows with the size of a problem from work that grows with its
square. Each turn of a loop counts, also where the loop is a single line. Loops inside of C
functions (`list.remove`, `sorted`) do not.

Instructions would be no measure: from Python 3.13 on a tracer misses those of a first run.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def work_of(function: Callable[[], object]) -> int:
    """Call a function, and return how many lines of Python ran until it was back."""
    count = 0

    def look(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        count += 1
        return look

    before = sys.gettrace()
    sys.settrace(look)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


def growth_of(make: Callable[[int], Callable[[], object]], size: int) -> float:
    """Return by which factor the work grows if the problem doubles.

    Args:
        make: makes a problem of some size, and returns the function whose work is measured.
        size: of the smaller problem.
    """
    small, large = make(size), make(2 * size)
    return work_of(large) / work_of(small)
