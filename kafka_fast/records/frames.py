"""Tables and DataFrames of other packages, made from what is an Arrow stream already.

None of the packages is needed otherwise. Each is imported by the call that needs it.

    arrow ─► pyarrow.Table ─► pandas.DataFrame
          └► polars.DataFrame

pandas.DataFrame(...) takes no Arrow stream. It asks for an array, and makes columns of the fields
if the items are dataclasses; so `rows_array` makes such items.

Thread: the caller's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta, timezone
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from kafka_fast.errors import MissingPackageError

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from kafka_fast.records._consumer_records import ConsumerRecords

T = TypeVar("T")

COLUMNS = (
    "topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers",
)  # fmt: skip
"""The columns of the layout "kafka"."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def package_for(call: str, name: str) -> Any:
    """Return a package that only this call needs.

    Raises:
        MissingPackageError: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        raise MissingPackageError(
            f"{call} needs {name}: pip install {name}",
            package=name,
            extra="arrow" if name == "pyarrow" else None,
        ) from None


def to_arrow(arrow: Callable[[], object], failures: list[BaseException]) -> pa.Table:
    """Return the rows as a pyarrow.Table.

    Args:
        arrow: returns the stream. It is called when the package is there, and may begin to read.
        failures: gets the exceptions of the stream; the package passes on their texts only.
    """
    pyarrow = package_for("to_arrow()", "pyarrow")
    return _raising(lambda: pyarrow.table(arrow()), failures)


def to_pandas(arrow: Callable[[], object], failures: list[BaseException]) -> pd.DataFrame:
    """Return the rows as a pandas.DataFrame; arguments as for `to_arrow`."""
    package_for("to_pandas()", "pandas")
    pyarrow = package_for("to_pandas()", "pyarrow")
    return _raising(lambda: pyarrow.table(arrow()), failures).to_pandas()


def to_polars(arrow: Callable[[], object], failures: list[BaseException]) -> pl.DataFrame:
    """Return the rows as a polars.DataFrame; arguments as for `to_arrow`."""
    polars = package_for("to_polars()", "polars")
    frame: pl.DataFrame = _raising(lambda: polars.DataFrame(arrow()), failures)
    return frame


def _raising(make: Callable[[], T], failures: list[BaseException]) -> T:
    """Return what is made; an exception of the stream comes out as it was raised."""
    try:
        return make()
    except Exception:
        if failures:
            raise failures[0] from None
        raise


def rows_array(steps: Iterable[ConsumerRecords], dtype: object = None) -> Any:
    """Return a numpy array with a dataclass object for each record, as `__array__` has to.

    Args:
        steps: the records.
        dtype: of the array; None: objects.

    Raises:
        MissingPackageError: numpy is not installed.
    """
    from dataclasses import make_dataclass  # few processes need it

    numpy = package_for("an array of records", "numpy")
    row = make_dataclass("Row", COLUMNS)
    rows = [
        row(
            record.topic,
            record.partition,
            record.offset,
            _time(record.timestamp_ms),
            int(record.timestamp_type),
            record.key,
            record.value,
            record.headers,
        )
        for records in steps
        for record in records
    ]
    array = numpy.empty(len(rows), dtype=object)
    array[:] = rows
    return array if dtype is None else array.astype(dtype)


def _time(ms: int) -> datetime | None:
    """Return a timestamp as a datetime; None: there is none, or no datetime is as late."""
    try:
        return None if ms < 0 else _EPOCH + timedelta(milliseconds=ms)
    except OverflowError:
        return None
