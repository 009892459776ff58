"""Settings whose values come from functions: they are had before anything is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka_fast.admin.workflows.configs import alter_configs
from kafka_fast.control.admin.operations.configs import AlterConfigs, IncrementalAlterConfigs
from kafka_fast.control.admin.types.configs import (
    AlterConfigOp,
    ConfigResource,
    ConfigResourceType,
)
from kafka_fast.errors import KafkaConnectionError, KafkaError, UsageError
from kafka_fast.net.waiting.steps import InThread, Yielded, run_steps
from kafka_fast.secret import Secret
from tests.unit.admin.workflows.scripted import ScriptedSteps, finish

BROKER = ConfigResource(ConfigResourceType.BROKER, "1")
NAME = "ssl.keystore.password"


def single(secret: Secret) -> IncrementalAlterConfigs:
    return IncrementalAlterConfigs({BROKER: [AlterConfigOp(NAME, secret)]}, validate_only=False)


def whole(secret: Secret) -> AlterConfigs:
    return AlterConfigs({BROKER: {NAME: secret, "a": "b"}}, validate_only=False)


Maker = Callable[[Secret], IncrementalAlterConfigs | AlterConfigs]


def value_of(operation: Any) -> str:
    """Return the value of the secret setting in a request."""
    request = operation.build([BROKER], 1)
    values: list[str] = [one.value for one in request.resources[0].configs if one.name == NAME]
    return values[0]


def carry_out(operation: IncrementalAlterConfigs | AlterConfigs) -> list[Any]:
    """Carry an operation out; functions are called as a driver calls them."""
    steps = ScriptedSteps(lambda operation: {BROKER: None})

    def answer(request: Yielded) -> object:
        assert isinstance(request, InThread)
        return request.function()

    assert run_steps(alter_configs(steps, operation, None), answer)[BROKER] is None
    return steps.carried_out


@pytest.mark.parametrize("make", [single, whole])
def test_a_function_is_called_once_and_before_the_request(make: Maker) -> None:
    calls: list[int] = []

    def password() -> str:
        calls.append(1)
        return "hunter2"

    (operation,) = carry_out(make(Secret(password)))
    assert value_of(operation) == value_of(operation) == "hunter2"
    assert calls == [1]
    assert "hunter2" not in repr(vars(operation))


@pytest.mark.parametrize("make", [single, whole])
def test_a_text_takes_no_thread(make: Maker) -> None:
    steps = ScriptedSteps(lambda operation: {BROKER: None})
    finish(alter_configs(steps, make(Secret("hunter2")), None))
    assert value_of(steps.carried_out[0]) == "hunter2"


def lacking() -> str:
    raise KeyError("PASSWORD")


def unreachable() -> str:
    raise ConnectionRefusedError("vault")


@pytest.mark.parametrize("make", [single, whole])
@pytest.mark.parametrize(
    ("function", "kind", "text"),
    [
        (lacking, UsageError, "KeyError: 'PASSWORD'"),
        (unreachable, KafkaConnectionError, "ConnectionRefusedError: vault"),
        (lambda: "hunter2\ud800", UsageError, "can be written in UTF-8"),
        (lambda: 5, UsageError, "returned int"),
    ],
)
def test_a_function_that_fails_ends_the_call(
    make: Maker, function: Callable[[], Any], kind: type[KafkaError], text: str
) -> None:
    with pytest.raises(kind, match=f"configs: broker '1' needs a value of '{NAME}'") as raised:
        carry_out(make(Secret(function)))
    assert text in str(raised.value)
    assert "hunter2" not in str(raised.value)
