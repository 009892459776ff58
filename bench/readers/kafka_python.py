"""kafka-python: pure Python."""

from __future__ import annotations

from kafka import KafkaConsumer, TopicPartition

from bench.contenders import UnsupportedError
from bench.readers import AT_A_TIME, Reader
from bench.workload import NO_SECURITY, READ_PARTITIONS, Reading, Security

WAIT_MS = 5000


class KafkaPython(Reader):
    """Defaults, without a group."""

    def __init__(
        self, bootstrap: str, topic: str, reading: Reading, security: Security = NO_SECURITY
    ) -> None:
        super().__init__(bootstrap, topic, reading, security)
        if reading.mode not in ("poll", "each"):
            raise UnsupportedError(reading.mode)
        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False
        )
        self._partitions = [TopicPartition(topic, number) for number in range(READ_PARTITIONS)]
        self._consumer.assign(self._partitions)

    def begin(self) -> None:
        """Seek to offset 0 of every partition."""
        for partition in self._partitions:
            self._consumer.seek(partition, 0)

    def read(self, count: int) -> int:
        """Call poll, or iterate, until there are enough."""
        return self._read_many(count) if self.reading.mode == "poll" else self._read_each(count)

    def _read_many(self, count: int) -> int:
        done = 0
        while done < count:
            by_partition = self._consumer.poll(timeout_ms=WAIT_MS, max_records=AT_A_TIME)
            for records in by_partition.values():
                for record in records:
                    record.value  # noqa: B018  touched
                done += len(records)
        return done

    def _read_each(self, count: int) -> int:
        for _, record in zip(range(count), self._consumer, strict=False):
            record.value  # noqa: B018  touched
        return count

    def close(self) -> None:
        """Close."""
        self._consumer.close()


READER = KafkaPython
