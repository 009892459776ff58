"""A look at groups as lines of a table, and as JSON.

The lines of one group have a partition each, those of all groups a group each.
"""

from __future__ import annotations

from collections.abc import Sequence

from kafka_fast.cli.lag.looks import GroupLook, Look
from kafka_fast.cli.showing.reports import Report, error_name, show
from kafka_fast.cli.showing.standard_error import say
from kafka_fast.cli.showing.tables import ReportColumn, ReportTable, cell_text
from kafka_fast.values import Value

HEAD = ("TOPIC", "PARTITION", "COMMITTED", "END", "LAG")
HEAD_OF_ALL = ("GROUP", "STATE", "PARTITIONS", "LAG")
CHANGE = "CHANGE"

_WIDTH = 14
"""Characters of each cell but the first."""
_NAME = 12
"""Fewest characters of a name where there is little room."""
_GAP = 2
"""Spaces before a cell where there is little room."""
_LEAST = ("COMMITTED", "END", "STATE", "PARTITIONS", CHANGE)
"""Columns that are left out first where there is no room."""


class Figures(Value):
    """A look as cells: the first one of each row is a name, the last one a lag."""

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    total: tuple[str, ...]
    lags: Sequence[int]
    """The lag of each row, for sorting; 0: not known."""

    def lines(self) -> list[str]:
        """Return the lines, with head and total."""
        cells = [self.head, *self.rows, self.total]
        names = max(len(name) for name, *_ in cells)
        return [
            f"{name:<{names}}" + "".join(f"{cell:>{_WIDTH}}" for cell in others)
            for name, *others in cells
        ]

    def narrow_lines(self, width: int) -> list[str]:
        """Return lines that are not wider than a terminal: columns are left out, names are cut."""
        cells = [self.head, *self.rows, self.total]
        widths = [max(map(len, column)) + _GAP for column in zip(*cells, strict=True)]
        shown = list(range(1, len(self.head)))
        for title in _LEAST:
            if title in self.head and _NAME + sum(widths[place] for place in shown) > width:
                shown.remove(self.head.index(title))
        names = width - sum(widths[place] for place in shown)
        names = min(widths[0] - _GAP, max(_NAME, names))
        lines = (
            f"{_cut(row[0], names):<{names}}"
            + "".join(f"{row[place]:>{widths[place]}}" for place in shown)
            for row in cells
        )
        return [line[:width] for line in lines]


def figures_of(look: Look, before: Look | None = None, *, has_change: bool = False) -> Figures:
    """Return the cells of a look.

    Args:
        look: what was seen.
        before: the look before it, if there was one.
        has_change: whether a column tells how the lag has changed since then.
    """
    lags = _lags(look)
    old = {} if before is None else _lags(before)
    cells = _group_cells(look) if look.is_of_all else _partition_cells(look)
    head = HEAD_OF_ALL if look.is_of_all else HEAD
    total = sum(group.total for group in look.groups)
    rows = [(*row, _number(lag)) for row, lag in zip(cells, lags.values(), strict=True)]
    total_row = ("TOTAL", *[""] * (len(head) - 2), str(total))
    if has_change:
        head = (*head, CHANGE)
        rows = [
            (*row, _change(lag, old.get(key)))
            for row, (key, lag) in zip(rows, lags.items(), strict=True)
        ]
        total_before = None if before is None else sum(group.total for group in before.groups)
        total_row = (*total_row, _change(total, total_before))
    return Figures(head, rows, total_row, [lag or 0 for lag in lags.values()])


def print_look(look: Look, form: str) -> None:
    """Write a look to standard output; say how partitions without a commit are counted.

    Args:
        look: what was seen.
        form: a member of `reports.FORMS`.
    """
    if form != "text":
        show(Report(document_of(look), _report_table(look)), form)
        if form in ("json", "yaml"):
            return
    else:
        print("\n".join(figures_of(look).lines()))
    if look.is_of_all:
        return
    note = note_of_uncommitted(look)
    if note:
        say(note)


def _report_table(look: Look) -> ReportTable:
    """Return the table that rich draws; the last row is the total."""
    total = sum(group.total for group in look.groups)
    if look.is_of_all:
        columns = [*map(_column, HEAD_OF_ALL), _column("UNCOMMITTED", is_wide=True)]
        rows: list[tuple[object, ...]] = [
            (group.group, group.state, len(group.rows), group.total, group.uncommitted)
            for group in look.groups
        ]
        return ReportTable(columns, [*rows, ("TOTAL", "", "", total, "")])
    columns = [*map(_column, HEAD), _column("BEGINNING", is_wide=True)]
    rows = [
        (
            *row.partition,
            "none" if row.committed is None else row.committed,
            row.end,
            row.lag,
            row.beginning,
        )
        for group in look.groups
        for row in group.rows
    ]
    return ReportTable(columns, [*rows, ("TOTAL", "", "", "", total, "")])


def _column(title: str, *, is_wide: bool = False) -> ReportColumn:
    return ReportColumn(title, title not in ("TOPIC", "GROUP", "STATE"), is_wide)


def note_of_uncommitted(look: Look) -> str:
    """Return how partitions without a commit are counted; nothing if there are none."""
    count = sum(group.uncommitted for group in look.groups)
    if not count:
        return ""
    start = "beginning of the log (--reset latest: from its end)"
    if look.reset == "latest":
        start = "end of the log (--reset earliest: from its beginning)"
    noun = "partition has" if count == 1 else "partitions have"
    return f"{count} {noun} no committed offset: the lag counts from the {start}"


def document_of(look: Look) -> dict[str, object]:
    """Return a look for programs."""
    if not look.is_of_all:
        return _group_document(look.groups[0])
    document: dict[str, object] = {
        "total_lag": sum(group.total for group in look.groups),
        "groups": [_group_document(group) for group in look.groups],
    }
    if look.errors:
        document["errors"] = [
            {"group": name, "error": error_name(error), "message": str(error)}
            for name, error in look.errors.items()
        ]
    return document


def _group_document(group: GroupLook) -> dict[str, object]:
    return {
        "group": group.group,
        "state": group.state,
        "total_lag": group.total,
        "partitions": [
            {
                "topic": row.partition.topic,
                "partition": row.partition.partition,
                "beginning": row.beginning,
                "committed": row.committed,
                "end": row.end,
                "lag": row.lag,
            }
            for row in group.rows
        ],
    }


def _lags(look: Look) -> dict[object, int | None]:
    """Return the lag of each row of the table."""
    if look.is_of_all:
        return {group.group: group.total for group in look.groups}
    return {row.partition: row.lag for group in look.groups for row in group.rows}


def _group_cells(look: Look) -> list[tuple[str, ...]]:
    return [
        (cell_text(group.group), cell_text(group.state), str(len(group.rows)))
        for group in look.groups
    ]


def _partition_cells(look: Look) -> list[tuple[str, ...]]:
    return [
        (
            cell_text(row.partition.topic),
            str(row.partition.partition),
            "none" if row.committed is None else str(row.committed),
            _number(row.end),
        )
        for group in look.groups
        for row in group.rows
    ]


def _number(number: int | None) -> str:
    return "-" if number is None else str(number)


def _change(lag: int | None, before: int | None) -> str:
    if lag is None or before is None:
        return ""
    return f"{lag - before:+}" if lag != before else "0"


def _cut(name: str, width: int) -> str:
    return name if len(name) <= width else f"{name[: width - 3]}..."
