"""Tables and DataFrames of polls and ranges: text, pandas, Polars, and what is missing."""

from __future__ import annotations

import importlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from kafka_fast import (
    MissingPackageError,
    RecordRange,
    SerializationError,
    UsageError,
    read_range,
)
from kafka_fast.consumer import ConsumerRecords
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.embedded.consuming import fill
from tests.embedded.producing import new_topic

OpenRange = Callable[..., RecordRange]

COLUMNS = ["topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers"]


@pytest.fixture
def pl() -> Any:
    """Polars loads a jemalloc of its own: beside it no process under ThreadSanitizer may fork."""
    if os.environ.get("KAFKA_FAST_SANITIZER") == "thread":
        pytest.skip("Polars does not run under ThreadSanitizer")
    return importlib.import_module("polars")


@pytest.fixture
def topics(kafka: EmbeddedKafka) -> list[str]:
    """Two topics of two partitions, 30 records in each."""
    made = [new_topic(kafka, name, partitions=2) for name in ("first", "second")]
    for topic in made:
        for partition in range(2):
            fill(kafka, topic, 30, partition)
    return made


@pytest.fixture
def open_range(kafka: EmbeddedKafka) -> Iterator[OpenRange]:
    """Ranges that come in small steps, and are closed in the end."""
    made: list[RecordRange] = []

    def open_one(topics: Any, *bounds: Any) -> RecordRange:
        made.append(read_range(topics, *bounds, max_records=7, bootstrap_servers=kafka.bootstrap))
        return made[-1]

    yield open_one
    for one in made:
        one.close()


def first_step(records: RecordRange) -> ConsumerRecords:
    return next(iter(records))


@pytest.mark.not_under("thread", "it does not see how Arrow's own threads count references")
def test_frames(pl: Any, open_range: Any, topics: list[str]) -> None:
    for records in (open_range(topics), first_step(open_range(topics))):
        assert isinstance(records.to_polars(), pl.DataFrame)
    polars = open_range(topics).to_polars(text=True, columns=["topic", "offset", "value"])
    assert polars.columns == ["topic", "offset", "value"]
    assert (polars.schema["value"], len(polars)) == (pl.String, 120)
    frame = open_range(topics).to_pandas(text=True)
    assert list(frame.columns) == COLUMNS
    assert (len(frame), str(frame["timestamp"].dtype)) == (120, "datetime64[ms, UTC]")
    assert set(frame["value"]) == {f"{p}:{at}" for p in range(2) for at in range(30)}
    assert set(frame["topic"]) == set(topics)
    assert set(open_range(topics).to_pandas(columns=["value"])["value"].map(type)) == {bytes}


@pytest.mark.not_under("thread", "it does not see how Arrow's own threads count references")
def test_the_constructor_of_pandas(open_range: Any, topics: list[str]) -> None:
    """Regression: it made a cell of each record, or of many. It takes no Arrow stream."""
    frame = pd.DataFrame(open_range(topics))
    assert list(frame.columns) == COLUMNS
    assert len(frame) == 120
    assert frame["offset"].dtype == "int64"
    assert str(frame["timestamp"].dtype).endswith("UTC]")
    assert sorted(frame["value"]) == sorted(open_range(topics).to_pandas()["value"])
    some = pd.DataFrame(first_step(open_range(topics)))
    assert list(some.columns) == COLUMNS
    assert set(some["value"]) <= set(frame["value"])
    assert pd.DataFrame(open_range(topics, 30)).empty


@pytest.mark.not_under("thread", "it does not see how Arrow's own threads count references")
def test_the_constructor_of_pandas_for_a_range_that_was_read(open_range: Any, topic: str) -> None:
    """Regression: the frame had no columns, and nothing said why. No array can name columns."""
    records = open_range(topic)
    list(records)
    assert list(records.to_pandas().columns) == COLUMNS
    with pytest.raises(UsageError, match=r"this range was read to its end before: call read_range"):
        pd.DataFrame(records)
    once = open_range(topic)
    assert pd.DataFrame(once).empty, "nobody has read it before"
    with pytest.raises(UsageError, match="was read to its end before"):
        pd.DataFrame(once)


def test_frames_of_nothing(pl: Any, open_range: Any, topic: str) -> None:
    assert open_range(topic).to_polars().columns == COLUMNS
    assert list(open_range(topic).to_pandas(text=True).columns) == COLUMNS


@pytest.mark.parametrize("views", [False, True])
def test_text(kafka: EmbeddedKafka, open_range: Any, topic: str, *, views: bool) -> None:
    long = "\N{EURO SIGN}" * 50
    kafka.produce(topic, ["in", long, None, ""], keys=["k", None, "", "\u00e9"])
    table = open_range(topic).to_arrow(text=True, views=views)
    table.validate(full=True)
    kind = pa.string_view() if views else pa.string()
    assert (table.schema.field("key").type, table.schema.field("value").type) == (kind, kind)
    assert table["key"].to_pylist() == ["k", None, "", "\u00e9"]
    assert table["value"].to_pylist() == ["in", long, None, ""]
    with open_range(topic) as steps:
        assert [frame["value"].to_pylist() for frame in steps.tables(text=True)] == [
            ["in", long, None, ""]
        ]
    spark = open_range(topic).to_arrow(text=True, layout="spark")
    assert spark.schema.field("value").type == pa.string()


@pytest.mark.parametrize("part", ["key", "value"])
def test_what_is_no_text(
    pl: Any, kafka: EmbeddedKafka, open_range: Any, topic: str, part: str
) -> None:
    texts = [b"fine", b"\xff", b"fine"]
    kafka.produce(topic, texts, keys=texts if part == "key" else None)
    said = rf"the {part} of {topic}-0 at offset 1 is no UTF-8: without text=True"
    for take in ("to_arrow", "to_pandas", "to_polars"):
        with pytest.raises(SerializationError, match=said):
            getattr(open_range(topic), take)(text=True)
        with open_range(topic) as steps, pytest.raises(SerializationError, match=said):
            getattr(next(steps), take)(text=True)
    table = open_range(topic).to_arrow(text=True, columns=["offset"])
    assert table.num_rows == 3, "what is not asked for is not looked at"
    assert open_range(topic).to_arrow()[part].to_pylist() == texts


@pytest.mark.parametrize(
    ("take", "package"),
    [("to_arrow", "pyarrow"), ("to_pandas", "pandas"), ("to_pandas", "pyarrow"),
     ("to_polars", "polars")],
)  # fmt: skip
def test_a_package_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, open_range: Any, topic: str, take: str, package: str
) -> None:
    """It is said before anything is read."""
    monkeypatch.setitem(sys.modules, package, None)
    for records in (open_range(topic), ConsumerRecords()):
        with pytest.raises(MissingPackageError) as caught:
            getattr(records, take)()
        assert re.fullmatch(rf"{take}\(\) needs .*: pip install {package}", str(caught.value))
        assert caught.value.package == package
