"""What Spark pickles: no import of kafka_fast before the sentence that says what is wrong."""

from __future__ import annotations

import pickle
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_fast._version import __version__
from kafka_fast.errors import KafkaError
from kafka_fast.spark import SparkSetupError, write_partition
from kafka_fast.spark.task_errors import read_task_error
from kafka_fast.spark.worker import task

pytest.importorskip("pyspark")
import py4j
import pyspark
from pyspark import cloudpickle

RUN = """
import sys
sys.path += sys.argv[1:]
import pickle
list(pickle.loads(sys.stdin.buffer.read())([b"record"]))
"""


def pickled(function: object) -> bytes:
    data: bytes = cloudpickle.dumps(function)  # type: ignore[no-untyped-call]
    return data


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """What a worker without kafka_fast has: pyspark and py4j, from Spark itself."""
    made = tmp_path / "packages"
    made.mkdir()
    for module in (pyspark, py4j):
        folder = Path(module.__path__[0])
        (made / folder.name).symlink_to(folder)
    return made


def run_in_worker(packages: Path) -> tuple[str, KafkaError | None]:
    """Return what an entry ends with in a worker with these packages, and the driver makes of it.

    The first is the worker's last line but one: the last one is for the driver.
    """
    data = pickled(write_partition({"bootstrap.servers": "a:1"}, "t"))
    assert len(data) < 4000
    command = [sys.executable, "-I", "-S", "-c", RUN, str(packages)]
    ran = subprocess.run(command, input=data, capture_output=True)
    text = ran.stderr.decode()
    return text.strip().splitlines()[-2], read_task_error(text)


def test_a_worker_without_kafka_fast_names_the_variable(packages: Path) -> None:
    said, error = run_in_worker(packages)
    sentence = (
        f"the Python of a Spark worker, {sys.executable} on {platform.node()}, cannot import "
        f"kafka_fast (No module named 'kafka_fast'): install kafka_fast {__version__} there, or "
        "let PYSPARK_PYTHON name a Python that has it before the session starts"
    )
    assert said == f"RuntimeError: {sentence}"
    assert (type(error), str(error)) == (SparkSetupError, sentence)


def test_a_worker_with_another_version_is_refused(packages: Path) -> None:
    other = packages / "kafka_fast"
    (other / "spark/worker").mkdir(parents=True)
    for file in (
        "__init__.py",
        "spark/__init__.py",
        "spark/worker/__init__.py",
        "spark/worker/task.py",
    ):
        (other / file).touch()
    (other / "_version.py").write_text('__version__ = "0.0.7"')
    _, error = run_in_worker(packages)
    assert isinstance(error, SparkSetupError)
    assert f"has kafka_fast 0.0.7, where the driver has {__version__}: install" in str(error)


def test_a_worker_that_has_it_runs_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[object, ...]] = []

    def write_records(*arguments: object) -> Iterator[str]:
        called.append(arguments)
        yield from "ab"

    monkeypatch.setitem(task.TASKS, "write_records", write_records)
    entry = pickle.loads(pickled(write_partition({"bootstrap.servers": "a:1"}, "t")))
    assert list(entry([b"record"])) == ["a", "b"]
    assert called == [([b"record"], (("bootstrap.servers", "a:1"),), "t", "raise", 10_000)]


def test_it_is_pickled_by_value() -> None:
    entry = write_partition({"bootstrap.servers": "a:1"}, "t")
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(entry)
    copy = pickle.loads(pickled(entry))
    assert copy is not entry and callable(copy)
