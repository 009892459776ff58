"""What may wait, written once: steps that yield what they wait for, and drivers that run them.

    steps ── Wait(is_over, deadline, what) ──► driver: sleeps as its kind of caller may
          ── Invoke(function, args) ─────────► driver: calls it, or awaits it
          ◄── nothing, or what the function has returned; or an exception, thrown in

A step that is resumed after a `Wait` looks for itself: what it waited for may have come, the
deadline may have passed, or its client may have ended. Whatever interrupts a caller (Ctrl-C, what
a signal's handler raises, a task that is cancelled) is thrown in where the steps wait, so that they
can put things in order. What must finish all the same is shielded there, see `Waits.wait`.

The drivers: `blocking` for threads, `looping` for asyncio, and one in virtual time for simulations.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

T = TypeVar("T")


class Wait(NamedTuple):
    """Resume these steps when something has happened, or the time is up.

    Attributes:
        is_over: returns whether to resume; asked again after each wake of the client, in any
            thread. It changes nothing.
        deadline: monotonic seconds; when to resume in any case.
        what: is waited for, for people.
    """

    is_over: Callable[[], object]
    deadline: float
    what: str


class Invoke(NamedTuple):
    """Call a function of the user's, in the caller's thread: a listener, or a callback.

    Attributes:
        function: an asyncio driver awaits what it returns, if it can be awaited.
        args: of the call.
    """

    function: Callable[..., object]
    args: tuple[Any, ...] = ()


Request: TypeAlias = Wait | Invoke
Steps: TypeAlias = Generator[Request, Any, T]


class Driver(Protocol):
    """Runs the steps of one client in the thread that calls. Any thread."""

    def run(self, steps: Steps[T]) -> T:
        """Run steps to their end, and return what they return."""

    def wake(self) -> None:
        """Have all who wait look again: what they wait for may have happened."""


def run_steps(steps: Steps[T], answer: Callable[[Request], object]) -> T:
    """Run steps to their end.

    Args:
        steps: not begun.
        answer: waits, or calls; what it raises is thrown in.
    """
    value: object = None
    errors: list[BaseException] = []  # no variable: with its traceback that would be a cycle
    while True:
        try:
            value = answer(steps.throw(errors.pop()) if errors else steps.send(value))
        except BaseException as error:  # noqa: PERF203  that is what the loop is for
            if has_ended(steps):
                if isinstance(error, StopIteration):
                    result: T = error.value
                    return result
                raise
            errors.append(error)


def has_ended(steps: Steps[Any]) -> bool:
    """Return whether what was raised is how these steps have ended: they wait nowhere."""
    return getattr(steps, "gi_frame", None) is None
