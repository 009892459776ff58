"""Reading: offsets of a log, and fetching what was produced."""

from __future__ import annotations

import time

import pytest

from kafka_fast import errors
from kafka_fast.protocol import frame as framing
from kafka_fast.protocol.apis.records.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka_fast.protocol.apis.records.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafka_fast.protocol.apis.records.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafka_fast.protocol.apis.topics.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka_fast.record import read_batches
from tests.integration.scenarios.steps import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    UNKNOWN_ID,
    list_offset,
    unique_name,
)
from tests.integration.scenarios.wire import (
    WireClient,
    batch,
    connected,
)


def test_offsets_of_a_log(client: WireClient, topic: str) -> None:
    for timestamp in (1000, 3000, 2000):
        assert client.produce(topic, batch(2, timestamp=timestamp)).error_code == 0

    def at(timestamp: int) -> tuple[int, int, int]:
        answer = list_offset(client, topic, timestamp)
        assert answer.error_code == 0
        return answer.offset, answer.timestamp, answer.leader_epoch

    assert at(LATEST) == (6, -1, 0)
    assert at(EARLIEST) == (0, -1, 0)
    assert at(MAX_TIMESTAMP) == (3, 3001, 0)
    assert at(0) == (0, 1000, 0)
    assert at(1001) == (1, 1001, 0)
    assert at(1002) == (2, 3000, 0)
    assert at(2500) == (2, 3000, 0)
    assert at(3001) == (3, 3001, 0)
    assert at(3002) == (-1, -1, -1)


def test_offsets_of_an_empty_log(client: WireClient, topic: str) -> None:
    offsets = {
        timestamp: list_offset(client, topic, timestamp).offset
        for timestamp in (LATEST, EARLIEST, MAX_TIMESTAMP, -4, -5, 0)
    }
    assert offsets == {LATEST: 0, EARLIEST: 0, MAX_TIMESTAMP: -1, -4: 0, -5: -1, 0: -1}


@pytest.mark.parametrize("version", range(1, 12))
def test_special_timestamps_came_one_by_one(client: WireClient, topic: str, version: int) -> None:
    since = {LATEST: 1, EARLIEST: 1, MAX_TIMESTAMP: 7, -4: 8, -5: 9, -6: 11, -7: 99}
    for timestamp, first in since.items():
        answer = list_offset(client, topic, timestamp, version=version)
        assert answer.error_code == (0 if version >= first else errors.UnsupportedVersion.code)


def test_offsets_of_what_is_not_there(client: WireClient, topic: str) -> None:
    unknown = errors.UnknownTopicOrPartition.code
    assert list_offset(client, unique_name(), LATEST).error_code == unknown
    assert list_offset(client, topic, LATEST, partition=3).error_code == unknown
    newer = list_offset(client, topic, LATEST, epoch=5)
    assert newer.error_code == errors.UnknownLeaderEpoch.code
    assert list_offset(client, topic, LATEST, epoch=0).error_code == 0


def test_offsets_of_a_partition_named_twice(client: WireClient, topic: str) -> None:
    asked = [ListOffsetsPartition(partition_index=0, timestamp=when) for when in (-1, -2)]
    request = ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=asked)]
    )
    answers = client.ask(request, 7).topics[0].partitions
    assert [one.error_code for one in answers] == [errors.InvalidRequest.code]


@pytest.mark.parametrize("version", range(4, 13))
def test_every_version_fetches_what_was_produced(
    client: WireClient, topic: str, version: int
) -> None:
    client.produce(topic, batch(2, value=b"a"))
    client.produce(topic, batch(1, value=b"b"))
    data = client.fetch(topic, 0, version=version)
    assert (data.error_code, data.high_watermark, data.last_stable_offset) == (0, 3, 3)
    assert data.aborted_transactions is None
    stored = list(read_batches(data.records or b""))
    assert [(one.base_offset, one.last_offset) for one in stored] == [(0, 1), (2, 2)]
    assert [r.value for one in stored for r in one.records()] == [b"a", b"a", b"b"]


def test_fetch_starts_at_the_batch_that_holds_the_offset(client: WireClient, topic: str) -> None:
    for _ in range(3):
        client.produce(topic, batch(2))
    starts = []
    for offset in range(6):
        stored = read_batches(client.fetch(topic, offset).records or b"")
        starts.append(stored[0].base_offset)
    assert starts == [0, 0, 2, 2, 4, 4]
    at_end = client.fetch(topic, 6)
    assert (at_end.error_code, at_end.records) == (0, b"")


def test_fetch_outside_the_log(client: WireClient, topic: str) -> None:
    for offset in (-1, 1):
        refused = client.fetch(topic, offset)
        assert refused.error_code == errors.OffsetOutOfRange.code
        assert (refused.high_watermark, refused.log_start_offset) == (-1, -1)
        assert refused.records == b""


def test_fetch_of_what_is_not_there(client: WireClient, topic: str) -> None:
    unknown = errors.UnknownTopicOrPartition.code
    assert client.fetch(unique_name(), 0).error_code == unknown
    assert client.fetch(topic, 0, partition=3).error_code == unknown
    assert client.fetch(topic, 0, leader_epoch=5).error_code == errors.UnknownLeaderEpoch.code


def test_fetch_by_topic_id(client: WireClient, topic: str) -> None:
    client.produce(topic, batch())
    topic_id = client.metadata(topic).topics[0].topic_id

    def fetch(asked: bytes, version: int) -> tuple[bytes, int, int]:
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topics = [FetchTopic(topic_id=asked, partitions=[partition])]
        request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, topics=topics)
        answer = client.ask(request, version).responses[0]
        data = answer.partitions[0]
        return answer.topic_id, data.error_code, len(data.records)

    for version in (13, 14, 15, 16):
        assert fetch(topic_id, version) == (topic_id, 0, len(batch()))
        assert fetch(UNKNOWN_ID, version) == (UNKNOWN_ID, errors.UnknownTopicId.code, 0)


def test_the_first_batch_comes_whole_and_the_rest_is_cut(client: WireClient, topic: str) -> None:
    sizes = [len(batch(value=b"x" * 100)) for _ in range(3)]
    for _ in sizes:
        client.produce(topic, batch(value=b"x" * 100))
    size = sizes[0]

    def fetched(**limits: int) -> int:
        return len(client.fetch(topic, 0, **limits).records or b"")

    assert fetched(partition_max_bytes=10) == size
    assert fetched(partition_max_bytes=0) == size
    assert fetched(max_bytes=0) == size
    assert fetched(partition_max_bytes=size + 7) == size + 7
    assert fetched(max_bytes=size + 7) == size + 7
    assert fetched() == 3 * size
    refused = client.fetch(topic, 0, partition_max_bytes=-1)
    assert refused.error_code == errors.UnknownServerError.code


def test_partitions_share_the_budget_in_their_order(client: WireClient, topic: str) -> None:
    for partition in range(3):
        client.produce(topic, batch(value=b"x" * 100), partition=partition)
    size = len(batch(value=b"x" * 100))

    def fetched(max_bytes: int) -> list[tuple[int, int]]:
        asked = [
            FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1 << 20)
            for index in (2, 0, 1)
        ]
        request = FetchRequest(
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=max_bytes,
            topics=[FetchTopic(topic=topic, partitions=asked)],
        )
        partitions = client.ask(request, 12).responses[0].partitions
        return [(one.partition_index, len(one.records)) for one in partitions]

    assert fetched(10) == [(2, size), (0, 0), (1, 0)]
    assert fetched(2 * size - 1) == [(2, size), (0, 0), (1, 0)]
    assert fetched(10 * size) == [(2, size), (0, size), (1, size)]


def test_fetch_waits_for_records(address: str, client: WireClient, topic: str) -> None:
    start = time.monotonic()
    assert client.fetch(topic, 0, max_wait_ms=200).records == b""
    assert 0.19 <= time.monotonic() - start < 5
    with connected(address) as other:
        asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=8000,
            min_bytes=1,
            max_bytes=1 << 20,
            topics=[FetchTopic(topic=topic, partitions=[asked])],
        )
        start = time.monotonic()
        other.send(request, 12)
        client.produce(topic, batch())
        framing.decode_response(type(client.ask(request, 12)), other.receive(), 12)
        assert time.monotonic() - start < 5


def test_a_fetch_session_that_is_not_known(client: WireClient, topic: str) -> None:
    request = FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=1000, session_id=5, session_epoch=3, topics=[]
    )
    response = client.ask(request, 12)
    assert response.error_code == errors.FetchSessionIdNotFound.code
    assert response.responses == []


def test_read_committed_lists_aborted_transactions(client: WireClient, topic: str) -> None:
    client.produce(topic, batch())
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=1,
        topics=[FetchTopic(topic=topic, partitions=[asked])],
    )
    data = client.ask(request, 12).responses[0].partitions[0]
    assert data.aborted_transactions == []
    assert len(data.records) == len(batch())


@pytest.mark.parametrize("version", [12, 16, 18])
def test_epochs_that_the_reader_has_gone_through(
    client: WireClient, topic: str, version: int
) -> None:
    client.produce(topic, batch(3))
    topic_id = client.metadata(topic).topics[0].topic_id

    def fetch(offset: int, epoch: int) -> tuple[int, int, int, int]:
        asked = FetchPartition(
            partition=0,
            fetch_offset=offset,
            last_fetched_epoch=epoch,
            partition_max_bytes=1 << 20,
        )
        topics = [FetchTopic(topic=topic, topic_id=topic_id, partitions=[asked])]
        request = FetchRequest(max_bytes=1 << 20, topics=topics)
        data = client.ask(request, version).responses[0].partitions[0]
        diverging = data.diverging_epoch
        return data.error_code, len(data.records), diverging.epoch, diverging.end_offset

    assert fetch(1, 0) == (0, len(batch(3)), -1, -1)
    assert fetch(3, 0) == (0, 0, -1, -1)
    assert fetch(4, 0) == (0, 0, 0, 3)
    assert fetch(1, 1) == (errors.OffsetOutOfRange.code, 0, -1, -1)
    assert fetch(-1, 0)[0] == errors.OffsetOutOfRange.code


def test_min_bytes_above_max_bytes(client: WireClient, topic: str) -> None:
    client.produce(topic, batch(1))
    start = time.monotonic()
    data = client.fetch(topic, 0, min_bytes=1 << 20, max_bytes=50, max_wait_ms=8000)
    assert len(data.records or b"") == len(batch(1))
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("version", [2, 3, 4])
def test_where_leader_epochs_end(client: WireClient, topic: str, version: int) -> None:
    client.produce(topic, batch(3))

    def end(epoch: int, *, partition: int = 0, current: int = -1) -> tuple[int, int, int]:
        asked = OffsetForLeaderPartition(
            partition=partition, current_leader_epoch=current, leader_epoch=epoch
        )
        request = OffsetForLeaderEpochRequest(
            topics=[OffsetForLeaderTopic(topic=topic, partitions=[asked])]
        )
        answer = client.ask(request, version).topics[0].partitions[0]
        return answer.error_code, answer.leader_epoch, answer.end_offset

    assert end(0) == (0, 0, 3)
    assert end(0, current=0) == (0, 0, 3)
    assert end(0, partition=1) == (0, 0, 0)
    assert end(1) == end(-1) == (0, -1, -1)
    assert end(0, current=1) == (errors.UnknownLeaderEpoch.code, -1, -1)
    assert end(0, partition=9) == (errors.UnknownTopicOrPartition.code, -1, -1)


def test_deleted_records(client: WireClient, topic: str) -> None:
    for _ in range(2):
        client.produce(topic, batch(2))

    def delete(before: int, partition: int = 0) -> tuple[int, int]:
        asked = DeleteRecordsPartition(partition_index=partition, offset=before)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=topic, partitions=[asked])], timeout_ms=5000
        )
        answer = client.ask(request, 2).topics[0].partitions[0]
        return answer.error_code, answer.low_watermark

    out = (errors.OffsetOutOfRange.code, -1)
    assert delete(5) == delete(-2) == out
    assert delete(3) == (0, 3)
    assert delete(1) == (0, 3)
    assert client.fetch(topic, 2).error_code == errors.OffsetOutOfRange.code
    data = client.fetch(topic, 3)
    assert (data.log_start_offset, len(data.records or b"")) == (3, len(batch(2)))
    assert list_offset(client, topic, EARLIEST).offset == 3
    assert delete(-1) == (0, 4)
    assert client.fetch(topic, 4).error_code == 0
    assert delete(0, partition=7) == (errors.UnknownTopicOrPartition.code, -1)
