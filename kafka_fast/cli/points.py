"""Points of a log as the command line names them: its ends, an offset, a time."""

from __future__ import annotations

import argparse
from datetime import datetime
from typing import NamedTuple


class Point(NamedTuple):
    """Where to begin or to stop.

    Attributes:
        kind: beginning, end, offset or time.
        number: the offset, or the Unix time in ms.
    """

    kind: str
    number: int = 0

    @property
    def is_offset(self) -> bool:
        """Whether it names an offset."""
        return self.kind == "offset"

    @property
    def is_time(self) -> bool:
        """Whether it names a time."""
        return self.kind == "time"

    @property
    def value(self) -> int | None:
        """The number; None for the log's own ends."""
        return self.number if self.is_offset or self.is_time else None


BEGINNING = Point("beginning")
END = Point("end")


def parse_point(text: str) -> Point:
    """Return the point that a text names: beginning, end, 4711, @1700000000000 or an ISO time.

    A time without a zone is local.
    """
    if text in ("beginning", "end"):
        return BEGINNING if text == "beginning" else END
    if text.isascii() and text.isdigit():
        return Point("offset", int(text))
    if text.startswith("@") and text[1:].isascii() and text[1:].isdigit():
        return Point("time", int(text[1:]))
    try:
        # Python 3.10 does not know the Z.
        at = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
        ms = round(at.timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        ms = -1
    if ms < 0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither beginning, end, an offset, @MS nor an ISO time since 1970"
        )
    return Point("time", ms)
