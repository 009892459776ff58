"""aiokafka: asyncio with Cython batches."""

from __future__ import annotations

import asyncio

from aiokafka import AIOKafkaConsumer, TopicPartition

from bench.contenders import UnsupportedError
from bench.readers import AT_A_TIME, Reader
from bench.workload import NO_SECURITY, READ_PARTITIONS, Reading, Security

WAIT_MS = 5000


class Aio(Reader):
    """Defaults, without a group, on an event loop that runs while it is called."""

    def __init__(
        self, bootstrap: str, topic: str, reading: Reading, security: Security = NO_SECURITY
    ) -> None:
        super().__init__(bootstrap, topic, reading, security)
        if reading.mode not in ("poll", "each"):
            raise UnsupportedError(reading.mode)
        self._loop = asyncio.new_event_loop()
        self._partitions = [TopicPartition(topic, number) for number in range(READ_PARTITIONS)]
        self._consumer: AIOKafkaConsumer = self._loop.run_until_complete(self._start())

    async def _start(self) -> AIOKafkaConsumer:
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        consumer.assign(self._partitions)
        return consumer

    def begin(self) -> None:
        """Seek to offset 0 of every partition."""
        for partition in self._partitions:
            self._consumer.seek(partition, 0)

    def read(self, count: int) -> int:
        """Await getmany, or getone, until there are enough."""
        reading = self._read_many if self.reading.mode == "poll" else self._read_each
        return self._loop.run_until_complete(reading(count))

    async def _read_many(self, count: int) -> int:
        done = 0
        while done < count:
            by_partition = await self._consumer.getmany(timeout_ms=WAIT_MS, max_records=AT_A_TIME)
            for records in by_partition.values():
                for record in records:
                    record.value  # noqa: B018  touched
                done += len(records)
        return done

    async def _read_each(self, count: int) -> int:
        for _ in range(count):
            record = await self._consumer.getone()
            record.value  # noqa: B018  touched
        return count

    def close(self) -> None:
        """Stop."""
        self._loop.run_until_complete(self._consumer.stop())
        self._loop.close()


READER = Aio
