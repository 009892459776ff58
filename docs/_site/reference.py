"""For the API reference: what mkdocstrings cannot read by itself.

It reads the stub of a compiled module for names, parameters and types. The docstrings stand in the
Cython source beside the stub, and are read there: nothing has to be compiled. Attributes that a
class describes in its own docstring are not shown a second time, without a word.
"""

from __future__ import annotations

import inspect
import re
import runpy
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from griffe import Attribute, Class, Docstring, DocstringSectionKind, Extension, Module, Object

# Beside this file, where tests read it, too: they have no griffe.
docstrings: Callable[[str], dict[str, str]] = runpy.run_path(
    str(Path(__file__).with_name("cython_docstrings.py"))
)["docstrings"]

_SHARED = re.compile(r"^ {4}(\w+(?:, \w+)+): (.*(?:\n {5,}.*)*)", re.MULTILINE)


class Reference(Extension):
    """Completes a package that was loaded."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Add the docstrings of compiled modules; leave out attributes that say nothing."""
        for module in _modules(pkg):
            if not isinstance(module.filepath, list) and module.filepath.suffix == ".pyi":
                sources = (module.filepath.with_suffix(suffix) for suffix in (".pxd", ".pyx"))
                texts = [it.read_text(encoding="utf-8") for it in sources if it.exists()]
                _add_docstrings(module, {k: v for it in texts for k, v in docstrings(it).items()})
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
