"""Producing: versions, bad batches, acks, timestamps."""

from __future__ import annotations

import time

import pytest

from kafka_fast import errors
from kafka_fast.record import Codec, RecordBatchBuilder, TimestampType, read_batches
from tests.integration.scenarios.steps import (
    LATEST,
    UNKNOWN_ID,
    list_offset,
    log_of,
    new_producer,
    new_topic,
    unique_name,
)
from tests.integration.scenarios.wire import (
    WireClient,
    batch,
    changed,
    connected,
    produce_request,
)


@pytest.mark.parametrize("version", range(3, 13))
def test_every_version_produces(client: WireClient, topic: str, version: int) -> None:
    first = client.produce(topic, batch(3), version=version)
    second = client.produce(topic, batch(2), version=version)
    assert (first.error_code, first.base_offset) == (0, 0)
    assert (second.error_code, second.base_offset) == (0, 3)
    assert second.log_append_time_ms == -1
    assert second.log_start_offset == (0 if version >= 5 else -1)


def test_produce_by_topic_id(client: WireClient, topic: str) -> None:
    topic_id = client.metadata(topic).topics[0].topic_id
    good = client.produce("", batch(2), topic_id=topic_id, version=13)
    assert (good.error_code, good.base_offset) == (0, 0)
    unknown = client.produce("", batch(), topic_id=UNKNOWN_ID, version=13)
    assert (unknown.error_code, unknown.base_offset) == (errors.UnknownTopicId.code, -1)


@pytest.mark.parametrize("partition", [-1, 3])
def test_produce_to_an_unknown_partition(client: WireClient, topic: str, partition: int) -> None:
    refused = client.produce(topic, batch(), partition=partition)
    assert refused.error_code == errors.UnknownTopicOrPartition.code


def test_produce_to_an_unknown_topic(client: WireClient) -> None:
    for name in (unique_name(), "a/b"):
        assert client.produce(name, batch()).error_code == errors.UnknownTopicOrPartition.code


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (b"", errors.InvalidRecord),
        (b"abc", errors.InvalidRecord),
        (batch() + batch(), errors.InvalidRecord),
        (batch()[:-2], errors.InvalidRecord),
        (changed(batch(), magic=1), errors.InvalidRecord),
        (changed(batch(), magic=7), errors.CorruptMessage),
        (changed(batch(), length=3), errors.CorruptMessage),
        (changed(batch(), length=-1), errors.CorruptMessage),
        (batch()[:-1] + b"?", errors.CorruptMessage),
        (batch(base_offset=5), errors.InvalidRecord),
        (changed(batch(3), record_count=2), errors.InvalidRecord),
        (changed(batch(3), record_count=0), errors.InvalidRecord),
        (changed(batch(3), last_offset_delta=5), errors.InvalidRecord),
        (changed(batch(3), record_count=2, last_offset_delta=1), errors.InvalidRecord),
        (changed(batch(3), record_count=4, last_offset_delta=3), errors.InvalidRecord),
        (changed(batch(), first_record_byte=100), errors.InvalidRecord),
        (changed(batch(), attributes=0x20), errors.InvalidRecord),
        (changed(batch(), attributes=1), errors.UnknownServerError),
        (changed(batch(), attributes=5), errors.UnknownServerError),
        (batch(producer=(1, 0, -1)), errors.InvalidRecord),
        (batch(value=b"x" * 1_100_000), errors.MessageTooLarge),
        (batch(timestamp=int(time.time() * 1000) + 7_200_000), errors.InvalidTimestamp),
    ],
)
def test_bad_batches_are_refused(
    client: WireClient, topic: str, records: bytes, error: type[errors.BrokerError]
) -> None:
    refused = client.produce(topic, records)
    assert (refused.error_code, refused.base_offset) == (error.code, -1)
    assert list_offset(client, topic, LATEST).offset == 0


@pytest.mark.parametrize("version", [7, 8, 12])
def test_records_that_are_refused_are_named(client: WireClient, topic: str, version: int) -> None:
    """Of a batch that is refused for some of its records (KIP-467)."""
    now = int(time.time() * 1000)
    builder = RecordBatchBuilder()
    for number in range(6):
        builder.append(None, b"v", now + (7_200_000 if number in (1, 4) else 0))
    refused = client.produce(topic, builder.build(), version=version)
    assert refused.error_code == errors.InvalidTimestamp.code
    named = [error.batch_index for error in refused.record_errors]
    assert named == ([1, 4] if version >= 8 else [])
    words = [error.batch_index_error_message or "" for error in refused.record_errors]
    assert all("imestamp" in text for text in words)
    assert list_offset(client, topic, LATEST).offset == 0


def test_a_whole_batch_and_a_piece_of_another(client: WireClient, topic: str) -> None:
    assert client.produce(topic, batch() + batch()[:-2]).error_code == 0
    assert len(log_of(client, topic)) == 1


@pytest.mark.parametrize("timestamp", [-5, -1, 0, 5])
def test_old_and_missing_timestamps_are_taken(
    client: WireClient, topic: str, timestamp: int
) -> None:
    assert client.produce(topic, batch(timestamp=timestamp)).error_code == 0
    assert log_of(client, topic)[0].timestamp_ms == timestamp


@pytest.mark.parametrize("codec", list(Codec))
def test_every_codec_is_stored_as_it_came(client: WireClient, topic: str, codec: Codec) -> None:
    sent = batch(100, value=b"abc" * 20, codec=codec)
    assert client.produce(topic, sent).error_code == 0
    stored = client.fetch(topic, 0).records
    assert stored is not None
    kept = next(iter(read_batches(sent)))
    got = next(iter(read_batches(stored)))
    assert (got.codec, got.crc, bytes(got.data[61:])) == (codec, kept.crc, sent[61:])
    assert (got.leader_epoch, got.last_offset) == (0, 99)


def test_zstd_needs_version_7(client: WireClient, topic: str) -> None:
    refused = client.produce(topic, batch(codec=Codec.ZSTD), version=6)
    assert refused.error_code == errors.UnsupportedCompressionType.code
    assert client.produce(topic, batch(codec=Codec.ZSTD), version=7).error_code == 0


def test_max_message_bytes_is_the_topics(client: WireClient) -> None:
    records = batch(value=b"x" * 200)
    topic = new_topic(client, max_message_bytes=str(len(records)))
    assert client.produce(topic, records).error_code == 0
    refused = client.produce(topic, batch(value=b"x" * 201))
    assert refused.error_code == errors.MessageTooLarge.code


def test_acks(client: WireClient, topic: str) -> None:
    assert client.produce(topic, batch(), acks=1).base_offset == 0
    assert client.produce(topic, batch(), acks=-1).base_offset == 1
    assert client.produce(topic, batch(), acks=2).error_code == errors.InvalidRequiredAcks.code


def test_acks_0_has_no_answer_and_an_error_ends_the_connection(address: str) -> None:
    with connected(address) as client:
        topic = new_topic(client)
        client.send(produce_request(topic, [(0, batch())], acks=0), 12)
        assert list_offset(client, topic, LATEST).offset == 1  # the next answer is the next one's
        client.send(produce_request(topic, [(0, b"abc")], acks=0), 12)
        assert client.is_closed()


def test_a_partition_named_twice_counts_once(client: WireClient, topic: str) -> None:
    request = produce_request(topic, [(1, batch(value=b"first")), (1, batch(value=b"last"))])
    answers = client.ask(request, 12).responses[0].partition_responses
    assert [(one.index, one.error_code) for one in answers] == [(1, 0)]
    assert [record.value for record in log_of(client, topic, 1)] == [b"last"]


def test_partitions_fail_one_by_one(client: WireClient, topic: str) -> None:
    request = produce_request(topic, [(0, batch()), (9, batch()), (1, b"abc"), (2, batch())])
    answers = client.ask(request, 12).responses[0].partition_responses
    assert {one.index: one.error_code for one in answers} == {
        0: 0,
        9: errors.UnknownTopicOrPartition.code,
        1: errors.InvalidRecord.code,
        2: 0,
    }


def test_log_append_time(client: WireClient) -> None:
    topic = new_topic(client, message_timestamp_type="LogAppendTime")
    producer = new_producer(client)
    before = int(time.time() * 1000)
    records = batch(2, timestamp=1000, producer=(producer, 0, 0))
    first = client.produce(topic, records)
    assert before - 1 <= first.log_append_time_ms <= int(time.time() * 1000)
    assert client.produce(topic, records).log_append_time_ms == first.log_append_time_ms
    stored = next(iter(read_batches(client.fetch(topic, 0).records or b"")))
    assert stored.timestamp_type == TimestampType.LOG_APPEND_TIME
    assert {record.timestamp_ms for record in stored.records()} == {first.log_append_time_ms}
    stamped = client.produce(topic, changed(batch(), attributes=0x08))
    assert stamped.error_code == errors.InvalidTimestamp.code
