"""What one call of `send` costs its caller, as a ratio to an empty call in the same run.

    python -m pytest -p no:cacheprovider bench/micro/micro_send.py

Absolute times differ from machine to machine, and on a shared one from minute to minute: the
guards compare with an empty Python function of four parameters, measured in turns with `send`, and
take the fastest of many short rounds, in which nobody else ran.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka_fast import Producer
from tests.support.null_broker import NullBroker

ROUNDS = 400
TOPIC = "bench"
VALUES = [b"%0100d" % i for i in range(1000)]
KEY = b"8 bytes."

Loop = Callable[[list[bytes]], None]


@pytest.fixture(scope="module")
def producer() -> Iterator[Producer]:
    """A producer whose records are dropped, that knows its topic."""
    with (
        NullBroker(partitions=16) as broker,
        Producer({"bootstrap.servers": broker.bootstrap}) as producer,
    ):
        producer.send(TOPIC, b"first").result(10)
        yield producer


def empty(topic: str, value: bytes | None = None, key: Any = None, partition: Any = None) -> None:
    """The yardstick: a call with nothing in it."""


def call_empty(records: list[bytes]) -> None:
    for value in records:
        empty(TOPIC, value, None, None)


def fastest(loops: list[Loop], records: list[bytes]) -> list[float]:
    """Return the shortest time of each loop, in ns per record; the loops take turns."""
    best = [float("inf")] * len(loops)
    for _ in range(ROUNDS):
        for i, loop in enumerate(loops):
            before = time.perf_counter_ns()
            loop(records)
            best[i] = min(best[i], (time.perf_counter_ns() - before) / len(records))
    return best


@pytest.mark.parametrize(
    ("call", "limit"),
    [("send", 3.2), ("send_nowait", 2.7), ("send with a key", 3.6)],
)
def test_a_call_costs_at_most_so_many_empty_ones(
    producer: Producer, call: str, limit: float
) -> None:
    """An empty call takes about 33 ns on the machine where the limits were set."""

    def send(records: list[bytes]) -> None:
        method = producer.send
        for value in records:
            method(TOPIC, value)

    def send_nowait(records: list[bytes]) -> None:
        method = producer.send_nowait
        for value in records:
            method(TOPIC, value)

    def send_with_key(records: list[bytes]) -> None:
        method = producer.send
        for value in records:
            method(TOPIC, value, KEY)

    loops: dict[str, Loop] = {
        "send": send,
        "send_nowait": send_nowait,
        "send with a key": send_with_key,
    }
    yardstick, measured = fastest([call_empty, loops[call]], VALUES)
    producer.flush(30)
    assert measured <= limit * yardstick, f"{measured:.0f} ns, an empty call {yardstick:.0f} ns"


@pytest.mark.parametrize("mode", ["send", "send_nowait"])
def test_report(benchmark: Any, producer: Producer, mode: str) -> None:
    """The same calls for pytest-benchmark's table: 1000 records in each round."""
    method = getattr(producer, mode)

    def loop(records: list[bytes]) -> None:
        for value in records:
            method(TOPIC, value)

    benchmark.pedantic(loop, args=(VALUES,), rounds=200, warmup_rounds=5)
    assert producer.flush(30) == 0
