"""Where queries begin and end."""

from __future__ import annotations

import pytest

from kafka_fast.errors import UsageError
from kafka_fast.spark.source.planning.bounds import (
    Bounds,
    Edge,
    GlobalTimestamp,
    SpecificOffsets,
    Timestamps,
    bounds_of_batch,
    check_resolved,
    is_moving,
    start_of_stream,
)
from kafka_fast.types import TopicPartition

T0 = TopicPartition("t", 0)


def test_defaults() -> None:
    assert start_of_stream({}) is Edge.LATEST
    assert bounds_of_batch({}) == Bounds(Edge.EARLIEST, Edge.LATEST)


def test_one_time_beats_times_and_these_beat_offsets() -> None:
    options = {
        "startingoffsets": '{"t":{"0":7}}',
        "startingoffsetsbytimestamp": '{"t":{"0":1000}}',
        "startingtimestamp": " 2000 ",
        "endingoffsets": "Latest",
        "endingoffsetsbytimestamp": '{"t":{"0":3000}}',
        "endingtimestamp": "4000",
        "startingoffsetsbytimestampstrategy": "LATEST",
    }
    assert bounds_of_batch(options) == Bounds(
        GlobalTimestamp(2000, True), GlobalTimestamp(4000, True)
    )
    del options["startingtimestamp"], options["endingtimestamp"]
    assert bounds_of_batch(options) == Bounds(
        Timestamps({T0: 1000}, True), Timestamps({T0: 3000}, True)
    )
    del options["startingoffsetsbytimestamp"], options["endingoffsetsbytimestamp"]
    assert bounds_of_batch(options) == Bounds(SpecificOffsets({T0: 7}), Edge.LATEST)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingoffsets": "latest"}, "starting offset can't be latest for batch queries"),
        ({"endingoffsets": "EARLIEST"}, "ending offset can't be earliest for batch queries"),
        ({"startingoffsets": '{"t":{"0":-1}}'}, "startingOffsets for t-0 can't be latest"),
        ({"endingoffsets": '{"t":{"0":-2}}'}, "ending offset for t-0 can't be earliest"),
        ({"startingoffsets": '{"t":{"0":-3}}'}, "there is no offset -3"),
        ({"startingoffsets": "newest"}, "Expected e.g. "),
        ({"startingtimestamp": "noon"}, "Expected a single long value, got noon"),
        ({"startingoffsetsbytimestampstrategy": "skip"}, "must be 'error' or 'latest'"),
        (
            {"startingtimestamp": "1700000000"},
            "startingTimestamp takes Unix times in milliseconds: 1700000000 looks like seconds",
        ),
        ({"endingtimestamp": "1700000000000000"}, "endingTimestamp .* looks like microseconds"),
        (
            {"endingoffsetsbytimestamp": '{"t":{"0":1700000000}}'},
            "endingOffsetsByTimestamp .* looks like seconds",
        ),
        (
            {"startingoffsets": '{"t":{"0":1}}', "endingoffsets": '{"t":{"1":1}}'},
            "should have the same topic-partitions. Topic-partitions for start offset: t-0, ",
        ),
        (
            {"startingoffsets": '{"t":{"0":2}}', "endingoffsets": '{"t":{"0":1}}'},
            "The specified start offset 2 is greater than the end offset 1 for topic t partition 0",
        ),
        (
            {
                "startingoffsetsbytimestamp": '{"t":{"0":2}}',
                "endingoffsetsbytimestamp": '{"t":{"0":1}}',
            },
            "The specified start timestamp 2 is greater than the end timestamp 1",
        ),
    ],
)
def test_refusals_of_batches(options: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        bounds_of_batch(options)


def test_the_ends_of_logs_are_not_compared() -> None:
    options = {"startingoffsets": '{"t":{"0":-2}}', "endingoffsets": '{"t":{"0":-1}}'}
    assert bounds_of_batch(options).end == SpecificOffsets({T0: -1})


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("endingoffsets", "offset"),
        ("endingtimestamp", "timestamp"),
        ("endingoffsetsbytimestamp", "timestamp"),
    ],
)
def test_a_stream_has_no_end(name: str, what: str) -> None:
    with pytest.raises(UsageError, match=f"ending {what} not valid in streaming queries"):
        start_of_stream({name: "1"})


def test_a_batch_does_not_end_before_it_begins() -> None:
    check_resolved({T0: 3}, {T0: 3})
    with pytest.raises(UsageError, match="resolved start offset 4 is greater than the resolved"):
        check_resolved({T0: 4}, {T0: 3})


def test_which_starts_may_move() -> None:
    moving = [
        {},
        {"startingoffsets": '{"t":{"0":-1}}'},
        {"startingtimestamp": "1", "startingoffsetsbytimestampstrategy": "latest"},
    ]
    fixed = [
        {"startingoffsets": "earliest"},
        {"startingoffsets": '{"t":{"0":-2}}'},
        {"startingoffsetsbytimestamp": '{"t":{"0":1}}'},
    ]
    assert [is_moving(start_of_stream(options)) for options in moving] == [True] * 3
    assert [is_moving(start_of_stream(options)) for options in fixed] == [False] * 3
