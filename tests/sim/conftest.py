"""What the simulations share: seeds, a collector that looks seldom, and that worlds end wholly."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from kafka_fast.net.process import process_life
from tests.sim.seeds import asked_for


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Hand the seeds of --seed or --seeds to the tests that take some."""
    if "seeds" in metafunc.fixturenames:
        pieces = asked_for(metafunc.config)
        metafunc.parametrize("seeds", pieces, ids=[f"{piece[0]}-{piece[-1]}" for piece in pieces])


@pytest.fixture(autouse=True, scope="package")
def rare_collections() -> Iterator[None]:
    """Simulations make much garbage, little of it in cycles: the collector need not look often."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, 20, 20)
    yield
    gc.set_threshold(*before)


@pytest.fixture(autouse=True)
def no_client_outlives_its_world() -> Iterator[None]:
    """The end of the process waits for clients, and in a world that is over no time goes by."""
    before = set(process_life.living)
    yield
    assert set(process_life.living) <= before
