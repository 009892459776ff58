"""Words that say nothing, counted: where each count was brought to 0, it stays there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "kafka_fast"

NO_NOUNS = {"it", "found", "wanted", "given"}
"""A variable has the noun of what it holds, so that a line can be read by itself."""

SAYS_NOTHING = re.compile(r"(Begin|Take note)\b")
"""A docstring says what a call changes or returns."""

DOCSTRING = re.compile(r'"""(.*)')


def names_bound(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id


def test_variables_have_nouns() -> None:
    places = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, name in names_bound(ast.parse(path.read_text(encoding="utf-8")))
        if name in NO_NOUNS
    ]
    assert places == []


def test_docstrings_say_something() -> None:
    places = [
        f"{path.relative_to(ROOT)}:{number}"
        for suffix in ("py", "pyx")
        for path in sorted(PACKAGE.rglob(f"*.{suffix}"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (begun := DOCSTRING.search(line)) and SAYS_NOTHING.match(begun[1])
    ]
    assert places == []


OLD_WORDS = re.compile(r"\b(for ever|also if|is dear|likewise|so it is well)\b", re.IGNORECASE)
"""What a technical writer would put otherwise."""

PROSE = (".py", ".pyx", ".pxd", ".pyi", ".md", ".c", ".h")


def test_sentences_are_plain() -> None:
    tops = [ROOT / name for name in ("kafka_fast", "src_c", "docs", "bench", "examples", "tests")]
    paths = [*ROOT.glob("*.md"), *(path for top in tops for path in sorted(top.rglob("*")))]
    places = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in paths
        if path.suffix in PROSE and path != Path(__file__)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if OLD_WORDS.search(line)
    ]
    assert places == []
