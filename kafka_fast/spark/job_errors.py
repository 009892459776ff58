"""Turns the error of a failed Spark job into a KafkaError whose first line is a plain sentence.

Spark's error for a failed job is a long text: the driver's stack and the worker's traceback, with
the task's error in between. The task's error is raised instead, `from` Spark's error, whose own
cause is a copy of the task's error. So the sentence is the first line of the chain as Python prints
it, and the last line on a terminal. If `foreachBatch` raised the error, the sentence is the first
line of the stream's error.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from kafka_fast.errors import KafkaError, UsageError, fresh_copy
from kafka_fast.spark.errors import SparkSetupError
from kafka_fast.spark.task_errors import read_task_error

# Messages of Spark, Python and Java about a worker or driver that could not begin; PySpark 3.5 to
# 4.3. The program must be named "py...": other programs are those that the input pipes records
# through.
NO_PYTHON = re.compile(r'Cannot run program "([^"\n]*py[^"/\n]*)"[^\n]*?error=\d+, ([^\n]+)')
OTHER_PYTHON = re.compile(r"\[PYTHON_VERSION_MISMATCH\] ([^\n]+?\.)(?:\s|$)")
NO_PACKAGE = re.compile(
    r"^ModuleNotFoundError: (No module named 'pyarrow')"
    r"|((PyArrow|Pandas) >= ([\d.]+) must be installed; however, [^\n]+?)\.?$",
    re.MULTILINE,
)


# What Spark itself says of modes that no Python data source has, before it asks the data source.
SAVE_MODE = re.compile(
    r"UNSUPPORTED_DATA_SOURCE_SAVE_MODE\] The data source \"kafka_fast\" [^\n]*? \"(\w+)\" mode"
)
OUTPUT_MODE = re.compile(r"kafka_fast does not support (\w+) mode")


@contextmanager
def typed_errors() -> Iterator[None]:
    """Raise the KafkaError behind the failure of the job in this block, if there is one.

    Other failures, in the input's own functions or in Spark, are raised unchanged.

    Raises:
        KafkaError: The task's error; `__cause__` is Spark's own error.
        SparkSetupError: A Python or a package is missing, or has another version.
    """
    try:
        yield
    except Exception as error:
        found = kafka_error(error)
        if found is None:
            raise
        if error.__cause__ is None:
            error.__cause__ = fresh_copy(found)
        raise found from error


def kafka_error(error: BaseException) -> KafkaError | None:
    """Return the KafkaError behind an error of Spark's; None if there is none.

    `write_df` and `write_rdd` raise the KafkaError themselves. This function is for other jobs: a
    stream that writes in `foreachBatch`, or an RDD's own action on `write_partition`.

    Examples:
        >>> try:
        ...     query.awaitTermination()
        ... except StreamingQueryException as error:
        ...     raise kafka_error(error) or error

    Args:
        error: The exception from PySpark.
    """
    if isinstance(error, KafkaError):
        return error
    text = str(error)
    on_driver = isinstance(error, ImportError)
    return read_task_error(text) or _mode_error(text) or _setup_error(text, on_driver=on_driver)


def _mode_error(text: str) -> UsageError | None:
    """Return the error if Spark refused how a query writes; else None."""
    if save_mode := SAVE_MODE.search(text):
        return UsageError(
            f"Save mode {save_mode[1]} is not allowed for a Python data source: write "
            '.mode("append")'
        )
    if output_mode := OUTPUT_MODE.search(text):
        return UsageError(
            f"Output mode {output_mode[1]} is not allowed for a Python data source: write "
            '.outputMode("append"), or write each batch in foreachBatch'
        )
    return None


def _setup_error(text: str, *, on_driver: bool) -> SparkSetupError | None:
    """Return the error if a worker, or `mapInArrow` on the driver, could not begin; else None."""
    if no_python := NO_PYTHON.search(text):
        program, reason = no_python.groups()
        return SparkSetupError(
            f"the Spark workers cannot run the Python {program!r} ({reason}), which PYSPARK_PYTHON "
            "or spark.pyspark.python names: have it on every node, or in the archive that the job "
            "ships"
        )
    if other_python := OTHER_PYTHON.search(text):
        return SparkSetupError(
            f"{other_python[1]} PYSPARK_PYTHON names the workers' Python, PYSPARK_DRIVER_PYTHON "
            "the driver's."
        )
    if no_package := NO_PACKAGE.search(text):
        where = (
            f"the driver's Python, {sys.executable}," if on_driver else "a Spark worker's Python"
        )
        module, versions, name, version = no_package.groups()
        package = "pyarrow" if module else f"'{name.lower()}>={version}'"
        return SparkSetupError(
            f"{where} lacks what write_df needs: {module or versions}; pip install {package} there"
        )
    return None
