"""`read_range` on real Kafka: exact ends, whatever compaction, transactions and deletion leave."""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pytest

from kafka_fast import PositionError, Producer, TopicPartition, read_range
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.integration.consuming import (
    COMPACTED,
    FIRST_TIMESTAMP_MS,
    delete_records,
    write,
    write_transactions,
)
from tests.integration.producing import new_topic, read_log
from tests.waiting import eventually

pytestmark = [pytest.mark.broker, pytest.mark.filterwarnings("ignore")]

Bounds = tuple[int, int | None]


def offsets_of(kafka: RealKafka, topics: Any, *bounds: Any, **more: Any) -> dict[int, list[int]]:
    """Return the offsets that a range brings, by partition."""
    offsets: dict[int, list[int]] = {}
    for records in read_range(topics, *bounds, bootstrap_servers=kafka.bootstrap, **more):
        for record in records:
            offsets.setdefault(record.partition, []).append(record.offset)
    return offsets


def check_bounds(kafka: RealKafka, topic: str, there: list[int], bounds: list[Bounds]) -> None:
    """Compare ranges with the offsets that another client has found."""
    for start, end in bounds:
        expected = [offset for offset in there if start <= offset and (end is None or offset < end)]
        assert offsets_of(kafka, topic, start, end) == ({0: expected} if expected else {})


@pytest.fixture(scope="module")
def spread(real_kafka: RealKafka) -> str:
    """A topic of four partitions with 1,000 records each, a millisecond apart."""
    topic = new_topic(real_kafka, 4)
    for number in range(4):
        write(real_kafka, topic, 1_000, number, compression_type="lz4", linger_ms=2)
    return topic


@pytest.mark.parametrize("more", [{}, {"max_records": 7}, {"max_partition_fetch_bytes": 200}])
def test_all_partitions_at_once(real_kafka: RealKafka, spread: str, more: dict[str, int]) -> None:
    assert offsets_of(real_kafka, spread, **more) == {
        partition: list(range(1_000)) for partition in range(4)
    }
    offsets = offsets_of(real_kafka, spread, 123, 457, **more)
    assert offsets == {partition: list(range(123, 457)) for partition in range(4)}


def test_some_partitions_with_their_own_bounds(real_kafka: RealKafka, spread: str) -> None:
    one, three = TopicPartition(spread, 1), TopicPartition(spread, 3)
    assert offsets_of(real_kafka, [one, three], {one: 990}, {one: 992, three: 2}) == {
        1: [990, 991],
        3: [0, 1],
    }


def test_times(real_kafka: RealKafka, spread: str) -> None:
    start, end = FIRST_TIMESTAMP_MS + 100, FIRST_TIMESTAMP_MS + 300
    offsets = offsets_of(real_kafka, spread, start, end, by="timestamp")
    assert offsets == {partition: list(range(100, 300)) for partition in range(4)}
    assert offsets_of(real_kafka, spread, FIRST_TIMESTAMP_MS + 1_000, by="timestamp") == {}
    assert offsets_of(real_kafka, spread, 0, FIRST_TIMESTAMP_MS + 1, by="timestamp") == {
        partition: [0] for partition in range(4)
    }


@pytest.mark.parametrize("views", [False, True])
@pytest.mark.parametrize("layout", ["kafka", "spark"])
def test_tables(real_kafka: RealKafka, spread: str, layout: Any, *, views: bool) -> None:
    with read_range(spread, 10, 900, bootstrap_servers=real_kafka.bootstrap) as steps:
        table = pa.concat_tables(steps.tables(layout=layout, views=views))
    values = {value.decode() for value in table["value"].to_pylist()}
    assert values == {f"{part}:{number}" for part in range(4) for number in range(10, 900)}
    assert table.num_rows == 4 * 890
    assert sum(table["offset"].to_pylist()) == 4 * sum(range(10, 900))


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_markers_and_aborted_records(real_kafka: RealKafka, isolation: str) -> None:
    """Ranges that end at a marker, within what was aborted, and behind all of it."""
    topic = new_topic(real_kafka)
    write_transactions(real_kafka, topic, 4, 3, is_kept=lambda number: number % 2 == 0)
    kept = {0, 2} if isolation == "read_committed" else {0, 1, 2, 3}
    there = [offset for offset in range(16) if offset % 4 != 3 and offset // 4 in kept]
    for start, end in [(0, 16), (3, 4), (4, 8), (2, 9), (5, 7), (9, 15), (12, None)]:
        expected = [offset for offset in there if start <= offset and (end is None or offset < end)]
        offsets = offsets_of(real_kafka, topic, start, end, isolation_level=isolation)
        assert offsets == ({0: expected} if expected else {}), (start, end)


def test_deleted_records(real_kafka: RealKafka) -> None:
    topic = new_topic(real_kafka)
    write(real_kafka, topic, 100)
    delete_records(real_kafka, topic, 60)
    assert offsets_of(real_kafka, topic) == {0: list(range(60, 100))}
    assert offsets_of(real_kafka, topic, 60, 62) == {0: [60, 61]}
    with pytest.raises(PositionError, match="begins at offset 60"):
        offsets_of(real_kafka, topic, 59, 62)


@pytest.mark.needs_kafka("2.3", "max.compaction.lag.ms (KIP-354)")
def test_compaction(tidy_kafka: RealKafka) -> None:
    """Of keys that were written over and over only the last records stay, and gaps between."""
    topic = new_topic(tidy_kafka, **COMPACTED)

    def write_keys(count: int) -> None:
        with Producer(bootstrap_servers=tidy_kafka.bootstrap) as producer:
            for number in range(count):
                key = b"once" if number == 37 else b"%d" % (number % 7)
                producer.send(topic, b"%d" % number, key=key)
                if number % 10 == 9:
                    producer.flush()

    def compacted() -> list[int]:
        write_keys(1)  # the cleaner leaves the newest segment alone: begin another one
        offsets = [record.offset for record in read_log(tidy_kafka.bootstrap, topic, 0)]
        time.sleep(0.2)  # not a wait for anything: the pace of the records above
        return offsets if offsets[0] > 0 and len(offsets) < offsets[-1] // 2 else []

    write_keys(100)
    assert len(eventually(compacted, "the log to be compacted")) > 1

    def there() -> list[int]:
        return [record.offset for record in read_log(tidy_kafka.bootstrap, topic, 0)]

    def holds() -> bool:
        offsets = there()
        end = offsets[-1]
        gaps = [offset for offset in range(offsets[0], end) if offset not in set(offsets)]
        bounds: list[Bounds] = [(0, None), (0, offsets[0]), (offsets[0], offsets[0] + 1)]
        bounds += [(gaps[0], end), *((gap, gap + 1) for gap in gaps[:3])]
        bounds += [(gap - 1, gap + 2) for gap in gaps[-3:]]
        try:
            check_bounds(tidy_kafka, topic, offsets, bounds)
        except AssertionError:
            if there() == offsets:
                raise
            return False  # the cleaner has come meanwhile
        return True

    eventually(holds, "a log that stays as it is for a moment")
