"""The examples of docs/testing.md run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kafka_fast.testing import plugin
from kafka_fast.testing.broker.server import EmbeddedKafka
from tests.integration.scenarios.wire import batch, connected

PAGE = Path(__file__).parents[3] / "docs" / "testing.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def publish_orders(bootstrap: str, topic: str = "orders") -> None:
    """Stand in for the reader's code."""
    with connected(bootstrap.split(",", maxsplit=1)[0]) as client:
        client.produce(topic, batch(value=b"1"))


@pytest.mark.parametrize("example", [text for text in EXAMPLES if "def test_" not in text])
def test_examples_run(example: str) -> None:
    names: dict[str, Any] = {"publish_orders": publish_orders}
    exec(compile(example, str(PAGE), "exec"), names)
    if "publish_orders" in example:
        assert names["values"] == [b"1"]


def test_every_fixture_of_the_plugin_is_described() -> None:
    page = PAGE.read_text(encoding="utf-8")
    fixtures = [name for name in vars(plugin) if name.startswith("kafka_")]
    assert len(fixtures) == 16
    for name in fixtures:
        assert f"`{name}`" in page


def test_every_call_for_tests_is_described() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name, method in vars(EmbeddedKafka).items():
        if callable(method) and not name.startswith("_"):
            assert re.search(rf"\b{name}\b", page), name
