"""What the tests on brokers share: one Spark session, and where the examples are."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One session for all tests; its workers run this Python and find this checkout."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    os.environ["PYTHONPATH"] = path
    session = (
        SparkSession.builder.master("local[2,4]")  # a task may fail three times
        .appName("kafka_fast tests")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "512m")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def examples(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the examples, importable as it is when one of them runs."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    return ROOT / "examples"
