"""The page about the admin client has every call, and the list of what each asks of a cluster."""

from __future__ import annotations

import inspect
import re

from kafka_fast import Admin
from tests.documentation.admin_table import PAGE, operation_classes, with_entries


def test_the_list_is_as_the_operations_say() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert with_entries(text) == text, "python -m tests.documentation.admin_table"


def test_every_operation_belongs_to_a_call() -> None:
    calls = {name for name, _ in inspect.getmembers(Admin, inspect.isfunction)}
    assert {kind.name for kind in operation_classes()} <= calls


def test_every_call_is_on_the_page() -> None:
    shown = set(re.findall(r"`(\w+)", PAGE.read_text(encoding="utf-8")))
    shown |= set(re.findall(r"admin\.(\w+)\(", PAGE.read_text(encoding="utf-8")))
    calls = {name for name, _ in inspect.getmembers(Admin, inspect.isfunction) if name[0] != "_"}
    assert calls - shown == set()
