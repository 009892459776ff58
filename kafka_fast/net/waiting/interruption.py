"""An exception that comes in the middle of something, and is raised at its end."""

from __future__ import annotations

from typing import NoReturn


class Interruption:
    """Ctrl-C or a cancellation that waits until what it interrupted has come to its end.

    A function that kept the exception in a variable would be in a cycle with it: the exception's
    traceback has the function's frame. Here it is kept until it is raised, and no longer.
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: list[BaseException] = []

    def __bool__(self) -> bool:
        """Whether an exception is kept."""
        return bool(self._kept)

    def keep_error(self, error: BaseException) -> None:
        """Keep an exception, to raise it later."""
        self._kept.append(error)

    def raise_it(self) -> NoReturn:
        """Raise the exception that is kept."""
        raise self._kept.pop()
