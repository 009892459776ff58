"""What a failed Spark job says to who called: a KafkaError whose first line is the sentence.

Spark's error of a failed job is a long text: the driver's stack, the worker's traceback, the error
in its midst. The error that is raised for it is the one of the task, `from` Spark's own, which in
turn has the task's as its cause. So the sentence is the first line of the whole chain as Python
prints it, the first line of a stream's error that was raised in `foreachBatch`, and the last one
on a terminal.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from kafka_fast.errors import KafkaError, fresh_copy
from kafka_fast.spark.errors import SparkSetupError
from kafka_fast.spark.task_errors import read_task_error

# What Spark, Python and Java say where a worker, or the driver, could not even begin. PySpark 3.5
# to 4.3.
# A program of another name is not a worker's Python, but one that the input pipes records through.
NO_PYTHON = re.compile(r'Cannot run program "([^"\n]*py[^"/\n]*)"[^\n]*?error=\d+, ([^\n]+)')
OTHER_PYTHON = re.compile(r"\[PYTHON_VERSION_MISMATCH\] ([^\n]+?\.)(?:\s|$)")
NO_PACKAGE = re.compile(
    r"^ModuleNotFoundError: (No module named 'pyarrow')"
    r"|((?:PyArrow|Pandas) >= [\d.]+ must be installed; however, [^\n]+?)\.?$",
    re.MULTILINE,
)


@contextmanager
def typed_errors() -> Iterator[None]:
    """Raise a KafkaError for the failure of the job in this block, where there is one to raise.

    What went wrong elsewhere, in the input's own functions or in Spark, is raised as it is.

    Raises:
        KafkaError: What the task raised; `__cause__` is Spark's own error.
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

    `write_df` and `write_rdd` raise it themselves. This is for errors of other jobs: of a stream
    that writes in `foreachBatch`, or of an RDD's own action on `write_partition`.

    Example:
        >>> try:
        ...     query.awaitTermination()
        ... except StreamingQueryException as error:
        ...     raise kafka_error(error) or error

    Args:
        error: What PySpark raised.
    """
    if isinstance(error, KafkaError):
        return error
    text = str(error)
    return read_task_error(text) or _setup_error(text, on_driver=isinstance(error, ImportError))


def _setup_error(text: str, *, on_driver: bool) -> SparkSetupError | None:
    """Return the error for what keeps a worker, or `mapInArrow` on the driver, from beginning."""
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
        extra = "spark" if on_driver else "arrow"
        return SparkSetupError(
            f"{where} lacks what write_df needs: {no_package[1] or no_package[2]}; "
            f"pip install 'kafka_fast[{extra}]' there"
        )
    return None
