"""kafka-python: pure Python, with a sender thread."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from kafka import KafkaProducer

from bench.contenders import Contender, UnsupportedError
from bench.workload import NO_SECURITY, Scenario, Security


class KafkaPython(Contender):
    """Defaults, idempotent."""

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
        if scenario.mode not in ("send", "handle", "callback"):
            raise UnsupportedError(scenario.mode)
        codec = None if scenario.codec == "none" else scenario.codec
        options: dict[str, Any] = {"linger_ms": 0} if linger_0 else {}
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            enable_idempotence=True,
            compression_type=codec,
            **options,
        )
        self._handles: list[Any] = []

    def produce(self, records: Any) -> None:
        """Call send for each."""
        keys, values = records
        send, topic, mode = self._producer.send, self.topic, self.scenario.mode
        if mode == "callback":
            self.acknowledged = 0
        for value, key in zip_longest(values, keys):
            handle = send(topic, value, key)
            if mode == "callback":
                handle.add_callback(self._on_success)
            elif mode == "handle":
                self._handles.append(handle)

    def flush(self) -> None:
        """Flush."""
        self._producer.flush(120)

    def verify(self) -> None:
        """Look at every future that was kept."""
        for handle in self._handles:
            handle.get(0)
        self._handles.clear()

    def send_and_wait(self, value: bytes) -> None:
        """Send and get the future's result."""
        self._producer.send(self.topic, value, partition=0).get(30)

    def send_only(self, value: bytes) -> None:
        """Send one record."""
        self._producer.send(self.topic, value, partition=0)

    def close(self) -> None:
        """Close."""
        self._producer.close()

    def _on_success(self, metadata: object) -> None:
        assert self.acknowledged is not None
        self.acknowledged += 1


CONTENDER = KafkaPython
