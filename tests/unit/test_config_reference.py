"""The reference page is what the table prints."""

from __future__ import annotations

from pathlib import Path

from kafka_fast.config import KEYS, reference_page

PAGE = Path(__file__).parents[2] / "docs" / "configuration.md"


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == reference_page(), (
        "run: python -m kafka_fast config --markdown > docs/configuration.md"
    )


def test_every_key_is_on_the_page() -> None:
    page = reference_page()
    for key in KEYS.values():
        assert f"`{key.name}`" in page
        assert key.doc in " ".join(page.split())
    assert (
        "* `partitioner.rack.aware` (default: `false`; needs rack-aware partitioning). Prefer"
        in page
    )


def test_lines_can_be_read() -> None:
    assert [line for line in reference_page().splitlines() if len(line) > 100] == []


def test_facts_of_a_key() -> None:
    entry = reference_page().split("### `buffer.memory`")[1].split("###")[0]
    assert "Type: int; default: `33554432`; allowed: at least 0 bytes; since 0.1." in entry
    assert "Also: `queue.buffering.max.kbytes` (confluent-kafka, in units of 1024)." in entry
