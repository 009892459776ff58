"""The embedded broker serves the peers: they produce to it and read back, without groups."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import confluent_kafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioTopicPartition

from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import KAFKA_2_1, KAFKA_2_8, PRODUCE

# The peers' own warnings are theirs; kafka-python warns already when it is imported.
pytestmark = pytest.mark.filterwarnings("ignore")

COUNT = 500
VALUES = [b"value-%d" % number for number in range(COUNT)]
TIMEOUT = 20

Produce = Callable[[str, str, str | None], None]
Consume = Callable[[str, str], list[bytes]]


@pytest.fixture
def broker() -> Iterator[EmbeddedKafka]:
    """Two brokers; each topic has one partition."""
    with EmbeddedKafka(brokers=2) as made:
        yield made


def produce_with_confluent(bootstrap: str, topic: str, codec: str | None) -> None:
    options = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 1}
    producer = confluent_kafka.Producer({**options, "compression.type": codec or "none"})
    failed: list[object] = []

    def note(error: object, _: object) -> None:
        if error is not None:
            failed.append(error)

    for value in VALUES:
        producer.produce(topic, value, key=b"key", on_delivery=note)
    assert producer.flush(TIMEOUT) == 0
    assert failed == []


def produce_with_kafka_python(bootstrap: str, topic: str, codec: str | None) -> None:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", compression_type=codec)
    try:
        futures = [producer.send(topic, value, key=b"key") for value in VALUES]
        offsets = [future.get(TIMEOUT).offset for future in futures]
        assert offsets == list(range(COUNT))
    finally:
        producer.close()


def produce_with_aiokafka(bootstrap: str, topic: str, codec: str | None) -> None:
    async def run() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=bootstrap, enable_idempotence=True, compression_type=codec
        )
        await producer.start()
        try:
            sent = [await producer.send(topic, value, key=b"key") for value in VALUES]
            offsets = [(await future).offset for future in sent]
            assert offsets == list(range(COUNT))
        finally:
            await producer.stop()

    asyncio.run(asyncio.wait_for(run(), TIMEOUT))


def consume_with_confluent(bootstrap: str, topic: str) -> list[bytes]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False}
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        values: list[bytes] = []
        while len(values) < COUNT:
            message = consumer.poll(TIMEOUT)
            assert message is not None
            assert message.error() is None
            value = message.value()
            assert value is not None
            values.append(value)
        return values
    finally:
        consumer.close()


def consume_with_kafka_python(bootstrap: str, topic: str) -> list[bytes]:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap, group_id=None, consumer_timeout_ms=TIMEOUT * 1000
    )
    try:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        values: list[bytes] = []
        for record in consumer:
            values.append(record.value)
            if len(values) == COUNT:
                break
        return values
    finally:
        consumer.close()


def consume_with_aiokafka(bootstrap: str, topic: str) -> list[bytes]:
    async def run() -> list[bytes]:
        consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=None)
        await consumer.start()
        try:
            partition = AioTopicPartition(topic, 0)
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            return [(await consumer.getone()).value for _ in range(COUNT)]
        finally:
            await consumer.stop()

    return asyncio.run(asyncio.wait_for(run(), TIMEOUT))


PRODUCERS = [produce_with_confluent, produce_with_kafka_python, produce_with_aiokafka]
CONSUMERS = [consume_with_confluent, consume_with_kafka_python, consume_with_aiokafka]


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("produce", PRODUCERS)
def test_peers_produce(broker: EmbeddedKafka, produce: Produce, codec: str | None) -> None:
    produce(broker.bootstrap, "t", codec)
    records = broker.records("t")
    assert [record.value for record in records] == VALUES
    assert {record.key for record in records} == {b"key"}


@pytest.mark.parametrize("consume", CONSUMERS)
def test_peers_consume(broker: EmbeddedKafka, consume: Consume) -> None:
    produce_with_confluent(broker.bootstrap, "t", "lz4")
    assert consume(broker.bootstrap, "t") == VALUES


@pytest.mark.parametrize("versions", [KAFKA_2_1, KAFKA_2_8])
def test_librdkafka_takes_it_for_an_older_kafka(
    broker: EmbeddedKafka, versions: dict[int, tuple[int, int]]
) -> None:
    broker.faults.limit_versions(versions)
    produce_with_confluent(broker.bootstrap, "t", "zstd")
    assert consume_with_confluent(broker.bootstrap, "t") == VALUES


def test_librdkafka_survives_moves_kills_and_lost_answers(broker: EmbeddedKafka) -> None:
    broker.create_topic("t", partitions=1, replication_factor=2)
    producer = confluent_kafka.Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 0,
            "retry.backoff.ms": 10,
            "reconnect.backoff.ms": 10,
        }
    )
    dropped = broker.faults.drop(api=PRODUCE, skip=2, count=2, close=True)
    cut = broker.faults.cut(10, api=PRODUCE, skip=6, count=1)
    for number, value in enumerate(VALUES):
        if number == COUNT // 4:
            broker.move_leader("t", 0, 2)
        if number == COUNT // 2:
            broker.kill(2)
        if number == COUNT * 3 // 4:
            broker.restart(2)
            broker.move_leader("t", 0, 2)
        producer.produce("t", value)
        if number % 10 == 0:
            assert producer.flush(TIMEOUT) == 0
    assert producer.flush(TIMEOUT) == 0
    assert [record.value for record in broker.records("t")] == VALUES
    assert (dropped.strikes, cut.strikes) == (2, 1)
