"""read_range through sockets: exact ends, whatever stands there."""

from __future__ import annotations

import gc
import importlib
import os
import warnings
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from kafka_fast import (
    Consumer,
    KafkaTimeoutError,
    PositionError,
    Producer,
    TopicPartition,
    UsageError,
    read_range,
)
from kafka_fast.consumer.ranges.record_range import RangeConsumer
from kafka_fast.errors import UnknownTopicOrPartition
from kafka_fast.testing.broker.cluster import Cluster
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.embedded.consuming import FIRST_TIMESTAMP_MS, fill
from tests.embedded.producing import new_topic
from tests.waiting import eventually


def receiver(name: str) -> Any:
    """Import what loads a jemalloc of its own: beside it no process under ThreadSanitizer may fork.

    Nor does ThreadSanitizer see what the threads of Polars and DuckDB wait for.
    """
    if os.environ.get("KAFKA_FAST_SANITIZER") == "thread":
        pytest.skip(f"{name} does not run under ThreadSanitizer")
    return importlib.import_module(name)


@pytest.fixture
def pl() -> Any:
    return receiver("polars")


@pytest.fixture
def duckdb() -> Any:
    return receiver("duckdb")


DRIVERS = True
DAY = timedelta(days=1)
YESTERDAY = datetime.now(timezone.utc) - DAY
OffsetsOf = Callable[..., dict[int, list[int]]]


@pytest.fixture
def offsets_of(open_range: Any) -> OffsetsOf:
    """Return the offsets that a range brings, by partition."""

    def read(
        kafka: EmbeddedKafka, topics: Any, start: Any = None, end: Any = None, **more: Any
    ) -> dict[int, list[int]]:
        offsets: dict[int, list[int]] = {}
        with open_range(topics, start, end, bootstrap_servers=kafka.bootstrap, **more) as steps:
            for records in steps:
                for record in records:
                    offsets.setdefault(record.partition, []).append(record.offset)
        return offsets

    return read


def test_all_that_is_there_now(kafka: EmbeddedKafka, topic: str, offsets_of: OffsetsOf):
    fill(kafka, topic, 25)
    assert offsets_of(kafka, topic) == {0: list(range(25))}


@pytest.mark.parametrize(("start", "end"), [(0, 1), (3, 17), (9, 10), (10, 20), (24, 99), (5, 5)])
def test_offsets_within_batches(
    kafka: EmbeddedKafka, topic: str, start: int, end: int, offsets_of: OffsetsOf
):
    fill(kafka, topic, 25)
    expected = list(range(start, min(end, 25)))
    assert offsets_of(kafka, topic, start, end) == ({0: expected} if expected else {})


def test_every_partition_has_its_own_bounds(
    kafka: EmbeddedKafka, request: pytest.FixtureRequest, offsets_of: OffsetsOf
):
    topic = new_topic(kafka, request.node.name, partitions=3)
    for number in range(3):
        fill(kafka, topic, 30, number)
    low = {TopicPartition(topic, 0): 28, TopicPartition(topic, 1): 4}
    high = {TopicPartition(topic, 1): 6, TopicPartition(topic, 2): 2}
    assert offsets_of(kafka, topic, low, high) == {0: [28, 29], 1: [4, 5], 2: [0, 1]}
    assert offsets_of(kafka, TopicPartition(topic, 1), 3, 5) == {1: [3, 4]}


def test_nothing_is_fetched_far_behind_an_end(kafka: EmbeddedKafka, request: pytest.FixtureRequest):
    """Regression: a short range was fetched on, as far as the buffer had room."""
    topic = new_topic(kafka, request.node.name, partitions=2)
    with Producer(bootstrap_servers=kafka.bootstrap, batch_size=250_000) as producer:
        for number in (0, 1):
            values = [bytes(10_000)] * 1_000
            producer.send_many(topic, values, partitions=[number] * 1_000).result(60)
    short, long = (TopicPartition(topic, number) for number in (0, 1))
    with RangeConsumer(bootstrap_servers=kafka.bootstrap) as consumer:
        consumer.assign_ranges({short: range(10), long: range(1_000)})
        streams = consumer._core.streams
        eventually(lambda: streams.unread_bytes(1) > 10_000_000, "all of the long range")
        assert 100_000 < streams.unread_bytes(0) < 2_200_000  # two answers of 1 MiB at most


def test_times(kafka: EmbeddedKafka, topic: str, offsets_of: OffsetsOf):
    fill(kafka, topic, 30)  # a second apart
    start, end = FIRST_TIMESTAMP_MS + 4500, FIRST_TIMESTAMP_MS + 20_000
    assert offsets_of(kafka, topic, start, end, by="timestamp") == {0: list(range(5, 20))}
    assert offsets_of(kafka, topic, end + 10**9, by="timestamp") == {}


def test_small_steps_stop_as_exactly(kafka: EmbeddedKafka, topic: str, offsets_of: OffsetsOf):
    fill(kafka, topic, 40)
    assert offsets_of(kafka, topic, 7, 33, max_records=4) == {0: list(range(7, 33))}


@pytest.mark.parametrize("keep_empty", [False, True])
def test_compaction(kafka: EmbeddedKafka, topic: str, offsets_of: OffsetsOf, *, keep_empty: bool):
    fill(kafka, topic, 40)
    gone = {0, 1, 7, *range(10, 20), 24, 29, 31}
    kafka.on_cluster(lambda cluster: cluster.compact(topic, 0, gone, keep_empty=keep_empty))
    for start, end in [(0, 40), (1, 2), (5, 8), (8, 12), (12, 18), (15, 25), (24, 25), (28, 30)]:
        expected = [offset for offset in range(start, end) if offset not in gone]
        assert offsets_of(kafka, topic, start, end) == ({0: expected} if expected else {})


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_markers_and_aborted_records(
    kafka: EmbeddedKafka, topic: str, isolation: str, offsets_of: OffsetsOf
):
    """The last offsets are a marker's, and aborted records': no record tells that they passed."""
    plant = [(b"a", True), (b"b", False), (b"c", True), (b"d", False)]
    for producer_id, (value, commit) in enumerate(plant, 70):
        values = [value] * 3  # and a marker: four offsets each
        kafka.on_cluster(
            lambda cluster, producer_id=producer_id, values=values, commit=commit: (
                cluster.plant_transaction(topic, 0, producer_id, values, commit=commit)
            )
        )
    seen = [0, 1, 2, 8, 9, 10]
    if isolation == "read_uncommitted":
        seen = [offset for offset in range(16) if offset % 4 != 3]
    for start, end in [(0, 16), (3, 4), (4, 8), (2, 9), (5, 7), (9, 15), (12, None)]:
        stop = 16 if end is None else end
        expected = [offset for offset in seen if start <= offset < stop]
        offsets = offsets_of(kafka, topic, start, end, isolation_level=isolation)
        assert offsets == ({0: expected} if expected else {})


def test_an_open_transaction_ends_what_is_committed(
    kafka: EmbeddedKafka, topic: str, offsets_of: OffsetsOf
):
    fill(kafka, topic, 10)
    kafka.on_cluster(
        lambda cluster: cluster.plant_transaction(topic, 0, 70, [b"open"] * 3, commit=None)
    )
    assert offsets_of(kafka, topic, isolation_level="read_committed") == {0: list(range(10))}
    assert offsets_of(kafka, topic, 5, 99) == {0: list(range(5, 13))}


def test_deleted_records_are_an_error_unless_nobody_asked_for_them(
    kafka: EmbeddedKafka, topic: str, offsets_of: OffsetsOf
):
    fill(kafka, topic, 30)
    kafka.on_cluster(lambda cluster: cluster.delete_records(topic, 0, 12))
    assert offsets_of(kafka, topic) == {0: list(range(12, 30))}
    assert offsets_of(kafka, topic, 12, 14) == {0: [12, 13]}
    with pytest.raises(PositionError, match="begins at offset 12") as caught:
        offsets_of(kafka, topic, 11, 14)
    assert caught.value.offset == 11


def test_a_topic_that_is_created_again_ends_a_range_of_it(kafka: EmbeddedKafka, open_range: Any):
    """Regression: an offset was said to be out of range, and a range was told to seek."""
    other = new_topic(kafka, "other", 3)

    def create_again() -> None:
        def again(cluster: Cluster) -> None:  # at once, before a client asks for it
            cluster.delete_topic(other)
            cluster.create_topic(other, assignment={0: [2], 1: [3], 2: [1]})

        kafka.on_cluster(again)
        for partition in range(3):
            kafka.produce(other, [b"new"] * 3_000, partition=partition)

    old: list[bytes] = []
    for partition in range(3):
        old += fill(kafka, other, 3_000, partition, batch=100)
    config = {"fetch.buffer.bytes": 65_536}  # so that not all is here before it is deleted
    values: list[bytes] = []  # of the first steps
    steps = open_range(other, bootstrap_servers=kafka.bootstrap, max_records=100, config=config)
    with steps:
        for _ in range(3):
            values += next(steps).values()
        create_again()
        with pytest.raises(PositionError) as caught:
            values += [value for records in steps for value in records.values()]
    place = f"{other}-{caught.value.partition}"
    assert str(caught.value) == (
        f"topic '{other}' was deleted and created again while a range of it was read: the rest of "
        f"{place} up to offset 3000 is gone; begin a new range to read the new topic"
    )
    assert set(values) <= set(old)


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [
        (6, 5, r"^the range ends at 5, before it begins at 6$"),
        ({0: 6}, {0: 5}, r"-0 ends at 5, before it begins at 6"),
        ({0: 6}, 5, r"-0 ends at 5, before it begins at 6"),
        (YESTERDAY, YESTERDAY - timedelta(hours=1), r"^the range ends at .*Z, before it begins at"),
        ({0: YESTERDAY}, {0: YESTERDAY - timedelta(hours=1)}, r"-0 ends at .*Z, before it begins"),
    ],
)
def test_a_range_that_ends_before_it_begins(
    kafka: EmbeddedKafka, topic: str, offsets_of: OffsetsOf, start: Any, end: Any, said: str
):
    """Regression: it was empty, in silence."""
    fill(kafka, topic, 30)
    with pytest.raises(UsageError, match=said):
        offsets_of(kafka, topic, start, end)


@pytest.mark.parametrize(
    ("start", "meant"),
    [
        (31, ""),
        (FIRST_TIMESTAMP_MS, r": it looks like a Unix time in milliseconds; by='timestamp'"),
        (FIRST_TIMESTAMP_MS // 1000, r": it looks like a Unix time in seconds; by='timestamp'"),
    ],
)
@pytest.mark.parametrize("end", [None, 2**62])
def test_a_start_behind_the_end_of_the_log(
    kafka: EmbeddedKafka, topic: str, offsets_of: OffsetsOf, start: int, meant: str, end: Any
):
    """Regression: such a range was empty, in silence, and most often meant as times."""
    fill(kafka, topic, 30)
    assert offsets_of(kafka, topic, 30, end) == {}, "all that came since the last look: nothing"
    with pytest.raises(PositionError, match=rf"-0 ends at offset 30: {start} .*{meant}") as caught:
        offsets_of(kafka, topic, start, end)
    assert caught.value.offset == start
    with pytest.raises(PositionError, match=rf"{start} is not there \(yet\)$"):
        offsets_of(kafka, topic, start, end, by="offset")


def test_a_start_behind_the_ends_of_some_logs(kafka: EmbeddedKafka, offsets_of: OffsetsOf):
    topic = new_topic(kafka, "uneven", partitions=3)
    fill(kafka, topic, 9, 1)
    with pytest.raises(
        PositionError, match=r"-0 ends at .* 0: 5 .*yet.*, nor in 1 other partition$"
    ):
        offsets_of(kafka, topic, 5)
    assert offsets_of(kafka, topic, {1: 5}) == {1: [5, 6, 7, 8]}


def test_an_end_that_looks_like_a_time(
    kafka: EmbeddedKafka, topic: str, offsets_of: OffsetsOf, caplog: pytest.LogCaptureFixture
):
    fill(kafka, topic, 3)
    assert offsets_of(kafka, topic, 0, 2**62) == offsets_of(kafka, topic, 0, 99) == {0: [0, 1, 2]}
    assert offsets_of(kafka, topic, 0, FIRST_TIMESTAMP_MS, by="offset") == {0: [0, 1, 2]}
    assert not caplog.records
    assert offsets_of(kafka, topic, 0, FIRST_TIMESTAMP_MS) == {0: [0, 1, 2]}
    (said,) = (record.getMessage().split("] ") for record in caplog.records)
    assert said[0].startswith("[consumer-"), "the client's id, as in every line"
    assert said[1] == (
        f"the range ends at offset {FIRST_TIMESTAMP_MS}, beyond the log: it looks like a Unix time "
        "in milliseconds; by='timestamp' takes datetimes or ms"
    )


def test_a_start_in_the_future(
    kafka: EmbeddedKafka, topic: str, offsets_of: OffsetsOf, caplog: pytest.LogCaptureFixture
):
    fill(kafka, topic, 3)
    now = datetime.now(timezone.utc)
    assert offsets_of(kafka, topic, now) == offsets_of(kafka, topic, end=now + DAY, start=now) == {}
    assert not caplog.records, "an idle topic"
    assert offsets_of(kafka, topic, now + DAY) == {}
    assert "] the range begins in the future, at 20" in caplog.text


@pytest.mark.parametrize("factor", [1_000, 1_000_000])
def test_finer_units_than_milliseconds(
    kafka: EmbeddedKafka, topic: str, offsets_of: OffsetsOf, factor: int
):
    """Regression: `time.time_ns()` was a time in which nothing has been written yet."""
    fill(kafka, topic, 3)
    with pytest.raises(UsageError, match=r"(micro|nano)seconds instead of milliseconds\?"):
        offsets_of(kafka, topic, FIRST_TIMESTAMP_MS * factor, by="timestamp")
    assert offsets_of(kafka, topic, 0, 2**63 - 1, by="timestamp") == {0: [0, 1, 2]}


def test_tables(kafka: EmbeddedKafka, topic: str, open_range: Any):
    values = fill(kafka, topic, 30)
    with open_range(topic, 5, 25, bootstrap_servers=kafka.bootstrap) as steps:
        table = pa.concat_tables(steps.tables())
    assert table["value"].to_pylist() == values[5:25]


class TestArrow:
    """A range is a stream of Arrow: each receiver takes it as it takes any other."""

    COLUMNS = (
        "topic", "partition", "offset", "timestamp", "timestamp_type", "key", "value", "headers",
    )  # fmt: skip
    LOST = r"auto\.offset\.reset is none"

    @pytest.fixture(name="topics")
    def two_topics(self, kafka: EmbeddedKafka) -> list[str]:
        """Two topics of two partitions, 30 records in each."""
        made = [new_topic(kafka, name, partitions=2) for name in ("first", "second")]
        for topic in made:
            for partition in range(2):
                fill(kafka, topic, 30, partition)
        return made

    @pytest.fixture(name="open_range")
    def ranges(self, kafka: EmbeddedKafka) -> Any:
        """Ranges that come in small steps; those of asyncio are no streams of Arrow."""
        return lambda topics, *bounds, **more: read_range(
            topics, *bounds, max_records=7, bootstrap_servers=kafka.bootstrap, **more
        )

    def test_polars(self, pl: Any, open_range: Any, topics: list[str]) -> None:
        frame = pl.DataFrame(open_range(topics))
        assert frame.columns == list(self.COLUMNS)
        rows = frame.select(pl.col("topic").cast(pl.String), "partition", "offset", "value")
        assert sorted(rows.rows()) == [
            (topic, partition, offset, b"%d:%d" % (partition, offset))
            for topic in sorted(topics)
            for partition in range(2)
            for offset in range(30)
        ]

    def test_pyarrow(self, open_range: Any, topics: list[str]) -> None:
        table = pa.table(open_range(topics))
        table.validate(full=True)
        assert table.num_rows == 120
        dictionaries = {tuple(chunk.dictionary.to_pylist()) for chunk in table["topic"].chunks}
        assert dictionaries == {tuple(topics)}, "one for all steps: receivers need not merge them"
        with open_range(topics) as unread:
            assert pa.schema(unread) == table.schema

    @pytest.mark.not_under("thread", "it does not see how Arrow's own threads count references")
    def test_pandas(self, open_range: Any, topics: list[str]) -> None:
        frame = open_range(topics[0]).to_arrow().to_pandas()
        assert len(frame) == 60
        assert frame["offset"].sum() == 2 * sum(range(30))
        if hasattr(pd.DataFrame, "from_arrow"):  # pandas 3
            assert len(pd.DataFrame.from_arrow(open_range(topics[0]))) == 60

    def test_duckdb(self, duckdb: Any, open_range: Any, topics: list[str]) -> None:
        """By the name of a variable; it takes the schema from a stream of its own."""
        records = open_range(topics)  # noqa: F841  found by its name
        query = 'select topic, count(*), max("offset") from records group by topic order by 1'
        assert duckdb.sql(query).fetchall() == [(topic, 60, 29) for topic in sorted(topics)]

    @pytest.mark.parametrize("views", [False, True])
    def test_layouts(self, open_range: Any, topics: list[str], *, views: bool) -> None:
        table = open_range(topics).to_arrow(layout="spark", views=views, headers=True)
        table.validate(full=True)
        assert table.column_names[:2] == ["key", "value"]
        assert set(table["topic"].to_pylist()) == set(topics)

    def test_polars_takes_sparks_layout(self, pl: Any, open_range: Any, topics: list[str]) -> None:
        frame = pl.DataFrame(open_range(topics).arrow(layout="spark"))
        assert (frame.schema["topic"], len(frame)) == (pl.String, 120)

    def test_nothing_at_all_has_columns(self, open_range: Any, topic: str) -> None:
        for table in (open_range(topic).to_arrow(), pa.table(open_range(topic))):
            assert table.num_rows == 0
            assert tuple(table.column_names) == self.COLUMNS

    def test_receivers_of_nothing(self, pl: Any, duckdb: Any, open_range: Any, topic: str) -> None:
        assert pl.DataFrame(open_range(topic)).shape == (0, len(self.COLUMNS))
        records = open_range(topic)  # noqa: F841
        assert duckdb.sql("select count(*) from records").fetchall() == [(0,)]

    def test_it_is_read_step_by_step(self, open_range: Any, topics: list[str]) -> None:
        """What is not asked for is not read: memory holds a step, not the range."""
        with open_range(TopicPartition(topics[0], 0)) as records:
            stream = pa.RecordBatchReader.from_stream(records)
            assert stream.read_next_batch()["offset"].to_pylist() == list(range(7))
            assert next(records).offsets() == list(range(7, 14)), "the same steps"
            assert len(stream.read_next_batch()) == 7
            rest = pa.table(records)
            assert rest["offset"].to_pylist() == list(range(21, 30))
        assert not list(records)

    def test_it_closes_its_consumer_at_the_end(self, open_range: Any, topics: list[str]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            records = open_range(topics)
            assert pa.table(records).num_rows == 120
            assert records._consumer._core.closed
            del records
            gc.collect()

    def test_an_error_is_the_one_that_iteration_raises(
        self, kafka: EmbeddedKafka, open_range: Any, topics: list[str]
    ) -> None:
        records = self.lost(kafka, open_range, TopicPartition(topics[0], 0))
        with pytest.raises(PositionError, match=self.LOST):
            records.to_arrow()
        assert records._consumer._core.closed

    def test_polars_tells_the_error(
        self, pl: Any, kafka: EmbeddedKafka, open_range: Any, topics: list[str]
    ) -> None:
        records = self.lost(kafka, open_range, TopicPartition(topics[0], 0))
        with pytest.raises(pl.exceptions.ComputeError, match=self.LOST):
            pl.DataFrame(records)
        assert records._consumer._core.closed

    def lost(self, kafka: EmbeddedKafka, open_range: Any, partition: TopicPartition) -> Any:
        """Return a range whose position is deleted; what was fetched before is dropped."""
        records = open_range(partition)
        kafka.delete_records(*partition, 12)
        records._consumer.seek(partition, 5)
        return records


def test_a_datetime_before_1973_means_what_it_says(
    kafka: EmbeddedKafka, topic: str, offsets_of: OffsetsOf
):
    """Regression: it was suspected of being seconds, like a number."""
    fill(kafka, topic, 3)
    early = datetime(1970, 1, 2, tzinfo=timezone.utc)
    assert offsets_of(kafka, topic, early, datetime.now(timezone.utc)) == {0: [0, 1, 2]}
    assert offsets_of(kafka, topic, end=early) == {}


def test_times_may_be_datetimes(kafka: EmbeddedKafka, topic: str, offsets_of: OffsetsOf):
    fill(kafka, topic, 30)  # a second apart
    began = datetime.fromtimestamp(FIRST_TIMESTAMP_MS / 1000, timezone.utc)
    start, end = began + timedelta(seconds=5), began + timedelta(seconds=20)
    assert offsets_of(kafka, topic, start, end) == {0: list(range(5, 20))}
    assert offsets_of(kafka, topic, {0: start}, {0: end}) == {0: list(range(5, 20))}
    assert offsets_of(kafka, topic, end=end, by="timestamp") == {0: list(range(20))}
    with Consumer(bootstrap_servers=kafka.bootstrap) as consumer:
        partition = TopicPartition(topic, 0)
        answer = consumer.offsets_for_times({partition: start})[partition]
        assert answer is not None
        assert answer.offset == 5
        consumer.assign([partition])
        consumer.seek_to_timestamp(end)
        assert consumer.position(partition) == 20
        for query in (
            lambda: consumer.seek_to_timestamp(start.replace(tzinfo=None)),
            lambda: consumer.offsets_for_times({partition: start.replace(tzinfo=None)}),
            lambda: offsets_of(kafka, topic, start.replace(tzinfo=None)),
        ):
            with pytest.raises(UsageError, match="has no time zone"):
                query()


def test_seconds_instead_of_milliseconds(kafka: EmbeddedKafka, topic: str, offsets_of: OffsetsOf):
    """Regression: a time in seconds was one in 1970, so everything was read, or nothing."""
    fill(kafka, topic, 3)
    seconds = FIRST_TIMESTAMP_MS // 1000
    partition = TopicPartition(topic, 0)
    with Consumer(bootstrap_servers=kafka.bootstrap) as consumer:
        consumer.assign([partition])
        for query in (
            lambda: consumer.seek_to_timestamp(seconds),
            lambda: consumer.offsets_for_times({partition: seconds}),
            lambda: offsets_of(kafka, topic, seconds, by="timestamp"),
            lambda: offsets_of(kafka, topic, end={0: seconds}, by="timestamp"),
        ):
            with pytest.raises(UsageError, match="seconds instead of milliseconds"):
                query()
        assert consumer.offsets_for_times({partition: 0})[partition] is not None
    assert offsets_of(kafka, topic, 0, by="timestamp") == {0: [0, 1, 2]}


def test_of_one_topic_partitions_go_by_number(kafka: EmbeddedKafka, offsets_of: OffsetsOf):
    topic = new_topic(kafka, "numbered", partitions=2)
    for number in range(2):
        fill(kafka, topic, 20, number)
    assert offsets_of(kafka, topic, {0: 10}, {0: 12, 1: 3}) == {0: [10, 11], 1: [0, 1, 2]}


def test_it_closes_its_consumer_when_it_is_left(kafka: EmbeddedKafka, topic: str, open_range: Any):
    fill(kafka, topic, 30)
    steps = open_range(topic, max_records=5, bootstrap_servers=kafka.bootstrap)
    assert [record.offset for record in next(steps)] == [0, 1, 2, 3, 4]
    steps.close()
    steps.close()
    with pytest.raises((UsageError, StopIteration)):
        next(steps)


def test_a_range_that_stands_still_says_what_is_unread_and_why(
    kafka: EmbeddedKafka, open_range: Any
):
    topic = new_topic(kafka, "orphan", partitions=2)
    for number in range(2):
        fill(kafka, topic, 10, number)
    kafka.set_in_sync(topic, 1, [kafka.leader(topic, 1)])
    with open_range(
        topic, max_records=5, bootstrap_servers=kafka.bootstrap, default_api_timeout_ms=1500
    ) as steps:
        kafka.kill(kafka.leader(topic, 1))
        for partition in [TopicPartition(topic, number) for number in range(2)]:
            steps._consumer.seek(partition, 0)  # what was fetched before is dropped
        with pytest.raises(KafkaTimeoutError, match=r"1\.5 s; unread: ") as caught:
            list(steps)
    assert f"unread: {topic}-1 (it has no leader); last trouble: " in str(caught.value)


def test_a_topic_that_does_not_exist_is_not_made(kafka: EmbeddedKafka, topic: str, open_range: Any):
    with pytest.raises(UnknownTopicOrPartition, match="there is no topic"):
        open_range(topic + "-", bootstrap_servers=kafka.bootstrap)
    with pytest.raises(KafkaTimeoutError):
        open_range(
            TopicPartition(topic + "-", 0),
            bootstrap_servers=kafka.bootstrap,
            default_api_timeout_ms=300,
        )
    with Consumer(bootstrap_servers=kafka.bootstrap) as consumer:
        assert topic + "-" not in consumer.topics()


def test_what_is_wrong_is_said_at_once(kafka: EmbeddedKafka, topic: str, open_range: Any):
    fill(kafka, topic, 5)
    for arguments in [
        {"topics": []},
        {"topics": topic, "start": -1},
        {"topics": topic, "by": "size"},
        {"topics": topic, "max_records": 0},
        {"topics": topic, "group_id": "g"},
        {"topics": topic, "end": {TopicPartition("other", 0): 3}},
        {"topics": topic, "end": {3: 3}},
        {"topics": [topic, TopicPartition("other", 0)], "start": {0: 3}},
    ]:
        with pytest.raises(UsageError):
            open_range(**{"bootstrap_servers": kafka.bootstrap, **arguments})
    with pytest.raises(KafkaTimeoutError):
        open_range("t", bootstrap_servers="127.0.0.1:1", default_api_timeout_ms=100)
