"""Where a range begins and ends, as users say it."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest

from kafka_fast.consumer.ranges.bounds import bounds_of, kind_of, partitions_named
from kafka_fast.errors import UsageError
from kafka_fast.types import TopicPartition

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
NEW_YEAR = datetime(2024, 1, 1, tzinfo=timezone.utc)
NEW_YEAR_MS = 1_704_067_200_000


def test_what_the_bounds_are_shows_or_is_said() -> None:
    assert kind_of(None, None, None) == kind_of(None, 3, {T0: 5}) == "offset"
    assert kind_of(None, NEW_YEAR, None) == kind_of(None, None, {T0: NEW_YEAR}) == "timestamp"
    assert kind_of("timestamp", 5, NEW_YEAR) == "timestamp"
    with pytest.raises(UsageError, match="is no offset: leave by='offset' out"):
        kind_of("offset", NEW_YEAR, None)
    with pytest.raises(UsageError, match="is 5 one, too"):
        kind_of(None, NEW_YEAR, 5)
    with pytest.raises(UsageError, match="'offset' or 'timestamp', not 'size'"):
        kind_of("size", 1, 2)  # type: ignore[arg-type]


def test_properties_are_no_bounds() -> None:
    with pytest.raises(TypeError, match=r"start is a point .*config=\{"):
        kind_of(None, {"bootstrap.servers": "a:1"}, None)  # type: ignore[dict-item]


def test_one_bound_for_all_or_one_for_each() -> None:
    assert bounds_of(None, [T0, T1], "offset") == {}
    assert bounds_of(7, [T0, T1], "offset") == {T0: 7, T1: 7}
    assert bounds_of({T1: 7}, [T0, T1], "offset") == {T1: 7}
    assert bounds_of({T0: NEW_YEAR, T1: NEW_YEAR_MS}, [T0, T1], "timestamp") == {
        T0: NEW_YEAR_MS,
        T1: NEW_YEAR_MS,
    }


def test_of_one_topic_numbers_will_do() -> None:
    assert bounds_of({0: 7, T1: 8}, [T0, T1], "offset") == {T0: 7, T1: 8}  # type: ignore[dict-item]
    with pytest.raises(UsageError, match=r"0 is a partition of which of t, u\?"):
        bounds_of({0: 7}, [T0, U0], "offset")
    with pytest.raises(UsageError, match="t-0 is given twice"):
        bounds_of({0: 7, T0: 8}, [T0], "offset")  # type: ignore[dict-item]


@pytest.mark.parametrize("bound", [{9: 1}, {U0: 1}, -1, {0: -1}, {0: 2**63}])
def test_bounds_that_cannot_be(bound: Any) -> None:
    with pytest.raises(UsageError):
        bounds_of(bound, [T0, T1], "offset")


@pytest.mark.parametrize("bound", [1.5, {0: "9"}, {0.5: 1}, "9"])
def test_what_is_no_bound(bound: Any) -> None:
    with pytest.raises(TypeError):
        bounds_of(bound, [T0, T1], "offset")


def test_times_in_seconds() -> None:
    with pytest.raises(UsageError, match=r"a time of t-0: .*seconds instead of milliseconds"):
        bounds_of({0: NEW_YEAR_MS // 1000}, [T0], "timestamp")


def test_topics_and_partitions() -> None:
    assert partitions_named("t") == ["t"]
    assert partitions_named(T0) == [T0]
    assert partitions_named(["t", ("u", 0)]) == ["t", U0]
    for nothing in ([], [""]):
        with pytest.raises(UsageError):
            partitions_named(nothing)
    for wrong in ([3], 3, {"bootstrap.servers": "a:1"}):
        with pytest.raises(TypeError):
            partitions_named(wrong)
