"""A broker and a producer that the tests of calls with many records share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_fast.producer import Producer
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.unit.sending.bulk.common import PARTITIONS


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(1, partitions=PARTITIONS) as broker:
        yield broker


@pytest.fixture(scope="module")
def producer(kafka: EmbeddedKafka) -> Iterator[Producer]:
    with Producer(bootstrap_servers=kafka.bootstrap) as shared:
        yield shared


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    return f"bulk-{abs(hash(request.node.nodeid))}"
