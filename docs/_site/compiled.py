"""For the API reference: documentation of compiled modules, whose stubs have types only.

mkdocstrings reads the stub of an extension for names, parameters and types; the docstrings are
those that `help()` shows, taken from the extension itself.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

from griffe import Class, Docstring, Extension, Function, Module, Object


class CompiledDocstrings(Extension):
    """Give what stubs describe the docstrings of the compiled modules."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        """Complete the stubs of a package that was loaded."""
        _complete_modules(pkg)


def _complete_modules(module: Module) -> None:
    for inner in module.modules.values():
        if not inner.is_alias:
            _complete_modules(inner)
    if not isinstance(module.filepath, list) and module.filepath.suffix == ".pyi":
        _complete(module, import_module(module.path), module.docstring)


def _complete(documented: Object, compiled: object, like: Docstring | None) -> None:
    for name, member in documented.members.items():
        if member.is_alias or not isinstance(member, Class | Function | Object):
            continue
        found = inspect.getattr_static(compiled, name, None)
        if member.docstring is None and (text := _own_text(found, compiled)):
            member.docstring = Docstring(text, parent=member, parser="google")
        if isinstance(member, Class) and found is not None:
            _complete(member, found, like)


def _own_text(found: object, owner: object) -> str:
    """Return the docstring that somebody wrote, not that of a type that everything inherits."""
    text = getattr(found, "__doc__", None)
    if not isinstance(text, str) or text == getattr(object, getattr(found, "__name__", ""), owner).__doc__:
        return ""
    return inspect.cleandoc(text)
