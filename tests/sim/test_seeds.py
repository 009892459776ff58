"""Many seeds on all processors are judged as one after the other would be."""

from __future__ import annotations

from tests.sim.seeds import CHUNK, failures, text


def odd(seed: int) -> str | None:
    return f"seed {seed} is odd" if seed % 2 else None


def test_failures_come_in_order_wherever_they_are_found() -> None:
    expected = [(seed, f"seed {seed} is odd") for seed in range(1, 3 * CHUNK, 2)]
    assert failures(odd, range(3 * CHUNK)) == expected
    assert failures(odd, [7]) == [(7, "seed 7 is odd")]
    assert text(expected).startswith(f"{len(expected)} worlds failed, seeds [1, 3,")
