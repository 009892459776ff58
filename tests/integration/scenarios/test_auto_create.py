"""Topics that come into being when a client asks for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_fast import errors
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.conftest import started
from tests.integration.scenarios.steps import unique_name
from tests.integration.scenarios.wire import WireClient, batch, connected


@pytest.fixture(scope="module", params=[pytest.param("real", marks=pytest.mark.broker), "embedded"])
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """A broker that creates topics with three partitions: real Kafka first, then ours."""
    if request.param == "embedded":
        with EmbeddedKafka(partitions=3) as kafka:
            yield kafka.bootstrap
        return
    version = request.config.getoption("--kafka-version")
    with started(1, version, {"auto.create.topics.enable": True, "num.partitions": 3}) as real:
        yield real.bootstrap


@pytest.fixture
def client(address: str) -> Iterator[WireClient]:
    """A connection to the broker under test."""
    with connected(address) as made:
        yield made


def test_the_first_answer_does_not_know_the_topic_yet(client: WireClient) -> None:
    name = unique_name()
    first = client.metadata(name, auto_create=True).topics[0]
    assert (first.error_code, first.name) == (errors.UnknownTopicOrPartition.code, name)
    assert first.partitions == []
    described = client.wait_for_topic(name)
    assert len(described.partitions) == 3
    assert client.produce(name, batch(), partition=2).error_code == 0


def test_a_client_may_ask_without_creating(client: WireClient) -> None:
    name = unique_name()
    for _ in range(3):
        unknown = client.metadata(name, auto_create=False).topics[0]
        assert unknown.error_code == errors.UnknownTopicOrPartition.code


def test_neither_produce_nor_fetch_creates(client: WireClient) -> None:
    name = unique_name()
    code = errors.UnknownTopicOrPartition.code
    assert client.produce(name, batch()).error_code == code
    assert client.fetch(name, 0).error_code == code
    assert client.metadata(name, auto_create=False).topics[0].error_code == code


def test_an_illegal_name_is_not_created(client: WireClient) -> None:
    refused = client.metadata("a/b", auto_create=True).topics[0]
    assert refused.error_code == errors.InvalidTopicException.code
