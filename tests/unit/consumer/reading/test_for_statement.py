"""Which loops are `for` statements of the frame that asks for an iterator."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import FrameType
from typing import Any

import pytest

from kafka_fast.consumer.reading.for_statement import GENERATOR, looping_frame


class Source:
    """Gives two items, and keeps what `looping_frame` says of its caller."""

    def __init__(self) -> None:
        self.frame: FrameType | None = None
        self.caller: FrameType | None = None

    def _look(self) -> None:
        self.caller = sys._getframe(2)
        self.frame = looping_frame(self.caller)

    def __iter__(self) -> Iterator[int]:
        self._look()
        return iter((1, 2))

    def __aiter__(self) -> AsyncIterator[int]:
        self._look()
        return Items()


class Items:
    def __init__(self) -> None:
        self._left = 2

    def __aiter__(self) -> Items:
        return self

    async def __anext__(self) -> int:
        self._left -= 1
        if self._left < 0:
            raise StopAsyncIteration
        return self._left


def for_loop(source: Source) -> None:
    for _ in source:
        pass


def for_loop_far_in_a_function(source: Source) -> None:
    values = [0] * 10
    for _ in (1, 2):
        values[0] += 1
    if values:
        for _ in source:
            values[1] += values[2] + values[3]


async def async_for_loop(source: Source) -> None:
    async for _ in source:
        pass


LOOPS: list[Callable[[Source], Any]] = [
    for_loop,
    for_loop_far_in_a_function,
    async_for_loop,
]


def variable(source: Source) -> None:
    items = iter(source)
    for _ in items:
        pass


def for_loop_of_a_call(source: Source) -> None:
    for _, _ in enumerate(source):
        pass


def for_loop_of_a_method(source: Source) -> None:
    for _ in itertools.islice(source, 1):
        pass


def call_in_a_call(source: Source) -> None:
    for _ in map(str, enumerate(source)):
        pass


def generator_expression(source: Source) -> None:
    for _ in (item for item in source):
        pass


def list_of_items(source: Source) -> None:
    list(source)


def unpacking(source: Source) -> None:
    _, _ = source


def generator(source: Source) -> None:
    def items() -> Iterator[int]:
        yield from source

    for _ in items():
        pass


def for_loop_in_a_generator(source: Source) -> None:
    def items() -> Iterator[int]:
        for item in source:  # noqa: UP028  the very loop that is tested
            yield item

    for _ in items():
        pass


async def async_for_loop_in_a_generator(source: Source) -> None:
    async def items() -> AsyncIterator[int]:
        async for item in source:
            yield item

    async for _ in items():
        pass


async def async_variable(source: Source) -> None:
    items = source.__aiter__()
    async for _ in items:
        pass


async def async_generator_expression(source: Source) -> None:
    async for _ in (item async for item in source):
        pass


OTHERS: list[Callable[[Source], Any]] = [
    variable,
    for_loop_of_a_call,
    for_loop_of_a_method,
    call_in_a_call,
    generator_expression,
    list_of_items,
    unpacking,
    generator,
    for_loop_in_a_generator,
    async_for_loop_in_a_generator,
    async_variable,
    async_generator_expression,
]


def run(program: Callable[[Source], Any], source: Source) -> None:
    result = program(source)
    if isinstance(result, Awaitable):

        async def wait() -> None:
            await result

        asyncio.run(wait())


@pytest.mark.parametrize("program", LOOPS)
def test_the_frame_of_a_for_statement_is_found(program: Callable[[Source], Any]) -> None:
    source = Source()
    run(program, source)
    assert source.frame is not None
    assert source.frame is source.caller
    assert source.frame.f_code.co_name == program.__name__


@pytest.mark.parametrize("program", OTHERS)
def test_an_iterator_that_may_live_elsewhere_has_none(program: Callable[[Source], Any]) -> None:
    source = Source()
    run(program, source)
    assert source.caller is not None
    assert source.frame is None


def test_the_flags_of_generators() -> None:
    assert inspect.CO_GENERATOR | inspect.CO_ASYNC_GENERATOR == GENERATOR


def test_a_call_from_no_frame_has_none() -> None:
    """As the first call of a greenlet."""
    assert looping_frame(None) is None


def test_a_traced_function_has_its_frame() -> None:
    """Debuggers and coverage change the bytecode that runs."""
    before = sys.gettrace()

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        return trace

    sys.settrace(trace)
    try:
        source = Source()
        for_loop(source)
    finally:
        sys.settrace(before)
    assert source.frame is not None
