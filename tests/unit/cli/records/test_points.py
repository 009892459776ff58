"""Points of a log, as the command line names them."""

from __future__ import annotations

import argparse
import time
from datetime import datetime, timedelta, timezone

import pytest

from kafka_fast.cli.records.points import BEGINNING, END, Point, joined_times, parse_point

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
NOON_MS = int(NOON.timestamp()) * 1000
LOCAL_MS = int(datetime(2026, 3, 1).timestamp()) * 1000  # noqa: DTZ001  as the user means it


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("beginning", BEGINNING),
        ("end", END),
        ("0", Point("offset", 0)),
        ("4711", Point("offset", 4711)),
        ("@1700000000000", Point("time", 1_700_000_000_000)),
        ("2026-03-01T12:00:00Z", Point("time", NOON_MS, False)),
        ("2026-03-01T13:00:00.500+01:00", Point("time", NOON_MS + 500, False)),
        ("2026-03-01", Point("time", LOCAL_MS, False)),
    ],
)
def test_absolute(text: str, point: Point) -> None:
    assert parse_point(text) == point


def test_a_calendar_is_not_suspected_of_meaning_seconds() -> None:
    """Unix times in ms are, where they lie before 1973; `1970-01-01` means what it says."""
    assert parse_point("2026-03-01T12:00:00.250Z").value == NOON + timedelta(milliseconds=250)
    early = parse_point("1970-01-02T00:00Z")
    assert (early.number, early.time) == (86_400_000, datetime(1970, 1, 2, tzinfo=timezone.utc))
    assert parse_point("@86400000").time == parse_point("@86400000").value == 86_400_000
    assert parse_point("17").value == 17
    assert END.value is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("now", 0),
        ("-0s", 0),
        ("-90s", 90),
        ("-5m", 300),
        ("-1h", 3600),
        ("-7d", 7 * 86400),
        ("-1h30m", 5400),
        ("-1d2h3m4s", 93784),
    ],
)
def test_relative(text: str, seconds: int) -> None:
    before = time.time()
    point = parse_point(text)
    after = time.time()
    assert point.is_time
    assert int((before - seconds) * 1000) <= point.number <= int((after - seconds) * 1000)


@pytest.mark.parametrize(
    "text",
    ["", "-1", "-1x", "-h", "1h", "+1h", "-1h ", "-1.5h", "-99999999d", "@", "@-1", "soon",
     "1969-12-31T00:00Z", "\N{SUPERSCRIPT TWO}", "2026-13-01"],
)  # fmt: skip
def test_others_are_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="-1h"):
        parse_point(text)


def test_a_time_that_looks_like_an_option() -> None:
    arguments = ["consume", "t", "--from", "-1h", "--until", "-5m", "-n", "3", "--from", "end"]
    assert joined_times(arguments) == [
        "consume", "t", "--from=-1h", "--until=-5m", "-n", "3", "--from", "end",
    ]  # fmt: skip
    assert joined_times(["--from", "-1x", "-1h"]) == ["--from=-1x", "-1h"], "no other option"
    assert joined_times(["--from", "-n", "3"]) == ["--from", "-n", "3"]
