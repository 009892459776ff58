"""pytest fixtures with an embedded Kafka, for tests of programs that use kafka_fast.

pytest loads this plugin by itself if kafka_fast is installed (entry point `pytest11`). Elsewhere,
`pytest_plugins = ["kafka_fast.testing.plugin"]` in the root conftest.py loads it.

    def test_orders_are_published(kafka_broker, kafka_topic):
        publish_orders(bootstrap=kafka_broker.bootstrap, topic=kafka_topic)
        assert [r.value for r in kafka_broker.records(kafka_topic)] == [b"1", b"2"]

Each pytest run in such an environment imports this module, whether it uses the fixtures or not. So
this module imports only pytest, and starts nothing, until a fixture is requested.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pytest

if TYPE_CHECKING:
    from kafka_fast.testing.broker.serving.server import EmbeddedKafka
    from kafka_fast.testing.certificates import CertificateAuthority
    from kafka_fast.testing.secure_broker import SecureBroker

Scope: TypeAlias = Literal["function", "class", "module", "package", "session"]

_topic_numbers = itertools.count(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the settings of the shared broker."""
    parser.addini("kafka_brokers", "number of brokers that kafka_broker has", default="1")
    parser.addini("kafka_partitions", "partitions of a topic that does not say", default="1")


@pytest.fixture(scope="session")
def _shared_kafka(pytestconfig: pytest.Config) -> Iterator[EmbeddedKafka]:
    from kafka_fast.testing.broker.serving.server import EmbeddedKafka

    brokers = int(pytestconfig.getini("kafka_brokers"))
    partitions = int(pytestconfig.getini("kafka_partitions"))
    with EmbeddedKafka(brokers, partitions=partitions) as kafka:
        yield kafka


@pytest.fixture(scope="session")
def kafka_bootstrap(_shared_kafka: EmbeddedKafka) -> str:
    """The addresses of the shared cluster, as `bootstrap.servers` takes them."""
    return _shared_kafka.bootstrap


def _broker(scope: Scope) -> Any:
    @pytest.fixture(scope=scope)
    def broker(_shared_kafka: EmbeddedKafka) -> Iterator[EmbeddedKafka]:
        """The cluster that all tests share; faults end with the scope.

        `kafka_broker` is for one test, `kafka_broker_module` for fixtures and tests of a module,
        and so on: always the same cluster. Topics stay: take `kafka_topic` for one of your own.
        """
        yield _shared_kafka
        _shared_kafka.heal()

    return broker


def _topic(scope: Scope) -> Any:
    @pytest.fixture(scope=scope)
    def topic(_shared_kafka: EmbeddedKafka, request: pytest.FixtureRequest) -> str:
        """The name of a new topic on the shared cluster, made for this test, module, ..."""
        node = request.node.name or scope
        legal = "".join(c if c.isascii() and c.isalnum() else "-" for c in node)
        name = f"{legal[:200]}-{next(_topic_numbers)}"
        _shared_kafka.create_topic(name)
        return name

    return topic


def _cluster(scope: Scope) -> Any:
    @pytest.fixture(scope=scope)
    def cluster() -> Iterator[Callable[..., EmbeddedKafka]]:
        """A function that starts clusters of your own, with EmbeddedKafka's arguments.

        They end with the scope.
        """
        from kafka_fast.testing.broker.serving.server import EmbeddedKafka

        started: list[EmbeddedKafka] = []

        def start(brokers: int = 1, **options: Any) -> EmbeddedKafka:
            kafka = EmbeddedKafka(brokers, **options)
            kafka.start()
            started.append(kafka)
            return kafka

        yield start
        for kafka in started:
            kafka.stop()

    return cluster


@pytest.fixture(scope="session")
def _certificate_authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    from kafka_fast.testing.certificates import CertificateAuthority

    return CertificateAuthority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def secure_broker(_certificate_authority: CertificateAuthority) -> Iterator[SecureBroker]:
    """A broker of the test's own with TLS, users and ACLs; `client_properties` lets clients in.

    Needs the package trustme.
    """
    from kafka_fast.testing.secure_broker import SecureBroker

    with SecureBroker(_certificate_authority) as kafka:
        yield kafka


kafka_broker = _broker("function")
kafka_broker_class = _broker("class")
kafka_broker_module = _broker("module")
kafka_broker_package = _broker("package")
kafka_broker_session = _broker("session")

kafka_topic = _topic("function")
kafka_topic_class = _topic("class")
kafka_topic_module = _topic("module")
kafka_topic_package = _topic("package")
kafka_topic_session = _topic("session")

kafka_cluster = _cluster("function")
kafka_cluster_class = _cluster("class")
kafka_cluster_module = _cluster("module")
kafka_cluster_package = _cluster("package")
kafka_cluster_session = _cluster("session")
