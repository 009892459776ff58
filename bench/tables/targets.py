"""What kafka_fast has to reach, as numbers that a run can check.

A target is a measured value and a limit; some limits are another contender's value in the same
run. A value that no run has brought makes a row without a verdict, never a passed one.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.tables.results import Results
from bench.workload import MAX_BLOCK_MS

OURS = "kafka_fast"
CONFLUENT = "confluent"
AIO = "kafka_fast.aio"
AIOKAFKA = "aiokafka"
RAW = "raw socket"
IN_FLIGHT = 5
MAX_REQUEST_SIZE = 1 << 20
MIB = 1 << 20
CRC_GB_PER_S = {"sse4.2": 23, "vpclmulqdq": 45}


@dataclass(frozen=True, slots=True)
class Target:
    """One line of the table.

    Attributes:
        what: the row's name.
        unit: of value and limit.
        value: what was reached, or None.
        limit: what is to be reached, or None where the run has nothing to compare with.
        at_least: whether the value has to be above the limit, not below.
    """

    what: str
    unit: str
    value: float | None
    limit: float | None
    at_least: bool = False

    @property
    def verdict(self) -> str:
        """`reached`, `MISSED`, or `not measured`."""
        if self.value is None or self.limit is None:
            return "not measured"
        good = self.value >= self.limit if self.at_least else self.value <= self.limit
        return "reached" if good else "MISSED"


def targets(results: Results, *, is_whole: bool = True) -> list[Target]:
    """Return every target with what this run has reached.

    Args:
        results: of the run.
        is_whole: whether it ran all sections. Otherwise groups of which it has no value are left
            out: they were not asked for.
    """
    groups = (
        _null_targets(results),
        _real_targets(results),
        _time_targets(results),
        _reading_targets(results),
        _micro_targets(results),
        _spark_targets(results),
        _connector_targets(results),
        _secure_targets(results),
        _asyncio_targets(results),
        _admin_targets(results),
    )
    return [
        target
        for group in groups
        if is_whole or any(target.value is not None for target in group)
        for target in group
    ]


def _null_targets(results: Results) -> list[Target]:
    def ours(scenario: str, metric: str = "cpu_per_million") -> float | None:
        return results.get("null", scenario, OURS, metric)

    def confluent(scenario: str, share: float, metric: str = "cpu_per_million") -> float | None:
        return _times(results.get("null", scenario, CONFLUENT, metric), share)

    cpu = "CPU s per million"
    rate = "records_per_s"
    made = [
        Target("send: CPU", cpu, ours("send"), 0.10),
        Target("send: CPU, 1/9 of confluent", cpu, ours("send"), confluent("send", 1 / 9)),
        Target("send: rate, 6 × confluent", "records/s", ours("send", rate),
               confluent("send", 6, rate), at_least=True),
        Target("send: caller", "ns per record", ours("send", "caller_ns"), 60),
        Target("send, handle kept: caller", "ns per record", ours("handle kept", "caller_ns"), 100),
        Target("send_many(list): CPU", cpu, ours("list"), 0.065),
        Target("send_table(Arrow): CPU", cpu, ours("Arrow"), 0.060),
        Target("keyed, 64 partitions: caller", "ns per record", ours("keyed", "caller_ns"), 110),
        Target("keyed, 64 partitions: CPU", cpu, ours("keyed"), 0.22),
        Target("callback per record: CPU", cpu, ours("callback"), 0.30),
        Target("callback per record: CPU, 1/5 of confluent", cpu, ours("callback"),
               confluent("callback", 1 / 5)),
    ]  # fmt: skip
    for codec, limit in (("lz4", 0.30), ("zstd", 0.65), ("gzip", 0.60)):
        made += [
            Target(f"{codec}: CPU", cpu, ours(codec), limit),
            Target(f"{codec}: CPU, 1/3 of confluent", cpu, ours(codec), confluent(codec, 1 / 3)),
            Target(f"{codec}: bytes per record, at most a tenth above confluent", "bytes",
                   ours(codec, "bytes_per_record"), confluent(codec, 1.1, "bytes_per_record")),
        ]  # fmt: skip
    made.append(Target("1000 B: CPU", cpu, ours("1000 B"), 0.45))
    return made


def _real_targets(results: Results) -> list[Target]:
    rate, broker = "records_per_s", "broker_cpu_per_million"
    ours = results.get("real", "send", OURS, rate)
    raw = results.get("real", "send", RAW, rate)
    return [
        Target("real Kafka, send: rate, best of all", "records/s", ours,
               results.best_other("real", "send", rate, max), at_least=True),
        Target("real Kafka, send: rate, 0.8 of the raw socket", "records/s", ours,
               _times(raw, 0.8), at_least=True),
        Target("real Kafka, send: the broker's CPU, least of all", "CPU s per million",
               results.get("real", "send", OURS, broker),
               results.best_other("real", "send", broker, min)),
    ]  # fmt: skip


def _time_targets(results: Results) -> list[Target]:
    made = [
        Target(f"linger 0, one in flight, {name}: {metric[:3]}, below all others", "µs",
               results.get(section, "send", OURS, metric),
               results.best_other(section, "send", metric, min))
        for section, name in (("latency", "null broker"), ("latency real", "real Kafka"))
        for metric in ("p50_us", "p99_us")
    ]  # fmt: skip

    def hog(contender: str, metric: str) -> float | None:
        return results.get("hog", "send", contender, metric)

    trip = results.get("wan trip", "send, 1 partition", RAW, "p50_us")
    wan = results.get("wan", "send, 1 partition", OURS, "records_per_s")
    size = results.get("wan", "send, 1 partition", OURS, "bytes_per_record")
    in_flight = wan * size * trip / 1e6 / MIB if wan and size and trip else None
    growth = results.get("memory", "send", OURS, "rss_growth_mib")
    room = results.get("memory", "send", OURS, "buffer_memory_mib")
    lost = _minus(
        results.get("memory", "send", OURS, "accepted"),
        results.get("memory", "send", OURS, "acknowledged"),
    )
    return [
        *made,
        Target("beside a spinning thread, bytes at the broker: p50", "µs",
               hog(OURS, "p50_us"), 150),
        Target("beside a spinning thread: p99, at most confluent's", "µs", hog(OURS, "p99_us"),
               hog(CONFLUENT, "p99_us")),
        Target("20 ms round trip, one partition: in flight", "MiB", in_flight,
               0.9 * IN_FLIGHT * MAX_REQUEST_SIZE / MIB, at_least=True),
        Target("stopped broker: resident memory over start", "MiB", growth,
               room + 64 if room is not None else None),
        Target("stopped broker: accepted records not acknowledged", "records", lost, 0),
    ]  # fmt: skip


def _reading_targets(results: Results) -> list[Target]:
    def get(scenario: str, metric: str = "cpu_per_million", who: str = OURS) -> float | None:
        return results.get("consume", scenario, who, metric)

    def confluent(scenario: str, share: float) -> float | None:
        return _times(get(scenario, who=CONFLUENT), share)

    cpu = "CPU s per million"
    made = [
        Target("poll(500): CPU", cpu, get("poll(500)"), 0.13),
        Target("poll(500): CPU, 1/5 of confluent's consume(500)", cpu, get("poll(500)"),
               confluent("poll(500)", 1 / 5)),
        Target("poll(500), real Kafka: rate", "records/s",
               results.get("consume real", "poll(500)", OURS, "records_per_s"), 3_500_000,
               at_least=True),
        Target("one by one: CPU, 1/8 of confluent's poll()", cpu, get("one by one"),
               confluent("one by one", 1 / 8)),
        Target("one by one: CPU added to poll(500)", cpu,
               _minus(get("one by one"), get("poll(500)")), 0.060),
        Target("values(): CPU", cpu, get("values()"), 0.075),
        Target("Arrow copy: CPU", cpu, get("Arrow copy"), 0.05),
        Target("Arrow view: CPU", cpu, get("Arrow view"), 0.05),
        Target("1000 B, Arrow copy: rate", "GB/s", get("1000 B, Arrow copy", "gb_per_s"), 2,
               at_least=True),
        Target("1000 B, Arrow view: rate", "GB/s", get("1000 B, Arrow view", "gb_per_s"), 2,
               at_least=True),
    ]  # fmt: skip
    made += [
        Target(f"{name}: CPU, 1/3 of confluent's", cpu, get(name), confluent(name, 1 / 3))
        for name in ("lz4, poll(500)", "zstd, poll(500)")
    ]
    room = results.get("waiting", "poll(500)", OURS, "fetch_buffer_mib")
    return [
        *made,
        Target("prefetch beside a spinning thread", "of its rate beside a spinning process",
               results.get("prefetch", "poll(500)", OURS, "share"), 0.9, at_least=True),
        Target("ten million records wait: resident memory over start", "MiB",
               results.get("waiting", "poll(500)", OURS, "rss_growth_mib"),
               room + 64 if room is not None else None),
        *(
            Target(f"rebalance, {protocol}: pause p50, at most confluent's", "ms",
                   results.get("rebalance", protocol, OURS, "pause_p50_ms"),
                   results.get("rebalance", protocol, CONFLUENT, "pause_p50_ms"))
            for protocol in ("classic", "consumer")
        ),
    ]  # fmt: skip


def _micro_targets(results: Results) -> list[Target]:
    # A path that this CPU lacks has no row and is no miss.
    speeds = {
        path: results.get("micro", f"CRC32C, {path}", OURS, "gb_per_s") for path in CRC_GB_PER_S
    }
    made = [
        Target(f"CRC32C, 16 KiB, {path}", "GB/s", speed, CRC_GB_PER_S[path], at_least=True)
        for path, speed in speeds.items()
        if speed is not None
    ]
    return made + [
        Target(core, "ns per record", results.get("micro", core, OURS, "ns_per_record"), 15)
        for core in ("encode core", "CRC and decode core")
    ]


def _spark_targets(results: Results) -> list[Target]:
    def cpu(rows: str, who: str) -> float | None:
        return results.get("spark", rows, who, "tree_cpu_per_million")

    unit = "CPU s per million"
    added = _minus(cpu("RDD of bytes", OURS), cpu("RDD of bytes", "counting only"))
    return [
        Target("write_df, all of JVM and Python: CPU", unit, cpu("DataFrame", OURS), 0.60),
        Target("write_rdd, added to a counting mapPartitions: CPU", unit, added, 0.25),
    ]  # fmt: skip


def _connector_targets(results: Results) -> list[Target]:
    def get(scenario: str, metric: str, who: str = OURS) -> float | None:
        return results.get("connector", scenario, who, metric)

    def theirs(scenario: str, share: float, metric: str = "tree_cpu_per_million") -> float | None:
        return _times(get(scenario, metric, "Spark's connector"), share)

    cpu, rate, unit = "tree_cpu_per_million", "records_per_s", "CPU s per million"
    stream, one = "stream", "one record"
    return [
        *(
            Target(f"Spark, {scenario}: CPU, 0.8 × the connector's", unit, get(scenario, cpu),
                   theirs(scenario, 0.8))
            for scenario in ("write", "read, 7 columns", "read, 2 columns", "read, select, write")
        ),
        Target("Spark, write: rate, the connector's", "records/s", get("write", rate),
               theirs("write", 1, rate), at_least=True),
        *(
            Target(f"Spark, {scenario}: rate, 1.5 × the connector's", "records/s",
                   get(scenario, rate), theirs(scenario, 1.5, rate), at_least=True)
            for scenario in ("read, 7 columns", "read, 2 columns")
        ),
        Target("Spark, micro-batch of one record: 1.3 × the connector's", "ms",
               get(one, "trigger_ms"), theirs(one, 1.3, "trigger_ms")),
        Target("Spark, stream of 50,000 rows/s: the last second's p50, 2 × that of all", "ms",
               get(stream, "last_second_ms"), _times(get(stream, "stream_p50_ms"), 2)),
    ]  # fmt: skip


def _secure_targets(results: Results) -> list[Target]:
    def get(scenario: str, metric: str = "cpu_per_million", who: str = OURS) -> float | None:
        return results.get("secure", scenario, who, metric)

    def plaintext(scenario: str, metric: str = "cpu_per_million") -> float | None:
        return get(scenario, metric, f"{OURS}, plaintext")

    cpu, rate, flight = "CPU s per million", "records_per_s", "one in flight"
    hog, storm = "beside a spinning thread", "200 connections at once"
    return [
        *(
            Target(f"SSL, {scenario}: CPU, at most {room} above plaintext's", cpu, get(scenario),
                   _plus(plaintext(scenario), room))
            for scenario, room in (("send", 0.08), ("1000 B", 0.45), ("poll(500)", 0.08))
        ),
        Target("SSL, send: rate, 4 × confluent's over SSL", "records/s", get("send", rate),
               _times(get("send", rate, CONFLUENT), 4), at_least=True),
        Target("SSL, one in flight: p50, at most 25 above a raw TLS socket's", "µs",
               get(flight, "p50_us"), _plus(get(flight, "p50_us", RAW), 25)),
        Target("SSL, one in flight: p50, below confluent's", "µs", get(flight, "p50_us"),
               get(flight, "p50_us", CONFLUENT)),
        Target("SSL, beside a spinning thread: p99, 1.5 × plaintext's", "µs", get(hog, "p99_us"),
               _times(plaintext(hog, "p99_us"), 1.5)),
        Target("200 mTLS connections at once: longest turn of the control thread", "CPU µs",
               get(storm, "turn_max_us"), 1000),
        Target("200 mTLS connections at once: another link's p99, 2 × that before", "µs",
               get(storm, "p99_us"), _times(get(storm, "quiet_p99_us"), 2)),
    ]  # fmt: skip


def _asyncio_targets(results: Results) -> list[Target]:
    cpu = "CPU s per million"
    made = []
    for section, where in (("asyncio", "null broker"), ("asyncio real", "real Kafka")):

        def get(scenario: str, who: str, metric: str, section: str = section) -> float | None:
            return results.get(section, scenario, who, metric)

        for scenario, share, of, whose in (
            ("send, in order", 2.5, "send", OURS),
            ("send, in order", 1 / 12, "send, in order", AIOKAFKA),
            ("send, gathered", 1 / 7, "send, gathered", AIOKAFKA),
            ("async for", 1 / 8, "async for", AIOKAFKA),
            ("batches", 1.1, "batches", OURS),
        ):
            limit = _times(get(of, whose, "cpu_per_million"), share)
            text = f"1/{1 / share:.0f}" if share < 1 else f"{share:g}"
            made.append(
                Target(f"asyncio, {where}, {scenario}: CPU, {text} × {whose}'s {of}", cpu,
                       get(scenario, AIO, "cpu_per_million"), limit)
            )  # fmt: skip
        flight = "one in flight"
        made.append(
            Target(f"asyncio, {where}, {flight}: p50, 0.7 × {AIOKAFKA}'s", "µs",
                   get(flight, AIO, "p50_us"), _times(get(flight, AIOKAFKA, "p50_us"), 0.7))
        )  # fmt: skip
    late = [
        results.get("asyncio real", "a task that is due every 5 ms", who, "late_ms")
        for who in (AIO, f"{AIO}, idle")
    ]
    return [
        *made,
        Target("asyncio, loop's longest block: 1/20 of max.block.ms", "ms",
               late[0], MAX_BLOCK_MS / 20),
        Target("asyncio, loop's longest block: 20 ms beyond that beside idle clients", "ms",
               late[0], _plus(late[1], 20)),
    ]  # fmt: skip


def _admin_targets(results: Results) -> list[Target]:
    def get(scenario: str, metric: str, who: str = OURS) -> float | None:
        return results.get("admin", scenario, who, metric)

    many = "describe 10,000 partitions, embedded broker"
    fewer = "describe 2,000 partitions, Apache Kafka"
    lag, command = "lag of 200 groups × 50 partitions, new client", "list 50 topics, a process"
    cpu, time = "call_cpu_ms", "call_ms"
    return [
        *(
            Target(f"{scenario}: CPU, 1/3 of confluent", "CPU ms", get(scenario, cpu),
                   _times(get(scenario, cpu, CONFLUENT), 1 / 3))
            for scenario in (many, fewer)
        ),
        Target(f"{fewer}: CPU, 1.3 × by id", "CPU ms", get(fewer, cpu),
               _times(get(fewer, cpu, f"{OURS}, by id"), 1.3)),
        Target(f"{lag}: requests, each after an answer", "requests", get(lag, "round_trips"), 10),
        Target(f"{command}: time, 1.3 × confluent", "ms", get(command, time),
               _times(get(command, time, CONFLUENT), 1.3)),
    ]  # fmt: skip


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _plus(value: float | None, added: float) -> float | None:
    return None if value is None else value + added


def _minus(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b
