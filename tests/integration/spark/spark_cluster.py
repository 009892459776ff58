"""Spark as it runs in a cluster: spark-submit, executors in processes of their own.

Everything comes from the installed PySpark, which brings spark-submit and all jars. What Spark
writes beside them (executors' directories) goes into a SPARK_HOME that a test makes for itself.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from kafka_fast._version import __version__
from tests.waiting import eventually

ROOT = Path(__file__).parents[3]
PARTS = ("bin", "jars", "python", "sbin")
JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
DEFAULTS = {
    "spark.driver.extraJavaOptions": JVM,
    "spark.driver.memory": "512m",
    "spark.executor.extraJavaOptions": JVM,
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def wheel_of_checkout(folder: Path) -> Path:
    """Return a wheel of this checkout as it is built, without compiling anything."""
    content = folder / "wheel"
    content.mkdir()
    subprocess.run(
        [sys.executable, "setup.py", "-q", "dist_info", "--output-dir", str(content)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    shutil.copytree(
        ROOT / "kafka_fast", content / "kafka_fast", ignore=shutil.ignore_patterns("__pycache__")
    )
    shutil.copy(ROOT / "pyspark_kafka_fast.py", content)
    (info,) = content.glob("*.dist-info")
    python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    platform = re.sub(r"[.-]", "_", sysconfig.get_platform())
    (info / "WHEEL").write_text(
        "Wheel-Version: 1.0\nGenerator: kafka_fast tests\nRoot-Is-Purelib: false\n"
        f"Tag: {python}-{python}-{platform}\n"
    )
    subprocess.run(
        [sys.executable, "-m", "wheel", "pack", str(content), "-d", str(folder)],
        check=True,
        capture_output=True,
    )
    return folder / f"kafka_fast-{__version__}-{python}-{python}-{platform}.whl"


def spark_home(folder: Path, defaults: Mapping[str, str]) -> Path:
    """Make a SPARK_HOME of links to the installed PySpark, with these defaults of its own."""
    import pyspark

    home = folder / "spark"
    (home / "conf").mkdir(parents=True)
    for part in PARTS:
        (home / part).symlink_to(Path(pyspark.__path__[0]) / part)
    lines = [f"{name} {value}\n" for name, value in {**DEFAULTS, **defaults}.items()]
    (home / "conf" / "spark-defaults.conf").write_text("".join(lines))
    return home


def environment(home: Path) -> dict[str, str]:
    """Return the variables of a shell in which this Python and this Spark are the ones found."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYSPARK_", "SPARK_", "PYTHONPATH", "VIRTUAL_ENV"))
    }
    return {
        **kept,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONWARNINGS": "ignore:PySpark does not yet fully support pandas:FutureWarning",
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def run(script: str, folder: Path, variables: Mapping[str, str], timeout: float) -> str:
    """Run a script of the shell to its end; return what it printed.

    Raises:
        AssertionError: It failed, or did not end in time; nothing of it is left running.
    """
    process = subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=timeout)
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    assert process.returncode == 0, f"{out}\n{err[-10_000:]}"
    return out


@contextmanager
def standalone(folder: Path, home: Path, workers: int) -> Iterator[str]:
    """Run a standalone master with so many workers; give its address.

    Each worker has a loopback address of its own: Spark speculates on another host only.
    """
    with ExitStack() as stack:
        logs = [folder / "master.log"]
        stack.enter_context(_daemon(home, logs[0], "127.0.0.1", "master.Master", "--port", "0"))
        _wait_for("I have been elected leader", logs[0])
        match = re.search(r"Starting Spark master at (spark://\S+)", logs[0].read_text())
        assert match is not None
        for number in range(workers):
            log = folder / f"worker-{number}.log"
            directory = str(folder / f"worker-{number}")
            arguments = ["--cores", "1", "--memory", "1g", "--work-dir", directory, match[1]]
            host = f"127.0.0.{2 + number}"
            stack.enter_context(_daemon(home, log, host, "worker.Worker", *arguments))
            logs.append(log)
        for log in logs[1:]:
            _wait_for("Successfully registered with master", log)
        yield match[1]


@contextmanager
def _daemon(home: Path, log: Path, host: str, name: str, *arguments: str) -> Iterator[None]:
    """Run a master or a worker on an address; at the end, also what it started."""
    command = [
        str(home / "bin" / "spark-class"),
        f"org.apache.spark.deploy.{name}",
        *("--host", host, "--webui-port", "0"),
        *arguments,
    ]
    variables = {"SPARK_DAEMON_JAVA_OPTS": JVM, "SPARK_DAEMON_MEMORY": "512m"}
    with log.open("w") as out:
        process = subprocess.Popen(
            command,
            env={**environment(home), **variables},
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=30)
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it has ended, and its executors with it
            process.wait(timeout=30)


def _wait_for(text: str, log: Path) -> None:
    eventually(lambda: text in log.read_text(), f"{text!r} in {log}", timeout=120)


def read_all(bootstrap: str, topic: str) -> list[tuple[Any, Any, Any]]:
    """Return (partition, key, value) of all records, as confluent-kafka reads them."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "spark-tests"})
    try:
        partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
        consumer.assign([TopicPartition(topic, index, 0) for index in partitions])
        ends = [
            consumer.get_watermark_offsets(TopicPartition(topic, index), timeout=30)[1]
            for index in partitions
        ]
        records: list[tuple[Any, Any, Any]] = []
        while len(records) < sum(ends):
            for message in consumer.consume(10_000, timeout=30):
                assert message.error() is None
                records.append((message.partition(), message.key(), message.value()))
        return records
    finally:
        consumer.close()


def numbers_aside(text: str) -> str:
    """Return the text with a 0 for each number: sizes and times are not the page's."""
    return re.sub(r"[\d.,]*\d( m?s\b)?", lambda number: "0 s" if number[1] else "0", text)
