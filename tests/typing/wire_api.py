"""The wire API as a user's type checker sees it; read by mypy --strict, never run."""

from __future__ import annotations

from typing_extensions import assert_type

from kafka_fast import errors
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest, MetadataResponse
from kafka_fast.protocol.frame import decode_response, encode_request
from kafka_fast.record import Codec, RecordBatch, RecordBatchBuilder, read_batches


def records(data: bytes) -> None:
    builder = RecordBatchBuilder(codec=Codec.LZ4)
    builder.append(None, memoryview(b"value"), 1, [("name", "text"), ("name", None)])
    assert_type(builder.build(), bytes)
    for batch in read_batches(data):
        assert_type(batch, RecordBatch)
        assert_type(batch.codec, Codec)
        for record in batch.records():
            assert_type(record.offset, int)
    builder.append("text", b"", 1)  # type: ignore[arg-type] # str must be encoded by the caller


def messages(frame: bytes) -> None:
    assert_type(encode_request(MetadataRequest(topics=None), 7, 1, "client"), bytes)
    correlation_id, answer = decode_response(MetadataResponse, frame, 7)
    assert_type(correlation_id, int)
    assert_type(answer, MetadataResponse)
    assert_type(answer.topics[0].name, str | None)


def failures(error: errors.KafkaError) -> None:
    if isinstance(error, errors.BrokerError):
        assert_type(error.code, int)
        assert_type(error.retriable, bool)
