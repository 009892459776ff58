"""Which partitions records go to."""

from __future__ import annotations

from itertools import pairwise

from kafka_fast import Producer
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.embedded.producing import TIMEOUT, MakeProducer, new_topic
from tests.support.null_broker import NullBroker

DRIVERS = True  # every test runs with threads and with asyncio


def test_without_a_key_the_spread_is_even() -> None:
    """Chi-square over the draws of a sticky partition; each record is a batch's worth."""
    with NullBroker(partitions=6) as broker:
        with Producer(
            bootstrap_servers=broker.bootstrap,
            partitioner_adaptive_partitioning_enable=False,
            max_request_size=50_000,
        ) as producer:
            for _ in range(600):
                producer.send_nowait("t", bytes(45_000))
        drawn = broker.stats().partitions["t"]
    assert sum(drawn) == 600
    chi_square = sum((count - 100) ** 2 / 100 for count in drawn)
    assert chi_square < 30, drawn  # five degrees of freedom: p < 0.00002


def test_without_a_key_records_stay_together(
    kafka: EmbeddedKafka, producer_on: MakeProducer
) -> None:
    topic = new_topic(kafka, "together", partitions=6)
    producer = producer_on(batch_size=16_384)
    futures = [producer.send(topic, b"x" * 90) for _ in range(1_000)]
    places = [future.result(TIMEOUT).partition for future in futures]
    changes = sum(a != b for a, b in pairwise(places))
    assert changes <= 1_000 * 100 / 16_384 + 1


def test_round_robin(kafka: EmbeddedKafka, producer_on: MakeProducer) -> None:
    topic = new_topic(kafka, "robin", partitions=3)
    producer = producer_on(partitioner_class="round_robin")
    futures = [producer.send(topic, b"x") for _ in range(9)]
    places = [future.result(TIMEOUT).partition for future in futures]
    assert sorted(places[:3]) == [0, 1, 2]
    assert places == places[:3] * 3


def test_a_callable(kafka: EmbeddedKafka, producer_on: MakeProducer) -> None:
    def by_number(topic: str, key: bytes, value: bytes, count: int) -> int:
        return int(key) % count

    topic = new_topic(kafka, "callable", partitions=3)
    producer = producer_on(partitioner_class=by_number)
    for number in range(6):
        told = producer.send(topic, b"x", b"%d" % number).result(TIMEOUT)
        assert told.partition == number % 3
