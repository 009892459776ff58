"""Packages whose names are imported when they are used first (PEP 562).

A program that only produces should not pay for a consumer's import, nor one that sends plain
records for the decoders.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from types import FrameType


def lazily(
    package: str,
    where: Mapping[str, str],
    hints: Callable[[], Mapping[str, str]] = dict,
    *,
    above: str | None = None,
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package.

    Args:
        package: its name.
        where: name -> the module of the package that has it.
        hints: returns, for a name that is missing: name of other clients -> what to write instead.
        above: the package that the modules are in; None: this one.
    """
    source = package if above is None else above

    def get(name: str) -> object:
        if name.startswith("__"):  # Python asks each `from package import ...` for "__path__"
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        if name not in where:
            raise _missing(package, name, hints().get(name), sys._getframe(1))
        value = getattr(import_module(f"{source}.{where[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *where})

    return get, names


def _missing(
    package: str, name: str, hint: str | None, frame: FrameType
) -> AttributeError | ImportError:
    """Return the error for a name that a package does not have.

    `from package import name` drops an AttributeError, and its text, for an ImportError of its own.
    So it gets an ImportError if there is a hint.

    Args:
        package: its name.
        name: the missing name.
        hint: what to write instead; None: nothing is known.
        frame: looks the name up.
    """
    if hint is None:
        return AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
    if _imports(frame):
        return ImportError(f"cannot import name {name!r} from {package!r}: {hint}", name=package)
    return AttributeError(f"module {package!r} has no attribute {name!r}: {hint}", name=name)


def _imports(frame: FrameType) -> bool:
    """Return whether a frame is executing `from ... import ...`."""
    from opcode import opmap

    return frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]
