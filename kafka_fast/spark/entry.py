"""The function that Spark pickles: it must reach a worker that has no kafka_fast, and say so.

A function of an importable module is pickled as its name, and a worker that cannot import it fails
inside pickle, with a message that helps nobody. A nested function is pickled by value, with what
it closes over. So the nested function below uses builtins and plain data only until it has
imported the package itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kafka_fast._version import __version__


def worker_entry(
    function: str, arguments: tuple[Any, ...]
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return a function for Spark that calls `kafka_fast.spark.task.<function>` in the worker.

    Args:
        function: Name of the function; it is called with the task's input and `arguments`.
        arguments: Plain data.
    """
    version = __version__

    def entry(records: Iterable[Any]) -> Iterator[Any]:
        import sys

        try:
            from kafka_fast.spark import task
        except ImportError as error:
            raise RuntimeError(
                f"this Spark worker runs {sys.executable}, which cannot import kafka_fast "
                f"({error}). Install kafka_fast {version} there, or set PYSPARK_PYTHON to a Python "
                "that has it before the session starts."
            ) from error
        return getattr(task, function)(records, *arguments)  # type: ignore[no-any-return]

    return entry
