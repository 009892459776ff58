"""JSON through both clients, and what they say of what is no JSON."""

from __future__ import annotations

import json

import pytest

from kafka_fast import (
    JsonDeserializer,
    JsonSerializer,
    RecordDeserializationError,
    SerializationError,
)
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.embedded.consuming import MakeConsumer, partitions_of, read
from tests.embedded.producing import TIMEOUT, MakeProducer

ORDER = {"id": 1, "name": "Zürich", "price": 1.5, "tags": ["a", None], "big": 2**70}


def test_objects_go_through(
    kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer, consumer_on: MakeConsumer
) -> None:
    producer = producer_on(
        key_serializer=JsonSerializer(sort_keys=True), value_serializer="JsonSerializer"
    )
    producer.send(topic, ORDER, {"b": 1, "a": 2})
    producer.send_many(topic, [None, [], "text"], keys=[1, 2, None]).result(TIMEOUT)
    first, tombstone, *_ = kafka.records(topic)
    assert first.key == b'{"a":2,"b":1}'
    assert first.value == json.dumps(ORDER, separators=(",", ":"), ensure_ascii=False).encode()
    assert tombstone.value is None, "no JSON null"
    consumer = consumer_on(
        key_deserializer="JsonDeserializer", value_deserializer=JsonDeserializer()
    )
    consumer.assign(partitions_of(topic, 1))
    pairs = [(record.key, record.value) for record in read(consumer, 4)]
    assert pairs == [({"a": 2, "b": 1}, ORDER), (1, None), (2, []), (None, "text")]


@pytest.mark.parametrize("value", [{"id": 1}, ["a"], ("a", 1)])
def test_without_a_serializer_the_error_names_it(
    topic: str, producer_on: MakeProducer, value: object
) -> None:
    """Regression: "must be bytes-like, str or None, not dict" left a newcomer alone."""
    producer = producer_on()
    with pytest.raises(TypeError, match=r"value_serializer=JsonSerializer\(\) sends it as JSON"):
        producer.send(topic, value)
    with pytest.raises(TypeError, match=r"key_serializer=JsonSerializer\(\) sends it as JSON"):
        producer.send(topic, b"", value)
    with pytest.raises(TypeError, match=r"row 0 .* value_serializer=JsonSerializer\(\)"):
        producer.send_many(topic, [value])
    with pytest.raises(TypeError, match="not int: give the producer a value_serializer, or pass"):
        producer.send(topic, 5)


def test_what_json_does_not_know(topic: str, producer_on: MakeProducer) -> None:
    with pytest.raises(SerializationError, match=r"JsonSerializer failed on dict: .*type bytes"):
        producer_on(value_serializer=JsonSerializer()).send(topic, {"a": b""})


def test_what_is_no_json_names_the_record(
    topic: str, producer_on: MakeProducer, consumer_on: MakeConsumer
) -> None:
    producer_on().send_many(topic, ['{"id":1}', "{id:2}", '{"id":3}']).result(TIMEOUT)
    consumer = consumer_on(value_deserializer=JsonDeserializer())
    consumer.assign(partitions_of(topic, 1))
    assert [record.value for record in read(consumer, 1)] == [{"id": 1}]
    with pytest.raises(RecordDeserializationError, match="Expecting property name") as caught:
        consumer.poll(TIMEOUT)
    refused = caught.value.__cause__
    assert isinstance(refused, SerializationError)
    assert isinstance(refused.__cause__, json.JSONDecodeError)
    consumer.seek(partitions_of(topic, 1)[0], caught.value.next_offset)
    assert [record.value for record in read(consumer, 1)] == [{"id": 3}]
