"""From Spark's options and schemas to readers and writers."""

from __future__ import annotations

import pickle
from pathlib import Path
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

from kafka_fast.spark import SparkSetupError, data_source
from kafka_fast.spark.task_errors import MARK, TaskError, read_task_error

pytestmark = pytest.mark.spark

BASE = {"kafka.bootstrap.servers": "nowhere:1"}
READ = {**BASE, "subscribe": "t"}
SINK = {**BASE, "topic": "t"}
REFUSED = f'{MARK}{{"type": "UsageError", "args": ["no options"], "state": {{}}}}'
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


def session(condition: str | None, text: str = REFUSED) -> Any:
    """Return a session of Spark.

    Args:
        condition: How it refuses to register a data source; None: it does not.
        text: What it says of a query without options.
    """

    def register(source: Any) -> None:
        if condition is not None:
            raise AnalysisException(errorClass=condition, messageParameters={}, message="no")

    def load() -> None:
        raise RuntimeError(text)

    reader = SimpleNamespace(format=lambda name: SimpleNamespace(load=load))
    return SimpleNamespace(dataSource=SimpleNamespace(register=register), read=reader)


def test_registering_again_is_no_error() -> None:
    """Regression: PySpark 4.0 refuses a second one."""
    data_source.register(session(None))
    data_source.register(session("DATA_SOURCE_ALREADY_EXISTS"))
    with pytest.raises(AnalysisException):
        data_source.register(session("OTHER"))


def test_a_format_that_the_planner_cannot_import_is_refused_when_registered() -> None:
    """Regression: the first query failed, with nothing but a ModuleNotFoundError."""
    with pytest.raises(SparkSetupError, match="let PYSPARK_PYTHON name a Python that has it"):
        data_source.register(session(None, "ModuleNotFoundError: No module named 'kafka_fast'"))
    with pytest.raises(RuntimeError, match="of Spark's own"):
        data_source.register(session(None, "of Spark's own"))


def test_a_session_without_data_sources_is_refused() -> None:
    with pytest.raises(SparkSetupError, match=r"needs PySpark 4\.0"):
        data_source.register(SimpleNamespace())  # type: ignore[arg-type]


def test_a_directory_for_first_offsets_is_refused_before_the_query(tmp_path: Path) -> None:
    options = {**READ, "initialOffsetsLocation": str(tmp_path)}
    with pytest.raises(UsageError, match="is a directory"):
        data_source.schema(options)
    with pytest.raises(UsageError, match="is a directory"):
        data_source.stream_reader(options, VALUES)


def test_what_spark_calls_keeps_the_types_of_its_errors() -> None:
    """Regression: an option's error was a text among PySpark's own lines."""
    from pyspark_kafka_fast import DefaultSource

    source = DefaultSource({**READ, "minPartitions": "x"})
    sink = DefaultSource({**SINK, "topik": "t"})
    for call in (
        source.schema,
        lambda: source.reader(VALUES),
        lambda: source.streamReader(VALUES),
        lambda: sink.writer(VALUES, False),
        lambda: sink.streamWriter(VALUES, False),
    ):
        with pytest.raises(TaskError) as raised:
            call()
        assert type(read_task_error(str(raised.value))) is UsageError
