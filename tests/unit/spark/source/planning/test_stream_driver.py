"""A stream between its micro-batches."""

from __future__ import annotations

import logging

import pytest

from kafka_fast.errors import CommitFailedError, UsageError
from kafka_fast.spark.errors import DataLossError
from kafka_fast.spark.source.offsets import Offsets
from kafka_fast.spark.source.planning.bounds import Bound, Edge, SpecificOffsets
from kafka_fast.spark.source.planning.offset_reader import OffsetReader
from kafka_fast.spark.source.planning.ranges import OffsetRange
from kafka_fast.spark.source.planning.stream_driver import StreamDriver
from kafka_fast.types import OffsetAndMetadata, TopicPartition
from tests.unit.spark.source.fakes import A, B, Clock, FakeClient, options


class Store:
    kept: Offsets | None = None

    def load(self) -> Offsets | None:
        return self.kept

    def save(self, offsets: Offsets) -> None:
        self.kept = offsets


@pytest.fixture
def client() -> FakeClient:
    return FakeClient({A: range(100), B: range(5, 10)})


@pytest.fixture
def clock() -> Clock:
    return Clock()


def driver(
    client: FakeClient,
    clock: Clock | None = None,
    start: Bound = Edge.EARLIEST,
    store: Store | None = None,
    ends_first: bool = False,
    **given: str,
) -> StreamDriver:
    clock = clock or Clock()
    settings = options(**given)
    reader = OffsetReader(client, settings, clock.sleep)
    group = client if settings.group is not None else None
    return StreamDriver(
        reader, settings, start, store=store, group=group, clock=clock, ends_first=ends_first
    )


def test_latest_is_the_same_after_a_restart(client: FakeClient) -> None:
    store = Store()
    assert driver(client, start=Edge.LATEST, store=store).initial() == {A: 100, B: 10}
    client.logs[A] = range(200)
    assert driver(client, start=Edge.LATEST, store=store).initial() == {A: 100, B: 10}


def test_the_first_micro_batch_may_have_its_end_before_its_beginning(client: FakeClient) -> None:
    """Regression: with PySpark 4.0, which asks in this order, it was a loss of data."""
    stream = driver(client, start=SpecificOffsets({A: -1, B: 6}), store=Store(), ends_first=True)
    end = stream.latest(None)
    client.logs[A] = range(150)
    start = stream.initial()
    assert (start, end) == ({A: 150, B: 6}, {A: 100, B: 10})
    assert stream.ranges(start, end) == [OffsetRange(B, 6, 10)]
    assert stream.latest(None) == {A: 150, B: 10}
    assert stream.ranges(end, {A: 150, B: 10})[0] == OffsetRange(A, 100, 150)


def test_an_offset_that_was_named_is_not_changed(client: FakeClient) -> None:
    stream = driver(client, start=SpecificOffsets({A: 101, B: 6}), ends_first=True)
    end = stream.latest(None)
    with pytest.raises(DataLossError, match="start offset is set beyond available offset"):
        stream.ranges(stream.initial(), end)


def test_a_log_that_became_shorter_is_a_loss_in_the_first_micro_batch_too(
    client: FakeClient,
) -> None:
    stream = driver(client, start=Edge.LATEST, store=Store())
    start = stream.initial()
    client.logs[A] = range(90)
    with pytest.raises(DataLossError, match="offset was changed from 100 to 90"):
        stream.ranges(start, stream.latest(start))


def test_latest_without_a_store_is_refused(client: FakeClient) -> None:
    with pytest.raises(UsageError, match="initialOffsetsLocation"):
        driver(client, start=Edge.LATEST).initial()
    with pytest.raises(UsageError, match="initialOffsetsLocation"):
        driver(client, start=SpecificOffsets({A: 1, B: -1})).initial()
    unsafe = driver(client, start=Edge.LATEST, allowUnsafeLatest="true")
    assert unsafe.initial() == {A: 100, B: 10}
    assert driver(client, start=SpecificOffsets({A: 1, B: -2})).initial() == {A: 1, B: 5}


def test_batches_are_all_there_is(client: FakeClient) -> None:
    stream = driver(client)
    assert stream.latest({A: 0, B: 5}) == {A: 100, B: 10}
    assert stream.newest == {A: 100, B: 10}


def test_batches_are_limited(client: FakeClient) -> None:
    stream = driver(client, maxOffsetsPerTrigger="21")
    assert stream.latest({A: 0, B: 5}) == {A: 20, B: 6}
    assert stream.newest == {A: 100, B: 10}
    assert stream.latest({A: 0}) == {A: 20, B: 6}  # a new partition begins at its beginning
    assert stream.latest({A: 0, B: 5}, unlimited=True) == {A: 100, B: 10}


def test_batches_wait_for_enough(client: FakeClient, clock: Clock) -> None:
    stream = driver(client, clock, minOffsetsPerTrigger="50", maxTriggerDelay="60s")
    start = stream.latest({A: 0, B: 5})
    assert start == {A: 100, B: 10}
    client.logs[A] = range(120)
    clock.now += 59
    assert stream.latest(start) == start
    clock.now += 1
    assert stream.latest(start) == {A: 120, B: 10}


def test_old_pysparks_do_not_say_where_a_batch_begins(
    client: FakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    stream = driver(client, maxOffsetsPerTrigger="10")
    with caplog.at_level(logging.WARNING, "kafka_fast"):
        assert stream.latest(None) == {A: 100, B: 10}
    assert "this micro-batch has no limit" in caplog.text
    stream = driver(client, maxOffsetsPerTrigger="21")
    stream.initial()
    assert stream.latest(None) == {A: 20, B: 6}
    assert stream.latest(None) == {A: 40, B: 7}
    stream = driver(client, maxOffsetsPerTrigger="21")
    stream.ranges({A: 0, B: 5}, {A: 20, B: 6})  # a micro-batch is run again
    assert stream.latest(None) == {A: 40, B: 7}


def test_available_now_ends_at_what_was_there(client: FakeClient) -> None:
    stream = driver(client, maxOffsetsPerTrigger="84")
    stream.read_available_now()
    first = stream.latest({A: 0, B: 5})
    assert first == {A: 80, B: 9}
    client.logs[A] = range(1000)
    assert stream.latest(first) == {A: 100, B: 10}


def test_a_topic_that_is_created_again_ends_available_now(client: FakeClient) -> None:
    client.ids = {"t": "old"}
    stream = driver(client, maxOffsetsPerTrigger="84")
    stream.read_available_now()
    first = stream.latest({A: 0, B: 5})
    client.ids = {"t": "new"}
    with pytest.raises(DataLossError, match="Topic t was deleted and created again"):
        stream.latest(first)


def test_the_tasks_of_a_micro_batch_know_to_which_topic_its_offsets_belong(
    client: FakeClient,
) -> None:
    client.ids = {"t": "this one"}
    stream = driver(client)
    end = stream.latest({A: 0, B: 5})
    assert {span.topic_id for span in stream.ranges({A: 0, B: 5}, end)} == {"this one"}


def test_new_partitions_are_seen_by_the_next_batch(client: FakeClient) -> None:
    stream = driver(client)
    start = stream.latest({A: 0, B: 5})
    new = TopicPartition("t", 2)
    client.logs[new] = range(3)
    end = stream.latest(start)
    assert end == {**start, new: 3}
    assert stream.ranges(start, end)[-1] == OffsetRange(new, 0, 3)


def test_ranges_are_split(client: FakeClient) -> None:
    stream = driver(client, minPartitions="3")
    assert stream.ranges({A: 0, B: 5}, {A: 40, B: 10}) == [
        OffsetRange(A, 0, 20),
        OffsetRange(A, 20, 40),
        OffsetRange(B, 5, 10),
    ]


def test_data_loss_fails_or_is_logged(client: FakeClient, caplog: pytest.LogCaptureFixture) -> None:
    gone = TopicPartition("t", 2)
    with pytest.raises(DataLossError, match="Reason: Partitions t-2 have been deleted"):
        driver(client).ranges({A: 0, gone: 1}, {A: 1})
    lenient = driver(client, failOnDataLoss="false")
    with caplog.at_level(logging.WARNING, "kafka_fast"):
        assert lenient.ranges({A: 0, gone: 1}, {A: 1}) == [OffsetRange(A, 0, 1)]
        assert lenient.ranges({A: 0}, {A: 1, gone: 1}) == [OffsetRange(A, 0, 1)]
    assert "Partitions t-2 have been deleted" in caplog.text
    assert "Cannot find initial offsets for partitions t-2" in caplog.text


def test_progress_is_committed_at_best(
    client: FakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    driver(client).commit({A: 7})
    assert client.commits == []
    stream = driver(client, commitOffsetsToGroup="g")
    stream.commit({A: 7})
    assert client.commits == [{A: OffsetAndMetadata(7)}]
    client.failure = CommitFailedError("no")
    stream.commit({A: 8})
    assert "was not committed to its group: no" in caplog.text
