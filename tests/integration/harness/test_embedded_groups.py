"""The peers' consumers in groups of the embedded broker: they share, commit and go on."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Protocol

import confluent_kafka
import pytest
from aiokafka import AIOKafkaConsumer

from kafka_fast.record import RecordBatchBuilder
from kafka_fast.testing.broker.groups.settings import GroupSettings
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.waiting import eventually

# The peers' own warnings are theirs; kafka-python warns already when it is imported.
pytestmark = pytest.mark.filterwarnings("ignore")

PARTITIONS = 4
COUNT = 50  # records in each partition
TIMEOUT = 60


@pytest.fixture
def broker() -> Iterator[EmbeddedKafka]:
    """Two brokers, and a topic with records in each of its partitions."""
    groups = GroupSettings(consumer_assignment_interval_ms=100, consumer_heartbeat_interval_ms=200)
    with EmbeddedKafka(brokers=2, groups=groups) as made:
        made.create_topic("t", partitions=PARTITIONS)
        fill(made, 0)
        yield made
    gc.collect()  # sockets that a peer left open are complained of here, not in another test


def fill(broker: EmbeddedKafka, first: int) -> None:
    """Put records with the values `first`, `first + 1`, ... into each partition."""
    for partition in range(PARTITIONS):
        builder = RecordBatchBuilder()
        for number in range(first, first + COUNT):
            builder.append(None, b"%d-%d" % (partition, number), 0)
        data = builder.build()
        broker.on_cluster(lambda cluster, p=partition, d=data: cluster.plant("t", p, d))  # type: ignore[misc]


def all_values(first: int) -> set[bytes]:
    numbers = range(first, first + COUNT)
    return {b"%d-%d" % (p, number) for p in range(PARTITIONS) for number in numbers}


class Peer(Protocol):
    """One consumer of a peer in the group."""

    def read(self) -> list[bytes]: ...
    def close(self) -> None: ...


class Sharer(Peer, Protocol):
    """One that tells how many partitions it has, and rebalances in that call."""

    def owned(self) -> int: ...


class Confluent:
    """librdkafka's consumer."""

    def __init__(self, bootstrap: str, **options: str) -> None:
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "g",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "heartbeat.interval.ms" if "group.protocol" not in options else "retries": 200,
                **options,
            }
        )
        self._consumer.subscribe(["t"])

    def read(self) -> list[bytes]:
        messages = self._consumer.consume(100, 0.1)
        values = [message.value() or b"" for message in messages if message.error() is None]
        if values:
            self._consumer.commit(asynchronous=False)
        return values

    def owned(self) -> int:
        self._consumer.poll(0)
        return len(self._consumer.assignment())

    def close(self) -> None:
        self._consumer.close()


def confluent(bootstrap: str) -> Sharer:
    return Confluent(bootstrap)


def confluent_cooperative(bootstrap: str) -> Sharer:
    return Confluent(bootstrap, **{"partition.assignment.strategy": "cooperative-sticky"})


def confluent_consumer_protocol(bootstrap: str) -> Sharer:
    return Confluent(bootstrap, **{"group.protocol": "consumer"})


class KafkaPython:
    """kafka-python's consumer.

    An answer to SyncGroup that comes when the time of its poll is up is never looked at (3.0.12):
    the member has nothing, sends no heartbeat, and is gone after its session. So polls last longer.
    """

    POLL_MS = 2_000

    def __init__(self, bootstrap: str) -> None:
        from kafka import KafkaConsumer

        self._consumer = KafkaConsumer(
            "t",
            bootstrap_servers=bootstrap,
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=1_000,
            session_timeout_ms=6_000,  # for as long its place is kept if its goodbye is lost
            metadata_max_age_ms=1000,  # it may assign before it knows the topic, and tries again
        )

    def read(self) -> list[bytes]:
        polled = self._consumer.poll(timeout_ms=self.POLL_MS)
        values = [record.value for records in polled.values() for record in records]
        if values:
            self._consumer.commit()
        return values

    def owned(self) -> int:
        self._consumer.poll(timeout_ms=self.POLL_MS)
        return len(self._consumer.assignment())

    def close(self) -> None:
        self._consumer.close()


class Aiokafka:
    """aiokafka's consumer, in a loop of its own that runs while it is asked."""

    def __init__(self, bootstrap: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._run = self._loop.run_until_complete

        async def start() -> AIOKafkaConsumer:
            consumer = AIOKafkaConsumer(
                "t",
                bootstrap_servers=bootstrap,
                group_id="g",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                heartbeat_interval_ms=200,
            )
            await consumer.start()
            return consumer

        self._consumer = self._run(start())

    def read(self) -> list[bytes]:
        async def step() -> list[bytes]:
            polled = await self._consumer.getmany(timeout_ms=100)
            values = [record.value for records in polled.values() for record in records]
            if values:
                await self._consumer.commit()
            return values

        return self._run(step())

    def close(self) -> None:
        self._run(self._consumer.stop())
        self._loop.close()


NewPeer = Callable[[str], Peer]
NewSharer = Callable[[str], Sharer]
SHARERS: list[NewSharer] = [
    confluent,
    confluent_cooperative,
    confluent_consumer_protocol,
    KafkaPython,
]
PEERS: list[NewPeer] = [*SHARERS, Aiokafka]


def read_all(first: int, *peers: Peer) -> None:
    """Let peers read until all records are there; what was committed does not come again."""
    values: list[bytes] = []

    def step() -> bool:
        for peer in peers:
            values.extend(peer.read())
        return len(values) >= COUNT * PARTITIONS

    eventually(step, f"the records from {first} on", timeout=TIMEOUT)
    assert set(values) == all_values(first)
    assert len(values) == len(set(values))


@pytest.mark.parametrize("new_peer", PEERS)
def test_peers_read_commit_and_go_on(broker: EmbeddedKafka, new_peer: NewPeer) -> None:
    with closing(new_peer(broker.bootstrap)) as peer:
        read_all(0, peer)
    assert broker.on_cluster(lambda cluster: cluster.committed("g")) == {
        ("t", partition): COUNT for partition in range(PARTITIONS)
    }
    fill(broker, COUNT)
    with closing(new_peer(broker.bootstrap)) as again:
        read_all(COUNT, again)


@pytest.mark.parametrize("new_peer", SHARERS)
def test_peers_share(broker: EmbeddedKafka, new_peer: NewSharer) -> None:
    with closing(new_peer(broker.bootstrap)) as first:
        read_all(0, first)
        with closing(new_peer(broker.bootstrap)) as second:
            # Asked one after the other, kafka-python's may rejoin forever: each does something for
            # the group only while it is asked.
            with ThreadPoolExecutor(2) as threads:

                def shared() -> bool:
                    owned = threads.map(lambda peer: peer.owned(), (first, second))
                    return list(owned) == [PARTITIONS // 2] * 2

                eventually(shared, "an even share", timeout=TIMEOUT)
            fill(broker, COUNT)
            read_all(COUNT, first, second)
        eventually(lambda: first.owned() == PARTITIONS, "all partitions", timeout=TIMEOUT)


# kafka-python leaks a socket with each connection that is refused: later tests would hear of them.
@pytest.mark.parametrize("new_peer", [one for one in PEERS if one is not KafkaPython])
def test_peers_find_another_coordinator(broker: EmbeddedKafka, new_peer: NewPeer) -> None:
    with closing(new_peer(broker.bootstrap)) as peer:
        read_all(0, peer)
        broker.kill(broker.on_cluster(lambda cluster: cluster.coordinator("g")))
        fill(broker, COUNT)
        read_all(COUNT, peer)
