"""confluent-kafka: librdkafka behind CPython's C API."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from confluent_kafka import KafkaError, Message, Producer

from bench.contenders import Contender, UnsupportedError
from bench.workload import NO_SECURITY, Scenario, Security

# Seconds to wait when librdkafka's queue is full, as its documentation shows it.
FULL_WAIT = 0.01
CALLBACK_POLL = 1000


class Confluent(Contender):
    """Defaults, idempotent; a full queue is polled."""

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
        if scenario.mode not in ("send", "callback", "many"):
            raise UnsupportedError(scenario.mode)
        self._errors: list[object] = []
        config: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "compression.type": scenario.codec,
            **security,
            "log_level": 0,
        }
        if linger_0:
            config["linger.ms"] = 0
        self._producer = Producer(config)
        self._waiting = False

    def prepare(self, count: int) -> Any:
        """Return keys and values; for produce_batch the dicts that it wants."""
        keys, values = self.batch(count)
        if self.scenario.mode == "many":
            return [{"value": value} for value in values]
        return keys, values

    def count(self, records: Any) -> int:
        """Return how many records there are."""
        return len(records) if self.scenario.mode == "many" else len(records[1])

    def produce(self, records: Any) -> None:
        """Call produce once for each, or produce_batch in the pieces that its queue holds."""
        if self.scenario.mode == "many":
            self._produce_batches(records)
            return
        keys, values = records
        produce, poll, topic = self._producer.produce, self._producer.poll, self.topic
        options: dict[str, Any] = {}
        if self.scenario.mode == "callback":
            options["on_delivery"] = self._on_delivery
            self.acknowledged = 0
        # Callbacks are served now and then, not after each record: the cheapest way that works.
        pause = CALLBACK_POLL if options else len(values) + 1
        if not keys and not options:
            for value in values:
                while True:
                    try:
                        produce(topic, value)
                        break
                    except BufferError:
                        poll(FULL_WAIT)
            return
        for i, (value, key) in enumerate(zip_longest(values, keys)):
            while True:
                try:
                    produce(topic, value, key, **options)
                    break
                except BufferError:
                    poll(FULL_WAIT)
            if i % pause == 0:
                poll(0)

    def _produce_batches(self, records: list[dict[str, bytes]]) -> None:
        pos = 0
        while pos < len(records):
            piece = records[pos : pos + 10_000]
            accepted = self._producer.produce_batch(self.topic, piece)
            pos += accepted
            if accepted < len(piece):
                self._producer.poll(FULL_WAIT)

    def flush(self) -> None:
        """Flush; callbacks run in here too."""
        left = self._producer.flush(120)
        if left or self._errors:
            raise RuntimeError(f"{left} records left, errors {self._errors[:3]}")

    def send_and_wait(self, value: bytes) -> None:
        """Produce one record and poll until its callback has run."""
        self._waiting = True
        self._producer.produce(self.topic, value, partition=0, on_delivery=self._on_one)
        while self._waiting:
            self._producer.poll(1)

    def send_only(self, value: bytes) -> None:
        """Produce one record."""
        self._producer.produce(self.topic, value, partition=0)

    def close(self) -> None:
        """Nothing: librdkafka ends with its object."""

    def _on_one(self, error: KafkaError | None, message: Message) -> None:
        self._waiting = False

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._errors.append(error)
        else:
            assert self.acknowledged is not None
            self.acknowledged += 1


CONTENDER = Confluent
