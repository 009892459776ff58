"""What the programs share that measure Spark: its session, and the CPU of a JVM with its Pythons.

Imported before pyspark: it says which Python the workers are, and where kafka_fast is.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PYTHONPATH"] = str(Path(__file__).resolve().parents[2])
os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")

from pyspark.sql import DataFrame, SparkSession

from bench.measure import TICKS

TASKS = 4
PARTITIONS = 16
VALUE_SIZE = 100


def session(**settings: str) -> SparkSession:
    """Start Spark on two cores.

    Args:
        settings: Spark's, with underscores for dots.
    """
    builder = SparkSession.builder.master("local[2]").appName("kafka_fast bench")
    builder = builder.config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    builder = builder.config("spark.sql.ansi.enabled", "false")  # ANSI casts no number to binary
    for name, value in settings.items():
        builder = builder.config(name.replace("_", "."), value)
    return builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()


def made_in_jvm(spark: SparkSession, records: int) -> DataFrame:
    """Return rows with a key of 8 bytes and a value of 100, which the JVM makes."""
    return spark.sql(
        f"""
        select cast(id as binary) key, cast(repeat('v', {VALUE_SIZE}) as binary) value
        from range(0, {records}, 1, {TASKS})
        """
    )


def measured(spark: SparkSession, run: Callable[[], object], records: int) -> dict[str, float]:
    """Return what a job costs: the CPU of the JVM and its workers, and its rate."""
    gateway: Any = spark.sparkContext._gateway
    jvm = gateway.proc.pid
    cpu, started = tree_cpu(jvm), time.perf_counter()
    run()
    spent, wall = tree_cpu(jvm) - cpu, time.perf_counter() - started
    return {"tree_cpu_per_million": spent * 1e6 / records, "records_per_s": records / wall}


def tree_cpu(root: int) -> float:
    """Return the CPU seconds of a process, its descendants, and those of them that have ended."""
    parents: dict[int, int] = {}
    spent: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="ascii").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parents[int(path.parent.name)] = int(fields[1])
        # utime, stime, and the same of children that were waited for.
        spent[int(path.parent.name)] = sum(map(int, fields[11:15]))
    tree = {root}
    while grown := {pid for pid, parent in parents.items() if parent in tree} - tree:
        tree |= grown
    return sum(spent.get(pid, 0) for pid in tree) / TICKS


def show(rows: Iterable[dict[str, Any]], *, as_json: bool) -> None:
    """Print each run as one JSON line at once, as compare.py reads them; or a table of medians."""
    samples: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if as_json:
            print(json.dumps(row), flush=True)
        numbers = samples[row["scenario"], row["contender"]]
        for name, value in row.items():
            if isinstance(value, (int, float)):
                numbers[name].append(value)
    if as_json:
        return
    names = list(dict.fromkeys(name for numbers in samples.values() for name in numbers))
    print(f"| rows | who | {' | '.join(names)} |\n|---|---|{'---|' * len(names)}")
    for (scenario, contender), numbers in samples.items():
        cells = [
            f"{statistics.median(numbers[metric]):.4g}" if metric in numbers else ""
            for metric in names
        ]
        print(f"| {scenario} | {contender} | {' | '.join(cells)} |")
