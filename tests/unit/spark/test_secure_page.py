"""The function of docs/spark.md that makes a configuration on the executor."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kafka_fast.config import producer_settings

PAGE = Path(__file__).parents[3] / "docs" / "spark.md"


def test_the_function_makes_a_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (snippet,) = re.findall(r"```python\n(def config.*?)```", PAGE.read_text(), re.DOTALL)
    file = tmp_path / "client.properties"
    file.write_text(
        "bootstrap.servers=broker:9093\nsecurity.protocol=SASL_SSL\n"
        "sasl.mechanism=SCRAM-SHA-512\nsasl.username=job\n"
    )
    monkeypatch.setenv("KAFKA_PASSWORD", "geheim")
    calls: list[Any] = []
    names: dict[str, Any] = {
        "events": None,
        "write_df": lambda df, config, topic: calls.append(config),
    }
    exec(snippet.replace("/etc/kafka/client.properties", str(file)), names)
    sasl = producer_settings(calls[0]()).sasl
    assert sasl is not None
    assert sasl.username == "job"
    assert sasl.password is not None
    assert sasl.password.reveal() == "geheim"
