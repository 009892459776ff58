"""The search itself: it finds what it is to find."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.unit.canary import CANARY, OURS, is_shown, traces


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
def test_base64_at_any_position(before: str) -> None:
    assert is_shown(base64.b64encode(f"{before}{CANARY} and more".encode()).decode())
    assert is_shown(base64.b64encode(f"{before}{CANARY}".encode()).decode())
    assert not is_shown(base64.b64encode(f"{before}anything else".encode()).decode())


def test_a_frame_that_holds_it_is_found() -> None:
    source = compile("def fail(password): raise ValueError", f"{OURS}/planted.py", "exec")
    names: dict[str, Any] = {}
    exec(source, names)
    with pytest.raises(ValueError) as caught:
        names["fail"](CANARY)
    assert traces(caught.value) == ["fail.password"]
