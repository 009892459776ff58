"""The table of operations in docs/admin.md, made of the classes that carry them out.

python -m tests.documentation.admin_table      writes it into the page
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from textwrap import wrap
from typing import Any

from kafka_fast.control.admin import operations
from kafka_fast.control.admin.operation import Operation
from kafka_fast.protocol.apis import api_name

PAGE = Path(__file__).parents[2] / "docs" / "admin.md"
BEGIN = "<!-- made by python -m tests.documentation.admin_table -->"
END = "<!-- the end of that -->"
WIDTH = 100


def operation_classes() -> list[type[Operation[Any, Any]]]:
    """Return all operations, in the order of their calls' names."""
    for module in pkgutil.walk_packages(operations.__path__, f"{operations.__name__}."):
        importlib.import_module(module.name)
    return sorted(_below(Operation), key=lambda kind: (kind.name, kind.request_class.api_key))


def _below(kind: type[Any]) -> Iterator[type[Operation[Any, Any]]]:
    for subclass in kind.__subclasses__():
        yield from _below(subclass)
        is_whole = hasattr(subclass, "request_class") and hasattr(subclass, "name")
        if is_whole and subclass.__module__.startswith(operations.__name__):  # not a test's own
            yield subclass


def entries() -> list[str]:
    """Return the lines of the list: each call with its APIs, what it needs, and since when."""
    items = dict.fromkeys(
        f"* `{kind.name}`: {api_name(kind.request_class.api_key)}, since {kind.since}; needs "
        f"{kind.permission}{'; also of controllers' if kind.at_controllers else ''}"
        for kind in operation_classes()
    )
    return [line for item in items for line in wrap(item, WIDTH, subsequent_indent="  ")]


def with_entries(page: str) -> str:
    """Return the page with the list as it should be."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return "\n".join([before + BEGIN, "", *entries(), "", END + after])


if __name__ == "__main__":
    PAGE.write_text(with_entries(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
