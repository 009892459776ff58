"""The brokers of scenarios about transactions: for each version of them real Kafka, then ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from kafka_fast.testing._kafka.broker_jars import DEFAULT_VERSION
from kafka_fast.testing._kafka.real_kafka import RealKafka
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.transactions.settings import TransactionSettings
from tests.conftest import start_or_skip
from tests.integration.scenarios.steps import new_topic
from tests.integration.scenarios.transactions.producers import TransactionalProducer
from tests.integration.scenarios.wire import WireClient, connected

ABORT_INTERVAL_MS = 200
PARTITIONS = 3  # of the internal topics
VERSIONS = (0, 1, 2)


@dataclass
class Site:
    """A broker, and the version of transactions that it has finalized."""

    client: WireClient
    version: int
    embedded: EmbeddedKafka | None
    """None: it is real Kafka."""

    @property
    def protocol(self) -> int:
        """Return which protocol a client speaks here."""
        return 2 if self.version == 2 else 1

    def producer(self, *, protocol: int | None = None) -> TransactionalProducer:
        """Return a producer with an id of its own."""
        return self.unready_producer(protocol=protocol).init()

    def unready_producer(self, *, protocol: int | None = None) -> TransactionalProducer:
        """Return a producer that has a coordinator, and no id yet."""
        made = TransactionalProducer(self.client, protocol=protocol or self.protocol)
        made.find_coordinator()
        return made


@pytest.fixture(scope="session", params=[f"version {version}" for version in VERSIONS])
def version(request: pytest.FixtureRequest) -> int:
    """`transaction.version` of the brokers."""
    return int(request.param.split()[1])


@pytest.fixture(scope="session", params=["real", "embedded"])
def broker(request: pytest.FixtureRequest, version: int) -> Iterator[RealKafka | EmbeddedKafka]:
    """The broker under test: real Kafka first, then ours."""
    if request.param == "real":
        real = RealKafka(
            version=request.config.getoption("--kafka-version") or DEFAULT_VERSION,
            overrides={
                "transaction.abort.timed.out.transaction.cleanup.interval.ms": ABORT_INTERVAL_MS
            },
            format_options=["--feature", f"transaction.version={version}"],
        )
        start_or_skip(real)
        with real:
            yield real
        return
    settings = TransactionSettings(version, PARTITIONS, abort_interval_ms=ABORT_INTERVAL_MS)
    with EmbeddedKafka(auto_create=False, transactions=settings) as kafka:
        yield kafka


@pytest.fixture
def site(broker: RealKafka | EmbeddedKafka, version: int) -> Iterator[Site]:
    """A connection to the broker under test."""
    with connected(broker.bootstrap) as client:
        yield Site(client, version, broker if isinstance(broker, EmbeddedKafka) else None)


@pytest.fixture
def topic(site: Site) -> str:
    """A new topic with three partitions."""
    return new_topic(site.client)
