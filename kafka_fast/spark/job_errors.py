"""Turns the error of a failed Spark job into a KafkaError whose first line is a plain sentence.

Spark's error for a failed job is a long text: the driver's stack and the worker's traceback, with
the task's error in between. The task's error is raised instead, `from` Spark's error, whose own
cause is a copy of the task's error. So the sentence is the first line of the chain as Python prints
it, and the last line on a terminal. If `foreachBatch` raised the error, the sentence is the first
line of the stream's error.

Where kafka_fast could not even be imported, its place in Spark's text is known by Spark's own
words, and the answer says which Python lacks what.
"""

from __future__ import annotations

import os
import re
import shutil
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
NO_KAFKA_FAST = re.compile(
    r"^ModuleNotFoundError: (No module named '(?:pyspark_)?kafka_fast(?:\.[\w.]+)?')", re.MULTILINE
)
NOT_FOUND = re.compile(r"DATA_SOURCE_NOT_FOUND\] Failed to find the data source: kafka_fast\b")

NO_DATA_SOURCES = (
    "format('kafka_fast') needs PySpark 4.0, which is the first with data sources in Python: use "
    "write_df and write_rdd with this one"
)

OUR_WHEEL = "wheelhouse/kafka_fast-*.whl"
"""What pip is given for kafka_fast, which no package index has."""

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
        KafkaError: the task's error; `__cause__` is Spark's own error.
        SparkSetupError: a Python or a package is missing, or has another version.
    """
    try:
        yield
    except Exception as error:
        typed_error = kafka_error(error)
        if typed_error is None:
            raise
        if error.__cause__ is None:
            error.__cause__ = fresh_copy(typed_error)
        raise typed_error from error


def kafka_error(error: BaseException) -> KafkaError | None:
    """Return the KafkaError behind an error of Spark's; None if there is none.

    `write_df` and `write_rdd` raise the KafkaError themselves. This function is for other jobs:
    with `format("kafka_fast")` from its options on, a stream that writes in `foreachBatch`, or an
    RDD's own action on `write_partition`.

    Examples:
        >>> try:
        ...     query.awaitTermination()
        ... except StreamingQueryException as error:
        ...     raise kafka_error(error) or error

    Args:
        error: the exception from PySpark.
    """
    if isinstance(error, KafkaError):
        return error
    text = str(error)
    if NOT_FOUND.search(text):
        return _not_found(is_remote=_is_remote(error))
    on_driver = isinstance(error, ImportError)
    return (
        read_task_error(text)
        or _mode_error(text)
        or _setup_error(text, on_driver=on_driver, is_remote=_is_remote(error))
    )


def _is_remote(error: BaseException) -> bool:
    """Return whether an error comes from a server of Spark Connect, whose Pythons are elsewhere."""
    return type(error).__module__.startswith("pyspark.errors.exceptions.connect")


def _not_found(*, is_remote: bool) -> SparkSetupError:
    """Return the error if the Python in which Spark looks for data sources has no kafka_fast."""
    import pyspark

    if int(pyspark.__version__.partition(".")[0]) < 4:
        return SparkSetupError(NO_DATA_SOURCES)
    return SparkSetupError(
        "Spark looks for format('kafka_fast') in "
        f"{_planners_python(is_remote=is_remote)}, and found no kafka_fast there: "
        f"{_remedy('kafka_fast', is_remote=is_remote)}"
    )


def _planners_python(*, is_remote: bool) -> str:
    """Return the Python that Spark runs beside the driver, for a message."""
    if is_remote:
        return "the Python of the Spark Connect server"
    names = ("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON")
    return _named_python(next((name for name in names if os.environ.get(name)), "PYSPARK_PYTHON"))


def _named_python(variable: str) -> str:
    program = os.environ.get(variable) or "python3"
    path = shutil.which(program)
    at = "" if path in (None, program) else f", here {path}"
    if os.environ.get(variable):
        return f"the Python that {variable} names ({program}{at})"
    return f"the {program} of the PATH{at}, because {variable} names none"


def _remedy(package: str, *, is_remote: bool) -> str:
    """Return what to do about a Python of Spark's that lacks a package."""
    install = f"pip install {package} there"
    if package == "kafka_fast":
        install = f"pip install {OUR_WHEEL} there, which `make wheel` makes"
    if is_remote:
        return install
    return (
        f"let PYSPARK_PYTHON name a Python that has it, such as {sys.executable}, before the "
        f"session starts, or {install}"
    )


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


def _setup_error(text: str, *, on_driver: bool, is_remote: bool) -> SparkSetupError | None:
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
        module, versions, name, version = no_package.groups()
        package = "pyarrow" if module else f"'{name.lower()}>={version}'"
        if on_driver:
            where, remedy = (
                f"the driver's Python, {sys.executable},",
                f"pip install {package} there",
            )
        else:
            where, remedy = "a Spark worker's Python", _remedy(package, is_remote=is_remote)
        return SparkSetupError(f"{where} lacks what write_df needs: {module or versions}; {remedy}")
    if no_kafka_fast := NO_KAFKA_FAST.search(text):
        return SparkSetupError(
            f"a Python that Spark runs beside the driver or in a worker has no kafka_fast "
            f"({no_kafka_fast[1]}): {_remedy('kafka_fast', is_remote=is_remote)}"
        )
    return None
