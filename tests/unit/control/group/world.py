"""Group members on the embedded broker in virtual time: shipped cores, and users played by hand.

    ConsumerCore (both planes) ──► VirtualHost ──► Network ──► embedded brokers
       │ ▲ what the group wants
       ▼ │
    Member (the user's thread)

Each member plays its user: it polls every `poll_every` seconds, gives up and takes over what its
control plane asks for, and notes who owned what and when. It reads no records.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kafka_fast.config import ConsumerSettings, consumer_settings
from kafka_fast.consumer.consumer_core import ConsumerCore
from kafka_fast.control.consumer.consumer_control import ConsumerControl
from kafka_fast.control.group.group import Group
from kafka_fast.control.group.member import (
    AssignWanted,
    GroupNews,
    MemberFailed,
    RevokeWanted,
    Subscription,
)
from kafka_fast.dataplane.core._plane import DataPlane
from kafka_fast.dataplane.fetch._streams import Streams
from kafka_fast.errors import KafkaError
from kafka_fast.net.process import process_life
from kafka_fast.testing.broker.cluster import Cluster
from kafka_fast.testing.broker.state import Node, Settings
from kafka_fast.types import OffsetAndMetadata, TopicPartition
from tests.sim.worlds.clock import Clock
from tests.sim.worlds.host import VirtualHost
from tests.sim.worlds.network import Network
from tests.sim.worlds.plan import NetworkPlan

LATENCY = 0.0005
"""Seconds, at least, that bytes are on their way; half as much again at most."""

CALM = NetworkPlan(
    latency=LATENCY,
    jitter=0.5,
    choppiness=0,
    cut_probability=0.0,
    refuse_probability=0.0,
    hang_probability=0.0,
    lookup_failure_probability=0.0,
    hiccup_probability=0.0,
)
ACTIONS_MAX = 200_000


class UserlessHost(VirtualHost):
    """The virtual world under one member, whose user's thread never waits."""

    def make_streams(self, plane: DataPlane, **limits: int) -> Streams:
        """Return the plane's fetch side."""
        return Streams(plane, **limits)


class CountingCore(ConsumerCore):
    """The shipped core; what the data plane tells is counted."""

    heard = 0

    def handle_event(self, event: object, now: float) -> None:
        """Count an event."""
        self.heard += 1
        super().handle_event(event, now)


@dataclass(slots=True, eq=False)
class Member:
    """One consumer: its core, and its user."""

    name: str
    core: CountingCore
    host: UserlessHost
    settings: ConsumerSettings
    poll_every: float = 0.1
    next_poll: float = 0.0
    owned: frozenset[TopicPartition] = frozenset()
    history: list[tuple[float, str, frozenset[TopicPartition]]] = field(default_factory=list)
    errors: list[KafkaError] = field(default_factory=list)
    on_revoked: Callable[[frozenset[TopicPartition]], None] | None = None

    @property
    def control(self) -> ConsumerControl:
        """Its control plane."""
        return self.core.control

    @property
    def group(self) -> Group:
        """Its group, as it knows it."""
        assert self.core.control.group is not None
        return self.core.control.group

    @property
    def wanted(self) -> GroupNews | None:
        """What the group wants of its user next."""
        return self.core.reading.first_group_news()

    @property
    def requests(self) -> int:
        """How many requests it has sent."""
        return sum(int(node["requests"]) for node in self.core.plane.node_stats().values())

    def hold_gil(self) -> None:
        """Let no Python run: neither the user, nor the control plane."""
        self.host.hold_gil(1e9)
        self.next_poll = 1e9

    def release_gil(self, now: float) -> None:
        """Let all run again, and hear what came up."""
        self.host.hold_gil(0.0)
        self.host.wake()
        self.next_poll = now

    def kinds(self) -> list[str]:
        """Return what happened to this member, in order."""
        return [kind for _, kind, _ in self.history]


class World:
    """Brokers, members and their time."""

    def __init__(self, *, nodes: int = 1, seed: int = 0, **given: object) -> None:
        self.random = random.Random(seed)
        self.given = given
        self.cluster = Cluster(
            [Node(n, f"node-{n}", 9092 + n) for n in range(1, nodes + 1)],
            Settings(replication_factor=nodes),
            random.Random(seed + 1),
        )
        self.members: list[Member] = []
        self._clock = Clock()
        self._network = Network(
            self._clock, self.cluster, CALM, random.Random(seed + 2), lambda line: None
        )
        self._network.healthy = True

    @property
    def now(self) -> float:
        """The time."""
        return self._clock.now

    # ---- members ----

    def join(self, name: str, topics: str | list[str] | None, **given: object) -> Member:
        """Start a member that subscribes; None: one that stays outside."""
        settings = consumer_settings(
            {"bootstrap.servers": "node-1:9093", "group.id": "g"}, {**self.given, **given}
        )
        host = UserlessHost(
            self._clock,
            self._network,
            random.Random(self.random.getrandbits(32)),
            hiccup_probability=0.0,
            lookup_failure_probability=0.0,
            unix_ms_at_zero=0,
        )
        member = Member(name, CountingCore(settings, name, host), host, settings)
        self.members.append(member)
        if topics is None:
            return member
        subscription = (
            Subscription(pattern=re.compile(topics))
            if isinstance(topics, str)
            else Subscription(frozenset(topics))
        )
        member.group.member.subscribe(subscription, self.now)
        return member

    def leave(self, member: Member) -> None:
        """Close a member as its user would."""
        self._give_up(member, member.owned, "left")
        member.poll_every = 1e9
        member.next_poll = 1e9
        member.group.member.leave(self.now, lambda: None)
        self.run(0.1)
        self.kill(member)

    def kill(self, member: Member) -> None:
        """End a member as kill -9 does."""
        member.host.stop()
        member.host.port.unplug()
        member.core.closed = True
        process_life.discard(member.core)
        member.history.append((self.now, "killed", member.owned))
        member.owned = frozenset()
        self.members.remove(member)

    def commit(self, member: Member, offsets: dict[TopicPartition, int]) -> list[Any]:
        """Commit; the list gets what becomes of it."""
        answers: list[Any] = []
        member.group.commits.commit(
            {partition: OffsetAndMetadata(at) for partition, at in offsets.items()},
            answers.append,
            deadline=self.now + 60,
        )
        return answers

    # ---- time ----

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        self._network.poll_brokers()  # a test may have changed something there, as in any member
        for member in self.members:
            member.host.wake()
        for _ in range(ACTIONS_MAX):
            due = min(self._clock.next_due(), self._poll_due())
            if due > end:
                self._clock.pass_until(end)
                return
            if due < self._clock.next_due():
                self._clock.pass_until(due)
            else:
                self._clock.take()()
            for member in self.members:
                member.host.settle()
        raise AssertionError(f"busy at {self.now}: {self.describe()}")

    def run_until(self, condition: Callable[[], bool], limit: float = 60.0) -> float:
        """Let time pass until something holds; returns how long that took."""
        began = self.now
        while not condition():
            if self.now - began > limit:
                raise AssertionError(f"not within {limit} s: {self.describe()}")
            self.run(0.02)
        return self.now - began

    def stable(self, *topics: str) -> bool:
        """Whether every partition of these topics has exactly one owner."""
        every = {
            TopicPartition(topic, p.index)
            for topic in topics
            for p in self.cluster.state.topics[topic].partitions
        }
        owned = [partition for member in self.members for partition in member.owned]
        return sorted(owned) == sorted(every)

    def describe(self) -> str:
        """Return who has what."""
        return "; ".join(
            f"{m.name} {m.group.member.state} {sorted(map(str, m.owned))}" for m in self.members
        )

    # ---- one member's user ----

    def _poll_due(self) -> float:
        """Poll for each member whose user is to do so now; return when the next one is."""
        for member in self.members:
            if member.next_poll <= self.now:
                member.next_poll = self.now + member.poll_every
                self._poll(member)
        return min((member.next_poll for member in self.members), default=float("inf"))

    def _poll(self, member: Member) -> None:
        group = member.group
        member.core.plane.set_alive_until(self.now + member.settings.max_poll_interval)
        if group.member.is_paused:
            group.member.handle_polled(self.now)
        while (news := member.wanted) is not None:
            member.core.reading.drop_group_news()
            match news:
                case RevokeWanted(partitions, lost, _, _):
                    self._give_up(member, partitions, "lost" if lost else "revoked")
                    group.handle_revoked(news, self.now)
                case AssignWanted(partitions, _, _, _):
                    added = partitions - member.owned
                    member.owned = partitions
                    member.history.append((self.now, "assigned", added))
                    group.handle_assigned(news, self.now)
                case MemberFailed(error):
                    member.errors.append(error)
        member.host.wake()

    def _give_up(self, member: Member, partitions: frozenset[TopicPartition], kind: str) -> None:
        gone = member.owned & partitions
        if member.on_revoked is not None and gone:
            member.on_revoked(gone)
        member.owned -= partitions
        member.history.append((self.now, kind, gone))
