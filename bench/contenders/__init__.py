"""The producers that are compared, one module each, behind one small interface.

A contender is built for a scenario, then `produce`s any number of times and is `flush`ed. What
`produce` does is what that library's own users would write for the scenario's mode; a mode that
the library has no call for is an `Unsupported` error, and its row is empty in the tables.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from typing import Any

from bench.workload import (
    DISTINCT,
    DISTINCT_COMPRESSED,
    NO_SECURITY,
    Scenario,
    Security,
    cycled,
    keys,
    values,
)

# Name on the command line and in the tables -> (module, distribution that has the version).
CONTENDERS = {
    "kafka_fast": ("bench.contenders.ours", "kafka_fast"),
    "confluent": ("bench.contenders.confluent", "confluent-kafka"),
    "aiokafka": ("bench.contenders.aio", "aiokafka"),
    "kafka-python": ("bench.contenders.kafka_python", "kafka-python"),
    "raw socket": ("bench.contenders.raw_socket", None),
}


class UnsupportedError(Exception):
    """The library has no such call."""


class Contender(ABC):
    """One library's producer, for one scenario; `linger_0` sends each record at once.

    Attributes:
        acknowledged: records that the broker took, where the library tells; else None.
    """

    acknowledged: int | None = None
    is_secured = False  # whether it takes properties of TLS and SASL

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        scenario: Scenario,
        *,
        linger_0: bool,
        security: Security = NO_SECURITY,
    ) -> None:
        if security and not self.is_secured:
            raise UnsupportedError("TLS and SASL are measured for others")
        self.bootstrap = bootstrap
        self.security = security
        self.topic = topic
        self.scenario = scenario
        count = DISTINCT if scenario.codec == "none" else DISTINCT_COMPRESSED
        self.values = values(scenario.value_size, count)
        self.keys = keys()

    def batch(self, count: int) -> tuple[list[bytes], list[bytes]]:
        """Return keys (empty if the scenario has none) and values of `count` records."""
        chosen = cycled(self.keys, count) if self.scenario.keyed else []
        return chosen, cycled(self.values, count)

    def prepare(self, count: int) -> Any:
        """Return what `produce` gets: the records in the form in which the user has them."""
        return self.batch(count)

    def count(self, records: Any) -> int:
        """Return how many records `produce` will send for what `prepare` returned."""
        return len(records[1])

    @abstractmethod
    def produce(self, records: Any) -> None:
        """Hand all records over, with the scenario's call."""

    @abstractmethod
    def flush(self) -> None:
        """Return when all are acknowledged and every callback has run; raise if a record failed."""

    def verify(self) -> None:  # noqa: B027 - most keep nothing
        """Look at the handles that were kept, after the clock has stopped; raise if one failed."""

    @abstractmethod
    def send_and_wait(self, value: bytes) -> None:
        """Send one record to partition 0 and return when it is acknowledged (linger 0)."""

    @abstractmethod
    def send_only(self, value: bytes) -> None:
        """Send one record to partition 0 and return (linger 0)."""

    @abstractmethod
    def close(self) -> None:
        """End the producer."""


def contender_class(name: str) -> type[Contender]:
    """Import a contender's module; the libraries must not be in each other's process."""
    contender: type[Contender] = importlib.import_module(CONTENDERS[name][0]).CONTENDER
    return contender
