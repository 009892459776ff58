"""Any number from 0 to 2**31 - 1 is a broker's id: none of them says what a connection is for."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_fast import Consumer, Producer, TopicPartition
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.embedded.consuming import read
from tests.waiting import TIMEOUT, eventually

SMALL = 7
HOUR_MS = 3_600_000


@pytest.fixture(params=[0, 2**29 + SMALL, 2**30 + SMALL, 2**31 - 1])
def node_id(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def kafka(node_id: int) -> Iterator[EmbeddedKafka]:
    """Two brokers; the first one coordinates all groups, the second one leads topic "t"."""
    with EmbeddedKafka(2, node_ids=[SMALL, node_id]) as kafka:
        kafka.create_topic("t")
        kafka.move_leader("t", 0, node_id)
        with Consumer(bootstrap_servers=kafka.bootstrap, group_id="g") as first:
            first.committed([TopicPartition("t", 0)])  # makes the topic of the groups' offsets
        kafka.on_cluster(lambda cluster: cluster.move_coordinator("g", SMALL))
        yield kafka


@pytest.fixture
def consumer(kafka: EmbeddedKafka) -> Iterator[Consumer]:
    """Belongs to the group; no Fetch that finds nothing is answered while the test runs."""
    with Consumer(
        bootstrap_servers=kafka.bootstrap,
        group_id="g",
        auto_offset_reset="earliest",
        fetch_max_wait_ms=HOUR_MS,
        default_api_timeout_ms=int(TIMEOUT * 1000),
    ) as consumer:
        yield consumer


def produce(kafka: EmbeddedKafka, count: int) -> None:
    with Producer(bootstrap_servers=kafka.bootstrap) as producer:
        producer.send_many("t", [b"value"] * count).result(TIMEOUT)


def test_a_group_reads_what_was_written(
    kafka: EmbeddedKafka, consumer: Consumer, node_id: int
) -> None:
    """Regression: 2**29 + 7 and 2**30 + 7 were taken for 7's other connections, or overflowed."""
    partition = TopicPartition("t", 0)
    produce(kafka, 10)
    consumer.subscribe(["t"])
    assert len(read(consumer, 10)) == 10
    eventually(lambda: consumer.metrics()["fetches"] >= 2, "the Fetch that finds nothing")
    for _ in range(2):
        consumer.commit()
        assert consumer.end_offsets([partition]) == {partition: 10}
        assert consumer.committed([partition])[partition].offset == 10
    assert consumer.metrics()["link_failures"] == 0, "each connection led where it should"
    assert consumer.metrics()["links_closed"] == {}


def test_what_counts_as_a_nodes_is_its_own(
    kafka: EmbeddedKafka, consumer: Consumer, node_id: int
) -> None:
    produce(kafka, 1)
    consumer.subscribe(["t"])
    read(consumer, 1)
    assert set(consumer.metrics()["nodes"]) == {-1, SMALL, node_id}
