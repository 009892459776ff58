"""For the API reference: what mkdocstrings cannot read by itself.

It reads the stub of a compiled module for names, parameters and types. The docstrings stand in the
Cython source beside the stub, and are read there: nothing has to be compiled. Attributes that a
class describes in its own docstring are not shown a second time, without a word.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from griffe import Attribute, Class, Docstring, DocstringSectionKind, Extension, Module, Object

_HEADER = re.compile(
    r"(?P<indent> *)(?:(?:cdef )?class (?P<class_name>\w+)|(?:async )?(?:cp)?def .*?(?P<name>\w+)\()"
)
_SHARED = re.compile(r"^ {4}(\w+(?:, \w+)+): (.*(?:\n {5,}.*)*)", re.MULTILINE)


class Reference(Extension):
    """Completes a package that was loaded."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Add the docstrings of compiled modules; leave out attributes that say nothing."""
        for module in _modules(pkg):
            if not isinstance(module.filepath, list) and module.filepath.suffix == ".pyi":
                source = module.filepath.with_suffix(".pyx").read_text(encoding="utf-8")
                _add_docstrings(module, docstrings(source))
            for inner in _classes(module):
                _leave_out_attributes(inner)


def _modules(package: Module) -> Iterator[Module]:
    yield package
    for module in package.modules.values():
        if not module.is_alias:
            yield from _modules(module)


def _classes(owner: Object) -> Iterator[Class]:
    for inner in owner.classes.values():
        if not inner.is_alias:
            yield inner
            yield from _classes(inner)


def _add_docstrings(documented: Object, texts: Mapping[str, str], within: str = "") -> None:
    """Give an object's members, and theirs, the docstrings of the source."""
    for name, member in documented.members.items():
        if not isinstance(member, Object):
            continue  # imported from elsewhere
        text = texts.get(f"{within}{name}")
        if member.docstring is None and text is not None:
            member.docstring = Docstring(_one_by_one(text), parent=member, parser="google")
        if isinstance(member, Class):
            _add_docstrings(member, texts, f"{within}{name}.")


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
        while not lines[at - 1].split("#")[0].rstrip().endswith(":"):
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


def _one_by_one(text: str) -> str:
    """Give each parameter a line of its own where several share a description."""
    return _SHARED.sub(
        lambda found: "\n".join(f"    {name}: {found[2]}" for name in found[1].split(", ")),
        inspect.cleandoc(text),
    )


def _leave_out_attributes(owner: Class) -> None:
    described = _described(owner)
    for name, member in list(owner.members.items()):
        if isinstance(member, Attribute) and member.docstring is None:
            is_declared = member.annotation is not None or "class-attribute" in member.labels
            if name in described or not is_declared:
                owner.del_member(name)


def _described(owner: Class) -> set[str]:
    """Return the attributes that a class lists in its docstring."""
    sections = owner.docstring.parse("google", warnings=False) if owner.docstring else []
    kinds = (DocstringSectionKind.attributes,)
    return {it.name for section in sections if section.kind in kinds for it in section.value}
