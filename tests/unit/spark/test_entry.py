"""What Spark pickles: no import of kafka_fast before the sentence that says it is missing."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_fast._version import __version__
from kafka_fast.spark import write_partition

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


def test_a_worker_without_kafka_fast_names_the_variable(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    for module in (pyspark, py4j):  # a worker has these from Spark itself
        folder = Path(module.__path__[0])
        (packages / folder.name).symlink_to(folder)
    data = pickled(write_partition({"bootstrap.servers": "a:1"}, "t"))
    assert len(data) < 4000
    ran = subprocess.run(
        [sys.executable, "-I", "-S", "-c", RUN, str(packages)], input=data, capture_output=True
    )
    said = ran.stderr.decode().strip().splitlines()[-1]
    assert said == (
        f"RuntimeError: this Spark worker runs {sys.executable}, which cannot import kafka_fast "
        f"(No module named 'kafka_fast'). Install kafka_fast {__version__} there, or set "
        "PYSPARK_PYTHON to a Python that has it before the session starts."
    )


def test_it_is_pickled_by_value() -> None:
    entry = write_partition({"bootstrap.servers": "a:1"}, "t")
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(entry)
    copy = pickle.loads(pickled(entry))
    assert copy is not entry and callable(copy)
