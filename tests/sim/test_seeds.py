"""Every seed is judged, in one test or another, and a failure names all that fail."""

from __future__ import annotations

import re
from itertools import chain

import pytest

from tests.sim.seeds import asked_for, check


class Options:
    """What of pytest's configuration is asked for."""

    def __init__(self, **options: int | None) -> None:
        self.options = options

    def getoption(self, name: str) -> int | None:
        return self.options[name.removeprefix("--")]


def odd(seed: int) -> str | None:
    return f"seed {seed} is odd" if seed % 2 else None


@pytest.mark.parametrize("count", [1, 9, 10, 11, 2_000])
def test_every_seed_is_run_once(count: int) -> None:
    pieces = asked_for(Options(seed=None, seeds=count))  # type: ignore[arg-type]
    assert list(chain(*pieces)) == list(range(count))


def test_one_seed_is_run_alone() -> None:
    assert asked_for(Options(seed=7, seeds=200)) == [range(7, 8)]  # type: ignore[arg-type]


def test_a_failure_names_every_seed_that_fails() -> None:
    check(odd, [2, 4])
    with pytest.raises(AssertionError, match=re.escape("2 worlds failed, seeds [3, 5]")) as raised:
        check(odd, range(2, 7))
    assert "seed 3 is odd" in str(raised.value)
