"""The function that Spark pickles. It runs also in a worker without kafka_fast, and reports that.

A function of an importable module is pickled as its name. A worker that cannot import it fails
inside pickle, with a useless message. A nested function is pickled by value, with its closure. So
the nested function below uses only the standard library and plain data, until it has imported the
package. Driver and worker must have the same version of the package, because the data between them
is no stable interface.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kafka_fast._version import __version__
from kafka_fast.spark.task_errors import MARK


def worker_entry(
    function: str, arguments: tuple[Any, ...]
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return a function for Spark that calls `spark.worker.task.<function>` in the worker.

    Args:
        function: name of the function; it is called with the task's input and `arguments`.
        arguments: plain data.
    """
    version, mark = __version__, MARK

    def entry(records: Iterable[Any]) -> Iterator[Any]:
        import json
        import platform
        import sys

        def wrong(what: str) -> RuntimeError:
            """Return a SparkSetupError in the form that the driver reads."""
            said = (
                f"the Python of a Spark worker, {sys.executable} on {platform.node()}, {what}: "
                f"install kafka_fast {version} there, or let PYSPARK_PYTHON name a Python that "
                "has it before the session starts"
            )
            coded = json.dumps({"type": "SparkSetupError", "args": [said], "state": {}})
            return RuntimeError(f"{said}\n{mark}{coded}")

        try:
            from kafka_fast._version import __version__ as worker_version
            from kafka_fast.spark.worker import task
        except ImportError as error:
            raise wrong(f"cannot import kafka_fast ({error})") from None
        if worker_version != version:
            raise wrong(f"has kafka_fast {worker_version}, where the driver has {version}")
        return task.run(function, records, arguments)

    return entry
