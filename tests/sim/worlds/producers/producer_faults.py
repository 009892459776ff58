"""The faults of a world with a producer: what Produce and InitProducerId may answer."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from kafka_fast.errors import (
    BrokerError,
    CorruptMessage,
    DuplicateSequenceNumber,
    InvalidProducerEpoch,
    InvalidRecord,
    KafkaStorageError,
    NetworkException,
    NotEnoughReplicas,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    OutOfOrderSequenceNumber,
    RequestTimedOut,
    TopicAuthorizationFailed,
    UnknownProducerId,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from kafka_fast.testing.broker.cluster import Cluster
from kafka_fast.testing.broker.versions import INIT_PRODUCER_ID, METADATA, PRODUCE
from tests.sim.worlds.clock import Clock
from tests.sim.worlds.faults import FaultScript
from tests.sim.worlds.network import Network
from tests.sim.worlds.plan import Plan, TopicPlan

# Of a Produce answer. The log has nothing of the batch.
REFUSED: tuple[type[BrokerError], ...] = (
    CorruptMessage,
    InvalidRecord,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    KafkaStorageError,
    TopicAuthorizationFailed,
    UnknownServerError,
    UnknownTopicOrPartition,
)
# The log has the batch although the answer is an error, as Kafka's leader may say it.
APPENDED: tuple[type[BrokerError], ...] = (
    DuplicateSequenceNumber,
    KafkaStorageError,
    NetworkException,
    NotEnoughReplicasAfterAppend,
    NotLeaderOrFollower,
    RequestTimedOut,
    UnknownServerError,
)
# Sequence errors out of the blue: from a broker that has lost what it knew of the producer. Of a
# batch that may be in the log they say that it is not; here that may be wrong.
SEQUENCE: tuple[type[BrokerError], ...] = (
    InvalidProducerEpoch,
    OutOfOrderSequenceNumber,
    UnknownProducerId,
)


class ProducerFaults(FaultScript):
    """See `FaultScript`."""

    apis = (PRODUCE, METADATA, INIT_PRODUCER_ID)

    def __init__(
        self,
        clock: Clock,
        plan: Plan,
        cluster: Cluster,
        network: Network,
        source: random.Random,
        log: Callable[[str], None],
    ) -> None:
        """Plan all strikes; see `FaultScript`."""
        super().__init__(clock, plan, cluster, network, source, log)
        if plan.recreates_topics:
            clock.after(source.random() * plan.duration, lambda: self._do(self._recreate))
        if plan.forgets_producers:
            clock.after(source.random() * plan.duration, lambda: self._do(self._forget_producers))

    def _strikes(self) -> list[Callable[[], str]]:
        own = [self._refuse, self._fail_after_append, self._fail_producer_id]
        return [*super()._strikes(), *own]

    # ---- what brokers answer ----

    def _refuse(self) -> str:
        error = self._source.choice(REFUSED)
        self._cluster.faults.error(PRODUCE, error, **self._partition())
        return f"Produce refused with {error.__name__}"

    def _fail_after_append(self) -> str:
        error = self._source.choice(APPENDED)
        self._cluster.faults.error(PRODUCE, error, applied=True, **self._partition())
        return f"Produce answered with {error.__name__} after the append"

    def _fail_producer_id(self) -> str:
        self._cluster.faults.error(INIT_PRODUCER_ID, 14, **self._where())  # loading
        return "InitProducerId refused"

    def _storm(self) -> str:
        """Two or three kinds of failure that go on until all is healed."""
        faults, often = self._cluster.faults, self._plan.storm
        refused, appended = self._source.choice(REFUSED), self._source.choice(APPENDED)
        kinds: list[Callable[[], object]] = [
            lambda: faults.error(PRODUCE, refused, probability=often),
            lambda: faults.error(PRODUCE, appended, applied=True, probability=often),
            lambda: faults.drop(api=PRODUCE, applied=True, close=True, probability=often),
            lambda: faults.drop(api=PRODUCE, applied=False, probability=often / 4),
            lambda: faults.delay(self._span(), api=PRODUCE, probability=often),
            lambda: faults.cut(self._source.randrange(60), probability=often / 2),
        ]
        return f"storm of {self._unleash(kinds)}, {refused.__name__}, {appended.__name__}"

    # ---- what weakens the promises ----

    def _recreate(self) -> str:
        """Delete a topic, and create it with other leaders, perhaps more partitions or fewer."""
        topic = self._source.choice(self._plan.topics)
        count = self._source.choice((1, topic.partitions, topic.partitions, 5))
        shift = self._source.randrange(self._plan.nodes)
        again = partial(self._create, replace(topic, partitions=count), shift)
        self._cluster.delete_topic(topic.name)
        self._clock.after(self._source.choice((0.0, 0.1, 1.0)), again)
        return f"{topic.name} deleted"

    def _mend(self) -> None:
        for topic in self._plan.topics:
            self._create(topic)

    def _create(self, topic: TopicPlan, shift: int = 0) -> None:
        """Create a topic, unless it is there; the leaders begin with the `shift`th node."""
        live = [node.node_id for node in self._cluster.state.live_nodes]
        if topic.name in self._cluster.state.topics or not live:
            return
        nodes = deque(live)
        nodes.rotate(-shift)
        assignment = {}
        for index in range(topic.partitions):
            assignment[index] = list(nodes)[: topic.replication_factor]
            nodes.rotate(-1)
        self._cluster.create_topic(
            topic.name,
            assignment=assignment,
            config={"max.message.bytes": str(topic.max_message_bytes)},
        )
        self._log(f"{topic.name} created: {assignment}")

    def _forget_producers(self) -> str:
        """A partition forgets its producers; with luck one of them hears of it in other words."""
        for topic in self._cluster.state.topics.values():
            for partition in topic.partitions:
                partition.producers.__init__()  # type: ignore[misc]
        error = self._source.choice(SEQUENCE)
        if self._source.random() < 0.5:
            self._cluster.faults.error(PRODUCE, error, count=1)
        return f"producers forgotten, {error.__name__}"
