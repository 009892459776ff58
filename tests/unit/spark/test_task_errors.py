"""Errors of tasks, to text and back."""

from __future__ import annotations

import inspect
import json
import pickle
import ssl
import sys
import traceback
import types
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_fast.errors import (
    AuthenticationError,
    DeliveryError,
    KafkaError,
    KafkaTimeoutError,
    MessageTooLarge,
    Outcome,
    UnsupportedVersionError,
    UsageError,
    broker_error,
)
from kafka_fast.spark import KafkaDeliveryError, SparkSetupError
from kafka_fast.spark.task_errors import (
    MARK,
    TaskError,
    carried,
    carrying,
    read_task_error,
)

PLACE = "(Spark task 5, attempt 2, on worker-7)"


@pytest.fixture(autouse=True)
def _in_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    context = types.SimpleNamespace(partitionId=lambda: 5, attemptNumber=lambda: 2)
    pyspark = types.ModuleType("pyspark")
    pyspark.TaskContext = types.SimpleNamespace(get=lambda: context)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pyspark", pyspark)
    monkeypatch.setattr("platform.node", lambda: "worker-7")


def failing(error: BaseException) -> Iterator[int]:
    """Yield a row, and fail."""
    yield 1
    raise error


def there_and_back(error: KafkaError) -> KafkaError:
    """Return what the driver makes of a task's error, deep in Spark's text."""
    with pytest.raises(TaskError) as raised:
        list(carried(failing(error)))
    text = f"Job aborted\n{MARK}not this\n  File x: {raised.value}\n\tat org.apache.Spark(1)"
    copy = read_task_error(text)
    assert copy is not None
    return copy


def test_a_delivery_error_keeps_its_attributes() -> None:
    reason = MessageTooLarge("2 MB")
    first = DeliveryError("too large", outcome=Outcome.REJECTED, first=reason, topic="t")
    first.partition = 3
    error = KafkaDeliveryError(
        "1 of 4 records were not delivered",
        outcome=Outcome.MAYBE_WRITTEN,
        count=1,
        first=first,
        samples=[first, OSError(104, "reset")],
    )
    copy = there_and_back(error)
    assert isinstance(copy, KafkaDeliveryError)
    assert str(copy) == f"1 of 4 records were not delivered {PLACE}"
    assert (copy.outcome, copy.count, copy.topic) == (Outcome.MAYBE_WRITTEN, 1, None)
    sample, reset = copy.samples
    assert copy.first is sample and isinstance(sample, DeliveryError)
    assert (str(sample), sample.outcome, sample.topic) == ("too large", Outcome.REJECTED, "t")
    assert sample.partition == 3
    assert isinstance(sample.first, MessageTooLarge) and str(sample.first) == str(reason)
    assert isinstance(reset, OSError) and (reset.errno, reset.strerror) == (104, "reset")
    assert str(pickle.loads(pickle.dumps(copy))) == str(copy)
    assert str(error) == "1 of 4 records were not delivered"  # the task's own is as it was


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (KafkaTimeoutError("no metadata of topic 't'"), f"no metadata of topic 't' {PLACE}"),
        (
            UsageError("a {sign} <b>, ünïcode\nand a line"),
            f"a {{sign}} <b>, ünïcode\nand a line {PLACE}",
        ),
        (MessageTooLarge(None), f"MESSAGE_TOO_LARGE (10): {MessageTooLarge.description} {PLACE}"),
        (broker_error(4711, "new"), f"UNKNOWN_4711 (4711): new {PLACE}"),
        (AuthenticationError("refused"), f"refused {PLACE}"),
        (UnsupportedVersionError("old", header=object()), f"old {PLACE}"),
        (SparkSetupError("no Python"), f"no Python {PLACE}"),
        (KafkaError(), f" {PLACE}"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_types_and_sentences_survive(error: KafkaError, sentence: str) -> None:
    copy = there_and_back(error)
    assert type(copy) is type(error)
    assert str(copy) == sentence


class OwnError(KafkaTimeoutError):
    """One that the driver may not know."""


def test_what_the_driver_does_not_know_is_the_nearest_that_it_does() -> None:
    assert type(there_and_back(OwnError("mine"))) is KafkaTimeoutError
    error = DeliveryError("x", outcome=Outcome.NOT_SENT, first=ssl.SSLError(1, "handshake"))
    first = there_and_back(error).first  # type: ignore[attr-defined]
    assert type(first) is OSError and "handshake" in str(first)


def test_a_chain_without_end_is_cut() -> None:
    error = DeliveryError("deep", outcome=Outcome.NOT_SENT)
    error.first = error
    copy: Any = there_and_back(error)
    depth = 0
    while copy is not None:
        copy, depth = copy.first, depth + 1
    assert depth == 4


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Job aborted due to stage failure",
        MARK,
        MARK + "{",
        MARK + "[]",
        MARK + "{}",
        MARK + json.dumps({"type": "ValueError", "args": ["not ours"], "state": {}}),
        MARK + json.dumps({"type": "SystemExit", "args": [1], "state": {}}),
        MARK + json.dumps({"type": "Popen", "args": ["rm"], "state": {}}),
        MARK + json.dumps({"type": "KafkaError", "args": 5, "state": {}}),
        MARK + json.dumps({"type": "KafkaError", "args": [], "state": [1]}),
        MARK + json.dumps({"type": 5, "args": [], "state": {}}),
        MARK + json.dumps({"type": "UsageError", "args": [{"outcome": "no"}], "state": {}}),
    ],
)
def test_text_of_somebody_else_is_no_error(text: str) -> None:
    assert read_task_error(text) is None


def test_rows_pass_and_what_is_not_kafkas_is_raised_as_it_is() -> None:
    assert list(carried([1])) == [1]
    with pytest.raises(ZeroDivisionError):
        list(carried(failing(ZeroDivisionError())))


def test_the_sentence_is_the_first_line_of_what_spark_shows() -> None:
    error = UsageError("what")
    error.__cause__ = ValueError("why")
    with pytest.raises(TaskError) as raised:
        list(carried(failing(error)))
    assert raised.traceback[-1].name == "failing"  # the executor's log shows where it happened
    for _ in range(2):
        shown = "".join(traceback.format_exception(raised.value)).splitlines()
        assert shown[0] == f"kafka_fast.errors.UsageError: what {PLACE}"
        assert shown[-2:] == ["The cause:", "ValueError: why"]
        raised.value.__cause__ = None  # as PySpark does where it shows a shorter traceback


def test_a_function_of_the_planner_is_in_no_task() -> None:
    @carrying
    def plan(topic: str, *, fails: bool) -> str:
        if fails:
            raise UsageError(f"no {topic}")
        return topic

    assert plan("t", fails=False) == "t"
    assert list(inspect.signature(plan).parameters) == ["topic", "fails"]  # PySpark looks at these
    with pytest.raises(TaskError) as raised:
        plan("t", fails=True)
    assert str(read_task_error(str(raised.value))) == "no t"
    assert str(raised.value).splitlines()[0] == "no t"
