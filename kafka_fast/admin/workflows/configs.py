"""Calls that change settings, whose values may come from functions of the user's."""

from __future__ import annotations

from kafka_fast.admin.admin_steps import AdminSteps
from kafka_fast.admin.result import AdminResult
from kafka_fast.control.admin.operations.configs import AlterConfigs, IncrementalAlterConfigs
from kafka_fast.control.admin.types.configs import ConfigResource
from kafka_fast.net.waiting.steps import InThread, Steps


def alter_configs(
    steps: AdminSteps, operation: AlterConfigs | IncrementalAlterConfigs, timeout: float | None
) -> Steps[AdminResult[ConfigResource, None]]:
    """Change settings. Values that functions return are had first: the control thread never waits.

    Raises:
        KafkaError: a value cannot be had, or as in `AdminSteps.run_items`.
    """
    deadline = steps.begin_call(timeout)
    if operation.may_block:
        yield InThread(operation.reveal_values)
    results = yield from steps.results(operation, deadline)
    return AdminResult(operation.name, results)
