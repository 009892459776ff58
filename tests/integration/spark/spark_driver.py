"""A query from topic to topic whose driver is a process of its own, so that it can be killed.

    folder/checkpoint    the query's: offsets/N is there once micro-batch N is planned, commits/N
                         once it is done
    folder/hold          while this file is there, all tasks but the first of a micro-batch wait
                         behind their first FIRST_ROWS rows, which are written

A query that is started again goes on from its checkpoint.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from kafka_fast.spark.sink.dedupe_headers import NAMES
from tests.integration.spark.spark_cluster import JVM, ROOT
from tests.waiting import eventually, killed

JOB = """
import json, os, sys, time
from pyspark import TaskContext
from pyspark.sql import SparkSession

wanted = json.loads(sys.argv[1])
builder = SparkSession.builder.master(wanted["master"])
for name, value in wanted["settings"].items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()

def held(batches):
    number = TaskContext.get().partitionId()
    for count, batch in enumerate(batches):
        yield batch
        while number and count and os.path.exists(wanted["folder"] + "/hold"):
            time.sleep(0.01)

rows = spark.readStream.format("kafka_fast").options(**wanted["source"]).load().select("value")
writer = rows.mapInArrow(held, rows.schema).writeStream.format("kafka_fast")
writer = writer.options(**wanted["sink"])
writer = writer.option("checkpointLocation", wanted["folder"] + "/checkpoint")
query = (writer.trigger(availableNow=True) if sys.argv[2] == "once" else writer).start()
print(spark._jvm.java.lang.ProcessHandle.current().pid(), flush=True)
query.awaitTermination()
"""

FIRST_ROWS = 500
ROW_SIZE = 200
"""Bytes of a value: the first batch of a task is written once the second has filled a buffer."""

SETTINGS = {
    # So many rows go from Python to Python at once.
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(FIRST_ROWS),
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": JVM,
    "spark.driver.memory": "512m",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


class SparkDriver:
    """One query with its checkpoint; it is started, killed and started again.

    Args:
        folder: For the checkpoint.
        source: Options of the source.
        sink: Options of the sink.
        master: Spark's.
        settings: Spark's own, besides `SETTINGS`.
    """

    def __init__(
        self,
        folder: Path,
        source: Mapping[str, str],
        sink: Mapping[str, str],
        master: str = "local[2]",
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._checkpoint = folder / "checkpoint"
        self._hold = folder / "hold"
        self._folder = folder
        self._wanted = {
            "folder": str(folder),
            "master": master,
            "settings": {**SETTINGS, **(settings or {})},
            "source": {"startingOffsets": "earliest", **source},
            "sink": {"dedupeHeaders": "true", **sink},
        }

    @contextmanager
    def running(self, how: str = "forever") -> Iterator[RunningDriver]:
        """Run the driver; a block that has not ended it kills it.

        Args:
            how: "forever", or "once": up to what is there.
        """
        (self._folder / "job.py").write_text(JOB)
        with (self._folder / "driver.log").open("a") as log:
            process = subprocess.Popen(
                [sys.executable, "job.py", json.dumps(self._wanted), how],
                cwd=self._folder,
                env={
                    **os.environ,
                    "PYSPARK_PYTHON": sys.executable,
                    "PYTHONPATH": str(ROOT),
                    "SPARK_LOCAL_IP": "127.0.0.1",
                },
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        with process, killed(process):
            driver = RunningDriver(process, self._folder / "driver.log")
            try:
                yield driver
            finally:
                driver.kill()

    def planned(self) -> int:
        """Return the number of the micro-batch that was planned last; -1: none was."""
        return _newest(self._checkpoint / "offsets")

    def committed(self) -> int:
        """Return the number of the micro-batch that was committed last; -1: none was."""
        return _newest(self._checkpoint / "commits")

    def has_committed(self, number: int) -> bool:
        """Return whether a micro-batch is done."""
        return self.committed() >= number

    def ends(self, number: int) -> dict[str, dict[str, int]]:
        """Return where a micro-batch that was planned ends."""
        *_, offsets = (self._checkpoint / "offsets" / str(number)).read_text().splitlines()
        ends: dict[str, dict[str, int]] = json.loads(offsets)
        return ends

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold all tasks but the first ones while the block runs."""
        self._hold.touch()
        try:
            yield
        finally:
            self._hold.unlink()


class RunningDriver:
    """A driver that runs: a Python and its JVM."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first, log.read_text()[-5_000:]
        self.jvm = int(first)

    def kill(self) -> None:
        """Kill it with all it has started, as if the machine were gone; unless it has ended."""
        if self._process.poll() is None:
            for pid in (*below(self.jvm), self.jvm, self._process.pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self._process.wait(60)

    def wait(self, seconds: float = 300) -> None:
        """Wait for the end of a query that ends by itself."""
        code = self._process.wait(seconds)
        assert code == 0, self._log.read_text()[-5_000:]

    def wait_until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for what the driver's work makes true; it must not end meanwhile."""

        def probe() -> bool:
            assert self._process.poll() is None, self._log.read_text()[-5_000:]
            return condition()

        eventually(probe, what, timeout=180)


def below(pid: int) -> list[int]:
    """Return the processes that a process has started, and those that these have started."""
    processes: list[int] = []
    left = [pid]
    while left:
        command = ["ps", "-o", "pid=", "--ppid", str(left.pop())]
        children = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        left += map(int, children.split())
        processes += map(int, children.split())
    return processes


def _newest(folder: Path) -> int:
    if not folder.exists():
        return -1
    return max((int(path.name) for path in folder.iterdir() if path.name.isdigit()), default=-1)


class WrittenRow(NamedTuple):
    """What dedupe headers say of a record."""

    query: bytes
    batch: int
    task: int
    row: int


def check_rows(
    records: Iterable[tuple[int, Mapping[str, bytes | None]]], count: int
) -> Counter[WrittenRow]:
    """See that the records are 0, 1, ... once their headers have told which ones are twice.

    Args:
        records: (number, headers) of each record in the topic that a query wrote.
        count: Number of rows.

    Returns:
        The rows that are there more than once, with how often more.
    """
    numbers: dict[WrittenRow, int] = {}
    again: Counter[WrittenRow] = Counter()
    for number, headers in records:
        query, batch, task, place = (headers[name] or b"" for name in NAMES)
        row = WrittenRow(query, int(batch), int(task), int(place))
        if row in numbers:
            again[row] += 1
        assert numbers.setdefault(row, number) == number
    assert len(numbers) == count
    assert set(numbers.values()) == set(range(count))
    return again
