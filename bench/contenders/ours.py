"""kafka_fast."""

from __future__ import annotations

import time
from itertools import zip_longest
from typing import Any

from bench.contenders import Contender
from bench.workload import NO_SECURITY, Scenario, Security
from kafka_fast import Producer

FLUSH_SECONDS = 120
CALLBACK_WAIT = 0.001


class Ours(Contender):
    """Defaults."""

    is_secured = True

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
        config: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "compression.type": scenario.codec,
            **security,
        }
        if linger_0:
            config["linger.ms"] = 0
        self._producer = Producer(config)
        self._handles: list[Any] = []
        self._expected = 0

    def prepare(self, count: int) -> Any:
        """Return keys and values; for `table` an Arrow table that has a column `value`."""
        keys, values = self.batch(count)
        if self.scenario.mode == "table":
            import pyarrow as pa

            return pa.table({"value": pa.array(values, pa.binary())})
        return keys, values

    def count(self, records: Any) -> int:
        """Return how many records there are."""
        return len(records) if self.scenario.mode == "table" else len(records[1])

    def produce(self, records: Any) -> None:
        """Make the scenario's call, once or once for each record."""
        mode = self.scenario.mode
        if mode == "table":
            self._handles.append(self._producer.send_table(self.topic, records))
            return
        keys, values = records
        if mode == "many":
            self._handles.append(self._producer.send_many(self.topic, values, keys=keys or None))
        elif mode == "handle":
            self._produce_kept(values)
        elif mode == "callback":
            self._produce_with_callback(values)
        else:
            self._produce_each(keys, values)

    def _produce_each(self, keys: list[bytes], values: list[bytes]) -> None:
        nowait = self.scenario.mode == "nowait"
        send: Any = self._producer.send_nowait if nowait else self._producer.send
        topic = self.topic
        if keys:
            for value, key in zip_longest(values, keys):
                send(topic, value, key)
        else:
            for value in values:
                send(topic, value)

    def _produce_kept(self, values: list[bytes]) -> None:
        send, topic = self._producer.send, self.topic
        self._handles = [send(topic, value) for value in values]

    def _produce_with_callback(self, values: list[bytes]) -> None:
        send, topic, callback = self._producer.send, self.topic, self._on_delivery
        self.acknowledged = 0
        self._expected = len(values)
        for value in values:
            send(topic, value, on_delivery=callback)

    def flush(self) -> None:
        """Flush; it raises for records that failed unseen. Callbacks may still be running then."""
        deadline = time.monotonic() + FLUSH_SECONDS
        left = self._producer.flush(FLUSH_SECONDS)
        if left:
            raise RuntimeError(f"{left} records left")
        while self.acknowledged is not None and self.acknowledged < self._expected:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.acknowledged} callbacks for {self._expected} records")
            time.sleep(CALLBACK_WAIT)

    def verify(self) -> None:
        """Look at every handle that was kept."""
        for handle in self._handles:
            handle.result(0)
        self._handles.clear()

    def send_and_wait(self, value: bytes) -> None:
        """Send and wait for the handle's result."""
        self._producer.send(self.topic, value, partition=0).result(30)

    def send_only(self, value: bytes) -> None:
        """Send one record."""
        self._producer.send_nowait(self.topic, value, partition=0)

    def close(self) -> None:
        """Close."""
        self._producer.close()

    def _on_delivery(self, error: Exception | None, metadata: object) -> None:
        assert self.acknowledged is not None
        if error is not None:
            raise error
        self.acknowledged += 1


CONTENDER = Ours
