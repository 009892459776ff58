"""What a record of a bulk call costs its caller, as a ratio to `send_nowait` in the same run.

    python -m pytest -p no:cacheprovider bench/micro/micro_bulk.py

As in micro_send.py the contenders take turns, and the fastest of many short rounds counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from kafka_fast import Producer
from tests.support.null_broker import NullBroker

ROUNDS = 150
TOPIC = "bench"
VALUES = [b"%0100d" % i for i in range(5000)]
KEYS = [b"%08d" % i for i in range(5000)]
TABLE = pa.table({"value": VALUES})
KEYED_TABLE = pa.table({"value": VALUES, "key": KEYS})

Call = Callable[[], object]


@pytest.fixture(scope="module")
def producer() -> Iterator[Producer]:
    """A producer whose records are dropped, that knows its topic."""
    with (
        NullBroker(partitions=16) as broker,
        Producer({"bootstrap.servers": broker.bootstrap}) as producer,
    ):
        producer.send(TOPIC, b"first").result(10)
        yield producer


def calls_of(producer: Producer) -> dict[str, Call]:
    def loop() -> None:
        method = producer.send_nowait
        for value in VALUES:
            method(TOPIC, value)

    return {
        "send_nowait": loop,
        "list": lambda: producer.send_many(TOPIC, VALUES),
        "table": lambda: producer.send_table(TOPIC, TABLE),
        "list with keys": lambda: producer.send_many(TOPIC, VALUES, keys=KEYS),
        "table with keys": lambda: producer.send_table(TOPIC, KEYED_TABLE),
    }


def fastest(producer: Producer, calls: list[Call]) -> list[float]:
    """Return the shortest time of each call, in ns per record; the calls take turns."""
    best = [float("inf")] * len(calls)
    for _ in range(ROUNDS):
        for i, call in enumerate(calls):
            before = time.perf_counter_ns()
            call()
            best[i] = min(best[i], (time.perf_counter_ns() - before) / len(VALUES))
            producer.flush(30)
    return best


@pytest.mark.parametrize(
    ("call", "limit"),
    [("list", 0.6), ("table", 0.6), ("list with keys", 1.4), ("table with keys", 1.3)],
)
def test_a_bulk_record_costs_a_part_of_a_single_one(
    producer: Producer, call: str, limit: float
) -> None:
    """Keys are hashed and sorted by partition; `send_nowait` here has none."""
    calls = calls_of(producer)
    yardstick, measured = fastest(producer, [calls["send_nowait"], calls[call]])
    assert measured <= limit * yardstick, f"{measured:.0f} ns, send_nowait {yardstick:.0f} ns"


@pytest.mark.parametrize("call", ["list", "table", "list with keys", "table with keys"])
def test_report(benchmark: Any, producer: Producer, call: str) -> None:
    """The same calls for pytest-benchmark's table: 5000 records in each round."""
    benchmark.pedantic(calls_of(producer)[call], rounds=100, warmup_rounds=5)
    assert producer.flush(30) == 0
