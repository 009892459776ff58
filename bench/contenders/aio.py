"""aiokafka: asyncio with Cython batches; `list` is its batch API."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from itertools import zip_longest
from typing import Any

from aiokafka import AIOKafkaProducer

from bench.contenders import Contender, UnsupportedError
from bench.workload import NO_SECURITY, Scenario, Security


class Aio(Contender):
    """Defaults, idempotent, on an event loop that runs while it is called."""

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        scenario: Scenario,
        *,
        linger_0: bool,
        security: Security = NO_SECURITY,
    ) -> None:
        super().__init__(bootstrap, topic, scenario, linger_0=linger_0, security=security)
        if scenario.mode not in ("send", "handle", "many"):
            raise UnsupportedError(scenario.mode)
        self._loop = asyncio.new_event_loop()
        self._handles: list[Any] = []
        self._producer = self._run(self._start())

    async def _start(self) -> AIOKafkaProducer:
        codec = None if self.scenario.codec == "none" else self.scenario.codec
        producer = AIOKafkaProducer(
            bootstrap_servers=self.bootstrap, enable_idempotence=True, compression_type=codec
        )
        await producer.start()
        return producer

    def produce(self, records: Any) -> None:
        """Await send for each, or fill batches and send those."""
        keys, values = records
        if self.scenario.mode == "many":
            self._run(self._produce_batches(values))
        else:
            self._run(self._produce_each(keys, values))

    async def _produce_each(self, keys: list[bytes], values: list[bytes]) -> None:
        send, topic = self._producer.send, self.topic
        kept = self._handles.append if self.scenario.mode == "handle" else None
        for value, key in zip_longest(values, keys):
            handle = await send(topic, value, key)
            if kept is not None:
                kept(handle)

    async def _produce_batches(self, values: list[bytes]) -> None:
        partition = 0
        batch = self._producer.create_batch()
        for value in values:
            if batch.append(key=None, value=value, timestamp=None) is None:
                batch.close()
                await self._producer.send_batch(batch, self.topic, partition=partition)
                partition = (partition + 1) % self.scenario.partitions
                batch = self._producer.create_batch()
                batch.append(key=None, value=value, timestamp=None)
        batch.close()
        await self._producer.send_batch(batch, self.topic, partition=partition)

    def flush(self) -> None:
        """Flush."""
        self._run(self._producer.flush())

    def verify(self) -> None:
        """Look at every future that was kept."""
        for handle in self._handles:
            handle.result()
        self._handles.clear()

    def send_and_wait(self, value: bytes) -> None:
        """Its own send_and_wait."""
        self._run(self._producer.send_and_wait(self.topic, value, partition=0))

    def send_only(self, value: bytes) -> None:
        """Hand it to the loop, which has to run for the record to leave."""
        raise UnsupportedError("an event loop does nothing while its thread computes")

    def close(self) -> None:
        """Stop."""
        self._run(self._producer.stop())
        self._loop.close()

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(coroutine)


CONTENDER = Aio
