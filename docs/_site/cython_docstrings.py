"""Reads docstrings in Cython's sources, which Python's own parser does not understand."""

from __future__ import annotations

import re

_HEADER = re.compile(
    r"(?P<indent> *)(?:"
    r"(?:c|cp)?(?:def )?(?:class|enum) (?P<class_name>\w+).*:"
    r"|(?:async |cp)?def .*?(?P<name>\w+)\()"
)
"""What is declared without a colon is defined elsewhere."""


def docstrings(source: str) -> dict[str, str]:
    """Return qualified name -> docstring of the classes and functions of a Cython source."""
    found: dict[str, str] = {}
    lines = source.splitlines()
    owners: list[tuple[int, str]] = []  # indent and name of the classes around a line
    at = 0
    while at < len(lines):
        header = _HEADER.match(lines[at])
        at += 1
        if header is None:
            continue
        indent, name = len(header["indent"]), header["class_name"] or header["name"]
        owners = [owner for owner in owners if owner[0] < indent]
        qualified = ".".join([*(owner for _, owner in owners), name])
        if header["class_name"]:
            owners.append((indent, name))
        while at < len(lines) and not lines[at - 1].split("#")[0].rstrip().endswith(":"):
            at += 1
        text = _docstring_at(lines, at)
        if text is not None:
            found.setdefault(qualified, text)  # a property's getter stands before its setter
    return found


def _docstring_at(lines: list[str], at: int) -> str | None:
    """Return the docstring that begins in a line; None: there is none."""
    if at >= len(lines) or not lines[at].lstrip().startswith('"""'):
        return None
    body = "\n".join([lines[at].lstrip()[3:], *lines[at + 1 :]])
    return body[: body.index('"""')]
