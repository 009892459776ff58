"""Rooms of a dozen: folders, files and commit subjects that are too long, counted.

What is over a limit stands in a table, with the reason. It may become smaller, and not larger.
"""

from __future__ import annotations

import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

MOST_MODULES = 15
"""In a folder. A module and its `.pxd` and `.pyi` are one."""

WIDE_FOLDERS = {
    "docs": (21, "the pages of the site, at the addresses that others may have linked"),
    "kafka_fast": (20, "public names, and the vocabulary of all layers"),
    "kafka_fast/consumer": (16, "what its users meet; the listener's type names the client's"),
    "kafka_fast/record": (16, "one format: its halves are not rooms"),
    "src_c": (36, "one shared state, included by name"),
    "tests": (16, "what looks over the whole tree, and what all tests use"),
    "tests/corpus/hostile/frame": (105, "data: a case is a file"),
    "tests/corpus/hostile/reading": (43, "data: a case is a file"),
    "tests/corpus/hostile/record": (93, "data: a case is a file"),
    "tests/embedded/tls": (17, "one subject, in a matrix of stores and versions"),
    "tests/integration/scenarios": (25, "a scenario is a file"),
    "tests/unit": (24, "mirrors the package"),
}

MOST_LINES = 600
CODE = {".py", ".pyx", ".pyi", ".pxd", ".sh"}

LONG_FILES = {
    "tests/embedded/consumer/commit_shapes.py": (817, "one table of programs"),
}

LONGEST_SUBJECT = 72
SINCE = "98cd0bbd"
"""The commit from which on subjects were counted."""


def git(*arguments: str) -> list[str]:
    """Return the lines that git prints."""
    if not (ROOT / ".git").exists():
        pytest.skip("no checkout: this reads what git keeps")
    done = subprocess.run(
        ["git", "-c", "safe.directory=*", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    )
    return done.stdout.splitlines()


def test_folders_are_rooms() -> None:
    modules: dict[str, set[str]] = defaultdict(set)
    for name in git("ls-files"):
        path = Path(name)
        modules[str(path.parent)].add(path.name.split(".")[0])
    wide = {folder: len(names) for folder, names in modules.items() if len(names) > MOST_MODULES}
    assert {folder: count for folder, count in wide.items() if folder not in WIDE_FOLDERS} == {}
    assert wide == {folder: count for folder, (count, _) in WIDE_FOLDERS.items()}


def test_files_are_one_noun() -> None:
    lines = {
        name: len((ROOT / name).read_text(encoding="utf-8").splitlines())
        for name in git("ls-files")
        if Path(name).suffix in CODE and (ROOT / name).exists()
    }
    long = {name: count for name, count in lines.items() if count > MOST_LINES}
    assert long == {name: count for name, (count, _) in LONG_FILES.items()}


def test_subjects_fit_into_a_line() -> None:
    """In a clone with all of its history; elsewhere there is nothing to count."""
    if SINCE not in "".join(git("rev-list", "HEAD", "--abbrev-commit", "--abbrev=8")):
        pytest.skip("a shallow clone")
    subjects = git("log", "--format=%s", f"{SINCE}..HEAD")
    assert [subject for subject in subjects if len(subject) > LONGEST_SUBJECT] == []
