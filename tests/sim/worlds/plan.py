"""What a seed decides before its world begins: the cluster, the client's configuration, the faults.

A plan is plain data. It is drawn so that a hundred seeds touch every setting and fault, most of
them in combinations that nobody would write down.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kafka_fast.testing.broker.versions import KAFKA_2_1, KAFKA_2_8, KAFKA_3_9
from tests.sim.worlds.checker import Promises
from tests.sim.worlds.guard import LoginPlan, make_login_plan

SLACK = 1.0
"""Seconds beyond delivery.timeout.ms within which everything must have ended."""

VERSIONS: dict[str, Mapping[int, tuple[int, int]]] = {
    "newest": {},
    "2.1": KAFKA_2_1,
    "2.8": KAFKA_2_8,
    "3.9": KAFKA_3_9,
}
CODECS = ("gzip", "snappy", "lz4", "zstd")
TASK_WAYS = ("task", "task_many")
WAYS = ("kept", "dropped", "read", "callback", "nowait", "nowait_callback", "many", "columns")


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """One topic."""

    name: str
    partitions: int
    replication_factor: int
    max_message_bytes: int


@dataclass(frozen=True, slots=True)
class NetworkPlan:
    """How the network behaves while it works."""

    latency: float
    """Seconds one way."""
    jitter: float
    choppiness: int
    """Of 256 reads and writes, how many handle only a part."""
    cut_probability: float
    """Of a connection: that it breaks after some number of bytes."""
    refuse_probability: float
    hang_probability: float
    """Of an attempt to connect: that nothing ever answers."""
    lookup_failure_probability: float
    hiccup_probability: float
    """Of a plane's turn: that its thread gets the processor late."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One world."""

    seed: int
    nodes: int
    version: str
    topics: tuple[TopicPlan, ...]
    config: dict[str, Any]
    network: NetworkPlan
    records: int
    duration: float
    """Seconds over which the users send, and the faults strike."""
    faults: int
    """How many strike."""
    storm: float
    """Of all requests, how many go wrong besides; 0: no storm."""
    recreates_topics: bool
    forgets_producers: bool
    closes_early: bool
    """The client is shut down while records are on their way."""
    first_epoch: int = 0
    """Of each new producer id; the last one that a client may use is 32,766."""
    first_sequence: int = 0
    """Of the first identity in each partition; they wrap after 2**31 - 1."""
    style: dict[str, float] = field(default_factory=dict)
    """How the users send: weights of the ways, see users.py."""
    cancels: float = 0.0
    """Of all waits in calls of asyncio's producer, how many end with a cancellation."""
    task_flushes: tuple[float, ...] = ()
    """When tasks flush: seconds from the beginning."""
    logins: LoginPlan | None = None
    """How clients log in; None: they do not."""

    @property
    def recovery(self) -> float:
        """Seconds after which a client has noticed what was broken, and gone on.

        An answer may be missing, then a connection that is made for the next try. A pause between
        tries is a second at most; with a login there are several tries.
        """
        config = self.config
        timeouts = config["request.timeout.ms"] + config["socket.connection.setup.timeout.ms"]
        return float(2 * timeouts / 1000 + 10.0)

    @property
    def promises(self) -> Promises:
        """What holds in this world."""
        config = self.config
        idempotent = config["enable.idempotence"]
        intact = not self.recreates_topics
        one_in_flight = config["max.in.flight.requests.per.connection"] == 1
        return Promises(
            acknowledged_is_written=config["acks"] != "0" and intact,
            once=(idempotent and not self.forgets_producers and intact)
            or (config["retries"] == 0 and intact),
            ordered=(idempotent and not self.forgets_producers and intact)
            or (config["retries"] == 0 and one_in_flight and intact),
            refused_is_absent=True,
            delivery_timeout=config["delivery.timeout.ms"] / 1000 + SLACK,
        )


def make_plan(seed: int) -> Plan:
    """Return the plan of a seed."""
    source = random.Random(f"plan/{seed}")
    nodes = source.choice((1, 2, 3, 3, 4))
    version = source.choice(("newest", "newest", "newest", "2.1", "2.8", "3.9"))
    calm = source.random() < 0.1
    duration = source.choice((0.05, 0.3, 1.0, 3.0, 8.0))
    # Of their own, so that the other choices of a seed stay what they were.
    tasks = random.Random(f"plan/tasks/{seed}")
    has_tasks = tasks.random() < 0.6
    return Plan(
        seed=seed,
        nodes=nodes,
        version=version,
        topics=_topics(source, nodes),
        config=_config(source, nodes),
        network=make_network(source, calm=calm),
        records=source.choice((20, 50, 100, 100, 200, 400)),
        duration=duration,
        faults=0 if calm else source.choice((0, 1, 2, 4, 8, 16)),
        storm=0.0 if calm else source.choice((0.0, 0.0, 0.0, 0.05, 0.2, 0.4)),
        recreates_topics=source.random() < 0.12,
        forgets_producers=source.random() < 0.06,
        closes_early=source.random() < 0.08,
        style={way: source.choice((0.0, 0.2, 1.0)) for way in WAYS}
        | {way: tasks.choice((0.2, 1.0, 3.0)) if has_tasks else 0.0 for way in TASK_WAYS},
        cancels=tasks.choice((0.0, 0.2, 0.6)),
        task_flushes=tuple(
            tasks.random() * duration * 1.2
            for _ in range(tasks.choice((0, 1, 3)) if has_tasks else 0)
        ),
        logins=make_login_plan(seed, calm=calm),
        first_epoch=source.choice((0, 0, 0, 32_760, 32_765, 32_766)),
        first_sequence=source.choice((0, 0, 0, 2**31 - 1, 2**31 - 3, 2**31 - 40)),
    )


def _topics(source: random.Random, nodes: int) -> tuple[TopicPlan, ...]:
    return tuple(
        TopicPlan(
            name=f"topic-{number}",
            partitions=source.choice((1, 1, 2, 3, 8)),
            replication_factor=source.randint(1, nodes),
            max_message_bytes=source.choice((1_048_588, 1_048_588, 1_048_588, 1_200, 500)),
        )
        for number in range(source.choice((1, 1, 2, 3)))
    )


def _config(source: random.Random, nodes: int) -> dict[str, Any]:
    """Return the client's configuration; every combination is one that it accepts."""
    acks = source.choice(("all", "all", "all", "all", "1", "0"))
    idempotent = acks == "all" and source.random() < 0.8
    request_timeout_ms = source.choice((400, 500, 2_000, 30_000))
    linger_ms = source.choice((0, 1, 5, 50))
    listed = source.sample(range(1, nodes + 1), source.randint(1, nodes))
    return {
        "bootstrap.servers": ",".join(f"node-{node}:{9000 + node}" for node in listed),
        "acks": acks,
        "enable.idempotence": idempotent,
        "retries": 2**31 - 1 if idempotent else source.choice((2**31 - 1, 3, 0)),
        "max.in.flight.requests.per.connection": source.choice((1, 2, 5, 5)),
        "linger.ms": linger_ms,
        "batch.size": source.choice((0, 100, 300, 1_000, 16_384)),
        "max.request.size": source.choice((400, 2_000, 1_048_576, 1_048_576)),
        "request.coalesce.bytes": source.choice((500, 5_000, 2_097_152)),
        "buffer.memory": source.choice((65_536, 300_000, 33_554_432, 33_554_432)),
        "compression.type": source.choice(("none", "none", "none", source.choice(CODECS))),
        "request.timeout.ms": request_timeout_ms,
        "delivery.timeout.ms": request_timeout_ms
        + linger_ms
        + source.choice((50, 1_000, 10_000, 120_000)),
        "retry.backoff.ms": source.choice((2, 10, 100)),
        "retry.backoff.max.ms": 1_000,
        "reconnect.backoff.ms": source.choice((0, 50)),
        "reconnect.backoff.max.ms": 1_000,
        "socket.connection.setup.timeout.ms": source.choice((500, 10_000)),
        "metadata.max.age.ms": source.choice((500, 300_000)),
        "metadata.max.idle.ms": source.choice((5_000, 300_000)),
        "connections.max.idle.ms": source.choice((200, 5_000, 540_000)),
        "partitioner.availability.timeout.ms": source.choice((0, 0, 100)),
        "partitioner.adaptive.partitioning.enable": source.random() < 0.5,
    }


def make_network(source: random.Random, *, calm: bool) -> NetworkPlan:
    """Return a network; a calm one breaks nothing by itself."""

    def sometimes(probability: float) -> float:
        return 0.0 if calm or source.random() < 0.6 else probability

    return NetworkPlan(
        latency=source.choice((0.00005, 0.0005, 0.005, 0.03)),
        jitter=source.choice((0.0, 0.5, 3.0)),
        choppiness=source.choice((0, 0, 20, 100, 250)),
        cut_probability=sometimes(0.4),
        refuse_probability=sometimes(0.2),
        hang_probability=sometimes(0.1),
        lookup_failure_probability=sometimes(0.2),
        hiccup_probability=source.choice((0.0, 0.02, 0.2)),
    )
