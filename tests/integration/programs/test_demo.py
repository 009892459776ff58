"""The demo, which README.md names: what it writes, and what it says if it cannot.

Here with a user's own file and cluster; `make demo` without any takes its own.
"""

from __future__ import annotations

import gzip
import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

from kafka_fast.testing import EmbeddedKafka
from kafka_fast.testing._kafka.real_kafka import RealKafka
from kafka_fast.testing._kafka.secure_kafka import USERS, SecureKafka
from tests.integration.spark.spark_local import SPARK_MARKS
from tests.waiting import eventually

pytest.importorskip("pyspark")
import pyspark
from pyspark.sql import SparkSession

pytestmark = SPARK_MARKS

PYSPARK_READS = not pyspark.__version__.startswith("3.")
Run = Callable[..., tuple[int, str, str]]
ROWS = [
    {"a `strange`.name": "one", "size": 1, "text": "plain"},
    {"a `strange`.name": "two", "size": 2, "text": "with, comma and ünïcode"},
    {"a `strange`.name": "three", "size": 3},
]


@pytest.fixture
def run_demo(
    spark: SparkSession,
    examples: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Run the demo in the tests' own Spark session; give its exit status and what it printed."""
    demo: Any = importlib.import_module("demo")
    monkeypatch.setattr(demo, "spark_session", lambda: nullcontext(spark))

    def run(**environment: object) -> tuple[int, str, str]:
        for name in ("FILE", "BOOTSTRAP", "SECURE"):
            monkeypatch.setenv(name, str(environment.get(name, "")))
        status = demo.main()
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


# ---- the user's own file ----


def as_json(folder: Path, name: str) -> Path:
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    (folder / name).write_text(lines, encoding="utf-8")
    return folder / name


def as_csv(folder: Path, name: str) -> Path:
    lines = [",".join(ROWS[0])]
    lines += [f'{row["a `strange`.name"]},{row["size"]},"{row.get("text", "NA")}"' for row in ROWS]
    text = "\n".join(lines) + "\n"
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith("gz") else text.encode())
    return path


def as_parquet(folder: Path, name: str) -> Path:
    import pyarrow as pa
    from pyarrow import parquet

    parquet.write_table(pa.Table.from_pylist(ROWS), folder / name)
    return folder / name


@pytest.mark.parametrize(
    ("make", "name"),
    [
        pytest.param(as_csv, "rows.csv", marks=pytest.mark.long),
        (as_csv, "rows.CSV.gz"),
        pytest.param(as_json, "rows.json", marks=pytest.mark.long),
        pytest.param(as_json, "rows.jsonl", marks=pytest.mark.long),
        (as_json, "with space.ndjson"),
        (as_parquet, "rows.parquet"),
    ],
)
def test_an_own_file(
    run_demo: Run,
    kafka: EmbeddedKafka,
    tmp_path: Path,
    make: Callable[[Path, str], Path],
    name: str,
) -> None:
    path = make(tmp_path, name)
    status, out, err = run_demo(FILE=path, BOOTSTRAP=kafka.bootstrap)
    assert (status, err) == (0, "")
    outcome = json.loads(out.splitlines()[-1])
    topic, partitions = outcome["topic"], outcome["partitions"]
    assert outcome["records_per_s"] > 0
    assert (outcome["demo"], outcome["records"], outcome["verified"]) == ("ok", 3, True)
    assert outcome["read_by_spark"] == (3 if PYSPARK_READS else None)
    records = [record for number in range(partitions) for record in kafka.records(topic, number)]
    rows = {record.key: json.loads(record.value or b"") for record in records}
    assert rows == {row["a `strange`.name"].encode(): row for row in ROWS}  # type: ignore[attr-defined]


def test_a_file_without_rows(run_demo: Run, kafka: EmbeddedKafka, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("a,b\n")
    status, out, err = run_demo(FILE=tmp_path / "empty.csv", BOOTSTRAP=kafka.bootstrap)
    assert (status, err) == (0, "")
    assert json.loads(out.splitlines()[-1])["records"] == 0


# ---- what cannot be done ----


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("missing.csv", "FILE={path}: no such file"),
        ("rows.xlsx", "FILE={path}: the name must end in one of .csv, .json, .jsonl, .ndjson, "),
        ("rows", "FILE={path}: the name must end in one of "),
    ],
)
def test_a_file_that_cannot_be_read_is_named_before_anything_starts(
    run_demo: Run, tmp_path: Path, file: str, sentence: str
) -> None:
    status, out, err = run_demo(FILE=tmp_path / file)
    assert (status, out) == (1, "")
    assert err.startswith("the demo failed: " + sentence.format(path=tmp_path / file))
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", ["no.parquet", "no.json"])
def test_a_file_that_is_not_what_its_name_says(
    run_demo: Run, kafka: EmbeddedKafka, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_text("this is neither\n")
    status, _, err = run_demo(FILE=tmp_path / name, BOOTSTRAP=kafka.bootstrap)
    assert status == 1
    assert err.startswith("the demo failed: Spark's job ended with ")  # in Spark's words
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "address", ["127.0.0.1:1", "localhost", "localhost:99999", "no..host:9092"]
)
def test_a_cluster_that_is_not_there(run_demo: Run, tmp_path: Path, address: str) -> None:
    path = as_json(tmp_path, "rows.json")
    status, out, err = run_demo(FILE=path, BOOTSTRAP=address)
    assert (status, out) == (1, "")
    assert err.startswith("the demo failed: ")
    assert address in err
    assert err.count("\n") == 1


def test_a_cluster_of_the_users_is_not_secured(run_demo: Run) -> None:
    status, _, err = run_demo(SECURE=1, BOOTSTRAP="localhost:9092")
    assert status == 1
    assert err == (
        "the demo failed: SECURE=1 starts a Kafka of its own: give either SECURE or BOOTSTRAP\n"
    )


# ---- as users run it ----


def start(examples: Path, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, examples / "demo.py"],
        env={**os.environ, "FILE": "", "BOOTSTRAP": "", "SECURE": "", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.timeout(400)  # a third of a million records, and a Spark of its own
def test_the_flights(examples: Path) -> None:
    with start(examples) as process:
        out, err = process.communicate(timeout=380)
    assert process.returncode == 0, err
    outcome = json.loads(out.splitlines()[-1])
    assert (outcome["demo"], outcome["records"], outcome["verified"]) == ("ok", 336_776, True)
    assert outcome["read_by_spark"] == (336_776 if PYSPARK_READS else None)


@pytest.mark.timeout(300)
def test_ctrl_c(examples: Path) -> None:
    with start(examples) as process:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        assert any(line.startswith("writing to topic") for line in lines)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "the demo was interrupted"
    assert "Traceback" not in err
    eventually(lambda: not alive(process.pid), "the end of the group's processes")


def alive(group: int) -> list[int]:
    """Return the processes of a group that have not ended.

    One that has ended and that nobody waits for is a zombie: in a container whose first process is
    no init it stays one forever.
    """
    processes = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # gone since it was listed
            state, _, its_group = path.read_text().rpartition(")")[2].split()[:3]
            if int(its_group) == group and state != "Z":
                processes.append(int(path.parent.name))
    return processes


def test_on_real_kafka(run_demo: Run, real_kafka: RealKafka, tmp_path: Path) -> None:
    status, out, err = run_demo(FILE=as_json(tmp_path, "rows.json"), BOOTSTRAP=real_kafka.bootstrap)
    assert (status, err) == (0, "")
    outcome = json.loads(out.splitlines()[-1])
    assert (outcome["demo"], outcome["records"], outcome["verified"]) == ("ok", 3, True)
    assert outcome["read_by_spark"] == (3 if PYSPARK_READS else None)


def test_over_tls_with_a_login(
    run_demo: Run, secure_kafka: SecureKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the tests' own secure Kafka, in place of the one that the demo would start."""
    module = importlib.import_module("kafka_fast.testing._kafka.secure_kafka")
    monkeypatch.setattr(module, "SecureKafka", lambda folder: nullcontext(secure_kafka))
    status, out, err = run_demo(FILE=as_json(tmp_path, "rows.json"), SECURE=1)
    assert (status, err) == (0, "")
    outcome = json.loads(out.splitlines()[-1])
    assert (outcome["demo"], outcome["records"], outcome["verified"]) == ("ok", 3, True)
    assert outcome["read_by_spark"] == (3 if PYSPARK_READS else None)
    assert outcome["security"] == "SASL_SSL SCRAM-SHA-512"
    assert USERS["alice"] not in out
