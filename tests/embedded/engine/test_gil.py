"""The data plane needs no GIL: records leave and answers are dealt with while Python stands still.

The proof is the order of events, not a clock: a C call keeps the GIL from right after the sends
until the broker has everything. If any Python had to run for it, the call would never return. The
case runs in a process of its own, because a call that keeps the GIL cannot be interrupted.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
HANGS_AFTER = 60.0

SCRIPT = """
import sys
from kafka_fast import Producer
from tests.support.null_broker import NullBroker

records = int(sys.argv[1])
config = dict(pair.split("=") for pair in sys.argv[2:])
with NullBroker(brokers=2, partitions=4, check_crc=True, check_sequence=True) as broker:
    with Producer({"bootstrap.servers": broker.bootstrap, **config}) as producer:
        for partition in range(4):
            producer.send("t", b"first", partition=partition).result()
        broker.await_records(4)  # without acknowledgements they may be under way still
        broker.reset()
        for number in range(records):
            producer.send_nowait("t", b"x" * 100, partition=number % 4)
        broker.await_records(records, hold_gil=True)
        stats = broker.stats()
        assert stats.partitions["t"] == [records // 4] * 4, stats
        print(stats.requests)
"""

CASES = {
    "as configured by default": (4_000, []),
    "one record in each request": (40, ["batch.size=0", "max.request.size=1000"]),
    "more requests than may be in flight": (40_000, ["max.request.size=20000"]),
    "full batches, then a linger that ends": (4_000, ["linger.ms=200"]),
    "lz4": (40_000, ["compression.type=lz4"]),
    "zstd": (40_000, ["compression.type=zstd"]),
    "gzip": (40_000, ["compression.type=gzip"]),
    "snappy": (40_000, ["compression.type=snappy"]),
    "without acknowledgements": (4_000, ["acks=0"]),
}


NEEDS_C = "packages compress on the control thread, which needs the GIL"


def cases() -> Iterator[object]:
    for case in CASES:
        is_codec = case in ("gzip", "snappy", "lz4", "zstd")
        yield pytest.param(
            case, marks=[pytest.mark.native_codec(case, NEEDS_C)] if is_codec else []
        )


@pytest.mark.parametrize("case", [*cases()])
def test_all_bytes_arrive_while_a_c_call_keeps_the_gil(case: str) -> None:
    records, config = CASES[case]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(records), *config],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=HANGS_AFTER,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    if "in flight" in case:
        assert int(done.stdout) > 2 * 5, "two brokers, five requests each: answers had to be read"
