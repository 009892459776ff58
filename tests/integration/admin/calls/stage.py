"""Where each call of `Admin` is tried: on real Kafka of any version, and on the embedded broker.

A play is a function of the call's name. It prepares what the call needs, makes the call, and checks
what that has done. What a play needs besides the call itself is older than the call, so on a broker
that is too old it is the call that fails.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import confluent_kafka

from kafka_fast import Admin, Consumer, Producer, TopicPartition
from kafka_fast.admin import NewTopic
from kafka_fast.testing._kafka.installation import Node
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.waiting import eventually

RECORDS = 10
"""How many the first partition of `Stage.topic_with_records` has."""
TIMEOUT = 30.0


class Stage:
    """One cluster, and an admin client that may do everything."""

    def __init__(
        self,
        admin: Admin,
        properties: Mapping[str, Any],
        peer_properties: Mapping[str, Any],
        *,
        kafka: RealKafka | None,
        replication: int = 1,
    ) -> None:
        """Take the cluster.

        Args:
            admin: makes the calls.
            properties: of clients of this package.
            peer_properties: of clients of librdkafka.
            kafka: the cluster, if it is real.
            replication: how many replicas topics have.
        """
        self.admin = admin
        self.kafka = kafka
        self.replication = replication
        self.properties = dict(properties)
        self.peer_properties = dict(peer_properties)
        self._controller: Node | None = None

    def has(self, version: str) -> bool:
        """Return whether the brokers are of this version of Kafka, or a later one."""
        return self.kafka is not None and _numbers(self.kafka.release.version) >= _numbers(version)

    @property
    def has_kraft(self) -> bool:
        """Whether the brokers have no ZooKeeper."""
        return self.kafka is not None and self.kafka.release.kraft

    # ---- what calls are about ----

    def new_name(self, what: str = "call") -> str:
        """Return a name that nothing has."""
        return f"{what}-{uuid.uuid4().hex[:12]}"

    def new_topic(self, partitions: int = 2) -> str:
        """Create a topic that all brokers know."""
        name = self.new_name("topic")
        self.admin.create_topics([NewTopic(name, partitions, self.replication)]).raise_first()
        self.admin.wait_until_topics_visible([name])
        return name

    def topic_with_records(self) -> str:
        """Create a topic whose first partition has RECORDS records, and the second none."""
        name = self.new_topic()
        with Producer(self.properties) as producer:
            for number in range(RECORDS):
                producer.send(name, b"%d" % number, partition=0)
        return name

    def new_group(self, topic: str, offset: int) -> str:
        """Make a group without members; it has an offset in the first partition of a topic."""
        name = self.new_name("group")
        offsets = {TopicPartition(topic, 0): offset}
        self.admin.alter_consumer_group_offsets(name, offsets).raise_first()
        return name

    def controller(self) -> Node:
        """Return a running controller that is no broker, and has no vote."""
        if self._controller is None:
            assert self.kafka is not None
            self._controller = self.kafka.start_guest("controller")
        elif not self._controller.running:
            self._controller.start()
        return self._controller

    # ---- other clients ----

    @contextmanager
    def member(self, group: str, topic: str) -> Iterator[Consumer]:
        """Have a consumer in a group that has partitions."""
        config = {"group.id": group, "enable.auto.commit": False, "client.id": group}
        with Consumer({**self.properties, **config}) as consumer:
            consumer.subscribe([topic])
            eventually(lambda: consumer.poll(0.1) is not None and consumer.assignment())
            yield consumer

    @contextmanager
    def share_member(self, group: str, topic: str) -> Iterator[None]:
        """Have librdkafka's share consumer in a group."""
        consumer = confluent_kafka.ShareConsumer({**self.peer_properties, "group.id": group})
        consumer.subscribe([topic])

        def is_member() -> bool:
            consumer.poll(0.1)
            described = self.admin.describe_share_groups([group])
            return group in described.succeeded and bool(described[group].members)

        try:
            eventually(is_member, "the share consumer to join")
            yield
        finally:
            consumer.close()

    def open_transaction(self, name: str, partition: TopicPartition) -> Any:
        """Return a producer of librdkafka with an open transaction that has a record."""
        producer = confluent_kafka.Producer(
            {**self.peer_properties, "transactional.id": name, "transaction.timeout.ms": 60_000}
        )
        producer.init_transactions(TIMEOUT)
        producer.begin_transaction()
        producer.produce(partition.topic, b"x", partition=partition.partition)
        assert producer.flush(TIMEOUT) == 0
        return producer


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


Play = Callable[[Stage], None]

PLAYS: dict[str, Play] = {}
"""By the name of the call, which is the name of its function."""


def play(function: Play) -> Play:
    """Register a play."""
    PLAYS[function.__name__] = function
    return function
