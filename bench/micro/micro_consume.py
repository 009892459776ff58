"""What a record costs the consumer's user, from the bytes of a Fetch answer on.

    python -m pytest -p no:cacheprovider bench/micro/micro_consume.py

Each form reads the same chunks through a PartitionReader: CRC, scan, and what the form makes of the
records. As in micro_bulk.py the contenders take turns, and the fastest of many short rounds counts,
in CPU time of the thread. The yardstick is what Python itself needs for as many bytes objects:
`[data[i : i + size] for i in range(0, len(data), size)]`.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from kafka_fast.dataplane.fetch._chunk import Chunk, chunk_from_bytes
from kafka_fast.record import Codec, RecordBatchBuilder
from kafka_fast.records._consumer_records import ConsumerRecords
from kafka_fast.records._reading import PartitionReader, collect

ROUNDS = 60
POLL = 500  # max.poll.records
EVERYTHING = 1_000_000
BATCH_BYTES = 16_384
CHUNK_BYTES = 1_048_576  # max.partition.fetch.bytes
PARTITIONS = 4

Form = Callable[[ConsumerRecords], object]


class Load(NamedTuple):
    """Chunks as a broker sends them, one for each partition."""

    chunks: list[bytes]
    records: int
    size: int

    def arrivals(self) -> list[Chunk]:
        return [chunk_from_bytes(data, asked_offset=0) for data in self.chunks]


def load_of(size: int, codec: Codec = Codec.NONE, headers: bool = False) -> Load:
    """Return records of `size` random letters and digits without a key."""
    pick = random.Random(7)
    per_batch = BATCH_BYTES // (size + 10)
    batches = CHUNK_BYTES // BATCH_BYTES
    chunks = []
    for _ in range(PARTITIONS):
        parts = []
        for number in range(batches):
            builder = RecordBatchBuilder(base_offset=number * per_batch, codec=codec)
            for i in range(per_batch):
                value = pick.randbytes(size // 2).hex().encode()
                builder.append(None, value, 1000 + i, [("trace", b"12345678")] if headers else ())
            parts.append(builder.build())
        chunks.append(b"".join(parts))
    return Load(chunks, PARTITIONS * batches * per_batch, size)


def polls(chunks: list[Chunk], most: int) -> Iterator[ConsumerRecords]:
    """Yield what a consumer's polls would, partition by partition."""
    readers = []
    for partition, chunk in enumerate(chunks):
        reader = PartitionReader("bench", partition, 0)
        reader.feed(chunk)
        readers.append(reader)
    while records := collect(readers, most):
        yield records


def iterate(records: ConsumerRecords) -> None:
    for _record in records:
        pass


def touch(records: ConsumerRecords) -> None:
    for record in records:
        record.value  # noqa: B018


def arrow(**options: Any) -> Form:
    def drain(records: ConsumerRecords) -> None:
        for _batch in pa.RecordBatchReader.from_stream(records.arrow(**options)):
            pass

    return drain


FORMS: dict[str, tuple[Form, int]] = {
    "slices": (len, POLL),
    "iteration": (iterate, POLL),
    "objects, value touched": (touch, POLL),
    "list(), value touched": (lambda records: [record.value for record in list(records)], POLL),
    "values()": (ConsumerRecords.values, POLL),
    "values(), one poll": (ConsumerRecords.values, EVERYTHING),
    "arrow, copied, polls of 500": (arrow(), POLL),
    "arrow, copied": (arrow(), EVERYTHING),
    "arrow, views": (arrow(views=True), EVERYTHING),
    "arrow, spark": (arrow(layout="spark"), EVERYTHING),
    "numpy": (ConsumerRecords.to_numpy, EVERYTHING),
}


def cpu_ns(load: Load, form: str) -> float:
    """Return what one round costs, per record; the chunks are made outside the clock."""
    make, most = FORMS[form]
    chunks = load.arrivals()
    before = time.thread_time_ns()
    for records in polls(chunks, most):
        make(records)
    return (time.thread_time_ns() - before) / load.records


def yardstick_ns(load: Load) -> float:
    data = bytes(load.records * load.size)
    size = load.size
    before = time.thread_time_ns()
    for start in range(0, len(data), POLL * size):  # as many at a time as a poll has
        [data[i : i + size] for i in range(start, min(start + POLL * size, len(data)), size)]
    return (time.thread_time_ns() - before) / load.records


def fastest(load: Load, forms: list[str]) -> dict[str, float]:
    """Return the cheapest round of the yardstick and of each form; they take turns."""
    best = dict.fromkeys(["yardstick", *forms], float("inf"))
    for _ in range(ROUNDS):
        best["yardstick"] = min(best["yardstick"], yardstick_ns(load))
        for form in forms:
            best[form] = min(best[form], cpu_ns(load, form))
    return best


# Of the yardstick, about 1.7 times what was measured. Iteration counts above what slices cost.
LIMITS = {
    "slices": 0.35,
    "objects, value touched": 1.6,
    "values()": 0.65,
    "arrow, copied": 0.7,
    "arrow, views": 0.5,
}
STEP_LIMIT = 1.0


def test_a_record_of_100_bytes_costs_little_more_than_its_bytes_object() -> None:
    best = fastest(load_of(100), [*LIMITS, "iteration"])
    print({form: round(ns, 1) for form, ns in best.items()})
    over = {
        form: f"{best[form]:.0f} ns, yardstick {best['yardstick']:.0f} ns"
        for form, limit in LIMITS.items()
        if best[form] > limit * best["yardstick"]
    }
    assert not over
    assert best["iteration"] - best["slices"] <= STEP_LIMIT * best["yardstick"]


def test_long_values_are_not_copied_for_nothing() -> None:
    """Of 1000 bytes a value that nobody touches costs less than one that is copied."""
    best = fastest(load_of(1000), ["iteration", "objects, value touched", "arrow, views", "slices"])
    print({form: round(ns, 1) for form, ns in best.items()})
    assert best["iteration"] < best["objects, value touched"]
    assert best["arrow, views"] < best["objects, value touched"]


LOADS = {
    "100 B": (100, Codec.NONE, False),
    "100 B, header": (100, Codec.NONE, True),
    "100 B, lz4": (100, Codec.LZ4, False),
    "100 B, zstd": (100, Codec.ZSTD, False),
    "1000 B": (1000, Codec.NONE, False),
}


@pytest.mark.parametrize("name", LOADS)
@pytest.mark.parametrize("form", FORMS)
def test_report(benchmark: Any, form: str, name: str) -> None:
    """The same for pytest-benchmark's table; `ns` is the cheapest round, per record."""
    load = load_of(*LOADS[name])
    best = [float("inf")]

    def once() -> None:
        best[0] = min(best[0], cpu_ns(load, form))

    benchmark.pedantic(once, rounds=20, warmup_rounds=1)
    benchmark.extra_info["records"] = load.records
    benchmark.extra_info["ns"] = round(best[0], 1)
    benchmark.extra_info["gb_per_s"] = round(load.size / best[0], 2)
