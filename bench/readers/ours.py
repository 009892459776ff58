"""kafka_fast."""

from __future__ import annotations

import importlib

from bench.readers import AT_A_TIME, Reader
from bench.workload import NO_SECURITY, READ_PARTITIONS, Reading, Security
from kafka_fast import Consumer, TopicPartition

COLUMNS_AT_A_TIME = 16_000
VALUES_AT_A_TIME = 5_000
WAIT = 5.0


class Ours(Reader):
    """Defaults, without a group."""

    is_secured = True

    def __init__(
        self, bootstrap: str, topic: str, reading: Reading, security: Security = NO_SECURITY
    ) -> None:
        super().__init__(bootstrap, topic, reading, security)
        if reading.mode in ("arrow", "views"):
            importlib.import_module("pyarrow")  # its import is not what is measured
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest", **security}
        )
        self._partitions = [TopicPartition(topic, number) for number in range(READ_PARTITIONS)]
        self._consumer.assign(self._partitions)

    def begin(self) -> None:
        """Seek to where every log begins, offset 0."""
        for partition in self._partitions:
            self._consumer.seek(partition, 0)

    def read(self, count: int) -> int:
        """Make the scenario's call until there are enough."""
        if self.reading.mode == "poll":
            return self._read_polled(count)
        if self.reading.mode == "each":
            return self._read_each(count)
        if self.reading.mode == "values":
            return self._read_values(count)
        return self._read_columns(count, views=self.reading.mode == "views")

    def _read_polled(self, count: int) -> int:
        poll, done = self._consumer.poll, 0
        while done < count:
            records = poll(WAIT, AT_A_TIME)
            for record in records:
                record.value  # noqa: B018  touched
            done += len(records)
        return done

    def _read_each(self, count: int) -> int:
        for _, record in zip(range(count), self._consumer, strict=False):
            record.value  # noqa: B018  touched
        return count

    def _read_values(self, count: int) -> int:
        done = 0
        while done < count:
            done += len(self._consumer.poll(WAIT, VALUES_AT_A_TIME).values())
        return done

    def _read_columns(self, count: int, *, views: bool) -> int:
        done = 0
        while done < count:
            table = self._consumer.poll(WAIT, COLUMNS_AT_A_TIME).to_arrow(views=views)
            for chunk in table.column("value").chunks:
                chunk[0].as_buffer()
            done += table.num_rows
        return done

    def close(self) -> None:
        """Close."""
        self._consumer.close()


READER = Ours
