"""Lets Spark find `format("kafka_fast")` by itself: it looks into modules named `pyspark_...`.

Spark imports this module at its first look-up of any Python data source. If that failed, no other
data source would be found either. So nothing of kafka_fast is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType


def _planning(name: str) -> Callable[..., Any]:
    """Return a function of `data_source`, whose errors keep their type on the way to the user."""
    from kafka_fast.spark import data_source
    from kafka_fast.spark.task_errors import carrying

    return carrying(getattr(data_source, name))


try:
    from pyspark.sql.datasource import DataSource
except ImportError:  # PySpark before 4.0, or none
    pass
else:

    class DefaultSource(DataSource):
        """The data source `kafka_fast`. Its options are those of Spark's own `kafka`."""

        @classmethod
        def name(cls) -> str:
            """Return the name for `format(...)`."""
            return "kafka_fast"

        def schema(self) -> str:
            """Return the columns; mistakes in the options show here first."""
            return str(_planning("schema")(self.options))

        def reader(self, schema: StructType) -> DataSourceReader:
            """Return the reader of a batch."""
            reader: DataSourceReader = _planning("batch_reader")(self.options, schema)
            return reader

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
            """Return the reader of a stream."""
            reader: DataSourceStreamReader = _planning("stream_reader")(self.options, schema)
            return reader

        def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
            """Return the writer of a batch; mistakes in options and columns show here."""
            writer: DataSourceWriter = _planning("batch_writer")(
                self.options, schema, overwrite=overwrite
            )
            return writer

        def streamWriter(  # noqa: N802
            self, schema: StructType, overwrite: bool
        ) -> DataSourceStreamWriter:
            """Return the writer of a stream; Spark says overwrite for output mode complete."""
            writer: DataSourceStreamWriter = _planning("stream_writer")(self.options, schema)
            return writer
