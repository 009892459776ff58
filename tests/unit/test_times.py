"""Points in time as users give them."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pytest

from kafka_fast.errors import UsageError
from kafka_fast.times import FIRST_LIKELY_MS, datetime_ms, query_ms

UTC = timezone.utc
MS = timedelta(milliseconds=1)


@pytest.mark.parametrize(
    ("given", "ms"),
    [
        (datetime(1970, 1, 1, tzinfo=UTC), 0),
        (datetime(2024, 1, 1, tzinfo=UTC), 1_704_067_200_000),
        (datetime(2024, 1, 1, 5, 30, tzinfo=timezone(timedelta(hours=5.5))), 1_704_067_200_000),
        (datetime(2024, 1, 1, microsecond=1_999, tzinfo=UTC), 1_704_067_200_001),
        (datetime.max.replace(tzinfo=UTC), 253_402_300_799_999),
        (pd.Timestamp("2024-01-01", tz="Asia/Tokyo"), 1_704_034_800_000),
    ],
)
def test_datetimes_are_unix_ms(given: datetime, ms: int) -> None:
    assert datetime_ms(given, "a time") == query_ms(given, "a time") == ms


@pytest.mark.parametrize(
    "given",
    [datetime(2024, 1, 1), datetime(1960, 1, 1), pd.NaT],  # noqa: DTZ001
)
def test_one_without_a_zone_is_nobodys_time(given: Any) -> None:
    for read in (datetime_ms, query_ms):
        with pytest.raises(UsageError, match=r"^a time of t-0: .*has no time zone"):
            read(given, "a time of t-0")


def test_before_unix_times_begin() -> None:
    with pytest.raises(UsageError, match="before 1970"):
        datetime_ms(datetime(1970, 1, 1, tzinfo=UTC) - MS, "a time")


@pytest.mark.parametrize("given", [0, FIRST_LIKELY_MS, np.int64(1_700_000_000_000), 2**63 - 1])
def test_numbers_are_what_they_say(given: int) -> None:
    assert query_ms(given, "a time") == given


@pytest.mark.parametrize("given", [1, 1_700_000_000, FIRST_LIKELY_MS - 1])
def test_a_number_that_was_meant_in_seconds(given: int) -> None:
    with pytest.raises(UsageError, match=r"seconds instead of milliseconds\?"):
        query_ms(given, "a time")
    early = datetime(1970, 1, 1, tzinfo=UTC) + given * MS
    assert query_ms(early, "a time") == given, "a datetime says what it means"


@pytest.mark.parametrize("given", [-1, 2**63])
def test_what_is_no_time(given: int) -> None:
    with pytest.raises(UsageError, match="is no Unix time in ms"):
        query_ms(given, "a time")


@pytest.mark.parametrize(
    "given", [1.5, "2024-01-01", date(2024, 1, 1), None, np.datetime64("2024-01-01", "ms")]
)
def test_what_is_something_else(given: Any) -> None:
    with pytest.raises(TypeError, match="a datetime with a time zone, not"):
        query_ms(given, "a time")
