"""Tables: as text, by rich, and on terminals of any width."""

from __future__ import annotations

import io
import sys

import pytest

from kafka_fast.cli.showing.tables import (
    Alarm,
    ReportColumn,
    ReportTable,
    cell_text,
    print_rich,
    print_text,
)

TABLE = ReportTable(
    (
        ReportColumn("TOPIC"),
        ReportColumn("PARTITION", is_number=True),
        ReportColumn("ISR"),
        ReportColumn("ID", is_wide=True),
    ),
    [("orders", 12, (1, 2), "x"), ("a", 0, Alarm(()), None)],
)


def test_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_text(TABLE)
    assert capsys.readouterr().out == (
        "TOPIC     PARTITION    ISR    ID\n"
        "orders           12    1,2    x\n"
        "a                 0    -      -\n"
    )
    print_text(TABLE.narrow())
    assert capsys.readouterr().out == (
        "TOPIC     PARTITION    ISR\n"
        "orders           12    1,2\n"
        "a                 0    -\n"
    )  # fmt: skip


def test_by_rich_into_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without colours and folds, whatever the environment says of terminals."""
    pytest.importorskip("rich")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "20")
    print_rich(TABLE)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "TOPIC    PARTITION   ISR   ID",
        "─────────────────────────────",
        "orders          12   1,2   x",
        "a                0   -     -",
    ]


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (None, "-"),
        (True, "yes"),
        (False, "no"),
        (0, "0"),
        ((), "-"),
        ([1, 2], "1,2"),
        (Alarm(None), "-"),
        ("\x1b[2Jgone\n", "\\x1b[2Jgone\\n"),
        ("right\u202eleft", "right\\u202eleft"),
        ("[red]no markup[/red]", "[red]no markup[/red]"),
        ("größer", "größer"),
    ],
)
def test_cells(cell: object, text: str) -> None:
    assert cell_text(cell) == text


def test_what_the_output_cannot_write(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert cell_text("größer") == "gr\\xf6\\xdfer"
