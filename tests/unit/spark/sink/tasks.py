"""A task context of Spark's, without Spark."""

from __future__ import annotations

import sys
import types
from collections.abc import Mapping

import pytest


def in_task(
    monkeypatch: pytest.MonkeyPatch, properties: Mapping[str, str] | None, task: int = 0
) -> None:
    """Let this process look like a worker that runs a task; None: like no worker."""
    context = types.SimpleNamespace(
        partitionId=lambda: task,
        attemptNumber=lambda: 0,
        getLocalProperty=(properties or {}).get,
    )
    pyspark = types.ModuleType("pyspark")
    pyspark.TaskContext = types.SimpleNamespace(  # type: ignore[attr-defined]
        get=lambda: None if properties is None else context
    )
    monkeypatch.setitem(sys.modules, "pyspark", pyspark)
