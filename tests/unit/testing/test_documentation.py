"""docs/testing.md describes all that there is; tests/documentation runs its examples."""

from __future__ import annotations

import re
from pathlib import Path

from kafka_fast.testing import plugin
from kafka_fast.testing.broker.serving.server import EmbeddedKafka

PAGE = Path(__file__).parents[3] / "docs" / "testing.md"


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
