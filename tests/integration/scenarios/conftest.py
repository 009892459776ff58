"""The brokers that the scenarios run on: real Kafka first, then the embedded one.

Each scenario states what Apache Kafka does; the embedded broker has to do the same.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.integration.scenarios.steps import new_topic
from tests.integration.scenarios.wire import WireClient, connected


@pytest.fixture(scope="module", params=[pytest.param("real", marks=pytest.mark.broker), "embedded"])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """The broker under test: real Kafka first, then ours, both without auto-creation."""
    if request.param == "real":
        yield request.getfixturevalue("real_kafka").bootstrap
    else:
        with EmbeddedKafka(auto_create=False) as kafka:
            yield kafka.bootstrap


@pytest.fixture
def client(address: str) -> Iterator[WireClient]:
    """A connection to the broker under test."""
    with connected(address) as made:
        yield made


@pytest.fixture
def topic(client: WireClient) -> str:
    """A new topic with three partitions."""
    return new_topic(client)
