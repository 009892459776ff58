"""Two hundred connections of one client, opened at once, beside one that is in use.

    python bench/storm.py [--security SSL] [--links 200]

A topic has a partition on each of 201 nodes of the null broker. One node's link is open, and has
one record in flight at a time: send until acknowledged. Then a record goes to every other
partition, for which the client has to open its links, all of them at once; meanwhile the first link
goes on. With `--security SSL` all links speak mutual TLS.

The nodes stand behind fronts (`front.py`), which are processes of their own: one for the node in
use, one for the others. The latter stands for two hundred machines, but computes its side of all
handshakes on the client's cores.

Prints one JSON line: latency before and during, how long it took until the last record was
acknowledged, the CPU time that the control thread took for each of its turns meanwhile, and what
each of the client's threads took in all.
"""

from __future__ import annotations

import argparse
import json
import selectors
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from front import make_papers, put_behind_front
from measure import percentile

from kafka_fast import Producer
from kafka_fast.testing.null_broker import NullBroker

TOPIC = "storm"
LINKS = 200
WARM_UP = 500
QUIET_RECORDS = 2000
VALUE = b"v" * 100
TIMEOUT = 60


class TimedSelector(selectors.EpollSelector):
    """Measures the CPU time between the control thread's sleeps: its turns."""

    turns: list[float] = []  # noqa: RUF012 - all selectors' turns are one list
    _woken: float | None = None

    def select(self, timeout: float | None = None) -> Any:
        """Sleep, outside of the measured time."""
        if threading.current_thread().name != "kf-control":
            return super().select(timeout)
        if self._woken is not None:
            self.turns.append(time.thread_time() - self._woken)
        found = super().select(timeout)
        self._woken = time.thread_time()
        return found


def main() -> int:
    """Measure once and print."""
    parser = argparse.ArgumentParser(description="Open many connections at once.")
    parser.add_argument("--security", choices=("PLAINTEXT", "SSL"), default="PLAINTEXT")
    parser.add_argument("--links", type=int, default=LINKS)
    options = parser.parse_args()
    # Before any client is made: from here on their control threads are measured.
    selectors.EpollSelector = TimedSelector  # type: ignore[misc]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        papers = make_papers(folder) if options.security == "SSL" else None
        nodes = options.links + 1
        broker = stack.enter_context(NullBroker(brokers=nodes, partitions=nodes))
        bootstrap = put_behind_front(stack, broker, [1], papers)
        others = list(range(2, nodes + 1))
        put_behind_front(stack, broker, others, papers)
        security = papers.client_properties() if papers is not None else {}
        config: dict[str, Any] = {"bootstrap.servers": bootstrap, "linger.ms": 0, **security}
        with Producer(config) as producer:
            print(json.dumps(measure(producer, options.links)))
    return 0


def measure(producer: Producer, links: int) -> dict[str, Any]:
    """Return the latency of the link in use, and what opening the others cost."""
    for _ in range(WARM_UP):
        one_trip(producer)
    quiet = [one_trip(producer) for _ in range(QUIET_RECORDS)]
    TimedSelector.turns.clear()
    before, start = thread_cpu(), time.perf_counter()
    handles = [producer.send(TOPIC, VALUE, partition=number) for number in range(1, links + 1)]
    beside = []
    while not all(handle.done() for handle in handles):
        beside.append(one_trip(producer))
        if time.perf_counter() - start > TIMEOUT:
            raise TimeoutError(f"{sum(not handle.done() for handle in handles)} links are missing")
    took = time.perf_counter() - start
    after, turns = thread_cpu(), list(TimedSelector.turns)
    for handle in handles:
        handle.result(0)
    spent = {f"{name}_cpu_ms": (after[name] - before.get(name, 0)) / 1e6 for name in after}
    return {
        "p50_us": percentile(beside, 0.50),
        "p99_us": percentile(beside, 0.99),
        "quiet_p50_us": percentile(quiet, 0.50),
        "quiet_p99_us": percentile(quiet, 0.99),
        "samples": len(beside),
        "open_ms": took * 1e3,
        "turns": len(turns),
        "turn_p50_us": percentile(turns, 0.50) * 1e6,
        "turn_max_us": max(turns) * 1e6,
        **{key.replace("-", "_"): value for key, value in spent.items() if key.startswith("kf-")},
    }


def one_trip(producer: Producer) -> float:
    """Return the microseconds from send until acknowledged, on the link in use."""
    before = time.perf_counter_ns()
    producer.send(TOPIC, VALUE, partition=0).result(TIMEOUT)
    return (time.perf_counter_ns() - before) / 1000


def thread_cpu() -> dict[str, int]:
    """Return the CPU nanoseconds of this process's threads, by their names."""
    spent: dict[str, int] = {}
    for task in Path("/proc/self/task").iterdir():
        try:
            name = (task / "comm").read_text(encoding="utf-8").strip()
            nanoseconds = int((task / "schedstat").read_text(encoding="ascii").split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue
        spent[name] = spent.get(name, 0) + nanoseconds
    return spent


if __name__ == "__main__":
    sys.exit(main())
