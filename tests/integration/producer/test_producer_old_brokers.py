"""The producer on Kafka 2.8.2: no topic ids, no leader hints, older versions of every request.

`make test-old-brokers` runs the other broker tests on 3.9.2, 2.8.2 and 2.1.1; this one runs always.
"""

from __future__ import annotations

import pytest

from kafka_fast import Producer
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.integration.producing import TIMEOUT, Tally, create_again, fetch_log, new_topic

PARTITIONS = 3
RECORDS = 20_000
VALUE_SIZE = 100

pytestmark = pytest.mark.broker


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_records_arrive_once_and_in_order(old_kafka: RealKafka, codec: str) -> None:
    tally = Tally(new_topic(old_kafka, PARTITIONS), PARTITIONS, keyed=True)
    with Producer(bootstrap_servers=old_kafka.bootstrap, compression_type=codec) as producer:
        futures = []
        for _ in range(RECORDS):
            value, key = tally.next_record(VALUE_SIZE)
            futures.append(producer.send(tally.topic, value, key))
        for number, future in enumerate(futures):
            tally.take(number, None, future.result(TIMEOUT))
    assert tally.compare(old_kafka.bootstrap) == {}


def test_headers_nulls_and_timestamps_arrive(old_kafka: RealKafka) -> None:
    topic = new_topic(old_kafka)
    with Producer(bootstrap_servers=old_kafka.bootstrap) as producer:
        told = producer.send(
            topic, None, b"key", headers=[("a", None), ("a", b"1")], timestamp_ms=17
        ).result(TIMEOUT)
    (read,) = fetch_log(old_kafka.bootstrap, topic)
    assert (told.offset, told.timestamp_ms) == (read.offset, read.timestamp_ms) == (0, 17)
    assert (read.key, read.value, read.headers) == (b"key", None, (("a", None), ("a", b"1")))


def test_a_topic_made_again_is_written_to(old_kafka: RealKafka) -> None:
    topic = new_topic(old_kafka)
    with Producer(bootstrap_servers=old_kafka.bootstrap, metadata_max_age_ms=1_000) as producer:
        producer.send(topic, b"old").result(TIMEOUT)
        old_kafka.delete_topic(topic)
        futures = [producer.send(topic, b"%d" % number) for number in range(10)]
        create_again(old_kafka, topic)
        assert [future.result(TIMEOUT).offset for future in futures] == list(range(10))
