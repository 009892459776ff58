"""Both kinds of clients for one test: the blocking ones, and asyncio's with blocking methods.

A module that sets `DRIVERS = True` has its tests run with both, if they use these fixtures; except
those marked `threads_only(reason)`. A `conftest.py` imports what is in `__all__`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka_fast import Consumer, Producer, read_range
from tests.embedded.driven import DrivenConsumer, DrivenProducer, DrivenRange, close_loops
from tests.embedded.looped import LOOPS

__all__ = [
    "consumer_class",
    "driver",
    "loop",
    "open_range",
    "producer_class",
    "pytest_generate_tests",
]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of modules that say so with the blocking clients and with asyncio's."""
    if "driver" not in metafunc.fixturenames or not getattr(metafunc.module, "DRIVERS", None):
        return
    mark = metafunc.definition.get_closest_marker("threads_only")
    kinds = DRIVERS[:1] if mark is not None else DRIVERS
    metafunc.parametrize("driver", kinds, indirect=True)


DRIVERS = (
    "threads",
    pytest.param("asyncio", marks=pytest.mark.repeats("the blocking client's compiled code")),
)


@pytest.fixture
def driver(request: pytest.FixtureRequest) -> Iterator[str]:
    """Who runs the clients' steps: "threads" that block, or event loops of "asyncio"."""
    yield getattr(request, "param", "threads")
    close_loops()


@pytest.fixture
def consumer_class(driver: str) -> Any:
    """The class of consumers; that of asyncio has blocking methods, see `driven`."""
    return Consumer if driver == "threads" else DrivenConsumer


@pytest.fixture
def producer_class(driver: str) -> Any:
    """The class of producers; that of asyncio has blocking methods, see `driven`."""
    return Producer if driver == "threads" else DrivenProducer


@pytest.fixture
def open_range(driver: str) -> Any:
    """The function `read_range`; that of asyncio returns a range with blocking methods."""
    return read_range if driver == "threads" else DrivenRange


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> str:
    """Each kind of event loop."""
    name: str = request.param
    return name
