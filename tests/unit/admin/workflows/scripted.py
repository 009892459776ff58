"""Steps of an admin client whose operations end as a test says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafka_fast.admin.admin_steps import AdminSteps
from kafka_fast.control.admin.operation import ONLY, Operation, OperationResults
from kafka_fast.errors import KafkaError
from kafka_fast.net.waiting.steps import Steps, run_steps

Ending = Callable[[Any], "dict[Any, Any] | KafkaError"]
"""Returns what becomes of the items of an operation; an error: that of all of them."""


class ScriptedSteps(AdminSteps):
    """Carries nothing out."""

    client_id = "scripted"
    uses_controllers = False

    def __init__(self, ending: Ending) -> None:
        self._ending = ending
        self.carried_out: list[Any] = []
        """The operations, in their order."""

    def begin_call(self, timeout: float | None) -> float:
        return self.deadline(timeout)

    def deadline(self, timeout: float | None) -> float:
        return 60.0 if timeout is None else timeout

    def results(
        self, operation: Operation[Any, Any], deadline: float
    ) -> Steps[OperationResults[Any, Any]]:
        self.carried_out.append(operation)
        ended = self._ending(operation)
        items = operation.items if operation.items is not None else list(ended)  # type: ignore[arg-type]
        if isinstance(ended, KafkaError):
            return OperationResults(items, {}, dict.fromkeys(items, ended))
        errors = {key: one for key, one in ended.items() if isinstance(one, KafkaError)}
        values = {key: one for key, one in ended.items() if key not in errors}
        return OperationResults(items, values, errors)
        yield  # a generator, as the others


def finish(steps: Steps[Any]) -> Any:
    """Run steps that wait for nothing."""

    def answer(request: object) -> object:
        raise AssertionError(f"{request} is waited for")

    return run_steps(steps, answer)


def only(value: Any) -> dict[str, Any]:
    """Return the results of an operation about one thing."""
    return {ONLY: value}
