"""Write the results as Markdown: versions, machine, targets, tables, command lines."""

from __future__ import annotations

import datetime as dt
import os
import platform
import subprocess
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bench.contenders import CONTENDERS
from bench.tables.results import Results
from bench.tables.targets import targets
from bench.workload import LATENCY_ONCE, LATENCY_TURNS, MAX_BLOCK_MS

# Metric -> (column's head, factor, digits after the point).
COLUMNS = {
    "records_per_s": ("M records/s", 1e-6, 3),
    "cpu_per_million": ("client CPU s/M", 1.0, 3),
    "tree_cpu_per_million": ("JVM and Python CPU s/M", 1.0, 3),
    "trigger_ms": ("micro-batch ms", 1.0, 0),
    "stream_p50_ms": ("p50 ms", 1.0, 0),
    "stream_p99_ms": ("p99 ms", 1.0, 0),
    "last_second_ms": ("p50 ms of the last second", 1.0, 0),
    "caller_ns": ("caller CPU ns", 1.0, 0),
    "broker_cpu_per_million": ("broker CPU s/M", 1.0, 3),
    "bytes_per_record": ("bytes/record", 1.0, 1),
    "records_per_batch": ("records/batch", 1.0, 0),
    "requests_per_million": ("requests/M", 1.0, 0),
    "p50_us": ("p50 µs", 1.0, 1),
    "p99_us": ("p99 µs", 1.0, 0),
    "gb_per_s": ("GB/s", 1.0, 2),
    "ns_per_record": ("ns/record", 1.0, 1),
    "accepted": ("accepted", 1.0, 0),
    "refused": ("refused", 1.0, 0),
    "acknowledged": ("acknowledged", 1.0, 0),
    "mb_per_s": ("MB/s", 1.0, 0),
    "mb_per_s_free": ("MB/s, GIL free", 1.0, 0),
    "share": ("share, median of pairs", 1.0, 2),
    "rss_growth_mib": ("RSS growth MiB", 1.0, 1),
    "buffer_memory_mib": ("buffer.memory MiB", 1.0, 0),
    "pause_p50_ms": ("pause p50 ms", 1.0, 0),
    "pause_max_ms": ("longest pause ms", 1.0, 0),
    "fetch_buffer_mib": ("fetch.buffer MiB", 1.0, 0),
    "quiet_p99_us": ("p99 µs before", 1.0, 0),
    "open_ms": ("until all are open, ms", 1.0, 0),
    "turn_p50_us": ("a turn of the control thread, p50 CPU µs", 1.0, 0),
    "turn_max_us": ("longest turn, CPU µs", 1.0, 0),
    "collection_max_us": ("longest garbage collection in a turn, CPU µs", 1.0, 0),
    "kf_tls_cpu_ms": ("kf-tls, CPU ms", 1.0, 0),
    "late_ms": ("the most that it was late, ms", 1.0, 1),
    "call_cpu_ms": ("client CPU ms", 1.0, 1),
    "call_ms": ("ms", 1.0, 1),
    "round_trips": ("requests, each after an answer", 1.0, 0),
    "requests": ("requests", 1.0, 0),
}
SECTIONS = {
    "null": "Throughput against the null broker",
    "real": "Throughput against Apache Kafka, one node, on the same cores",
    "latency": "Linger 0, one record in flight, null broker: send until acknowledged",
    "latency real": "The same against Apache Kafka",
    "hog": "Linger 0, beside a Python thread that spins: send until bytes at the broker",
    "wan trip": "Round trip through the delay proxy, one small request",
    "wan": "Throughput through the delay proxy, one partition",
    "memory": "A broker that stopped reading, max.block.ms=1",
    "consume": "Reading from the null broker",
    "consume real": "Reading from Apache Kafka, one node, on the same cores",
    "prefetch": "The fetch buffer fills beside a spinning Python thread, and beside a process",
    "waiting": "Ten million records wait, nobody polls",
    "rebalance": "One of three members leaves its group, Apache Kafka: how long it pauses",
    "micro": "CRC32C of 16 KiB; the cores of encoding and decoding in C, one batch of 16 KiB",
    "spark": "PySpark, local[2], 3,000,000 rows, null broker",
    "connector": "PySpark beside Spark's own connector, local[2], 3,000,000 rows, Apache Kafka",
    "secure": "TLS 1.3 with AES-GCM",
    "asyncio": "asyncio, null broker",
    "asyncio real": "asyncio, Apache Kafka",
    "admin": "Administration: what one call, or one command, takes",
}
METHOD = """\
Method: values of 100 bytes unless said, 1000 distinct ones in turn (codecs: 50,000); each run a
process of its own after a warm-up of a twentieth of the records; contenders take turns, the numbers
are medians of {rounds} rounds, with one record in flight of {turns} runs in each (of one for
{once}); the final flush is inside the span. CPU: user and system time of the whole client process.
«caller»: CPU of the calling thread until the last record is handed over, its loop included.
acks=all and idempotent everywhere;
16 partitions, «keyed» 64. The null broker (`bench/null_broker/`) answers correctly and drops the
records; «raw socket» writes finished requests and shows where broker and kernel end. Client and
broker share the machine's cores. PySpark: the rows of «DataFrame» are an 8-byte key and a 100-byte
value, made in the JVM and handed to Python by `mapInArrow`, those of «RDD of bytes» are made in
Python; «counting only» is what Spark takes to bring them to a function that only counts, «noop
sink» not even to Python.
Beside Spark's connector: `spark-sql-kafka-0-10` 4.2.0 in the same session; both with their own
defaults; what a row does is told in `bench/spark/spark_connector.py`. The stream's latency is from
`send` to the append to the second topic's log.
Reading: 16 partitions of one broker, assigned without a group; after a warm-up the consumer goes
back to the beginning and reads the whole topic, so that what is fetched ahead counts; every value
is touched. Calls bring 500 records («poll», «consume», «getmany»), 5,000 («values()») or 16,000
(Arrow); the raw socket walks batch headers and touches no value. Rebalances: heartbeats every
500 ms, a record to each of 6 partitions every 5 ms; the pause is the longest time without a record
of some partition around the moment in which the member leaves.
TLS: Apache Kafka's own, one node; «relay» is Python's ssl in place of the native TLS; «AES alone»
encrypts as many bytes in memory, in records of 16 KiB. The rows «beside a spinning thread» and «200
connections at once» have the null broker behind a front in Python, which decrypts, or for plaintext
passes bytes on: their latencies have the front in them. The 200 connections are links of one client
with client certificates; the latency is that of a record in flight on its first link meanwhile.
«opened by another process»: the same beside a process that opens them, which shares nothing with
the client but the machine's cores: that much no client can save. What Python's garbage collector
takes in a turn of the control thread is counted apart.
asyncio: «in order»: 10,000 records are sent, then their handles are awaited one by one; «gathered»:
1,000 at a time; «gather() alone»: futures of the loop that are set at once. The task that is due
every 5 ms runs in the loop of clients that send and read 1,000,000 records, with the broker frozen
for 5 s in between and max.block.ms={max_block_ms}, and at the same time in a process with idle
clients.
Administration: topics of 50 partitions; «by id» asks for Metadata alone, the row above for pages if
the broker has them. Requests are counted without the handshakes of new connections. A process is
timed from its start to its end; its broker is the embedded one.
"""


def write_report(
    path: Path,
    results: Results,
    *,
    rounds: int,
    minutes: float,
    loads: tuple[float, float],
    only: Sequence[str] = (),
) -> None:
    """Write the whole report.

    Args:
        path: of the file.
        results: what was measured.
        rounds: how often.
        minutes: how long it took.
        loads: load averages before and after.
        only: the sections that were asked for; none: all.
    """
    parts = [
        "# Results\n\nWritten by `bench/compare.py` (`make bench`); do not edit.\n",
        _facts(rounds, minutes, loads, only),
        METHOD.format(
            rounds=rounds,
            turns=LATENCY_TURNS,
            once=" and ".join(LATENCY_ONCE),
            max_block_ms=MAX_BLOCK_MS,
        ),
        *[f"{note}\n" for note in results.notes],
        "## Targets\n\n" + _targets(results, is_whole=not only),
    ]
    for section, title in SECTIONS.items():
        if table := _section(results, section):
            parts.append(f"## {title}\n\n{table}")
    if errors := results.errors():
        parts.append("## Failed runs\n\n" + "".join(f"- {error}\n" for error in errors))
    path.write_text("\n".join(parts), encoding="utf-8")


def _facts(rounds: int, minutes: float, loads: tuple[float, float], only: Sequence[str]) -> str:
    versions = ", ".join(
        f"{name} {version_of(distribution)}"
        for name, distribution in (
            *((name, distribution) for name, (_, distribution) in CONTENDERS.items()),
            ("PySpark", "pyspark"),
        )
        if distribution is not None
    )
    today = dt.datetime.now(tz=dt.timezone.utc).date()
    full = "FULL=1 " if os.environ.get("FULL", "0") not in ("", "0") else ""
    lines = [
        f"Date: {today}; {rounds} rounds, {minutes:.0f} minutes",
        f"Machine: {cpu_model()}, {os.cpu_count()} CPUs, {platform.system()} {platform.release()}",
        f"Load average: {loads[0]:.2f} before, {loads[1]:.2f} after",
        f"Versions: Python {platform.python_version()}, {versions}, Apache Kafka {_kafka()}",
        f"Commit: {commit_of_tree()}",
        f"Command: `{full}python bench/compare.py{''.join(f' --only {name}' for name in only)}`",
        "Command for one row: `python bench/end_to_end.py CONTENDER SCENARIO --records=N`",
    ]
    return "".join(f"- {line}\n" for line in lines)


def _targets(results: Results, *, is_whole: bool) -> str:
    rows = [
        (t.what, _number(t.value), f"{'≥' if t.at_least else '≤'} {_number(t.limit)}", t.unit,
         t.verdict)
        for t in targets(results, is_whole=is_whole)
    ]  # fmt: skip
    return _table(("what", "reached", "to reach", "unit", "verdict"), rows)


def _section(results: Results, section: str) -> str:
    """Return one table; a column that nobody has a value for is left out."""
    rows: list[tuple[str, str, dict[str, float]]] = []
    used: set[str] = set()
    for scenario in results.scenarios(section):
        for contender in results.contenders(section, scenario):
            cells = {
                metric: value * factor
                for metric, (_, factor, _) in COLUMNS.items()
                if (value := results.get(section, scenario, contender, metric)) is not None
            }
            used |= cells.keys()
            rows.append((scenario, contender, cells))
    if not rows:
        return ""
    metrics = [metric for metric in COLUMNS if metric in used]
    head = ("scenario", "client", *(COLUMNS[metric][0] for metric in metrics))
    return _table(
        head,
        [
            (scenario, contender, *(
                f"{cells[m]:.{COLUMNS[m][2]}f}" if m in cells else "" for m in metrics))
            for scenario, contender, cells in rows
        ],
    )  # fmt: skip


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def version_of(distribution: str) -> str:
    if distribution == "kafka_fast":
        from kafka_fast._version import __version__

        return __version__
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "missing"


def _kafka() -> str:
    from kafka_fast.testing._kafka.broker_jars import DEFAULT_VERSION

    return DEFAULT_VERSION


def cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def commit_of_tree() -> str:
    run = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        capture_output=True, text=True, cwd=Path(__file__).parents[1],
    )  # fmt: skip
    return run.stdout.strip() or "unknown"
