"""An admin client whose calls return what a test says: for what the embedded broker cannot serve.

admin.answers["delete_groups"] = answered({"audit": None}, {"other": NonEmptyGroup("...")})
assert main([...]) == 1
assert admin.calls == [("delete_groups", (["audit", "other"],), {})]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from typing_extensions import Self

import kafka_fast
from kafka_fast.admin import AdminResult, NodesResult
from kafka_fast.control.admin.operation import OperationResults
from kafka_fast.errors import KafkaError


def answered(
    values: Mapping[Any, object], errors: Mapping[Any, KafkaError] | None = None
) -> AdminResult[Any, Any]:
    """Return what a call about items returns."""
    errors = dict(errors or {})
    return AdminResult("scripted", OperationResults([*values, *errors], dict(values), errors))


def of_nodes(
    values: Mapping[Any, Any], errors: Mapping[int, KafkaError] | None = None
) -> NodesResult[Any, Any]:
    """Return what a call to all nodes returns."""
    errors = dict(errors or {})
    return NodesResult("scripted", dict(values), OperationResults([*errors], {}, errors))


class ScriptedAdmin:
    """Stands for `Admin`."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        """What each method returns; an exception is raised, a function is called."""
        self.calls: list[Any] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def entry(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Return how a call stands in `calls`."""
        return (name, args, options)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def _call(*args: Any, **options: Any) -> Any:
            self.calls.append(self.entry(name, args, options))
            answer = self.answers[name]
            if isinstance(answer, Exception):
                raise answer
            return answer(*args, **options) if callable(answer) else answer

        return _call


def replace_admin(monkeypatch: pytest.MonkeyPatch) -> ScriptedAdmin:
    """Let the commands use a scripted client."""
    admin = ScriptedAdmin()
    monkeypatch.setattr(kafka_fast, "Admin", lambda _config: admin)
    return admin
