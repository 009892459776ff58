from __future__ import annotations

from kafka_fast.control.authentication.peer_text import TEXT_MAX, as_told


def test_line_breaks_and_terminal_codes_are_shown_as_escapes() -> None:
    assert as_told("no\r\nINFO: all is well\x1b[2J\u2028") == (
        r"no\r\nINFO: all is well\x1b[2J\u2028"
    )


def test_bytes_that_are_no_utf8_are_shown() -> None:
    assert as_told(b"\xc3\xa9t\xc3\xa9 \xff") == r"été \xff"


def test_a_long_text_is_cut() -> None:
    assert as_told("x" * 10_000_000) == "x" * TEXT_MAX + "…"
    assert as_told(b"x" * TEXT_MAX) == "x" * TEXT_MAX
