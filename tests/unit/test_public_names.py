"""What a user finds: names that can be imported, signatures and help that say what they take."""

from __future__ import annotations

import builtins
import importlib
import inspect
import pydoc
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import kafka_fast
from kafka_fast import BatchFuture, ConsumerRecords, DeliveryFuture, Producer, errors, spark

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

SEND = "(self, /, topic, value=None, key=None, *, partition=None, timestamp_ms=None, headers=None, "


def places_of_errors(page: Path, text: str) -> list[ModuleType]:
    """Return where a page's errors may come from: Python and what it imports of it, and us."""
    imported = set(re.findall(r"^ *(?:import|from) ([a-z.]+)", text, re.MULTILINE))
    of_python = [name for name in imported if name.split(".")[0] in sys.stdlib_module_names]
    ours = [kafka_fast, spark] if page.name == "spark.md" else [kafka_fast]
    return [builtins, *map(importlib.import_module, of_python), *ours]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_errors_that_a_page_names_can_be_imported(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    places = places_of_errors(page, text)
    named = set(re.findall(r"\b[A-Z][A-Za-z]+Error\b", text))
    assert {name for name in named if not any(hasattr(place, name) for place in places)} == set()


def test_all_names_are_there() -> None:
    assert {name for name in kafka_fast.__all__ if not hasattr(kafka_fast, name)} == set()
    assert set(kafka_fast.__all__) <= set(dir(kafka_fast))
    with pytest.raises(AttributeError, match="no attribute 'Prducer'"):
        _ = kafka_fast.Prducer  # type: ignore[attr-defined]


def test_the_brokers_errors_are_there_too() -> None:
    assert kafka_fast.MessageTooLarge is errors.MessageTooLarge  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["send", "send_nowait"])
def test_signatures_show_names_and_defaults(name: str) -> None:
    method = getattr(Producer, name)
    assert str(inspect.signature(method)) == SEND + "on_delivery=None)"
    shown = "".join(pydoc.plain(pydoc.render_doc(method)).split())  # long ones in lines, since 3.13
    assert "".join(SEND.split()) in shown


@pytest.mark.parametrize("kind", [Producer, DeliveryFuture, BatchFuture, ConsumerRecords])
def test_every_public_method_has_a_signature_and_help(kind: type[object]) -> None:
    for name, method in inspect.getmembers(kind, inspect.isroutine):
        if not name.startswith("_"):
            assert "self" in inspect.signature(method).parameters, name
            assert inspect.getdoc(method), name


def test_a_producer_shows_what_it_offers_and_nothing_else() -> None:
    public = {
        "abort_transaction", "begin_transaction", "client_id", "close", "commit_transaction",
        "debug_dump", "flush", "init_transactions", "metrics", "partitions_for", "send",
        "send_many", "send_nowait", "send_offsets_to_transaction", "send_table", "transaction",
    }  # fmt: skip
    with Producer(bootstrap_servers="127.0.0.1:1") as producer:
        assert {name for name in dir(producer) if not name.startswith("_")} == public
