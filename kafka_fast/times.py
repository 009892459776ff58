"""Times as users give them: timeouts, Unix times in ms, or datetimes with a time zone.

A datetime without a time zone is refused everywhere. Only its author knows whether it is local or
UTC; a wrong guess would be off by hours, and nobody would notice.
"""

from __future__ import annotations

import operator
from functools import cache
from typing import TYPE_CHECKING, Any

from kafka_fast.errors import UsageError

if TYPE_CHECKING:
    from datetime import datetime, timedelta

MAX_TIME = 2**63 - 1

FIRST_LIKELY_MS = 94_694_400_000
"""The beginning of 1973. The same number of seconds is the year 4970, so a number below this is
most likely a present time in seconds.
"""

_FIRST_LIKELY, _LAST_LIKELY = 94_694_400, 4_102_444_800
"""1973 and 2100, in seconds."""

_UNITS = (
    ("seconds", 1),
    ("milliseconds", 1_000),
    ("microseconds", 1_000_000),
    ("nanoseconds", 1_000_000_000),
)
"""How many of a unit a second has. The likely times of two units do not overlap."""

HOW_TO_GIVE_MS = "pass int(time.time() * 1000), or a datetime with a time zone"
"""What a caller does who has given a time in another unit."""

OF_FLOATS = f": time.time() has seconds, {HOW_TO_GIVE_MS}"
"""The end of an error about times that are floats."""


def seconds(given: object) -> float:
    """Return a timeout, which is a number of seconds.

    Raises:
        TypeError: it is none.
    """
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise TypeError(f"a timeout is a number of seconds, not {given!r}")
    return given


def timeout_seconds(given: object) -> float:
    """Return the timeout of a call of a client; a negative one is refused, as in Java.

    Raises:
        TypeError: it is no number of seconds.
        UsageError: it is negative, or not a number.
    """
    timeout = seconds(given)
    if not timeout >= 0:  # refuses NaN, too
        raise UsageError(f"a timeout of {timeout} s")
    return timeout


@cache
def _calendar() -> tuple[type[datetime], datetime, timedelta]:
    """Return the type datetime, the Unix epoch, and a millisecond.

    The import is here because a process that uses no datetimes need not load the module.
    """
    from datetime import datetime, timedelta, timezone

    return datetime, datetime(1970, 1, 1, tzinfo=timezone.utc), timedelta(milliseconds=1)


def is_datetime(given: object) -> bool:
    """Tell whether this is a datetime, with or without a time zone."""
    return isinstance(given, _calendar()[0])


def likely_unit(number: int) -> str | None:
    """Return the unit in which a number is a Unix time from 1973 to 2100; None: in no unit."""
    for unit, per_second in _UNITS:
        if _FIRST_LIKELY * per_second <= number < _LAST_LIKELY * per_second:
            return unit
    return None


def iso_time(ms: int) -> str:
    """Return a Unix time in ms for messages, in UTC: "2024-01-01T00:00:00Z"; or the number."""
    _, epoch, millisecond = _calendar()
    try:
        return (epoch + ms * millisecond).isoformat().replace("+00:00", "Z")
    except OverflowError:
        return str(ms)


def float_hint(given: object) -> str:
    """Return the end of an error about a time that is no integer: what a float most likely is."""
    return OF_FLOATS if isinstance(given, float) else ""


def datetime_ms(given: datetime, what: str) -> int:
    """Return the Unix time of a datetime in ms; fractions of a millisecond are cut off.

    Args:
        given: a datetime with a time zone.
        what: names the argument in messages.

    Raises:
        UsageError: the datetime has no time zone, or is before 1970.
    """
    if given.tzinfo is None or given.utcoffset() is None:
        raise UsageError(
            f"{what}: {given!r} has no time zone: give it one, as datetime.now(timezone.utc) "
            "does, or .astimezone() to a local time"
        )
    _, epoch, millisecond = _calendar()
    ms = (given - epoch) // millisecond
    if ms < 0:
        raise UsageError(f"{what}: {given} is before 1970, where Unix times begin")
    return ms


def query_ms(given: Any, what: str) -> int:
    """Return the Unix time in ms at which a user looks for records.

    A number that means a time before 1973 is refused, because it is most likely in seconds; so is
    one that is a present time in microseconds or nanoseconds. 0 is allowed: it means the beginning
    in any unit. So is an early datetime.

    Args:
        given: a Unix time in ms, or a datetime with a time zone.
        what: names the argument in messages.

    Raises:
        TypeError: the argument has another type.
        UsageError: the argument is no time, has no time zone, or is most likely in another unit.
    """
    if is_datetime(given):
        return datetime_ms(given, what)
    try:
        ms = operator.index(given)
    except TypeError:
        raise TypeError(
            f"{what} is an int (Unix time in ms) or a datetime with a time zone, not {given!r}"
            f"{float_hint(given)}"
        ) from None
    if not 0 <= ms <= MAX_TIME:
        raise UsageError(f"{what}: {ms} is no Unix time in ms")
    if 0 < ms < FIRST_LIKELY_MS:
        raise UsageError(
            f"{what}: {ms} ms is before 1973: seconds instead of milliseconds? (A datetime with a "
            "time zone may be that early.)"
        )
    unit = likely_unit(ms)
    if unit in ("microseconds", "nanoseconds"):
        raise UsageError(
            f"{what}: {ms} ms is beyond the year 4900: {unit} instead of milliseconds?"
        )
    return ms
