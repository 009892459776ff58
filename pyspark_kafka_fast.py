"""Lets Spark find `format("kafka_fast")` by itself: it looks into modules named `pyspark_...`.

Spark imports this module at its first look-up of any Python data source. If that failed, no other
data source would be found either. So nothing of kafka_fast is imported before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

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
            from kafka_fast.spark import data_source

            return data_source.schema(self.options)

        def reader(self, schema: StructType) -> DataSourceReader:
            """Return the reader of a batch."""
            from kafka_fast.spark import data_source

            return data_source.batch_reader(self.options, schema)

        def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
            """Return the reader of a stream."""
            from kafka_fast.spark import data_source

            return data_source.stream_reader(self.options, schema)

        def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
            """Return the writer of a batch; mistakes in options and columns show here."""
            from kafka_fast.spark import data_source

            return data_source.batch_writer(self.options, schema, overwrite=overwrite)

        def streamWriter(  # noqa: N802
            self, schema: StructType, overwrite: bool
        ) -> DataSourceStreamWriter:
            """Return the writer of a stream; Spark says overwrite for output mode complete."""
            from kafka_fast.spark import data_source

            return data_source.stream_writer(self.options, schema)
