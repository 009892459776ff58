"""Two hundred connections of one client, opened at once, beside one that is in use.

    python bench/tls/storm.py [--security SSL] [--links 200] [--elsewhere]

A topic has a partition on each of 201 nodes of the null broker. One node's link is open, and has
one record in flight at a time: send until acknowledged. Then a record goes to every other
partition, for which the client has to open its links, all of them at once; meanwhile the first link
goes on. With `--security SSL` all links speak mutual TLS.

The nodes stand behind fronts (`front.py`), which are processes of their own: one for the node in
use, one for the others. The latter stands for two hundred machines, but computes its side of all
handshakes on the client's cores.

With `--elsewhere` another process opens the two hundred links. What the link in use suffers then is
the machine's share: so many threads want its cores.

Prints one JSON line: latency before and during, how long it took until the last record was
acknowledged, the CPU time that the control thread took for each of its turns meanwhile, and what
each of the client's threads took in all.
"""

from __future__ import annotations

import argparse
import gc
import json
import select
import selectors
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.measure import percentile
from bench.tls.front import make_papers, put_behind_front
from kafka_fast import DeliveryFuture, Producer
from tests.support.null_broker import NullBroker

TOPIC = "storm"
LINKS = 200
WARM_UP = 500
QUIET_RECORDS = 2000
VALUE = b"v" * 100
TIMEOUT = 60

Storm = tuple[Callable[[], None], Callable[[], bool]]
"""Opens the links; tells whether all of them are in use."""


class TimedSelector(selectors.EpollSelector):
    """Measures the CPU time between the control thread's sleeps: its turns.

    What Python's garbage collector takes in a turn is counted apart: it looks through the objects
    of the whole program, in whichever thread has allocated the last of so many.
    """

    turns: list[float] = []  # noqa: RUF012 - all selectors' turns are one list
    collections: list[float] = []  # noqa: RUF012
    _woken: float | None = None
    collected = 0.0

    def select(self, timeout: float | None = None) -> Any:
        """Sleep, outside of the measured time."""
        if threading.current_thread().name != "kf-control":
            return super().select(timeout)
        if self._woken is not None:
            turn, collected = time.thread_time() - self._woken, sum(self.collections)
            self.turns.append(turn - (collected - TimedSelector.collected))
            TimedSelector.collected = collected
        events = super().select(timeout)
        self._woken = time.thread_time()
        return events

    @classmethod
    def note_collection(cls, phase: str, _: object) -> None:
        """Add the processor time of a garbage collection on the control thread to `collections`."""
        if threading.current_thread().name == "kf-control":
            now = time.thread_time()
            if phase == "start":
                cls.collections.append(-now)
            else:
                cls.collections[-1] += now


def main() -> int:
    """Measure once and print."""
    parser = argparse.ArgumentParser(description="Open many connections at once.")
    parser.add_argument("--security", choices=("PLAINTEXT", "SSL"), default="PLAINTEXT")
    parser.add_argument("--links", type=int, default=LINKS)
    parser.add_argument("--elsewhere", action="store_true", help="another process opens them")
    parser.add_argument("--open", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.open is not None:
        open_for_another(options.open, options.links)
        return 0
    # Before any client is made: from here on their control threads are measured.
    selectors.EpollSelector = TimedSelector  # type: ignore[misc]
    gc.callbacks.append(TimedSelector.note_collection)
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
            storm = open_elsewhere if options.elsewhere else open_links
            other = stack.enter_context(storm(producer, config, options.links))
            print(json.dumps(measure(producer, *other)))
    return 0


@contextmanager
def open_links(producer: Producer, _: object, links: int) -> Iterator[Storm]:
    """Yield what opens the links in this process, and what tells whether all are in use."""
    handles: list[DeliveryFuture] = []

    def begin() -> None:
        handles.extend(
            producer.send(TOPIC, VALUE, partition=partition) for partition in range(1, links + 1)
        )

    yield begin, lambda: all(handle.done() for handle in handles)
    for handle in handles:
        handle.result(0)


@contextmanager
def open_elsewhere(_: object, config: dict[str, Any], links: int) -> Iterator[Storm]:
    """Yield the same, of another process."""
    command = [sys.executable, __file__, f"--links={links}", f"--open={json.dumps(config)}"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        stdin, stdout = other.stdin, other.stdout
        stdout.readline()  # it has its first link

        def begin() -> None:
            stdin.write(b"\n")
            stdin.flush()

        yield begin, lambda: bool(select.select([stdout], (), (), 0)[0])
        if stdout.readline() != b"done\n":
            raise RuntimeError("the other process has failed")


def open_for_another(config: dict[str, Any], links: int) -> None:
    """Be the other process: open the links when a line is read, and say so when all are in use."""
    with Producer(config) as producer:
        one_trip(producer)
        print("ready", flush=True)
        sys.stdin.readline()
        with open_links(producer, config, links) as (begin, _):
            begin()
            producer.flush(TIMEOUT)
        print("done", flush=True)


def measure(
    producer: Producer, begin: Callable[[], None], is_done: Callable[[], bool]
) -> dict[str, Any]:
    """Return the latency of the link in use, and what opening the others cost."""
    for _ in range(WARM_UP):
        one_trip(producer)
    quiet = [one_trip(producer) for _ in range(QUIET_RECORDS)]
    TimedSelector.turns.clear()
    TimedSelector.collections.clear()
    TimedSelector.collected = 0.0
    before, start = thread_cpu(), time.perf_counter()
    begin()
    beside = []
    while not is_done():
        beside.append(one_trip(producer))
        if time.perf_counter() - start > TIMEOUT:
            raise TimeoutError("there are links missing")
    took = time.perf_counter() - start
    after, turns = thread_cpu(), TimedSelector.turns or [0.0]  # none, if another process opens
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
        "collection_max_us": max(TimedSelector.collections, default=0.0) * 1e6,
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
