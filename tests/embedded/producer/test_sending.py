"""Records over real sockets, against the embedded broker: all of them, in order, once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import KAFKA_2_1
from tests.embedded.producing import TIMEOUT, MakeProducer, new_topic, send_and_check
from tests.waiting import eventually

DRIVERS = True  # every test runs with threads and with asyncio


@pytest.mark.parametrize("acks", [0, 1, "all"])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_arrive_as_sent(
    kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer, codec: str, acks: object
) -> None:
    producer = producer_on(acks=acks, compression_type=codec)
    headers = [("a", b"1"), ("a", None), ("ü", b"")]
    rows = [(b"k", b"v"), (None, None), (b"", b""), (b"k", b"x" * 500)] * 50
    futures = [
        producer.send(topic, value, key, headers=headers, timestamp_ms=1_000 + number)
        for number, (key, value) in enumerate(rows)
    ]
    told = [future.result(TIMEOUT) for future in futures]
    eventually(lambda: kafka.end_offset(topic, 0) == len(rows))
    for number, (record, (key, value)) in enumerate(zip(kafka.records(topic), rows, strict=True)):
        assert (record.key, record.value, record.headers) == (key, value, tuple(headers))
        assert record.timestamp_ms == told[number].timestamp_ms == 1_000 + number
        assert told[number].offset == (-1 if acks == 0 else number)


def test_the_append_time_is_told(kafka: EmbeddedKafka, producer_on: MakeProducer) -> None:
    topic = new_topic(kafka, "append", message_timestamp_type="LogAppendTime")
    told = producer_on().send(topic, b"x", timestamp_ms=1).result(TIMEOUT)
    assert told.timestamp_ms == kafka.records(topic)[0].timestamp_ms != 1


MOMENT = datetime(2024, 1, 1, tzinfo=timezone.utc)
SECONDS = int(MOMENT.timestamp())

#: Calls that bring a time: (producer, topic, time).
TIMED: dict[str, Callable[[Any, str, Any], object]] = {
    "send": lambda producer, topic, at: producer.send(topic, b"v", timestamp_ms=at),
    "send_nowait": lambda producer, topic, at: producer.send_nowait(topic, b"v", timestamp_ms=at),
    "one for all": lambda producer, topic, at: producer.send_many(
        topic, [b"v"] * 2, timestamps_ms=at
    ),
    "a list": lambda producer, topic, at: producer.send_many(
        topic, [b"v"] * 2, timestamps_ms=[None, at]
    ),
    "an array": lambda producer, topic, at: producer.send_many(
        topic, [b"v"], timestamps_ms=[at] if isinstance(at, datetime) else np.array([at])
    ),
    "arrow": lambda producer, topic, at: producer.send_many(
        topic, [b"v"], timestamps_ms=pa.array([at])
    ),
    "a table": lambda producer, topic, at: producer.send_table(
        topic, pa.table({"value": ["v"], "at": [at]}), timestamp="at"
    ),
}


@pytest.mark.parametrize("call", TIMED)
@pytest.mark.parametrize(
    ("factor", "unit"), [(1, "seconds"), (1_000_000, "microseconds"), (10**9, "nanoseconds")]
)
def test_a_time_of_another_unit_is_told_once(
    kafka: EmbeddedKafka,
    producer_on: MakeProducer,
    call: str,
    factor: int,
    unit: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Regression: `int(time.time())` was a time in 1970 in silence."""
    topic = new_topic(kafka, "unit", **{"message.timestamp.after.max.ms": str(2**63 - 1)})
    producer = producer_on(client_id="clock")
    for _ in range(3):
        TIMED[call](producer, topic, SECONDS * factor)
    said = (
        f"[clock] the timestamp {SECONDS * factor} of a record for topic {topic!r} looks like "
        f"{unit}, and is taken for Unix ms: pass int(time.time() * 1000), or a datetime with a "
        "time zone"
    )
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", said)
    ]
    assert producer.flush(10) == 0


@pytest.mark.parametrize("call", TIMED)
@pytest.mark.parametrize("at", [0, 1_000, SECONDS * 1000, MOMENT, MOMENT.replace(year=1970)])
def test_other_times_are_not_told(
    producer_on: MakeProducer, topic: str, call: str, at: Any, caplog: pytest.LogCaptureFixture
) -> None:
    producer = producer_on()
    TIMED[call](producer, topic, at)
    assert producer.flush(10) == 0
    assert not caplog.records


def test_many_topics_and_brokers(kafka: EmbeddedKafka, producer_on: MakeProducer) -> None:
    topics = [new_topic(kafka, "many", partitions=4) for _ in range(5)]
    producer = producer_on()
    sent = [
        (topic, number, producer.send(topic, b"%d" % number))
        for number in range(300)
        for topic in topics
    ]
    for topic, number, future in sent:
        told = future.result(TIMEOUT)
        assert told.topic == topic
        assert kafka.records(topic, told.partition)[told.offset].value == b"%d" % number
    ends = [kafka.end_offset(topic, p) for topic in topics for p in range(4)]
    assert sum(ends) == len(sent)


def test_rows_at_once_for_topics_that_nobody_knew(
    kafka: EmbeddedKafka, producer_on: MakeProducer
) -> None:
    """The data plane learns a topic's name while its first rows go into batches.

    Regression: the call copied what belongs to the data plane too. ThreadSanitizer tells.
    """
    topics = [new_topic(kafka, "rows") for _ in range(30)]
    producer = producer_on()
    for topic in topics:
        assert producer.send_many(topic, [b"x"] * 3).result(TIMEOUT)
    assert [kafka.end_offset(topic, 0) for topic in topics] == [3] * len(topics)


@pytest.mark.parametrize("versions", [KAFKA_2_1], ids=["2.1"])
def test_an_old_broker(
    kafka: EmbeddedKafka,
    topic: str,
    producer_on: MakeProducer,
    versions: dict[int, tuple[int, int]],
) -> None:
    kafka.faults.limit_versions(versions)
    send_and_check(kafka, producer_on(), topic)
