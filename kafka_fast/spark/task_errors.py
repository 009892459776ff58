"""Carries an error of Spark's Python processes to the user, with its type and its sentence.

Spark carries an exception of a worker or of a planner as text: a traceback, inside a Java
exception, inside another traceback. So they raise a `TaskError`, whose text has a line of JSON. The
driver finds that line at any depth.

    worker, planner    KafkaError ──► TaskError: the sentence
                                                 kafka_fast-error {"type": ..., "args": ..., ...}
    Spark              its own errors round that text
    driver             text ──► KafkaError, of the same type and with the same attributes

Python prints a cause before what it caused, and no frames for an error that was never raised. So
each `TaskError` has such a copy of the KafkaError as its cause: the text that Spark shows begins
with the sentence, and the traceback comes after it.

The text may come from anywhere, so nothing is unpickled: the JSON names a known type of exception
and holds plain values.
"""

from __future__ import annotations

import builtins
import functools
import json
import platform
import traceback
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NoReturn, ParamSpec, TypeVar

from kafka_fast import errors
from kafka_fast.errors import KafkaError, Outcome, fresh_copy
from kafka_fast.spark.errors import DataLossError, KafkaDeliveryError, SparkSetupError

MARK = "kafka_fast-error "
"""The text before the JSON. The closure in `entry` has a copy, for workers without kafka_fast."""

MAX_DEPTH = 4
"""Most errors in a chain that are carried, each an attribute of the one before."""

P = ParamSpec("P")
R = TypeVar("R")

OWN = {each.__name__: each for each in (DataLossError, KafkaDeliveryError, SparkSetupError)}


class TaskError(Exception):
    """What Spark gets in place of a KafkaError; `kafka_error` turns its text back into that.

    Args:
        text: what is for the user and for the driver.
        told: the KafkaError, without frames: the cause, which is printed first.
    """

    def __init__(self, text: str, told: KafkaError) -> None:
        super().__init__(text)
        self._told = told

    @property
    def __cause__(self) -> BaseException | None:
        """The KafkaError, for good: PySpark takes away the causes of errors that it shows."""
        return self._told

    @__cause__.setter
    def __cause__(self, cause: BaseException | None) -> None:
        pass  # see above


# ---- in the worker or the planner ----


def carried(rows: Iterable[Any]) -> Iterator[Any]:
    """Yield the rows of a task; raise a KafkaError in the form that the driver reads.

    Raises:
        TaskError: in place of any KafkaError, with its traceback.
    """
    try:
        yield from rows
    except KafkaError as error:
        _raise_for_spark(error, _with_place(error))


def carrying(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function of the planner that raises a KafkaError in the form that the driver reads.

    Raises:
        TaskError: in place of any KafkaError, with its traceback.
    """

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except KafkaError as error:
            _raise_for_spark(error, fresh_copy(error))

    return call


def _raise_for_spark(error: KafkaError, told: KafkaError) -> NoReturn:
    """Raise the TaskError for an error that was caught.

    Args:
        error: with the traceback of where it was raised.
        told: its copy, as the user is to read it, never raised.
    """
    inside = error.__traceback__ and error.__traceback__.tb_next
    cause, told.__cause__ = error.__cause__, None
    raise task_error(told, cause).with_traceback(inside)


def task_error(error: KafkaError, cause: BaseException | None = None) -> TaskError:
    """Return the TaskError for `error`: its sentence, the line of JSON, and what caused it."""
    text = f"{error}\n{MARK}{json.dumps(_encoded(error, MAX_DEPTH))}"
    if cause is not None:
        text += f"\nThe cause:\n{''.join(traceback.format_exception(cause)).rstrip()}"
    return TaskError(text, error)


def _with_place(error: KafkaError) -> KafkaError:
    """Return a copy of a task's error whose sentence ends in the task, attempt and machine."""
    placed = fresh_copy(error)
    said = placed.args[0] if placed.args else None
    placed.args = (f"{said or getattr(error, 'description', '')} ({_place()})", *placed.args[1:])
    return placed


def identity() -> tuple[int, int]:
    """Return the numbers of the Spark partition and of the attempt; zeros outside of Spark."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return (context.partitionId(), context.attemptNumber()) if context is not None else (0, 0)


def _place() -> str:
    task, attempt = identity()
    return f"Spark task {task}, attempt {attempt}, on {platform.node()}"


def _encoded(error: BaseException, depth: int) -> dict[str, Any]:
    kind = type(error)
    known = next(each for each in kind.__mro__ if _type_named(each.__name__) is each)
    exact = known is kind or issubclass(known, KafkaError)
    state = dict(error.__dict__) if issubclass(known, KafkaError) else {}
    if state.get("samples") and state.get("first") is state["samples"][0]:
        del state["first"]  # once is enough
    return {
        "type": known.__name__,
        "args": _plain(list(error.args) if exact else [str(error)], depth),
        "state": {name: _plain(value, depth) for name, value in state.items()},
    }


def _plain(value: Any, depth: int) -> Any:
    """Return the value in JSON's types; None if the value cannot be carried."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Outcome):
        return {"outcome": value.name}
    if isinstance(value, BaseException):
        return {"error": _encoded(value, depth - 1)} if depth > 1 else None
    if isinstance(value, (tuple, list)):
        return [_plain(each, depth) for each in value]
    return None


# ---- on the driver ----


def read_task_error(text: str) -> KafkaError | None:
    """Return the error that a task put into this text; None if there is none."""
    start = text.find(MARK)
    while start >= 0:
        try:
            fields, _ = json.JSONDecoder().raw_decode(text, start + len(MARK))
            error = _decoded(fields)
        except (ValueError, LookupError, TypeError, AttributeError):
            error = None  # the text is not ours, or is cut short
        if isinstance(error, KafkaError):
            return error
        start = text.find(MARK, start + 1)
    return None


def _decoded(fields: Any) -> BaseException:
    kind = _type_named(fields["type"])
    if kind is None:
        raise LookupError(fields["type"])
    args = tuple(map(_value, fields["args"]))
    error = kind.__new__(kind, *args)
    error.args = args
    state = {str(name): _value(value) for name, value in fields["state"].items()}
    if state.get("samples"):
        state["samples"] = tuple(state["samples"])
        state.setdefault("first", state["samples"][0])
    error.__dict__.update(state)
    return error


def _value(plain: Any) -> Any:
    if isinstance(plain, dict):
        return Outcome[plain["outcome"]] if "outcome" in plain else _decoded(plain["error"])
    if isinstance(plain, list):
        return [_value(each) for each in plain]
    return plain


def _type_named(name: str) -> type[BaseException] | None:
    """Return the exception type of this name: Spark's part, kafka_fast's or Python's, or None."""
    kind = OWN.get(name) or vars(errors).get(name) or vars(builtins).get(name)
    return kind if isinstance(kind, type) and issubclass(kind, BaseException) else None
