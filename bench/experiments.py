"""The experiments beside throughput: latency, work beside a thread that spins, memory."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from statistics import median
from typing import Any

from bench.contenders import contender_class
from bench.measure import percentile, resident
from bench.workload import READ_PARTITIONS, Scenario, Security, cycled, values
from tests.support.null_broker import NullBroker

WARM_UP = 200
COMPUTE_SECONDS = 0.003
MIB = 1 << 20
PREFETCHED = 128 * MIB
PREFETCH_PAIRS = 9
FILL_SECONDS = 30.0
STAND_SECONDS = 3.0
DEFAULT_FETCH_BUFFER = 64 * MIB


def latency(
    name: str, records: int, bootstrap: str, topic: str, security: Security
) -> dict[str, Any]:
    """Measure from send until acknowledged, one record in flight, linger 0."""
    scenario = Scenario("latency", partitions=1)
    contender = contender_class(name)(bootstrap, topic, scenario, linger_0=True, security=security)
    for value in cycled(contender.values, WARM_UP):
        contender.send_and_wait(value)
    samples = []
    for value in cycled(contender.values, records):
        before = time.perf_counter_ns()
        contender.send_and_wait(value)
        samples.append((time.perf_counter_ns() - before) / 1000)
    contender.close()
    return percentiles(samples)


def hog(
    name: str, records: int, broker: NullBroker, bootstrap: str, topic: str, security: Security
) -> dict[str, Any]:
    """Measure from send until its bytes are at the broker, while the caller computes on.

    Another pure-Python thread spins all the time, and takes the GIL for a switch interval
    whenever it can.
    """
    scenario = Scenario("hog", partitions=1)
    contender = contender_class(name)(bootstrap, topic, scenario, linger_0=True, security=security)
    contender.send_and_wait(contender.values[0])
    stop = threading.Event()
    spinner = threading.Thread(target=_spin, args=(stop,), daemon=True)
    spinner.start()
    for value in cycled(contender.values, WARM_UP // 10):
        contender.send_only(value)
        _compute()
    contender.flush()
    broker.reset()
    sent = []
    for value in cycled(contender.values, records):
        sent.append(time.monotonic_ns())
        contender.send_only(value)
        _compute()
    stop.set()
    spinner.join()
    contender.flush()
    broker.await_records(records)
    # One partition keeps the order: the nth record is in the request that brings the nth.
    arrived = [at for at, count in broker.arrivals() for _ in range(count)]
    contender.close()
    return percentiles([(at - before) / 1000 for at, before in zip(arrived, sent, strict=True)])


def memory(seconds: float) -> dict[str, Any]:
    """Send to a broker that has stopped reading, then let it go on: what was held, what was lost.

    Calls are refused after max.block.ms = 1 once buffer.memory is full. Ten million attempts,
    or as many as fit in the time.
    """
    from kafka_fast import KafkaTimeoutError, Producer

    buffer_memory = 32 * MIB
    config = {"buffer.memory": buffer_memory, "max.block.ms": 1, "delivery.timeout.ms": 300_000}
    accepted = refused = 0
    with NullBroker(partitions=16) as broker:
        # The request in flight at the stop must not time out meanwhile: it is not lost, only late.
        config["request.timeout.ms"] = 200_000
        producer = Producer({"bootstrap.servers": broker.bootstrap, **config})
        first, *records = cycled(values(100), 10_000_001)
        # The first call has to learn the topic, which may take more than a millisecond.
        while True:
            try:
                producer.send("bench", first).result(10)
                break
            except KafkaTimeoutError:
                continue
        broker.reset()
        broker.stop_reading()
        start = most = resident()
        deadline = time.monotonic() + seconds
        for value in records:
            try:
                producer.send_nowait("bench", value)
                accepted += 1
            except KafkaTimeoutError:  # noqa: PERF203 - to be refused is the experiment
                refused += 1
                most = max(most, resident())
                if time.monotonic() > deadline:
                    break
        most = max(most, resident())
        broker.resume_reading()
        left = producer.flush(120)
        acknowledged = broker.stats().records
        producer.close()
    return {
        "buffer_memory_mib": buffer_memory / MIB,
        "accepted": accepted,
        "refused": refused,
        "left": left,
        "acknowledged": acknowledged,
        "rss_growth_mib": (most - start) / MIB,
    }


def percentiles(samples: list[float]) -> dict[str, Any]:
    """Return the two that the tables show, of samples in microseconds."""
    return {
        "samples": len(samples),
        "p50_us": percentile(samples, 0.50),
        "p99_us": percentile(samples, 0.99),
    }


def _spin(stop: threading.Event) -> None:
    count = 0
    while not stop.is_set():
        for _ in range(10_000):
            count += 1


def _compute() -> None:
    """Use the interpreter for some milliseconds of this thread's own CPU time."""
    end = time.thread_time() + COMPUTE_SECONDS
    while time.thread_time() < end:
        pass


def prefetch(bootstrap: str, topic: str) -> dict[str, Any]:
    """Measure how fast the fetch buffer fills beside a thread that spins, and beside a process.

    Both take a core; only the thread takes the GIL as well. They take turns, and the share is that
    of neighbours: a shared machine gives a process without a pause less and less of its cores.
    """
    pairs = [
        (_beside_process(bootstrap, topic), _beside_thread(bootstrap, topic))
        for _ in range(PREFETCH_PAIRS)
    ]
    return {
        "mb_per_s": median(beside_thread for _, beside_thread in pairs),
        "mb_per_s_free": median(beside_process for beside_process, _ in pairs),
        "share": median(beside_thread / beside_process for beside_process, beside_thread in pairs),
    }


def _beside_process(bootstrap: str, topic: str) -> float:
    alone = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        return _fill_rate(bootstrap, topic)
    finally:
        alone.kill()
        alone.wait()


def _beside_thread(bootstrap: str, topic: str) -> float:
    stop = threading.Event()
    spinner = threading.Thread(target=_spin, args=(stop,), daemon=True)
    spinner.start()
    try:
        return _fill_rate(bootstrap, topic)
    finally:
        stop.set()
        spinner.join()


def _fill_rate(bootstrap: str, topic: str) -> float:
    """Return the MB/s at which a fetch buffer fills while nobody polls."""
    from kafka_fast import Consumer

    config = {"bootstrap.servers": bootstrap, "fetch.buffer.bytes": PREFETCHED + (64 << 20)}
    with Consumer(config) as consumer:
        _assign_all(consumer, topic)
        first: tuple[float, int] | None = None
        deadline = time.monotonic() + FILL_SECONDS
        while time.monotonic() < deadline:
            fetched, now = consumer.metrics()["fetched_bytes"], time.monotonic()
            if first is None and fetched:
                first = now, fetched
            if first is not None and fetched >= PREFETCHED:
                return float((fetched - first[1]) / (now - first[0]) / 1e6)
            time.sleep(0.002)
    raise RuntimeError(f"{fetched} bytes were fetched in {FILL_SECONDS} s")


def waiting_memory(bootstrap: str, topic: str) -> dict[str, Any]:
    """Let a consumer with the default buffer stand before a long log: what it holds."""
    from kafka_fast import Consumer

    start = resident()
    with Consumer(bootstrap_servers=bootstrap) as consumer:
        _assign_all(consumer, topic)
        most, until = 0, time.monotonic() + STAND_SECONDS
        while time.monotonic() < until:
            time.sleep(0.01)
            most = max(most, resident())
        buffered = consumer.metrics()["buffered_bytes"]
        if not consumer.poll(STAND_SECONDS):
            raise RuntimeError("nothing was there to be read")
    return {
        "rss_growth_mib": (most - start) / MIB,
        "buffered_mib": buffered / MIB,
        "fetch_buffer_mib": DEFAULT_FETCH_BUFFER / MIB,
    }


def _assign_all(consumer: Any, topic: str) -> None:
    from kafka_fast import TopicPartition

    partitions = [TopicPartition(topic, number) for number in range(READ_PARTITIONS)]
    consumer.assign(partitions)
    for partition in partitions:
        consumer.seek(partition, 0)
