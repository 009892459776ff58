"""Points of a log on the command line: its beginning or end, an offset, a time."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterable
from datetime import datetime, timedelta, timezone
from typing import NamedTuple

from kafka_fast.times import iso_time, likely_unit

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
"""Seconds by unit of a relative time."""

_IN_MS = {"milliseconds": 1, "microseconds": 1_000, "nanoseconds": 1_000_000}

_AGO = re.compile(r"-(?:\d+[smhd])+")
_LIKE_AGO = re.compile(r"-\d.*")
_PART = re.compile(r"(\d+)([smhd])")

_DURATION = re.compile(r"(?:\d+[smhd])+")

_OPTIONS = ("--from", "--until", "--to", "--at")


class Point(NamedTuple):
    """Where to begin or to stop."""

    kind: str
    """Beginning, end, offset or time."""
    number: int = 0
    """The offset, or the Unix time in ms."""
    is_number: bool = True
    """Whether a time was given as a number, which is refused if it looks like seconds."""

    @property
    def is_offset(self) -> bool:
        """Whether the point is an offset."""
        return self.kind == "offset"

    @property
    def is_time(self) -> bool:
        """Whether the point is a time."""
        return self.kind == "time"

    @property
    def time(self) -> int | datetime:
        """The time, if the point is one."""
        if self.is_number:
            return self.number
        return EPOCH + timedelta(milliseconds=self.number)

    @property
    def value(self) -> int | datetime | None:
        """The offset or time; None for the log's own ends."""
        if self.is_offset:
            return self.number
        return self.time if self.is_time else None


BEGINNING = Point("beginning")
END = Point("end")


def parse_point(text: str) -> Point:
    """Return the point that a text names.

    The text is `beginning`, `end`, an offset such as `4711`, `now`, a time before now such as
    `-90s`, `-1h30m` or `-7d`, a Unix time in ms such as `@1700000000000`, or an ISO time, which is
    local without a zone.
    """
    if text in ("beginning", "end"):
        return BEGINNING if text == "beginning" else END
    if text.isascii() and text.isdigit():
        return Point("offset", int(text))
    if text.startswith("@") and text[1:].isascii() and text[1:].isdigit():
        return Point("time", int(text[1:]))
    ms = _ago(text) if text == "now" or _AGO.fullmatch(text) else _iso(text)
    if ms < 0:
        raise argparse.ArgumentTypeError(
            f"{text!r} is neither beginning, end, an offset, now, a time before now such as -1h "
            "(s, m, h, d), @MS nor an ISO time since 1970"
        )
    return Point("time", ms, is_number=False)


def parse_duration(text: str) -> timedelta:
    """Return the duration that a text such as `90s`, `1h30m` or `7d` names."""
    if _DURATION.fullmatch(text) and text.isascii():
        try:
            return timedelta(seconds=seconds_of(text))
        except OverflowError:
            pass
    raise argparse.ArgumentTypeError(f"expected a duration such as 1h30m (s, m, h, d): {text!r}")


def seconds_of(text: str) -> int:
    """Return the sum of a duration's parts; the caller has looked whether the text is one."""
    return sum(int(count) * SECONDS[unit] for count, unit in _PART.findall(text))


def time_meant(offset: int) -> str:
    """Return the end of a message about an offset that no log has: the time it most likely is."""
    unit = likely_unit(offset)
    if unit is None:
        return ""
    ms = offset * 1000 if unit == "seconds" else offset // _IN_MS[unit]
    return f"; as a time it is @{ms}, which is {iso_time(ms)}"


def joined_times(argv: Iterable[str]) -> list[str]:
    """Join `--from -1h` into one argument: argparse would take -1h for an option."""
    joined: list[str] = []
    for argument in argv:
        if joined and joined[-1] in _OPTIONS and _LIKE_AGO.fullmatch(argument):
            joined[-1] += f"={argument}"
        else:
            joined.append(argument)
    return joined


def _ago(text: str) -> int:
    return int((time.time() - seconds_of(text)) * 1000)


def _iso(text: str) -> int:
    try:
        # Python 3.10 does not know the Z.
        at = datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
        return round(at.timestamp() * 1000)
    except (ValueError, OverflowError, OSError):
        return -1
