"""The module that Spark imports to find the source: it never fails, and loads little."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def run(program: str) -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], cwd=ROOT, check=True)


def test_it_can_be_imported_without_pyspark() -> None:
    run(
        "import sys; sys.modules['pyspark'] = None; import pyspark_kafka_fast as module; "
        "assert not hasattr(module, 'DefaultSource')"
    )


def test_it_loads_nothing_of_kafka_fast() -> None:
    pytest.importorskip("pyspark", minversion="4.0")
    run(
        "import sys, pyspark_kafka_fast as module; "
        "assert module.DefaultSource.name() == 'kafka_fast'; "
        "assert 'kafka_fast' not in sys.modules"
    )


def test_a_checked_source_has_a_schema_before_it_connects() -> None:
    pytest.importorskip("pyspark", minversion="4.0")
    from pyspark_kafka_fast import DefaultSource

    options = {"kafka.bootstrap.servers": "nowhere:1", "subscribe": "t", "includeHeaders": "true"}
    assert DefaultSource(options).schema().startswith("key binary, value binary, topic string")
