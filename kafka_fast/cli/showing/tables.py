"""Tables for people: as aligned text, or by rich. What brokers sent cannot steer the terminal."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import TextIO

from kafka_fast.values import Value, replace

GAP = 4
"""Spaces between two columns of text."""

_UNLIMITED = 10_000
"""Columns of a table that goes into a pipe or a file, where a folded line helps nobody."""


class ReportColumn(Value):
    """A column of a table."""

    title: str
    is_number: bool = False
    """Whether its cells stand at its right edge."""
    is_wide: bool = False
    """Whether it is shown by `--output wide` only."""


class Alarm(Value):
    """A cell that is red on a terminal with colours."""

    value: object


class ReportTable(Value):
    """Rows of cells: texts, numbers, lists of numbers, truth values, None for what is not known."""

    columns: Sequence[ReportColumn]
    rows: Sequence[Sequence[object]]

    def narrow(self) -> ReportTable:
        """Return the table without its wide columns."""
        shown = [place for place, column in enumerate(self.columns) if not column.is_wide]
        return replace(
            self,
            columns=[self.columns[place] for place in shown],
            rows=[[row[place] for place in shown] for row in self.rows],
        )


def print_text(table: ReportTable, stream: TextIO | None = None) -> None:
    """Write the table as text: a line for each row, and one for the titles.

    Args:
        table: what to write.
        stream: standard output by default.
    """
    lines = [[column.title for column in table.columns]]
    lines += [[cell_text(cell) for cell in row] for row in table.rows]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    for line in lines:
        cells = (
            f"{cell:>{width}}" if column.is_number else f"{cell:<{width}}"
            for cell, width, column in zip(line, widths, table.columns, strict=True)
        )
        print((" " * GAP).join(cells).rstrip(), file=stream)


def print_rich(table: ReportTable) -> None:
    """Write the table by rich: in colours on a terminal, unless NO_COLOR forbids it."""
    box, console, tables, texts = (
        importlib.import_module(f"rich.{name}") for name in ("box", "console", "table", "text")
    )
    is_screen = sys.stdout.isatty()
    drawn = tables.Table(box=box.SIMPLE_HEAD, header_style="bold", show_edge=False, pad_edge=False)
    for column in table.columns:
        justify = "right" if column.is_number else "left"
        drawn.add_column(column.title, justify=justify, overflow="fold")
    for row in table.rows:
        drawn.add_row(*(texts.Text(cell_text(cell), style=_style(cell)) for cell in row))
    console.Console(
        file=sys.stdout,
        width=None if is_screen else _UNLIMITED,
        force_terminal=None if is_screen else False,
    ).print(drawn)


def cell_text(cell: object) -> str:
    """Return a cell as one line that any terminal can show."""
    if isinstance(cell, Alarm):
        cell = cell.value
    if cell is None:
        shown = "-"
    elif isinstance(cell, bool):
        shown = "yes" if cell else "no"
    elif isinstance(cell, (list, tuple, frozenset)):
        shown = ",".join(map(str, cell)) or "-"
    else:
        shown = str(cell)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    clean = printable(shown)
    return clean.encode(encoding, "backslashreplace").decode(encoding)


def printable(text: str, kept: str = "") -> str:
    """Return a text that cannot steer a terminal: other characters are shown as Python escapes.

    Args:
        text: perhaps of a broker, or a name that anybody may have given.
        kept: characters that stay as they are, such as line ends.
    """
    return "".join(
        character
        if character.isprintable() or character in kept
        else character.encode("unicode_escape").decode()
        for character in text
    )


def _style(cell: object) -> str:
    return "red" if isinstance(cell, Alarm) else ""
