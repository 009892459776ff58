"""The page about the admin client has every call, and the list of what each asks of a cluster."""

from __future__ import annotations

import inspect
import re

from kafka_fast import Admin
from kafka_fast.testing._kafka.broker_jars import RELEASES
from tests.documentation.admin_table import PAGE, operation_classes, with_entries
from tests.documentation.admin_versions import admin_calls, told_by_page

WITHOUT_ZOOKEEPER = {"unregister_broker"}
"""Calls that a broker with a ZooKeeper does not have, although its release does."""

ALSO_BY = {"describe_consumer_groups": "describe_classic_groups"}
"""Calls that use the operation of another call where brokers have not their own."""


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


def test_the_table_of_versions_has_every_call() -> None:
    told = told_by_page(PAGE.read_text(encoding="utf-8"))
    assert list(told) == list(RELEASES), "python -m tests.integration.admin.calls.versions"
    for calls in told.values():
        assert list(calls) == admin_calls(), "python -m tests.integration.admin.calls.versions"


def test_what_worked_is_what_the_operations_say() -> None:
    """Where a call works, one of its operations says that it does, and the other way round."""
    told = told_by_page(PAGE.read_text(encoding="utf-8"))
    since: dict[str, list[tuple[int, ...]]] = {}
    for kind in operation_classes():
        since.setdefault(kind.name, []).append(numbers(kind.since))
    for call, other in ALSO_BY.items():
        since[call] += since[other]
    for version, calls in told.items():
        said = {call: min(first) <= numbers(version) for call, first in since.items()}
        if not RELEASES[version].kraft:
            said |= dict.fromkeys(WITHOUT_ZOOKEEPER, False)
        assert said == {call: calls[call] for call in since}, version


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in version.split("."))
