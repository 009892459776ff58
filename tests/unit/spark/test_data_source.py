"""From Spark's options and schemas to readers and writers."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_fast.errors import ConfigError, UsageError

pytest.importorskip("pyspark", minversion="4.0")
from pyspark.errors import AnalysisException
from pyspark.sql.types import (
    BinaryType,
    LongType,
    StringType,
    StructType,
)

from kafka_fast.spark import data_source

pytestmark = pytest.mark.spark

BASE = {"kafka.bootstrap.servers": "nowhere:1"}
READ = {**BASE, "subscribe": "t"}
SINK = {**BASE, "topic": "t"}
VALUES = StructType().add("value", BinaryType())


def test_the_schema_has_headers_on_request() -> None:
    assert "headers" not in data_source.schema(READ)
    assert "headers" in data_source.schema({**READ, "includeHeaders": "true"})


def test_readers_and_writers_travel() -> None:
    for made in (
        data_source.batch_reader(READ, VALUES),
        data_source.stream_reader({**READ, "startingOffsets": "earliest"}, VALUES),
        data_source.batch_writer(SINK, VALUES, overwrite=False),
        data_source.stream_writer(SINK, VALUES),
    ):
        assert type(pickle.loads(pickle.dumps(made))) is type(made)


def test_mistakes_show_when_they_are_made() -> None:
    unknown = StructType().add("key", BinaryType()).add("size", LongType())
    with pytest.raises(UsageError, match="size"):
        data_source.batch_reader(READ, unknown)
    with pytest.raises(UsageError, match="'value' not found"):
        data_source.stream_writer(SINK, unknown)
    with pytest.raises(UsageError, match="Save mode Overwrite not allowed"):
        data_source.batch_writer(SINK, VALUES, overwrite=True)
    with pytest.raises(UsageError, match="jobId is for batches"):
        data_source.stream_writer({**SINK, "dedupeHeaders": "true", "jobId": "j"}, VALUES)
    with pytest.raises(ConfigError, match="lingerms"):
        data_source.batch_writer({**SINK, "kafka.lingerms": "1"}, VALUES, overwrite=False)


def test_columns_that_kafka_does_not_have_are_left_out() -> None:
    wide = StructType().add("other", StringType()).add("VALUE", StringType())
    options = data_source.sink_options(SINK, stream=False)
    assert data_source.columns_to_write(wide, options) == {"value": 1}


def session(condition: str | None) -> Any:
    """Return a session that refuses to register a data source in this way; None: it does not."""

    def register(found: Any) -> None:
        if condition is not None:
            raise AnalysisException(errorClass=condition, messageParameters={}, message="no")

    return SimpleNamespace(dataSource=SimpleNamespace(register=register))


def test_registering_again_is_no_error() -> None:
    """Regression: PySpark 4.0 refuses a second one."""
    data_source.register(session(None))
    data_source.register(session("DATA_SOURCE_ALREADY_EXISTS"))
    with pytest.raises(AnalysisException):
        data_source.register(session("OTHER"))
