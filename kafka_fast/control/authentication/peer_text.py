"""Texts of others that go into our errors and log lines: brokers', identity providers', users'."""

from __future__ import annotations

__all__ = ["TEXT_MAX", "as_told"]

TEXT_MAX = 500
"""Characters of such a text that are shown."""


def as_told(text: bytes | str) -> str:
    """Return a text without line breaks, control characters and terminal codes, cut if it is long.

    Args:
        text: whatever the other side sent. Bytes are read as UTF-8; others are shown as escapes.
    """
    cut = text[: TEXT_MAX + 1]  # before the work: the text may be a hostile megabyte
    shown = cut.decode("utf-8", "backslashreplace") if isinstance(cut, bytes) else cut
    if len(cut) > TEXT_MAX:
        shown = shown[:TEXT_MAX] + "…"
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in shown
    )
