"""Code that may wait, written once for all kinds of callers, as generators ("steps").

    steps ── Wait(is_over, deadline, what) ──► driver: sleeps as its kind of caller may
          ── Invoke(function, args) ─────────► driver: calls the function, or awaits its result
          ── InThread(function) ─────────────► driver: calls the function, where that may block
          ── YieldToLoop() ──────────────────► driver: lets an event loop run other tasks
          ◄── None, or the function's result; or an exception, thrown in

Steps that are resumed after a `Wait` look again, because a wait ends for three reasons: the event
has come, the deadline has passed, or the client has ended. An interruption of the caller (Ctrl-C,
an exception of a signal handler, a cancelled task) is thrown in where the steps wait, so that they
can clean up. Steps that must finish all the same are shielded; see `waits.ClientWaits`.

The drivers: `blocking` for threads, `looping` for asyncio, and one in virtual time for simulations.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

T = TypeVar("T")


class Wait(NamedTuple):
    """Resume these steps when something has happened, or at the deadline."""

    is_over: Callable[[], object]
    """Returns whether to resume; called after each wake of the client, in any thread. The function
    has no side effects.
    """
    deadline: float
    """Monotonic seconds; when to resume in any case."""
    what: str
    """The awaited thing, in words for people."""


class Invoke(NamedTuple):
    """Call a function of the user's (a listener or a callback) in the caller's thread."""

    function: Callable[..., object]
    """An asyncio driver awaits its result, if the result is awaitable."""
    args: tuple[Any, ...] = ()
    """Arguments of the call."""


class InThread(NamedTuple):
    """Call a function of ours that blocks for a moment, such as until threads have ended.

    An interruption of the caller does not end the function.
    """

    function: Callable[[], object]
    """A blocking driver calls it; an asyncio driver has a thread of its own call it."""


class YieldToLoop(NamedTuple):
    """Let an event loop run other tasks: these steps have held it for a while."""


Yielded: TypeAlias = Wait | Invoke | InThread | YieldToLoop
"""What steps yield to their driver."""

Steps: TypeAlias = Generator[Yielded, Any, T]


class Driver(Protocol):
    """Runs the steps of one client in the calling thread. Any thread."""

    def run(self, steps: Steps[T]) -> T:
        """Run steps to their end, and return what they return."""

    def wake(self) -> None:
        """Have all waiters look again: an awaited event may have happened."""


def run_steps(steps: Steps[T], answer: Callable[[Yielded], object]) -> T:
    """Run steps to their end.

    Args:
        steps: a generator that has not begun.
        answer: does what was yielded; an exception that it raises is thrown into the steps.
    """
    try:
        return _run_steps(steps, answer)
    finally:
        # An interruption may come between two steps. Its traceback would keep the steps waiting,
        # and what they hold.
        steps.close()


def _run_steps(steps: Steps[T], answer: Callable[[Yielded], object]) -> T:
    value: object = None
    errors: list[BaseException] = []  # no variable: with its traceback that would be a cycle
    while True:
        try:
            value = answer(steps.throw(errors.pop()) if errors else steps.send(value))
        except BaseException as error:  # noqa: PERF203  the loop's purpose
            if has_ended(steps):
                if isinstance(error, StopIteration):
                    result: T = error.value
                    return result
                raise
            errors.append(error)


def has_ended(steps: Steps[Any]) -> bool:
    """Return whether these steps have ended, so that an exception came out of them."""
    return getattr(steps, "gi_frame", None) is None
