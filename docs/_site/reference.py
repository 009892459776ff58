"""For the API reference: what mkdocstrings cannot read from the sources alone.

It reads the stub of a compiled module for names, parameters and types; the docstrings are those
that `help()` shows, taken from the module itself. Attributes that a class describes in its own
docstring are not shown a second time, without a word.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from griffe import Attribute, Class, Docstring, DocstringSectionKind, Extension, Module, Object

_SHARED = re.compile(r"^ {4}(\w+(?:, \w+)+): (.*(?:\n {5,}.*)*)", re.MULTILINE)


class Reference(Extension):
    """Completes a package that was loaded."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Add the docstrings of compiled modules; leave out attributes that say nothing."""
        for module in _modules(pkg):
            if not isinstance(module.filepath, list) and module.filepath.suffix == ".pyi":
                _add_docstrings(module, import_module(module.path))
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


def _add_docstrings(documented: Object, compiled: object) -> None:
    for name, member in documented.members.items():
        if not isinstance(member, Object):
            continue  # imported from elsewhere
        found = inspect.getattr_static(compiled, name, None)
        text = getattr(found, "__doc__", None)
        is_own = text != getattr(getattr(object, name, None), "__doc__", None)
        if member.docstring is None and isinstance(text, str) and is_own and not _is_generic(text):
            member.docstring = Docstring(_one_by_one(text), parent=member, parser="google")
        if isinstance(member, Class) and found is not None:
            _add_docstrings(member, found)


def _one_by_one(text: str) -> str:
    """Give each parameter a line of its own where several share a description."""
    return _SHARED.sub(
        lambda found: "\n".join(f"    {name}: {found[2]}" for name in found[1].split(", ")),
        inspect.cleandoc(text),
    )


def _is_generic(text: str) -> bool:
    """Say whether a docstring is what Python writes for a field of a named tuple."""
    return text.startswith("Alias for field number")


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
