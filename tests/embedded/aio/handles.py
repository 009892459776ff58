"""Handles of many records, awaited in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

from kafka_fast import Producer
from kafka_fast.types import RecordMetadata
from tests.embedded.producing import TIMEOUT

COUNT = 200


async def wait_in(handle: Any) -> RecordMetadata:
    return await handle


def run(main: Awaitable[Any]) -> Any:
    async def bounded() -> Any:
        return await asyncio.wait_for(main, TIMEOUT)

    return asyncio.run(bounded())


def send_all(producer: Producer, topic: str, count: int = COUNT) -> list[Any]:
    return [producer.send(topic, b"%d" % number) for number in range(count)]


def offsets(results: list[RecordMetadata]) -> list[int]:
    return [one.offset for one in results]
