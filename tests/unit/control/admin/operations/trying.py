"""Tries an operation without a client: what it sends, and what it makes of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka_fast.control.admin.operation import Operation
from kafka_fast.control.requests.call import AnswerSource
from kafka_fast.control.requests.meanings import Done, Meaning, Refused
from kafka_fast.errors import KafkaError
from kafka_fast.protocol.schema import Response

REQUEST_TIMEOUT = 30.0


def versions(operation: type[Operation[Any, Any]]) -> range:
    """Return the versions that a client sends."""
    request = operation.request_class
    return range(request.versions.low, request.stable + 1)


def sent(operation: Operation[Any, Any], version: int, items: Sequence[Any] | None = None) -> Any:
    """Return the request as a broker reads it."""
    operation.begin(REQUEST_TIMEOUT, lambda results: None)
    request = operation.build(list(operation.items or ()) if items is None else items, version)
    return type(request).decode(request.encode(version), version)


def meanings(
    operation: Operation[Any, Any],
    answer: Response,
    version: int,
    items: Sequence[Any] | None = None,
) -> dict[Any, Meaning[Any]]:
    """Return what an answer means, after its way over the network."""
    read = type(answer).decode(answer.encode(version), version)
    source = AnswerSource(version, "node 1", 0.0)
    asked = list(operation.items or ()) if items is None else items
    return dict(operation.read(read, asked, source))


def values(
    operation: Operation[Any, Any],
    answer: Response,
    version: int,
    items: Sequence[Any] | None = None,
) -> dict[Any, Any]:
    """Return the values of items that were all done."""
    read = meanings(operation, answer, version, items)
    assert all(isinstance(one, Done) for one in read.values()), read
    return {key: one.value for key, one in read.items() if isinstance(one, Done)}


def refused(meaning: Meaning[Any]) -> KafkaError:
    """Return the error of an item that is not tried again."""
    assert isinstance(meaning, Refused), meaning
    return meaning.error
