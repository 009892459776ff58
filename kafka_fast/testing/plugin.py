"""pytest fixtures with an embedded Kafka, for the tests of whoever uses kafka_fast.

Loaded by itself where kafka_fast is installed (entry point `pytest11`), or by
`pytest_plugins = ["kafka_fast.testing.plugin"]` in the root conftest.py.

    def test_orders_are_published(kafka_broker, kafka_topic):
        publish_orders(bootstrap=kafka_broker.bootstrap, topic=kafka_topic)
        assert [r.value for r in kafka_broker.records(kafka_topic)] == [b"1", b"2"]

The broker is imported, and started, when a fixture is first asked for.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kafka_fast.testing.broker.server import EmbeddedKafka

_topic_numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the settings of the shared broker."""
    parser.addini("kafka_brokers", "number of brokers that kafka_broker has", default="1")
    parser.addini("kafka_partitions", "partitions of a topic that does not say", default="1")


@pytest.fixture(scope="session")
def _shared_kafka(pytestconfig: pytest.Config) -> Iterator[EmbeddedKafka]:
    from kafka_fast.testing.broker.server import EmbeddedKafka

    brokers = int(pytestconfig.getini("kafka_brokers"))
    partitions = int(pytestconfig.getini("kafka_partitions"))
    with EmbeddedKafka(brokers, partitions=partitions) as kafka:
        yield kafka


@pytest.fixture
def kafka_broker(_shared_kafka: EmbeddedKafka) -> Iterator[EmbeddedKafka]:
    """A running cluster, shared by all tests; it is healed after each of them.

    Topics stay: take `kafka_topic` for one of your own.
    """
    yield _shared_kafka
    _shared_kafka.heal()


@pytest.fixture
def kafka_bootstrap(kafka_broker: EmbeddedKafka) -> str:
    """The addresses of the shared cluster, as `bootstrap.servers` takes them."""
    return kafka_broker.bootstrap


@pytest.fixture
def kafka_topic(kafka_broker: EmbeddedKafka, request: pytest.FixtureRequest) -> str:
    """A new topic, named after the test."""
    legal = "".join(c if c.isascii() and c.isalnum() else "-" for c in request.node.name)
    name = f"{legal[:200]}-{next(_topic_numbers)}"
    kafka_broker.create_topic(name)
    return name


@pytest.fixture
def kafka_cluster() -> Iterator[Callable[..., EmbeddedKafka]]:
    """A function that starts clusters with the arguments of EmbeddedKafka, for this test only."""
    from kafka_fast.testing.broker.server import EmbeddedKafka

    started: list[EmbeddedKafka] = []

    def start(brokers: int = 1, **options: object) -> EmbeddedKafka:
        kafka = EmbeddedKafka(brokers, **options)  # type: ignore[arg-type]  # checked at run time
        kafka.start()
        started.append(kafka)
        return kafka

    yield start
    for kafka in started:
        kafka.stop()
