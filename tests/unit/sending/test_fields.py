"""What callers bring for one record: headers, partition and timestamp in every shape."""

from __future__ import annotations

from collections import UserDict
from datetime import date, datetime, timedelta, timezone
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from kafka_fast.errors import SerializationError, UsageError
from tests.unit.dataplane.rig import ProduceRig


class Three:
    def __index__(self) -> int:
        return 3


@pytest.mark.parametrize(
    "headers",
    [
        [("ab", b"1"), ("c", None)],
        (["ab", "1"], ("c", None)),
        iter([("ab", bytearray(b"1")), ("c", None)]),
        {"ab": b"1", "c": None},
        MappingProxyType({"ab": b"1", "c": None}),
        UserDict({"ab": "1", "c": None}),
    ],
    ids=lambda headers: type(headers).__name__,
)
def test_headers_are_pairs_or_any_mapping(headers: Any) -> None:
    rig = ProduceRig()
    rig.send(headers=headers)
    (sent,) = rig.requests()
    (record,) = sent.batches["t", 0].records()
    assert record.headers == (("ab", b"1"), ("c", None))


@pytest.mark.parametrize(
    ("headers", "error", "said"),
    [
        (["ab"], TypeError, "must be .key, value. pairs, not str"),
        ([b"ab"], TypeError, "must be .key, value. pairs, not bytes"),
        ("ab", TypeError, "must be .key, value. pairs"),
        ([("a", b"1", 2)], TypeError, "must be .key, value. pairs"),
        (5, TypeError, "must be .key, value. pairs or a mapping, not int"),
        ([(b"a", b"1")], TypeError, "a header's key for topic 't' must be str, not bytes"),
        ([("a", 1)], TypeError, "header 'a' for topic 't' must be bytes-like, str or None"),
        ([("\ud800", b"")], SerializationError, "a header's key for topic 't'"),
    ],
)
def test_wrong_headers(headers: Any, error: type[Exception], said: str) -> None:
    rig = ProduceRig()
    with pytest.raises(error, match=said):
        rig.send(headers=headers)
    assert rig.queues.pending() == 0


def test_a_partition_is_any_integer() -> None:
    rig = ProduceRig(partitions=4)
    rig.send(partition=Three())  # type: ignore[arg-type]
    (sent,) = rig.requests()
    assert list(sent.batches) == [("t", 3)]


@pytest.mark.parametrize("partition", ["1", 0.5, b"0"])
def test_what_is_no_partition(partition: Any) -> None:
    rig = ProduceRig()
    with pytest.raises(
        TypeError, match=f"of topic 't' must be int, not {type(partition).__name__}"
    ):
        rig.send(partition=partition)
    for number in (-1, 1, 1 << 70):
        with pytest.raises(UsageError, match=f"partitions 0 to 0, not {number}"):
            rig.send(partition=number)
    assert rig.queues.pending() == 0


@pytest.mark.parametrize("timestamp_ms", [-1, 1 << 63])
def test_timestamps_are_unix_ms(timestamp_ms: int) -> None:
    rig = ProduceRig()
    with pytest.raises(UsageError, match="must be Unix ms in int64"):
        rig.send(timestamp_ms=timestamp_ms)
    assert rig.queues.pending() == 0


def test_a_timestamp_may_be_a_datetime_that_knows_its_zone() -> None:
    rig = ProduceRig()
    east = timezone(timedelta(hours=2))
    rig.send(timestamp_ms=datetime(2024, 1, 1, 2, 0, 0, 7_999, tzinfo=east))
    (sent,) = rig.requests()
    (record,) = sent.batches["t", 0].records()
    assert record.timestamp_ms == 1_704_067_200_007, "what is shorter than 1 ms is cut off"


@pytest.mark.parametrize(
    ("timestamp", "error", "said"),
    [
        (datetime(2024, 1, 1), UsageError, "'t': .*has no time zone"),  # noqa: DTZ001
        (datetime(1969, 12, 31, tzinfo=timezone.utc), UsageError, "before 1970"),
        (date(2024, 1, 1), TypeError, "'t' must be int .*datetime with a time zone, not date"),
        (np.datetime64(1, "ns"), TypeError, "not datetime64"),
        ("now", TypeError, "not str"),
        (
            1.7e9,
            TypeError,
            r"not float: time\.time\(\) has seconds, pass int\(time.time\(\) \* 1000",
        ),
        (np.float64(1.7e12), TypeError, r"not float64: time\.time\(\) has seconds"),
    ],
)
def test_what_is_no_timestamp(timestamp: Any, error: type[Exception], said: str) -> None:
    rig = ProduceRig()
    with pytest.raises(error, match=said):
        rig.send(timestamp_ms=timestamp)
    assert rig.queues.pending() == 0
