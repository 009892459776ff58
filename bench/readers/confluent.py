"""confluent-kafka: librdkafka behind CPython's C API."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition

from bench.contenders import UnsupportedError
from bench.readers import AT_A_TIME, Reader
from bench.workload import NO_SECURITY, READ_PARTITIONS, Reading, Security

WAIT = 5.0


class Confluent(Reader):
    """Defaults; a group must be named, but assigned partitions are not its business."""

    is_secured = True

    def __init__(
        self, bootstrap: str, topic: str, reading: Reading, security: Security = NO_SECURITY
    ) -> None:
        super().__init__(bootstrap, topic, reading, security)
        if reading.mode not in ("poll", "each"):
            raise UnsupportedError(reading.mode)
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "bench",
                "enable.auto.commit": False,
                "log_level": 0,
                **security,
            }
        )

    def begin(self) -> None:
        """Assign every partition from offset 0."""
        self._consumer.assign(
            [TopicPartition(self.topic, number, 0) for number in range(READ_PARTITIONS)]
        )

    def read(self, count: int) -> int:
        """Call consume, or poll, until there are enough."""
        return self._read_many(count) if self.reading.mode == "poll" else self._read_each(count)

    def _read_many(self, count: int) -> int:
        consume, done = self._consumer.consume, 0
        while done < count:
            messages = consume(AT_A_TIME, WAIT)
            for message in messages:
                if message.error():
                    raise RuntimeError(message.error())
                message.value()
            done += len(messages)
        return done

    def _read_each(self, count: int) -> int:
        poll, done = self._consumer.poll, 0
        while done < count:
            message = poll(WAIT)
            if message is not None:
                if message.error():
                    raise RuntimeError(message.error())
                message.value()
                done += 1
        return done

    def close(self) -> None:
        """Close."""
        self._consumer.close()


READER = Confluent
