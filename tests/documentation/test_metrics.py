"""The page about metrics names what clients have, with its unit, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kafka_fast import TopicPartition
from kafka_fast.consumer import RebalanceEvent
from kafka_fast.control.messages import CloseReason
from kafka_fast.testing import EmbeddedKafka
from tests.drivers import (
    consumer_class,
    driver,
    loop,
    open_range,
    producer_class,
    pytest_generate_tests,
)
from tests.waiting import TIMEOUT

__all__ = [
    "consumer_class",
    "driver",
    "loop",
    "open_range",
    "producer_class",
    "pytest_generate_tests",
]

DRIVERS = True  # every test runs with threads and with asyncio

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"

Units = Mapping[str, str]

SHAPES = {
    "count": int,
    "bytes": (int, float),
    "bytes, now": int,
    "records, now": int,
    "partitions, now": int,
    "ms": int,
    "µs": dict,
    "text": str,
    "list": list,
    "the histogram's": float,
}
"""What a value of a unit is; of the others it is a mapping."""


def tables() -> dict[str, Units]:
    """Return the units by name, of each section of the page."""
    sections: dict[str, dict[str, str]] = {}
    section = ""
    for line in PAGE.read_text().splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif line.startswith("| `"):
            names, second, *_ = (cell.strip() for cell in line.strip("|").split("|"))
            for name in re.findall(r"`(\w+)`", names):
                sections.setdefault(section, {})[name] = second
    return sections


TABLES = tables()


@pytest.fixture(name="kafka", scope="module")
def one_broker() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as kafka:
        kafka.create_topic("t")
        yield kafka


@pytest.fixture
def metrics_of_a_producer(kafka: EmbeddedKafka, producer_class: Any) -> dict[str, Any]:
    with producer_class(bootstrap_servers=kafka.bootstrap, acks="all") as producer:
        producer.send("t", b"value").result(TIMEOUT)
        metrics: dict[str, Any] = producer.metrics()
    return metrics


@pytest.fixture
def metrics_of_a_consumer(kafka: EmbeddedKafka, consumer_class: Any) -> dict[str, Any]:
    kafka.produce("t", [b"value"])
    with consumer_class(
        bootstrap_servers=kafka.bootstrap, group_id="g", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe("t")
        while not consumer.poll(0.1):
            pass
        metrics: dict[str, Any] = consumer.metrics()
    return metrics


def check(values: Mapping[str, Any], *sections: str) -> None:
    """See that these are all that the sections name, in their units."""
    units = {name: unit for section in sections for name, unit in TABLES[section].items()}
    assert values.keys() == units.keys()
    for name, value in values.items():
        unit = units[name]
        if name in HISTOGRAMS:
            check_histogram(value)
        else:
            assert isinstance(value, SHAPES.get(unit, dict)), (name, unit, value)


SUFFIXES = {"us": "µs", "ms": "ms", "bytes": "bytes"}

HISTOGRAMS = {"request_time_us", "queue_time_us", "batch_bytes"}


def check_histogram(values: Mapping[str, Any]) -> None:
    """See that a histogram's parts agree, as they do in one unit only."""
    check_keys = TABLES["Histograms"].keys()
    assert values.keys() == check_keys
    assert sum(values["buckets"].values()) == values["count"]
    least = sum(bound // 2 * count for bound, count in values["buckets"].items() if bound > 1)
    most = sum(bound * count for bound, count in values["buckets"].items())
    assert least <= values["sum"] <= most, "Regression: sums were seconds, bounds microseconds"


def test_a_producer_has_what_the_page_says(metrics_of_a_producer: dict[str, Any]) -> None:
    check(metrics_of_a_producer, "Every client", "Producers")
    check(metrics_of_a_producer["topics"]["t"], "Topics")
    for node in metrics_of_a_producer["nodes"].values():
        check(node, "Nodes")
    assert metrics_of_a_producer["queue_time_us"]["count"] == 1


def test_a_consumer_has_what_the_page_says(metrics_of_a_consumer: dict[str, Any]) -> None:
    check(metrics_of_a_consumer, "Every client", "Consumers")
    assert metrics_of_a_consumer["nodes"].keys() == {-1, 1}
    for node in metrics_of_a_consumer["nodes"].values():
        check(node, "Nodes")
    (event,) = metrics_of_a_consumer["rebalances"]
    assert isinstance(event, RebalanceEvent)
    assert event.partitions == {TopicPartition("t", 0)}


def test_a_name_has_one_unit() -> None:
    units: dict[str, set[str]] = {}
    for section, names in TABLES.items():
        if section != "Connections":
            for name, unit in names.items():
                units.setdefault(name, set()).add(unit)
    assert {name: of for name, of in units.items() if len(of) > 1} == {}
    for name, (unit,) in units.items():
        said = SUFFIXES.get(name.rpartition("_")[2])
        assert said is None or unit.startswith(said), name


def test_the_reasons_are_those_of_the_code() -> None:
    assert TABLES["Connections"].keys() == {reason.name.lower() for reason in CloseReason}
