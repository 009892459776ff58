"""Several steps at a time, for one caller: their requests are on their way at once.

And the results of several operations, as one.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeVar

from kafka_fast.control.admin.operation import OperationResults
from kafka_fast.errors import KafkaError
from kafka_fast.net.waiting.steps import Steps, Wait
from kafka_fast.values import replace

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


def run_together(*all_steps: Steps[Any]) -> Steps[list[Any]]:
    """Run steps beside each other, and return what they return, in their order.

    The first error ends all of them, and is raised.

    Args:
        all_steps: what to run; they only wait, and call nothing of the user's.
    """
    running = dict(enumerate(all_steps))
    results: dict[int, Any] = {}
    try:
        while True:
            waits: list[Wait] = []
            for number, steps in list(running.items()):
                try:
                    request = next(steps)
                except StopIteration as ended:
                    results[number] = ended.value
                    del running[number]
                    continue
                if not isinstance(request, Wait):
                    raise TypeError(f"steps that run together only wait: {request}")
                waits.append(request)
            if not running:
                return [results[number] for number in range(len(all_steps))]
            yield _first_of(waits)
    finally:
        for steps in running.values():
            steps.close()


def _first_of(waits: list[Wait]) -> Wait:
    """Return a wait that is over as soon as one of these is."""
    return Wait(
        lambda: any(wait.is_over() for wait in waits),
        min(wait.deadline for wait in waits),
        ", ".join(dict.fromkeys(wait.what for wait in waits)),
    )


def with_values(
    results: OperationResults[K, Any],
    values: dict[K, V],
    errors: dict[K, KafkaError] | None = None,
) -> OperationResults[K, V]:
    """Return the results of an operation with what was made of its values.

    Args:
        results: of the operation.
        values: in place of its own.
        errors: in place of its own; None: those stay.
    """
    made: Any = replace(results, values=values, errors=results.errors if errors is None else errors)
    return made  # type: ignore[no-any-return]
