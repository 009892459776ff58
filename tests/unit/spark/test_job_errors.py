"""What is raised for a failed job; the texts are those of PySpark 3.5, 4.0 and 4.3."""

from __future__ import annotations

import sys
import traceback
from types import SimpleNamespace

import pytest

from kafka_fast.errors import KafkaTimeoutError, UsageError
from kafka_fast.spark import SparkSetupError, kafka_error
from kafka_fast.spark.job_errors import typed_errors
from kafka_fast.spark.task_errors import MARK

TASK = MARK + '{"type": "KafkaTimeoutError", "args": ["no metadata of topic \'t\'"], "state": {}}'


class PythonException(Exception):  # noqa: N818  PySpark's name
    """What PySpark raises."""


def job_that_fails(error: Exception) -> BaseException:
    """Return what a write raises for a job that fails with this."""
    with pytest.raises(BaseException) as raised, typed_errors():
        raise error
    return raised.value


def test_the_sentence_is_the_first_line_and_the_last() -> None:
    error = PythonException(f"\n  An exception was thrown from the Python worker.\n{TASK}\n\tat x")
    raised = job_that_fails(error)
    assert type(raised) is KafkaTimeoutError
    assert str(raised) == "no metadata of topic 't'"
    assert raised.__cause__ is error
    lines = "".join(traceback.format_exception(raised)).splitlines()
    sentence = "kafka_fast.errors.KafkaTimeoutError: no metadata of topic 't'"
    assert (lines[0], lines[-1]) == (sentence, sentence)
    assert kafka_error(raised) is raised


def test_other_errors_are_raised_as_they_are() -> None:
    error = PythonException("Traceback ...\nZeroDivisionError: division by zero")
    assert job_that_fails(error) is error
    assert (error.__cause__, kafka_error(error)) == (None, None)


def test_a_cause_that_spark_names_is_kept() -> None:
    error, cause = PythonException(TASK), ValueError("why")
    error.__cause__ = cause
    job_that_fails(error)
    assert error.__cause__ is cause


WORKER = "a Spark worker's Python lacks what write_df needs: "
WHEEL = "pip install wheelhouse/kafka_fast-*.whl there, which `make wheel` makes"
ELSE = (
    f"let PYSPARK_PYTHON name a Python that has it, such as {sys.executable}, before the session "
    "starts, or"
)

PYTHON = (
    "which PYSPARK_PYTHON or spark.pyspark.python names: have it on every node, or in the archive "
    "that the job ships"
)
VERSIONS = "Python in worker has different version: 3.12 than that in driver: 3.11, PySpark cannot."


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "import pyarrow as pa\nModuleNotFoundError: No module named 'pyarrow'\n\tat x",
            f"{WORKER}No module named 'pyarrow'; {ELSE} pip install pyarrow there",
        ),
        (
            (
                "base.PySparkImportError: [PACKAGE_NOT_INSTALLED] PyArrow >= 18.0.0 must be "
                "installed; however, it was not found.\n"
            ),
            (
                f"{WORKER}PyArrow >= 18.0.0 must be installed; however, it was not found; "
                f"{ELSE} pip install 'pyarrow>=18.0.0' there"
            ),
        ),
        (
            "ImportError: PyArrow >= 4.0.0 must be installed; however, your version was 3.0.0.\nx",
            (
                f"{WORKER}PyArrow >= 4.0.0 must be installed; however, your version was 3.0.0; "
                f"{ELSE} pip install 'pyarrow>=4.0.0' there"
            ),
        ),
        (
            (
                ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 "
                'failed: java.io.IOException: Cannot run program "./environment/bin/python": '
                "error=2, No such file or directory\n\tat java.base"
            ),
            (
                "the Spark workers cannot run the Python './environment/bin/python' (No such file "
                f"or directory), {PYTHON}"
            ),
        ),
        (
            'Cannot run program "/x/pypy3" (in directory "/y"): error=13, Permission denied\n',
            f"the Spark workers cannot run the Python '/x/pypy3' (Permission denied), {PYTHON}",
        ),
        *[
            (
                f"PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] {VERSIONS}{end}Please check.",
                (
                    f"{VERSIONS} PYSPARK_PYTHON names the workers' Python, PYSPARK_DRIVER_PYTHON "
                    "the driver's."
                ),
            )
            for end in (" ", "\n")
        ],
    ],
    ids=["module", "4.3", "3.5", "no Python", "not to be run", "versions", "versions, two lines"],
)
def test_what_keeps_a_worker_from_beginning(text: str, sentence: str) -> None:
    raised = job_that_fails(PythonException(text))
    assert type(raised) is SparkSetupError
    assert str(raised) == sentence


# PySpark 4.3 and 3.5.
ABSENT = (
    "\n: org.apache.spark.SparkClassNotFoundException: [DATA_SOURCE_NOT_FOUND] Failed to find the "
    "data source: kafka_fast. Make sure the provider name is correct and the package is properly "
    "registered and compatible with your Spark version. SQLSTATE: 42K02\n\tat org"
)
ABSENT_35 = (
    "org.apache.spark.SparkClassNotFoundException: [DATA_SOURCE_NOT_FOUND] Failed to find the data "
    "source: kafka_fast. Please find packages at `https://spark.apache.org/third-party-projects`."
)


def of_spark(monkeypatch: pytest.MonkeyPatch, version: str, text: str) -> str:
    """Return what `kafka_error` says of this text of this PySpark."""
    monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace(__version__=version))
    error = kafka_error(RuntimeError(text))
    assert type(error) is SparkSetupError
    return str(error)


@pytest.mark.parametrize(
    ("environment", "where"),
    [
        ({}, "the python3 of the PATH, here /bin/python3, because PYSPARK_PYTHON names none"),
        ({"PYSPARK_PYTHON": "/v/python"}, "the Python that PYSPARK_PYTHON names (/v/python)"),
        (
            {"PYSPARK_PYTHON": "/v/python", "PYSPARK_DRIVER_PYTHON": "py"},
            "the Python that PYSPARK_DRIVER_PYTHON names (py, here /bin/py)",
        ),
    ],
)
def test_a_format_that_is_not_found(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], where: str
) -> None:
    """Regression: Spark says DATA_SOURCE_NOT_FOUND, and nothing said why."""
    for name in ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(
        "shutil.which", lambda name: name if name.startswith("/") else f"/bin/{name}"
    )
    assert of_spark(monkeypatch, "4.3.0", ABSENT) == (
        f"Spark looks for format('kafka_fast') in {where}, and found no kafka_fast there: {ELSE} "
        f"{WHEEL}"
    )
    assert kafka_error(RuntimeError(ABSENT.replace("kafka_fast", "kafka_fast_2"))) is None


def test_a_pyspark_that_has_no_formats_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    said = of_spark(monkeypatch, "3.5.3", ABSENT_35)
    assert said.startswith("format('kafka_fast') needs PySpark 4.0")


def test_a_server_that_does_not_find_the_format(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", SimpleNamespace(__version__="4.3.0"))
    of_server = type("Error", (Exception,), {"__module__": "pyspark.errors.exceptions.connect"})
    assert str(kafka_error(of_server(ABSENT))) == (
        "Spark looks for format('kafka_fast') in the Python of the Spark Connect server, and found "
        f"no kafka_fast there: {WHEEL}"
    )


@pytest.mark.parametrize("module", ["kafka_fast", "pyspark_kafka_fast", "kafka_fast.spark.report"])
def test_a_python_of_sparks_without_kafka_fast(module: str) -> None:
    text = f"[PYTHON_DATA_SOURCE_ERROR] x\nModuleNotFoundError: No module named '{module}'\n SQL"
    assert str(job_that_fails(PythonException(text))) == (
        "a Python that Spark runs beside the driver or in a worker has no kafka_fast (No module "
        f"named '{module}'): {ELSE} {WHEEL}"
    )


def test_what_the_driver_itself_lacks() -> None:
    raised = job_that_fails(
        ImportError("Pandas >= 2.2.0 must be installed; however, it was not found.")
    )
    assert str(raised) == (
        f"the driver's Python, {sys.executable}, lacks what write_df needs: Pandas >= 2.2.0 must "
        "be installed; however, it was not found; pip install 'pandas>=2.2.0' there"
    )


@pytest.mark.parametrize(
    "text",
    [
        "ModuleNotFoundError: No module named 'pandas'",  # a function's of the input
        "ModuleNotFoundError: No module named 'pyarrow.cuda'",
        "ModuleNotFoundError: No module named 'kafka_faster'",
        'Cannot run program "/python/bin/ffmpeg": error=2, No such file or directory',
        "NumPy >= 1.23 must be installed; however, it was not found.",
    ],
)
def test_what_the_input_lacks_is_no_matter_of_the_write(text: str) -> None:
    assert kafka_error(PythonException(text)) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            (
                '[UNSUPPORTED_DATA_SOURCE_SAVE_MODE] The data source "kafka_fast" cannot be '
                'written in the "ErrorIfExists" mode. Please use either the "Append" or '
                '"Overwrite" mode instead.'
            ),
            (
                "Save mode ErrorIfExists is not allowed for a Python data source: write "
                '.mode("append")'
            ),
        ),
        (
            "requirement failed: kafka_fast does not support Update mode.\n=== Streaming Query ===",
            (
                "Output mode Update is not allowed for a Python data source: write "
                '.outputMode("append"), or write each batch in foreachBatch'
            ),
        ),
    ],
)
def test_a_mode_that_spark_refuses(text: str, said: str) -> None:
    error = kafka_error(RuntimeError(text))
    assert isinstance(error, UsageError)
    assert str(error) == said
    assert kafka_error(RuntimeError(text.replace("kafka_fast", "other"))) is None
