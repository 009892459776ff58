"""The parts of the site that are ours: docstrings out of Cython's sources."""

from __future__ import annotations

import ast
import inspect
import os
import re
import runpy
import subprocess
from collections.abc import Iterator
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest

from tests.documentation.pages import ROOT

read_docstrings = runpy.run_path(str(ROOT / "docs/_site/cython_docstrings.py"))["docstrings"]
STUBS = sorted((ROOT / "kafka_fast").rglob("_*.pyi"))


@pytest.mark.parametrize("stub", STUBS, ids=lambda stub: stub.stem)
def test_docstrings_are_those_of_the_compiled_module(stub: Path) -> None:
    """Of all that the stub has; special methods may have a text of Python's own."""
    module = import_module(".".join(stub.with_suffix("").relative_to(ROOT).parts))
    sources = (stub.with_suffix(suffix) for suffix in (".pxd", ".pyx"))
    texts = [source.read_text(encoding="utf-8") for source in sources if source.exists()]
    docstrings = {
        name: text for source_text in texts for name, text in read_docstrings(source_text).items()
    }
    for qualified in names_in(ast.parse(stub.read_text(encoding="utf-8"))):
        text = attrgetter(qualified)(module).__doc__
        if text and "__" not in qualified:
            assert inspect.cleandoc(docstrings[qualified]) == inspect.cleandoc(text), qualified


def names_in(tree: ast.AST, within: str = "") -> Iterator[str]:
    """Yield the classes, functions and methods of a stub."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{within}{node.name}"
        if isinstance(node, ast.ClassDef):
            yield from names_in(node, f"{within}{node.name}.")


def steps_of(target: str, environment: Path) -> str:
    """Return what `make` does for a target on a machine that has made nothing yet."""
    plain = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    command = ["make", "--dry-run", "--always-make", target, f"VENV={environment}"]
    done = subprocess.run(command, cwd=ROOT, env=plain, capture_output=True, text=True, check=True)
    return done.stdout


def test_the_site_needs_no_compiler(tmp_path: Path) -> None:
    """All of it is read in the sources."""
    assert "build_ext" in steps_of("build", tmp_path / "venv")
    steps = steps_of("docs", tmp_path / "venv")
    assert "mkdocs build" in steps
    assert re.findall(r"build_ext|setup\.py|--group build|\b(?:gcc|cc|clang)\b", steps) == []
    for tool in ("reference.py", "cython_docstrings.py", "check_site.py"):
        source = (ROOT / "docs/_site" / tool).read_text(encoding="utf-8")
        assert not re.search(r"^\s*(?:import|from) kafka_fast", source, re.MULTILINE), tool


def test_every_kind_of_member() -> None:
    source = '''
cdef class Plane:
    """Of a class."""

    def __init__(self, Queues queues, *, double max_block,
                 bint never_waits=False):
        """Of a constructor."""

    @property
    def size(self):  # of all
        """Of a property.

        In two parts.
        """

    cpdef bint has_room(self, size_t size) noexcept:
        """Of both kinds."""

    def without(self):
        return "no docstring"


def after(
    topic, value=None,
) -> list:
    """Of a function."""
'''
    assert {name: inspect.cleandoc(text) for name, text in read_docstrings(source).items()} == {
        "Plane": "Of a class.",
        "Plane.__init__": "Of a constructor.",
        "Plane.size": "Of a property.\n\nIn two parts.",
        "Plane.has_room": "Of both kinds.",
        "after": "Of a function.",
    }
