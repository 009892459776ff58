"""Points in time as users give them: Unix times in ms, or datetimes with a time zone.

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

    A number that means a time before 1973 is refused, because it is most likely in seconds. 0 is
    allowed: it means the beginning in any unit. So is an early datetime.

    Args:
        given: a Unix time in ms, or a datetime with a time zone.
        what: names the argument in messages.

    Raises:
        TypeError: the argument has another type.
        UsageError: the argument is no time, has no time zone, or is most likely in seconds.
    """
    if is_datetime(given):
        return datetime_ms(given, what)
    try:
        ms = operator.index(given)
    except TypeError:
        raise TypeError(
            f"{what} is an int (Unix time in ms) or a datetime with a time zone, not {given!r}"
        ) from None
    if not 0 <= ms <= MAX_TIME:
        raise UsageError(f"{what}: {ms} is no Unix time in ms")
    if 0 < ms < FIRST_LIKELY_MS:
        raise UsageError(
            f"{what}: {ms} ms is before 1973: seconds instead of milliseconds? (A datetime with a "
            "time zone may be that early.)"
        )
    return ms
