"""What is said of records that failed, and to whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from kafka_fast.errors import DeliveryError, InvalidRecord, KafkaTimeoutError, Outcome
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import PRODUCE
from kafka_fast.types import RecordMetadata
from tests.embedded.producing import TIMEOUT, MakeProducer, send_and_check
from tests.waiting import eventually

DRIVERS = True  # every test runs with threads and with asyncio


def test_an_unanswered_record_may_be_written(
    kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
) -> None:
    producer = producer_on(delivery_timeout_ms=600, request_timeout_ms=200, linger_ms=0)
    producer.send(topic, b"first").result(TIMEOUT)
    kafka.faults.drop(applied=True, api=PRODUCE)
    error = producer.send(topic, b"x").exception(TIMEOUT)
    assert error is not None
    assert error.outcome is Outcome.MAYBE_WRITTEN
    assert isinstance(error.__cause__, KafkaTimeoutError)


def test_a_record_that_never_left_was_not_sent(
    kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
) -> None:
    producer = producer_on(delivery_timeout_ms=600, request_timeout_ms=200, linger_ms=0)
    producer.send(topic, b"first").result(TIMEOUT)
    for node_id in (1, 2, 3):
        kafka.kill(node_id)
    eventually(lambda: producer.send(topic, b"x").exception(TIMEOUT) is not None)
    error = producer.send(topic, b"x").exception(TIMEOUT)
    assert error is not None
    assert error.outcome is Outcome.NOT_SENT


def test_records_follow_after_a_batch_whose_fate_stays_unknown(
    kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
) -> None:
    """A batch that may be written expires: the epoch is bumped, what follows arrives in order."""
    producer = producer_on(delivery_timeout_ms=600, request_timeout_ms=200)
    send_and_check(kafka, producer, topic, 10)
    rule = kafka.faults.drop(applied=True, api=PRODUCE)
    lost = [producer.send(topic, b"lost") for _ in range(10)]
    assert all(future.exception(TIMEOUT) is not None for future in lost)
    rule.cancel()
    eventually(lambda: producer.send(topic, b"again").exception(TIMEOUT) is None)
    send_and_check(kafka, producer, topic)


def test_callbacks_are_told_once_each(
    kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer
) -> None:
    told: Counter[int] = Counter()
    refused: list[DeliveryError] = []

    def on(number: int) -> Callable[[DeliveryError | None, RecordMetadata], None]:
        def called(error: DeliveryError | None, metadata: RecordMetadata) -> None:
            told[number] += 1
            if error is not None:
                refused.append(error)

        return called

    producer = producer_on(batch_size=100)
    kafka.faults.error(PRODUCE, InvalidRecord, topic=topic, count=1, skip=1)
    for number in range(500):
        producer.send_nowait(topic, b"%d" % number, on_delivery=on(number))
        if number in (100, 200):
            producer.flush()
    assert producer.flush() == 0
    eventually(lambda: len(told) == 500)
    assert set(told.values()) == {1}
    assert len(refused) == 500 - kafka.end_offset(topic, 0) > 0
