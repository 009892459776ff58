"""Offsets of many groups: a result for each group, in it one for each partition."""

from __future__ import annotations

from typing import Any, TypeVar

from kafka_fast.admin.admin_steps import AdminSteps
from kafka_fast.admin.result import AdminResult
from kafka_fast.admin.workflows.together import with_values
from kafka_fast.control.admin.operation import Operation, OperationResults
from kafka_fast.net.waiting.steps import Steps
from kafka_fast.types import TopicPartition
from kafka_fast.values import replace

V = TypeVar("V")


def list_offsets_of_groups(
    steps: AdminSteps,
    operation: Operation[str, OperationResults[TopicPartition, V]],
    timeout: float | None,
) -> Steps[AdminResult[str, AdminResult[TopicPartition, V]]]:
    """Return the offsets of groups. A partition's error is that of its own item only.

    Args:
        steps: of the client.
        operation: asks for the offsets.
        timeout: seconds; None: default.api.timeout.ms.
    """
    results = yield from steps.results(operation, steps.begin_call(timeout))
    by_group: dict[str, AdminResult[TopicPartition, V]] = {}
    for group_id, inner in results.values.items():
        # The client and the throttle time are those of the whole.
        whole: Any = replace(results, keys=inner.keys, values=inner.values, errors=inner.errors)
        by_group[group_id] = AdminResult(operation.name, whole)
    return AdminResult(operation.name, with_values(results, by_group))
