"""Signals at a certain place of a call.

Python runs handlers where it looks for signals, which differs from version to version. Here a
tracer acts before each instruction (or line) of the package's frames, in turn.
"""

from __future__ import annotations

import dis
import os
import sys
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import kafka_fast

PACKAGE = str(Path(kafka_fast.__file__).parent) + os.sep

T = TypeVar("T")


def is_return(frame: FrameType) -> bool:
    """Tell whether the next instruction hands a result out: no frame can guard that."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]].startswith("RETURN")


@contextmanager
def acting(act: Callable[[FrameType], object], event: str = "opcode") -> Iterator[None]:
    """Call `act` before each instruction (or line) of the package, but for those that return."""

    def look(frame: FrameType, what: str, arg: object) -> Any:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes = event == "opcode"
        if what == event and not is_return(frame):
            act(frame)
        return look

    before = sys.gettrace()
    # Python 3.12 tells of opcodes only if a frame has asked for them before tracing begins.
    sys._getframe().f_trace_opcodes = event == "opcode"
    sys.settrace(look)
    try:
        yield
    finally:
        sys.settrace(before)


def interrupted_at(
    place: int, call: Callable[[], T], event: str = "opcode", files: Container[str] | None = None
) -> T:
    """Raise KeyboardInterrupt at the nth place in the package that a call passes.

    A tracer's exception can leave another one marked as being handled (in CPython 3.11), which a
    consumer sees when it closes. A generator has such marks of its own, which end with it.

    Args:
        place: counts from 1; a call that passes fewer places ends as ever.
        call: made in this thread.
        event: what counts as a place: "opcode" or "line".
        files: only places in these count; None: in all of the package.
    """
    left = place

    def interrupt(frame: FrameType) -> None:
        nonlocal left
        left -= files is None or frame.f_code.co_filename in files
        if left == 0:
            raise KeyboardInterrupt

    def generator() -> Iterator[T]:
        yield call()

    with acting(interrupt, event):
        return next(generator())
