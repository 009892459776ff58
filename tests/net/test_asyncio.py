"""Awaiting records in an event loop."""

from __future__ import annotations

import asyncio

from kafka_fast.testing.broker.server import EmbeddedKafka
from kafka_fast.types import RecordMetadata
from tests.net.producing import MakeProducer


def test_asyncio(kafka: EmbeddedKafka, topic: str, producer_on: MakeProducer) -> None:
    producer = producer_on()

    async def send(number: int) -> RecordMetadata:
        return await producer.send(topic, b"%d" % number)

    async def all_of_them() -> list[RecordMetadata]:
        return await asyncio.gather(*(send(number) for number in range(200)))

    assert [one.offset for one in asyncio.run(all_of_them())] == list(range(200))
