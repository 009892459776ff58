"""What the tests over real sockets do with a producer and the embedded broker."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from kafka_fast import Producer
from kafka_fast.errors import KafkaTimeoutError
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.waiting import TIMEOUT

MIB = 1 << 20

MakeProducer = Callable[..., Producer]


def new_topic(kafka: EmbeddedKafka, name: str, partitions: int = 1, **config: str) -> str:
    legal = "".join(c if c.isascii() and c.isalnum() else "-" for c in name)
    made = f"{legal[:100]}-{os.urandom(4).hex()}"
    dotted = {key.replace("_", "."): value for key, value in config.items()}
    kafka.create_topic(made, partitions, config=dotted)
    for partition in range(partitions):
        kafka.move_leader(made, partition, partition % 3 + 1)
    return made


def values(kafka: EmbeddedKafka, topic: str, partition: int = 0) -> list[bytes | None]:
    return [record.value for record in kafka.records(topic, partition)]


def send_and_check(kafka: EmbeddedKafka, producer: Producer, topic: str, count: int = 100) -> None:
    """Send, and see every record once, in order, where its sender was told."""
    start = kafka.end_offset(topic, 0)
    sent = [b"%d" % number for number in range(count)]
    futures = [producer.send(topic, value) for value in sent]
    offsets = [future.result(TIMEOUT).offset for future in futures]
    assert offsets == list(range(start, start + count))
    assert values(kafka, topic)[start:] == sent


def attempt(call: Callable[[], object]) -> bool:
    """Tell whether the call got through within max.block.ms."""
    try:
        call()
    except KafkaTimeoutError:
        return False
    return True


def entries(folder: str) -> set[str]:
    """Return the names in a folder, such as /proc/self/fd."""
    return {entry.name for entry in Path(folder).iterdir()}
