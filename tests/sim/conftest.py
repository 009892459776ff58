"""Simulations make much garbage, little of it in cycles: the collector need not look so often."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="package")
def rare_collections() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(100_000, 20, 20)
    yield
    gc.set_threshold(*before)
