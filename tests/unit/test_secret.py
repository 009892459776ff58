"""What a `Secret` lets go of, and when."""

from __future__ import annotations

import pytest

from kafka_fast.secret import Secret
from tests.unit.canary import CANARY, traces


def test_what_a_function_returns_by_mistake_is_in_no_variable_of_the_error() -> None:
    def give() -> object:
        return CANARY.encode()

    with pytest.raises(TypeError, match="a secret returned bytes") as caught:
        Secret(give).reveal()  # type: ignore[arg-type]
    assert traces(caught.value) == []
