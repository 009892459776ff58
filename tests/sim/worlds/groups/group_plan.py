"""What a seed decides before a group's world begins: cluster, members, their users, the faults."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from kafka_fast.testing.broker.groups.settings import GroupSettings
from tests.sim.worlds.guard import LIFETIMES_MS, LoginPlan, make_login_plan
from tests.sim.worlds.plan import NetworkPlan, TopicPlan, make_network

ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
CONSUMER_SESSION_MS = 2_000
BROKER_SETTINGS = GroupSettings(
    offsets_partitions=3,
    min_session_timeout_ms=1_000,
    consumer_session_timeout_ms=CONSUMER_SESSION_MS,
    consumer_heartbeat_interval_ms=400,
    consumer_assignment_interval_ms=100,
)
"""With Kafka's own times worlds would only last longer."""

WAYS = ("poll", "iterate", "batches")
HABITS = ("seek", "pause", "ask", "rebalance", "resubscribe")
COMMITS = ("auto", "sync", "async", "record", "listener")
RESETS = ("earliest", "earliest", "latest", "none", "by_duration:PT2S")
PATTERN = "topic-.*"
SLOW = 0.005
"""Seconds of latency from which on a login takes long."""


CANCELS = (None, None, 0.0, 0.02, 0.1)


@dataclass(frozen=True, slots=True)
class UserPlan:
    """One user, who runs one consumer after the other."""

    begins: float
    """Seconds after the world's beginning."""
    commits: str
    """When offsets are committed: one of COMMITS."""
    ways: dict[str, float]
    """How records are taken: weights of WAYS."""
    habits: dict[str, float]
    """What else happens between two polls, with what probability: HABITS."""
    work: float
    """Seconds that the records of a poll take, at most."""
    slow: float
    """Of all polls: that the work takes longer than max.poll.interval.ms."""
    life: float
    """Seconds from a consumer's beginning to its end, about."""
    crashes: float
    """Of all ends: that it is a kill -9."""
    absence: float
    """Seconds between a consumer's end and the next one's beginning, at most."""
    instance: str | None
    config: dict[str, Any]
    cancels: float | None = None
    """Of all waits: that the user's task is cancelled in it. None: the consumer is a blocking one.
    """


@dataclass(frozen=True, slots=True)
class GroupPlan:
    """One world with a group."""

    seed: int
    nodes: int
    version: str
    topics: tuple[TopicPlan, ...]
    config: dict[str, Any]
    """That all members have."""
    users: tuple[UserPlan, ...]
    network: NetworkPlan
    records: int
    duration: float
    """Seconds over which records are written, members come and go, and the faults strike."""
    faults: int
    storm: float
    grows: bool
    """A topic gets more partitions."""
    trims: int = 0
    """How often retention deletes records of a partition, read or not."""
    recreations: int = 0
    """How often a topic is deleted and made anew."""
    pattern: str | None = None
    """What all members subscribe to instead of names; the broker matches it if it is RE2's."""
    broker_side: bool = False
    new_topics: int = 0
    """That appear later, and match the pattern."""
    changes_mind: float = 0.0
    """Of all steps of a user: that other topics are subscribed to, in the place of those before."""
    holds_gil: float = 0.0
    """Of all steps of a user: that C code keeps the GIL for longer than a session lasts."""
    is_calm: bool = False
    """Nothing breaks: whoever leaves the group does so by itself."""
    gaps: float = 0.0
    """Of all batches: that it leaves a gap of offsets before it, as compaction does."""
    style: dict[str, float] = field(default_factory=dict)
    logins: LoginPlan | None = None
    """How clients log in; None: they do not."""


def make_group_plan(seed: int) -> GroupPlan:
    """Return the plan of a seed."""
    source = random.Random(f"group plan/{seed}")
    nodes = source.choice((1, 2, 3))
    calm = source.random() < 0.15
    duration = source.choice((1.0, 3.0, 6.0, 12.0))
    is_consumer_protocol = source.random() < 0.35
    config = _config(source, nodes, is_consumer_protocol=is_consumer_protocol)
    version = source.choice(("newest", "newest", "newest", "2.1", "2.8", "3.9"))
    count = source.choice((1, 2, 2, 3, 3, 4, 6))
    if is_consumer_protocol:
        version = "newest"
    static = source.random() < 0.25 and version != "2.1"  # KIP-345 came with 2.3
    # A static leader that returns does not assign, and so cannot know what has grown meanwhile
    # (KIP-814 only lets it watch from then on).
    may_grow = is_consumer_protocol or not static
    changes = random.Random(f"group changes/{seed}")
    trims = changes.choice((0, 0, 3, 10))
    config["auto.offset.reset"] = changes.choice(RESETS) if trims else "earliest"
    # Where reading may jump, the checker goes by what brokers tell: nobody else is to ask them.
    may_look = config["auto.offset.reset"] in ("earliest", "none")
    pattern = PATTERN if may_grow and changes.random() < 0.25 else None
    topics = tuple(
        TopicPlan(
            f"topic-{number}", source.choice((1, 2, 3, 5)), source.randint(1, nodes), 1_048_588
        )
        for number in range(source.choice((1, 1, 2)))
    )
    minds = random.Random(f"group minds/{seed}")
    grips = random.Random(f"group grips/{seed}")
    may_choose = pattern is None and len(topics) > 1
    holds_gil = grips.choice((0.0, 0.05, 0.2) if calm else (0.0, 0.0, 0.0, 0.05))
    users = tuple(
        _user(
            source,
            number,
            duration,
            static=static,
            may_look=may_look,
            cancels=random.Random(f"group tasks/{seed}/{number}").choice(CANCELS),
        )
        for number in range(count)
    )
    network = make_network(source, calm=calm)
    return GroupPlan(
        seed=seed,
        nodes=nodes,
        version=version,
        topics=topics,
        config=config,
        users=users,
        network=network,
        records=source.choice((20, 60, 200)),
        duration=duration,
        faults=0 if calm else source.choice((0, 1, 2, 4, 8)),
        storm=0.0 if calm else source.choice((0.0, 0.0, 0.0, 0.05, 0.2)),
        grows=source.random() < 0.2 and may_grow,
        gaps=source.choice((0.0, 0.0, 0.3)),
        trims=trims,
        # Before OffsetCommit 10 commits go by name, and brokers cannot tell one from the next.
        recreations=changes.choice((0, 0, 1, 2)) if version == "newest" else 0,
        pattern=pattern,
        broker_side=pattern is not None and is_consumer_protocol and changes.random() < 0.5,
        new_topics=changes.choice((1, 2)) if pattern is not None else 0,
        changes_mind=minds.choice((0.0, 0.0, 0.02, 0.1)) if may_choose else 0.0,
        holds_gil=holds_gil,
        is_calm=calm,
        logins=_logins(seed, network, calm=calm, outlasts=calm and holds_gil > 0),
    )


def _logins(seed: int, network: NetworkPlan, *, calm: bool, outlasts: bool) -> LoginPlan | None:
    """Return how members log in, if they do.

    They must not spend their time with it: over a slow network a login takes as long as a group's
    session.

    Args:
        seed: of the world.
        network: of the world.
        calm: nothing breaks.
        outlasts: whether no broker ends a login within the world. For nobody may be expelled where
            users hold the GIL; heartbeats do without it, but to log in again needs Python.
    """
    lifetimes: tuple[int, ...] = LIFETIMES_MS if network.latency < SLOW else (0, 5_000, 60_000)
    if outlasts:
        lifetimes = (0, 60_000)
    return make_login_plan(seed, calm=calm, lifetimes_ms=lifetimes)


def _config(source: random.Random, nodes: int, *, is_consumer_protocol: bool) -> dict[str, Any]:
    listed = source.sample(range(1, nodes + 1), source.randint(1, nodes))
    session = source.choice((1_000, 2_000, 6_000))
    assignor = source.choice(ASSIGNORS)
    strategy = source.choice((assignor, assignor, assignor, "range,cooperative-sticky"))
    protocol: dict[str, Any] = {
        "partition.assignment.strategy": strategy,
        "session.timeout.ms": session,
        "heartbeat.interval.ms": session // source.choice((3, 5)),
    }
    if is_consumer_protocol:
        assignor = source.choice(("uniform", "range"))
        protocol = {"group.protocol": "consumer", "group.remote.assignor": assignor}
    return {
        **protocol,
        "bootstrap.servers": ",".join(f"node-{node}:{9000 + node}" for node in listed),
        "group.id": "group",
        "max.poll.interval.ms": source.choice((3_000, 5_000, 20_000)),
        "auto.commit.interval.ms": source.choice((0, 100, 1_000)),
        "isolation.level": source.choice(("read_uncommitted", "read_committed")),
        "fetch.max.wait.ms": source.choice((50, 100, 500)),
        "fetch.min.bytes": source.choice((1, 1, 200)),
        "fetch.max.bytes": source.choice((300, 5_000, 1_048_576)),
        "max.partition.fetch.bytes": source.choice((100, 1_000, 1_048_576)),
        "fetch.buffer.bytes": source.choice((2_000_000, 64_000_000)),
        "request.timeout.ms": source.choice((800, 1_500, 5_000)),  # beyond fetch.max.wait.ms
        "default.api.timeout.ms": source.choice((1_000, 5_000)),
        "retry.backoff.ms": source.choice((5, 50)),
        "retry.backoff.max.ms": 500,
        "reconnect.backoff.ms": source.choice((0, 50)),
        "reconnect.backoff.max.ms": 500,
        "socket.connection.setup.timeout.ms": source.choice((500, 5_000)),
        "metadata.max.age.ms": source.choice((500, 3_000)),  # topics grow
        "connections.max.idle.ms": source.choice((500, 540_000)),
    }


def _user(
    source: random.Random,
    number: int,
    duration: float,
    *,
    static: bool,
    may_look: bool,
    cancels: float | None,
) -> UserPlan:
    commits = source.choice(COMMITS)
    return UserPlan(
        begins=0.0 if number == 0 else source.random() * duration * 0.7,
        commits=commits,
        ways={way: source.choice((0.0, 0.3, 1.0)) for way in WAYS},
        habits={
            habit: often if may_look or habit not in ("seek", "ask") else 0.0
            for habit in HABITS
            for often in (source.choice((0.0, 0.0, 0.02, 0.1)),)
        },
        work=source.choice((0.0, 0.01, 0.2)),
        slow=source.choice((0.0, 0.0, 0.02)),
        life=source.choice((duration / 5, duration / 2, duration * 2)),
        crashes=source.choice((0.0, 0.5, 1.0)),
        absence=source.choice((0.05, 0.5, 3.0)),
        instance=f"instance-{number}" if static else None,
        config={
            "enable.auto.commit": commits == "auto",
            "max.poll.records": source.choice((1, 10, 500)),
        },
        cancels=cancels,
    )
