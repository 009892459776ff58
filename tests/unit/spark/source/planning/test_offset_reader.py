"""What the driver asks the brokers."""

from __future__ import annotations

import pytest

from kafka_fast.errors import UnknownTopicOrPartition, UsageError
from kafka_fast.spark.errors import DataLossError
from kafka_fast.spark.source.options import source_options
from kafka_fast.spark.source.planning.bounds import (
    Bounds,
    Edge,
    GlobalTimestamp,
    SpecificOffsets,
    Timestamps,
)
from kafka_fast.spark.source.planning.offset_reader import OffsetReader
from kafka_fast.spark.source.planning.ranges import OffsetRange, split
from kafka_fast.types import TopicPartition
from tests.unit.spark.source.fakes import A, B, Clock, FakeClient, options

S = TopicPartition("s", 0)


@pytest.fixture
def client() -> FakeClient:
    made = FakeClient({B: range(5, 20), A: range(10), S: range(3)})
    made.times = {A: [100, 200], B: [150]}
    return made


@pytest.fixture
def reader(client: FakeClient) -> OffsetReader:
    return OffsetReader(client, options())


def test_partitions(client: FakeClient) -> None:
    assert OffsetReader(client, options()).partitions() == [A, B]
    assigned = {"kafka.bootstrap.servers": "a:1", "assign": '{"t": [1, 7], "s": [0]}'}
    assert OffsetReader(client, source_options(assigned)).partitions() == [S, B]
    pattern = {"kafka.bootstrap.servers": "a:1", "subscribepattern": "[st]"}
    assert OffsetReader(client, source_options(pattern)).partitions() == [S, A, B]


def test_partitions_of_all_topics_are_one_question(client: FakeClient) -> None:
    both = {"kafka.bootstrap.servers": "a:1", "subscribe": "t,s"}
    assert OffsetReader(client, source_options(both)).partitions() == [S, A, B]
    assert client.asked == [["s", "t"]]


def test_a_batch_asks_for_its_partitions_once(client: FakeClient, reader: OffsetReader) -> None:
    bounds = Bounds(SpecificOffsets({A: 3, B: -2}), SpecificOffsets({A: 3, B: 6}))
    assert reader.ranges(bounds) == [OffsetRange(A, 3, 3), OffsetRange(B, 5, 6)]
    assert client.asked == [["t"]]


def test_the_ranges_of_a_batch_say_to_which_topic_they_belong(
    client: FakeClient, reader: OffsetReader
) -> None:
    client.ids = {"t": "this one"}
    ranges = reader.ranges(Bounds(Edge.EARLIEST, Edge.LATEST))
    assert {span.topic_id for span in ranges} == {"this one"}
    assert {span.topic_id for span in split(ranges, min_partitions=7)} == {"this one"}


def test_a_topic_that_was_created_again_is_another_one(client: FakeClient) -> None:
    lenient = OffsetReader(client, options(failOnDataLoss="false"))
    client.ids = {"t": "old"}
    known = lenient.latest()
    assert lenient.latest(known) == known
    client.ids = {"t": "new"}
    told = "Topic t was deleted and created again .*: its id was old and is new now"
    for _ in range(2):
        with pytest.raises(DataLossError, match=told):
            lenient.latest(known)
    assert lenient.latest({}) == known  # all of it is new
    assert lenient.latest(known) == known


def test_a_topic_of_an_old_broker_has_no_id(client: FakeClient, reader: OffsetReader) -> None:
    known = reader.latest()
    client.ids = {"t": "its first"}
    assert reader.latest(known) == known
    client.ids = {}
    assert reader.latest(known) == known


def test_a_topic_that_is_gone_is_left_out_if_it_was_there_before(client: FakeClient) -> None:
    both = source_options({"kafka.bootstrap.servers": "a:1", "subscribe": "t,s"})
    reader = OffsetReader(client, both)
    known = reader.latest()
    del client.logs[S]
    assert reader.latest(known) == {A: 10, B: 20}
    with pytest.raises(UnknownTopicOrPartition, match="there is no topic 's'"):
        OffsetReader(client, both).latest({A: 0, B: 5})


def test_the_ends_of_logs(reader: OffsetReader) -> None:
    assert reader.resolve(Edge.EARLIEST, is_start=True) == {A: 0, B: 5}
    assert reader.resolve(Edge.LATEST, is_start=False) == {A: 10, B: 20}
    assert reader.earliest([B]) == {B: 5}


def test_offsets(reader: OffsetReader) -> None:
    assert reader.resolve(SpecificOffsets({A: -2, B: -1}), is_start=True) == {A: 0, B: 20}
    assert reader.resolve(SpecificOffsets({A: 7, B: 9}), is_start=True) == {A: 7, B: 9}
    with pytest.raises(UsageError, match="Specified: t-0 Assigned: t-0, t-1"):
        reader.resolve(SpecificOffsets({A: 7}), is_start=True)


def test_times(reader: OffsetReader) -> None:
    assert reader.resolve(GlobalTimestamp(150, False), is_start=True) == {A: 1, B: 0}
    assert reader.resolve(Timestamps({A: 1, B: 2}, False), is_start=True) == {A: 0, B: 0}
    with pytest.raises(UsageError, match="timestamp based start offsets don't match"):
        reader.resolve(Timestamps({A: 1}, False), is_start=True)


def test_no_record_is_young_enough(reader: OffsetReader) -> None:
    with pytest.raises(UsageError, match="No offset matched from request of topic-partition t-1"):
        reader.resolve(GlobalTimestamp(200, False), is_start=True)
    assert reader.resolve(GlobalTimestamp(200, True), is_start=True) == {A: 1, B: 20}
    assert reader.resolve(GlobalTimestamp(200, False), is_start=False) == {A: 1, B: 20}


def test_an_end_before_what_is_known_is_asked_for_again(client: FakeClient) -> None:
    clock = Clock()
    reader = OffsetReader(client, options(), clock.sleep)
    client.answers = [{A: 3, B: 20}, {A: 4, B: 20}]
    assert reader.latest({A: 10}) == {A: 10, B: 20}
    assert clock.now == 1002.0
    client.answers = [{A: 3, B: 20}] * 3
    assert reader.latest({A: 10}) == {A: 3, B: 20}  # it is told, after all
    assert clock.now == 1004.0


def test_the_ranges_of_a_batch(client: FakeClient, reader: OffsetReader) -> None:
    whole = Bounds(Edge.EARLIEST, Edge.LATEST)
    assert reader.ranges(whole) == [OffsetRange(A, 0, 10), OffsetRange(B, 5, 20)]
    some = Bounds(SpecificOffsets({A: 3, B: -2}), SpecificOffsets({A: 3, B: 6}))
    assert reader.ranges(some) == [OffsetRange(A, 3, 3), OffsetRange(B, 5, 6)]
    with pytest.raises(UsageError, match="resolved start offset 11 is greater than the resolved"):
        reader.ranges(Bounds(SpecificOffsets({A: 11, B: 5}), Edge.LATEST))


def test_a_batch_does_not_end_behind_a_log(client: FakeClient, reader: OffsetReader) -> None:
    bounds = Bounds(Edge.EARLIEST, SpecificOffsets({A: 10, B: 21}))
    with pytest.raises(DataLossError, match="endingOffsets of t-1 is 21, but its log ends at 20"):
        reader.ranges(bounds)
    lenient = OffsetReader(client, options(failOnDataLoss="false"))
    assert lenient.ranges(bounds) == [OffsetRange(A, 0, 10), OffsetRange(B, 5, 20)]
