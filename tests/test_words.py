"""Words that say nothing, counted: where each count was brought to 0, it stays there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import kafka_fast
from kafka_fast import testing

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "kafka_fast"

NO_NOUNS = {"it", "found", "wanted", "given"}
"""A variable has the noun of what it holds, so that a line can be read by itself."""

SAYS_NOTHING = re.compile(r"(Begin|Take note)\b")
"""A docstring says what a call changes or returns."""

SOURCES = sorted(path for suffix in ("py", "pyx") for path in PACKAGE.rglob(f"*.{suffix}"))

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
        for path in SOURCES
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


NAMES = r"[A-Z]{2}|(Apache|Java|Kafka|Kerberos|Maven|None|False|True|OpenSSL|PySpark|Spark|Unix)\b"
"""What has a capital within a sentence, too."""

ENTRY = re.compile(rf"\s+\*{{0,2}}[\w.]+: (?!{NAMES})[A-Z]")
SECTION = re.compile(r"\s*# (----)? ?([^.:;,!?`)]+)$")


def sections(path: Path) -> Iterator[tuple[str, int, str]]:
    """Yield the lines of `Args:` and the like that begin an entry, with the section's name."""
    section, margin = "", 0
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        depth = len(line) - len(line.lstrip())
        if line.strip() in ("Args:", "Raises:", "Attributes:"):
            section, margin = line.strip(), depth
        elif section and depth <= margin:
            section = ""
        elif section and depth == margin + 4:
            yield section, number, line


def test_entries_go_on_in_lower_case() -> None:
    places = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in SOURCES
        for _, number, line in sections(path)
        if ENTRY.match(line)
    ]
    assert places == []


BASES_FIELDS = {"kafka_fast/errors.py", "kafka_fast/spark/errors.py"}
"""Where a base has a field that only an heir knows the meaning of."""


def test_fields_have_strings_beneath_them() -> None:
    """But for compiled classes, where a string is no part of the class."""
    modules = {
        str(path.relative_to(ROOT))
        for path in SOURCES
        if path.suffix == ".py"
        if any(section == "Attributes:" for section, _, _ in sections(path))
    }
    assert modules == BASES_FIELDS


def test_sections_are_marked_alike() -> None:
    """A comment of one line between empty ones, if it is no sentence."""
    places = []
    for path in SOURCES:
        lines = ["", *path.read_text(encoding="utf-8").splitlines(), ""]
        places += [
            f"{path.relative_to(ROOT)}:{number}"
            for number, (before, line, after) in enumerate(
                zip(lines, lines[1:], lines[2:], strict=False), 1
            )
            if not before.strip() and not after.strip()
            if (begun := SECTION.match(line)) and not begun[1]
        ]
    assert places == []


MOST_CLASSES = 4
"""Unrelated classes with a method of one bare verb: who greps for it finds its callers."""

COMMON_WORDS = {
    "cancel": (9, "asyncio's word for what is given up before its end"),
    "describe": (8, "a part tells its state, in words for people"),
    "partitions": (8, "a noun: those of a topic"),
    "stats": (8, "a noun: counters, as `metrics()` returns them"),
    "tick": (20, "a part of the control plane does what is due"),
    "wake": (5, "ends the sleep of a thread, or of a task"),
    "watch": (5, "looks at something until it changes"),
}
"""The words that more classes share, with the one thing that each says."""

CLASS = re.compile(r"class (\w+)(?:\((.*?)\))?:")
METHOD = re.compile(r"    (?:async )?(?:def|cpdef \w+) (\w+)\(")


@dataclass
class Class:
    """What a class has of its own, and where it has the rest from."""

    bases: list[str] = field(default_factory=list)
    methods: set[str] = field(default_factory=set)


def classes() -> dict[str, Class]:
    """Return the package's classes; those of one name are one."""
    package: dict[str, Class] = {}
    for path in SOURCES:
        lines = path.read_text(encoding="utf-8").splitlines()
        current = Class()
        for before, line in zip(["", *lines], lines, strict=False):
            if begun := CLASS.match(line.removeprefix("cdef ")):
                current = package.setdefault(begun[1], Class())
                current.bases += re.findall(r"\w+", begun[2] or "")
            elif line and line[0] not in " )":
                current = Class()
            if (method := METHOD.match(line)) and "property" not in before:
                current.methods.add(method[1])
    return package


def users_words() -> set[str]:
    """Return the names of users' calls; the layers below pass a call on under its own name."""
    clients = (kafka_fast.Consumer, kafka_fast.Producer, testing.EmbeddedKafka)
    return {name for client in clients for name in dir(client)}


def test_bare_verbs_mean_one_thing() -> None:
    package = classes()
    protocols = {
        name: its for name, its in package.items() if "Protocol" in its.bases and its.methods
    }

    def above(name: str) -> Iterator[str]:
        """Yield what a class is: its bases, and Protocols that it has all of; then its name."""
        own = package[name]
        whole = {p for p, its in protocols.items() if its.methods <= own.methods}
        for base in sorted((whole.union(own.bases) - {name}) & package.keys()):
            yield from above(base)
        yield name

    def origin(name: str, word: str) -> str:
        return next(base for base in above(name) if word in package[base].methods)

    words = {word for its in package.values() for word in its.methods if word.isalpha()}
    counts = {
        word: len({origin(name, word) for name, its in package.items() if word in its.methods})
        for word in words - users_words()
    }
    shared = {word: count for word, count in counts.items() if count > MOST_CLASSES}
    assert shared == {word: count for word, (count, _) in COMMON_WORDS.items()}
