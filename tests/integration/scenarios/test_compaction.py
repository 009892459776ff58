"""What compaction leaves of a log: gaps, batches without records, and where reading goes on.

Real Kafka compacts a log; the embedded broker, which never does so by itself, is given the same
batches and told to leave out what Kafka has. Readers must get the same answers from both.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from kafka_fast.record import RecordBatchBuilder, read_batches
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.integration.consuming import COMPACTED
from tests.integration.scenarios.steps import EARLIEST, LATEST, list_offset, new_producer, new_topic
from tests.integration.scenarios.wire import WireClient, connected
from tests.waiting import eventually

FIRST_MS = 1_700_000_000_000
SECOND_MS = 1_000
"""From one record to the next: with each of them Kafka begins another segment."""

PACE = 0.2
"""Seconds from one look to the next."""

KEYS = ("abcd", "axc", "bxe", "yz", "q", "yz", "b", "q", "y")
"""Of the records of each batch: what stands further behind replaces what has the same key."""

KEPT = ("d", "ac", "xe", "", None, "z", "b", "q", "y")
"""What compaction leaves of each batch: of the fourth, the last of its producer, the header."""


class Left(NamedTuple):
    """A batch as a reader finds it."""

    base_offset: int
    last_offset: int
    offsets: tuple[int, ...]


def time_of(offset: int) -> int:
    return FIRST_MS + offset * SECOND_MS


def batches(producer_id: int) -> list[bytes]:
    """Return a batch for each of KEYS; the fourth is by a producer that writes nothing else."""
    made, offset = [], 0
    for number, keys in enumerate(KEYS):
        is_its = KEPT[number] == ""
        builder = RecordBatchBuilder(
            producer_id=producer_id if is_its else -1,
            producer_epoch=0 if is_its else -1,
            base_sequence=0 if is_its else -1,
        )
        for key in keys:
            builder.append(key.encode(), b"v", time_of(offset))
            offset += 1
        made.append(builder.build())
    return made


def expected() -> list[Left]:
    kept_batches, offset = [], 0
    for keys, kept in zip(KEYS, KEPT, strict=True):
        if kept is not None:
            offsets = tuple(offset + keys.index(key) for key in kept)
            kept_batches.append(Left(offset, offset + len(keys) - 1, offsets))
        offset += len(keys)
    return kept_batches


END = sum(map(len, KEYS))


def left_at(client: WireClient, topic: str, offset: int) -> Left | None:
    """Return the first batch that a reader at this offset gets."""
    answer = client.fetch(topic, offset)
    assert answer.error_code == 0
    for one in read_batches(answer.records or b""):
        offsets = tuple(record.offset for record in one.records())
        return Left(one.base_offset, one.last_offset, offsets)
    return None


def layout(client: WireClient, topic: str) -> list[Left]:
    """Return the batches of KEYS as they are now."""
    stored_batches: list[Left] = []
    at = 0
    while at < END and (batch := left_at(client, topic, at)) is not None:
        at = batch.last_offset + 1
        stored_batches.append(batch)
    return stored_batches


def compact_really(client: WireClient) -> str:
    """Have Kafka compact a log; it leaves the newest segment alone, so write on."""
    topic = new_topic(client, **COMPACTED)
    for data in batches(new_producer(client)):
        assert client.produce(topic, data).error_code == 0

    def is_compacted() -> bool:
        time.sleep(PACE)
        builder = RecordBatchBuilder()
        offset = list_offset(client, topic, LATEST).offset
        builder.append(b"more-%d" % offset, b"v", time_of(offset))
        assert client.produce(topic, builder.build()).error_code == 0
        return layout(client, topic) == expected()

    eventually(is_compacted, "the log to be compacted")
    return topic


def compact_ours(kafka: EmbeddedKafka, client: WireClient) -> str:
    """Leave out the same."""
    topic = new_topic(client)
    for data in batches(new_producer(client)):
        assert client.produce(topic, data).error_code == 0
    left = expected()
    gone = set(range(END)).difference(*(batch.offsets for batch in left))
    headers = set().union(*(range(batch.base_offset, batch.last_offset + 1) for batch in left))
    kafka.on_cluster(lambda cluster: cluster.compact(topic, 0, gone - headers))
    kafka.on_cluster(lambda cluster: cluster.compact(topic, 0, gone & headers, keep_empty=True))
    return topic


class World(NamedTuple):
    """A log that was compacted."""

    client: WireClient
    topic: str


@pytest.fixture(scope="module", params=[pytest.param("real", marks=pytest.mark.broker), "embedded"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    if request.param == "real":
        kafka = request.getfixturevalue("tidy_kafka")
        with connected(kafka.bootstrap) as client:
            yield World(client, compact_really(client))
    else:
        with EmbeddedKafka(auto_create=False) as ours, connected(ours.bootstrap) as client:
            yield World(client, compact_ours(ours, client))


def test_batches_keep_their_places_and_a_producers_last_one_stays_empty(world: World) -> None:
    assert layout(*world) == expected()


def test_a_reader_anywhere_gets_the_batch_that_reaches_its_offset(world: World) -> None:
    for offset in range(END):
        expected_batch = next(batch for batch in expected() if batch.last_offset >= offset)
        assert left_at(*world, offset) == expected_batch


def test_offsets_by_time_are_of_records_that_are_there(world: World) -> None:
    there = [offset for batch in expected() for offset in batch.offsets]
    for offset in range(END):
        answer = list_offset(*world, time_of(offset))
        expected_offset = next(one for one in there if one >= offset)
        assert (answer.error_code, answer.offset, answer.timestamp) == (
            0,
            expected_offset,
            time_of(expected_offset),
        )


def test_the_log_still_begins_where_it_began(world: World) -> None:
    assert list_offset(*world, EARLIEST).offset == 0
