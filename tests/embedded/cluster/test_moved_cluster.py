"""Clients whose brokers all come back at other addresses, behind the same bootstrap address."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.embedded.consuming import fill, partitions_of, poll_until, read
from tests.embedded.moving import front_of, moved
from tests.embedded.producing import values
from tests.support.proxy import Proxy

DRIVERS = True  # every test runs with threads and with asyncio

PATIENCE = 10.0
"""Seconds; it takes up to one where the old addresses refuse, and four where they are silent. A
client that waits for metadata.recovery.rebootstrap.trigger.ms takes 300."""


@pytest.fixture(name="kafka", params=[1, 3], ids=["one broker", "three brokers"])
def cluster_that_moves(request: pytest.FixtureRequest) -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(brokers=request.param) as kafka:
        kafka.create_topic("t")
        yield kafka


@pytest.fixture
def front(kafka: EmbeddedKafka) -> Iterator[Proxy]:
    """The bootstrap address, which no broker advertises."""
    with front_of(kafka) as front:
        yield front


@pytest.fixture
def client_of(front: Proxy) -> Iterator[Callable[..., Any]]:
    """Makes clients that know the front, and are closed in the end; short waits between tries."""
    made: list[Any] = []

    def make(kind: type[Any], **config: object) -> Any:
        quick = {"retry.backoff.ms": 20, "retry.backoff.max.ms": 100, "reconnect.backoff.ms": 20}
        made.append(kind({"bootstrap.servers": front.bootstrap, **quick, **config}))
        return made[-1]

    yield make
    for one in made:
        one.close(0)


def test_a_producer_finds_brokers_that_moved(
    kafka: EmbeddedKafka, front: Proxy, client_of: Callable[..., Any], producer_class: Any
) -> None:
    producer = client_of(producer_class)
    producer.send("t", b"before").result(PATIENCE)
    with moved(kafka, front):
        producer.send("t", b"after").result(PATIENCE)
    assert values(kafka, "t") == [b"before", b"after"]


def test_a_producer_finds_brokers_that_moved_from_addresses_that_hang(
    kafka: EmbeddedKafka, front: Proxy, client_of: Callable[..., Any], producer_class: Any
) -> None:
    endless = {"socket.connection.setup.timeout.ms": 600_000}
    producer = client_of(producer_class, **endless)
    producer.send("t", b"before").result(PATIENCE)
    with moved(kafka, front, hangs=True):
        producer.send("t", b"after").result(PATIENCE)
    assert values(kafka, "t") == [b"before", b"after"]


def test_a_reader_finds_brokers_that_moved(
    kafka: EmbeddedKafka, front: Proxy, client_of: Callable[..., Any], consumer_class: Any
) -> None:
    consumer = client_of(consumer_class, **{"auto.offset.reset": "earliest"})
    consumer.assign(partitions_of("t", 1))
    fill(kafka, "t", 10)
    read(consumer, 10, timeout=PATIENCE)
    with moved(kafka, front):
        fill(kafka, "t", 10)
        read(consumer, 10, timeout=PATIENCE)


@pytest.mark.parametrize("hangs", [False, True], ids=["refused", "silent"])
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_finds_a_coordinator_that_moved(
    kafka: EmbeddedKafka,
    front: Proxy,
    client_of: Callable[..., Any],
    consumer_class: Any,
    protocol: str,
    hangs: bool,
) -> None:
    endless = {"socket.connection.setup.timeout.ms": 600_000}
    member = {"group.id": "g", "group.protocol": protocol, "auto.offset.reset": "earliest"}
    consumer = client_of(consumer_class, **member, **endless)
    consumer.subscribe("t")
    poll_until([consumer], lambda: bool(consumer.assignment()))
    fill(kafka, "t", 10)
    read(consumer, 10, timeout=PATIENCE)
    with moved(kafka, front, hangs=hangs):
        fill(kafka, "t", 10)
        read(consumer, 10, timeout=PATIENCE)
        consumer.commit(timeout=PATIENCE)
    assert kafka.committed("g") == {("t", 0): 20}
