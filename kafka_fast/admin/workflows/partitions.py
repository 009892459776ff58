"""Calls about partitions whose results are named by the cluster."""

from __future__ import annotations

from collections.abc import Iterable

from kafka_fast.admin.admin_steps import AdminSteps
from kafka_fast.admin.result import AdminResult
from kafka_fast.control.admin.operation import OperationResults
from kafka_fast.control.admin.operations.partitions import ElectAllLeaders, ElectLeaders
from kafka_fast.control.admin.types.partitions import ElectionType
from kafka_fast.net.waiting.steps import Steps
from kafka_fast.types import TopicPartition


def elect_leaders(
    steps: AdminSteps,
    kind: ElectionType,
    *,
    partitions: Iterable[TopicPartition] | None,
    timeout: float | None,
) -> Steps[AdminResult[TopicPartition, None]]:
    """Elect the leaders of some partitions, or of all that need it; those are named then.

    Raises:
        KafkaError: as in `AdminSteps.run_items`; or no partition was named.
    """
    if partitions is not None:
        return (yield from steps.run_items(ElectLeaders(kind, partitions), timeout))
    operation = ElectAllLeaders(kind)
    elected = yield from steps.run_one(operation, timeout)
    results: OperationResults[TopicPartition, None] = steps.no_results(elected)
    for partition, error in elected.items():
        if error is None:
            results.values[partition] = None
        else:
            results.errors[partition] = error
    return AdminResult(operation.name, results)
