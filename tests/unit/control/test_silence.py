"""Messages of waits in vain stay short."""

from __future__ import annotations

import pytest

from kafka_fast.control.silence import NAMED, some_of


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, ""), (1, "0"), (NAMED, "0, 1, 2, 3, 4"), (1_000, "0, 1, 2, 3, 4 and 995 more")],
)
def test_the_first_few_are_named(count: int, text: str) -> None:
    assert some_of(iter(range(count))) == text
