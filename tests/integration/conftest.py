"""What the tests on brokers share: which release they need, one Spark session, its topics."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafka_fast.testing import EmbeddedKafka
from kafka_fast.testing._kafka.broker_jars import DEFAULT_VERSION
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.conftest import started
from tests.drivers import (
    consumer_class,
    driver,
    loop,
    open_range,
    producer_class,
    pytest_generate_tests,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = [
    "consumer_class",
    "driver",
    "loop",
    "open_range",
    "producer_class",
    "pytest_generate_tests",
]

ROOT = Path(__file__).parents[2]


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out what the brokers of `--kafka-version` do not have yet."""
    version = item.config.getoption("--kafka-version") or DEFAULT_VERSION
    for mark in item.iter_markers("needs_kafka"):
        needed, what = mark.args
        if numbers(version) < numbers(needed):
            pytest.skip(f"Kafka {needed}: {what}")


def numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


@pytest.fixture(scope="module")
def tidy_kafka(request: pytest.FixtureRequest) -> Iterator[RealKafka]:
    """A broker that looks for logs to compact twice a second."""
    overrides = {"log.cleaner.backoff.ms": 500}
    with started(1, request.config.getoption("--kafka-version"), overrides) as kafka:
        yield kafka


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


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(2) as broker:
        yield broker


@pytest.fixture
def topic(kafka: EmbeddedKafka, request: pytest.FixtureRequest) -> str:
    """A topic of the test's name, with three partitions."""
    name: str = request.node.name.replace("_", "-").replace("[", "-").replace("]", "")
    kafka.create_topic(name, partitions=3)
    return name


@pytest.fixture
def examples(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the examples, importable as it is when one of them runs."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    return ROOT / "examples"
