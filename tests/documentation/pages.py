"""The pages as their readers have them: which blocks they hold, and what is to be done with each.

    ```python                      saved and run by itself
    ```python title="app.py"       saved under that name; another block uses it
    ```sh                          run by a shell
    ```text                        what the block before it prints, `...` standing for anything

A comment before a block changes what is done with it:

    <!-- run: pytest -->                          given to pytest
    <!-- run: in the background -->               waited for until it has printed what is said
    <!-- run: later -->                           what a program in the background prints later,
    <!-- run: after SIGTERM -->                   ... and what, once it was told to end
    <!-- run: the broker -->                      how a broker is started: the tests have one;
                                                  what `kafka-fast broker` prints is compared
    <!-- run: elsewhere, tests/x/test_y.py -->    another test runs it, and names the page
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

RUN = ("python", "sh")
"""Languages of blocks that are run."""
SHOWN = ("text", "ini", "toml", "yaml", "properties", "json", "dockerfile")
"""Languages of blocks that are output, or files."""
ELSEWHERE = "elsewhere, "
"""How a directive begins that names the test of a block."""

_MADE = {"build", "dist", "wheelhouse"}
"""Folders that the Makefile makes; neither they nor hidden folders hold a page of the project."""

_FENCE = re.compile(r'^(?P<indent> *)```(?P<language>\w*)(?: title="(?P<title>[^"]+)")?$')
_DIRECTIVE = re.compile(r"^ *<!-- run: (.+) -->$")


@dataclass(frozen=True)
class Block:
    """One block of a page.

    Attributes:
        page: the page's path from the root, such as `docs/producer.md`.
        line: of its first line of text, from 1.
        language: what stands behind the backticks.
        title: the name of the file that it is, or nothing.
        how: what the comment before it says, or nothing.
        text: what it holds, without the indentation of the list that it may stand in.
    """

    page: str
    line: int
    language: str
    title: str
    how: str
    text: str

    @property
    def place(self) -> str:
        """Page and line, for messages."""
        return f"{self.page}:{self.line}"


def all_pages() -> list[str]:
    """Return the README and every page below docs/, as paths from the root."""
    pages = (ROOT / "docs").rglob("*.md")
    return sorted(str(path.relative_to(ROOT)) for path in [ROOT / "README.md", *pages])


def markdown_files() -> Iterator[str]:
    """Yield every Markdown file of the project, as paths from the root."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in _MADE and not name.startswith(".")]
        for name in names:
            if name.endswith(".md"):
                yield str(Path(folder, name).relative_to(ROOT))


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page, in its order.

    Raises:
        AssertionError: a block has no end, or what stands behind its backticks is not known.
    """
    return list(_blocks(page, (ROOT / page).read_text(encoding="utf-8")))


def _blocks(page: str, text: str) -> list[Block]:
    page_blocks: list[Block] = []
    lines = text.splitlines()
    how, number = "", 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if directive := _DIRECTIVE.match(line):
            how = directive[1]
        elif line.lstrip().startswith("```"):
            fence = _FENCE.match(line)
            assert fence, f"{page}:{number}: what is this block? {line}"
            indent, start = fence["indent"], number
            while number < len(lines) and lines[number] != f"{indent}```":
                number += 1
            assert number < len(lines), f"{page}:{start}: a block without an end"
            body = "".join(indented.removeprefix(indent) + "\n" for indented in lines[start:number])
            language, title = fence["language"], fence["title"] or ""
            page_blocks.append(Block(page, start + 1, language, title, how, body))
            how, number = "", number + 1
        elif line.strip():
            how = ""
    return page_blocks
