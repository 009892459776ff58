"""What a peer's call finds: a broker with a topic of its own, and names that nobody else uses."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytest

from kafka_fast import Producer
from kafka_fast.protocol.apis import api_keys, api_name
from kafka_fast.testing.broker.handlers import OFFERED

TESTING_PAGE = Path(__file__).parents[3] / "docs" / "testing.md"
RECORDS = 10
FIRST_TIMESTAMP_MS = 1_700_000_000_000
TIMEOUT = 20.0
SETTINGS = {"cleanup.policy": "compact", "retention.ms": "86400000", "segment.bytes": "2000000"}
"""Of a topic."""


class Broker(Protocol):
    """The embedded broker, or a real one."""

    @property
    def bootstrap(self) -> str:
        """Its address."""

    def create_topic(self, name: str, partitions: int) -> object:
        """Create a topic."""


class Scene:
    """The place of one call."""

    def __init__(self, broker: Broker) -> None:
        """Make a topic with two partitions; the first has RECORDS records, a second apart."""
        self._broker = broker
        self.bootstrap = broker.bootstrap
        self.topic = self.new_topic()
        self.group = self.new_name("group")
        self.kept: list[Any] = []
        """What must live until the call is over."""
        with Producer(bootstrap_servers=self.bootstrap) as producer:
            for number in range(RECORDS):
                producer.send(
                    self.topic,
                    b"value-%d" % number,
                    key=b"key-%d" % number,
                    partition=0,
                    timestamp_ms=FIRST_TIMESTAMP_MS + 1000 * number,
                )

    def new_name(self, what: str = "new") -> str:
        """Return a name that nothing has."""
        return f"{what}-{uuid.uuid4().hex[:12]}"

    def new_topic(self, partitions: int = 2) -> str:
        """Create a topic."""
        name = self.new_name("topic")
        self._broker.create_topic(name, partitions=partitions)
        return name


class PeerCall(NamedTuple):
    """One call of a peer's public API."""

    name: str
    call: Callable[[Scene], Any]
    """Returns the outcome, without what differs from broker to broker."""
    needs: str | None
    """An API that the embedded broker does not offer; None: the outcome is the same there."""

    def run_on(self, broker: Broker) -> Any:
        """Return the outcome."""
        return self.call(Scene(broker))


class Calls(list[PeerCall]):
    """The calls of one peer, in their order."""

    def __call__(
        self, name: str, needs: str | None = None
    ) -> Callable[[Callable[[Scene], Any]], Callable[[Scene], Any]]:
        """Return a decorator that adds a call."""

        def add(call: Callable[[Scene], Any]) -> Callable[[Scene], Any]:
            self.append(PeerCall(name, call, needs))
            return call

        return add

    def parametrize(self, test: Callable[..., None]) -> Any:
        """Run a test once for each call."""
        each = [pytest.param(call, id=call.name) for call in self]
        return pytest.mark.parametrize("call", each)(test)

    @property
    def compared(self) -> list[PeerCall]:
        """Those that need nothing that the embedded broker lacks."""
        return [call for call in self if call.needs is None]


class Brokers(NamedTuple):
    """A broker of each kind."""

    embedded: Broker
    real: Broker


def compare(call: PeerCall, brokers: Brokers) -> None:
    """Run a call on both brokers, at the same time to save some."""
    with ThreadPoolExecutor() as threads:
        embedded = threads.submit(call.run_on, brokers.embedded)
        real = threads.submit(call.run_on, brokers.real)
    if call.needs is None:
        assert embedded.result() == real.result(), f"{embedded.result()!r}, not {real.result()!r}"
    else:
        assert call.needs in {api_name(key) for key in api_keys() if key not in OFFERED}
        assert re.search(
            rf"\| `{re.escape(call.name)}` .* {call.needs} \|", TESTING_PAGE.read_text()
        )
        assert embedded.exception() is not None or embedded.result() != real.result()
