"""The table in docs/admin.md of what works with which brokers: how it is read and written.

What is in it comes from playing all calls (tests/integration/admin/calls/versions.py).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping

from kafka_fast import Admin
from tests.documentation.admin_table import PAGE

__all__ = ["PAGE", "admin_calls", "told_by_page", "with_table"]

BEGIN = "<!-- made by python -m tests.integration.admin.calls.versions -->"
END = "<!-- the end of the table -->"
YES, NO = "yes", "–"

NO_REQUESTS = {"close", "debug_dump", "metrics"}
"""Methods of `Admin` that ask no broker."""


def admin_calls() -> list[str]:
    """Return the names of all calls that ask a broker."""
    members = inspect.getmembers(Admin, inspect.isfunction)
    return [name for name, _ in members if name[0] != "_" and name not in NO_REQUESTS]


def told_by_page(page: str) -> dict[str, dict[str, bool]]:
    """Return what a page says: whether a call works, by version and call."""
    head, _, *rows = _between(page).strip().splitlines()
    versions = [cell.strip() for cell in head.strip("|").split("|")[1:]]
    told: dict[str, dict[str, bool]] = {version: {} for version in versions}
    for row in rows:
        name, *cells = (cell.strip() for cell in row.strip("|").split("|"))
        for version, cell in zip(versions, cells, strict=True):
            told[version][name.strip("`")] = cell == YES
    return told


def with_table(page: str, told: Mapping[str, Mapping[str, bool]]) -> str:
    """Return the page with a table of what works."""
    lines = [f"| call | {' | '.join(told)} |", "|---" * (len(told) + 1) + "|"]
    for call in admin_calls():
        cells = (YES if calls.get(call) else NO for calls in told.values())
        lines.append(f"| `{call}` | {' | '.join(cells)} |")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return "\n".join([before + BEGIN, "", *lines, "", END + after])


def _between(page: str) -> str:
    return page[page.index(BEGIN) + len(BEGIN) : page.index(END)]
