"""A simulated world with a consumer group: shipped consumers, brokers, a network, and a seed.

    users ─► Consumer ─► its core ─► VirtualHost ─► network ─► embedded brokers ◄─ records
      │                                             ▲               ▲
      └──► ledger ◄── stored offsets ──┐      faults ───────────────┘
                                       brokers

    members come and go, faults strike ─► healed: all is read and balanced ─► quiet ─► all leave

Everything is decided by the seed, so that a run can be repeated; its log is the same, byte by byte.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from kafka_fast.control.consumer.partition import FetchState
from kafka_fast.protocol.apis.records.list_offsets import ListOffsetsResponse
from kafka_fast.record import RecordBatchBuilder
from kafka_fast.testing.broker.cluster import Cluster
from kafka_fast.testing.broker.groups.classic import ClassicGroup
from kafka_fast.testing.broker.groups.generations import State
from kafka_fast.testing.broker.groups.offsets import NO_ID, CommittedOffset, GroupOffsets
from kafka_fast.testing.broker.partitions.cluster_topics import NO_LEADER
from kafka_fast.testing.broker.state import Node, Settings
from kafka_fast.testing.broker.versions import LIST_OFFSETS
from kafka_fast.types import TopicPartition
from tests.sim.worlds.clock import Clock
from tests.sim.worlds.groups.group_checker import Fault, Ledger, Wrong
from tests.sim.worlds.groups.group_faults import GROUP, GroupFaults
from tests.sim.worlds.groups.group_plan import BROKER_SETTINGS, GroupPlan, make_group_plan
from tests.sim.worlds.groups.group_users import User
from tests.sim.worlds.guard import Guard
from tests.sim.worlds.network import Network
from tests.sim.worlds.plan import VERSIONS
from tests.sim.worlds.virtual_consumer import VirtualConsumer, VirtualConsumerHost

UNIX_MS_AT_ZERO = 1_700_000_000_000
ACTIONS_MAX = 300_000
"""A world that does more than this turns in circles."""

HEALED_WAIT = 90.0
"""Seconds, once all is healed, within which the group has read everything and shares it out."""

QUIET = 2.0
"""Seconds that the group then stays as it is."""

LEAVE_WAIT = 60.0
LOOK_INTERVAL = 0.25

TRANSACTIONS = 0.15
"""Of all batches, how many are a transaction."""


@dataclass(slots=True)
class GroupResult:
    """What became of a world."""

    plan: GroupPlan
    faults: list[Fault]
    actions: int
    log: list[str] = field(default_factory=list)

    def report(self) -> str:
        """Return everything that a failure needs, the seed first."""
        lines = [f"seed {self.plan.seed}: {len(self.faults)} faults"]
        lines += [f"  {fault}" for fault in self.faults[:20]]
        lines += [f"run it again: pytest tests/sim/test_consumers.py --seed {self.plan.seed}"]
        return "\n".join([*lines, repr(self.plan), "log:", *self.log])


def run_group_seed(seed: int) -> GroupResult:
    """Run the world of a seed to its end."""
    return GroupWorld(make_group_plan(seed)).run()


class _KeptOffsets(GroupOffsets):
    """The group's offsets at the brokers; the ledger hears of each one that is stored."""

    def __init__(self, ledger: Ledger, cluster: Cluster) -> None:
        super().__init__()
        self._ledger = ledger
        self._cluster = cluster

    def commit(self, topic: str, partition: int, committed: CommittedOffset) -> None:
        super().commit(topic, partition, committed)
        if committed.topic_id in (NO_ID, self._cluster.state.topics[topic].topic_id):
            self._ledger.commit(TopicPartition(topic, partition), committed.offset)


class GroupWorld:
    """One group, its brokers, and what happens to them."""

    def __init__(self, plan: GroupPlan) -> None:
        """Build the world; nothing happens before `run`."""
        self.plan = plan
        self.log_lines: list[str] = []
        self.clock = Clock()
        reset = plan.config["auto.offset.reset"]
        self.ledger = Ledger(
            resets_jump=reset not in ("earliest", "none"), resets_fail=reset == "none"
        )
        self.cluster = _make_cluster(plan)
        self.cluster.state.offsets[GROUP] = _KeptOffsets(self.ledger, self.cluster)
        self.guard = Guard.of(plan.logins, f"guard/{plan.seed}", self.log)
        self.network = Network(
            self.clock,
            self.cluster,
            plan.network,
            random.Random(f"network/{plan.seed}"),
            self.log,
            self.guard,
        )
        self.faults = GroupFaults(
            self.clock,
            plan,
            self.cluster,
            self.network,
            random.Random(f"faults/{plan.seed}"),
            self.log,
        )
        self._source = random.Random(f"world/{plan.seed}")
        self._changes = random.Random(f"changes/{plan.seed}")
        self.users = [
            User(
                number,
                plan,
                self.clock,
                self.ledger,
                self._make_host,
                self._is_member,
                self._is_known,
                self._is_behind,
                self.log,
            )
            for number in range(len(plan.users))
        ]
        self._written = 0
        self._heal_at = self.clock.now + plan.duration * 1.25
        self._quiet_since: float | None = None
        self._quiet_turns: list[tuple[VirtualConsumerHost, int]] = []
        self._has_last = False
        self._leaving_since: float | None = None
        self._is_over = False
        for topic in plan.topics:
            self._note_partitions(topic.name)
        self._listen()

    def log(self, line: str) -> None:
        """Add a line with the virtual time to the log of this run."""
        self.log_lines.append(f"{self.clock.now:.6f} {line}")

    # ---- the run ----

    def run(self) -> GroupResult:
        """Let everything happen; returns what was wrong with it."""
        self._plan_records()
        if self.guard is not None:
            self.guard.plan_rotation(self.clock, self.plan.duration)
        self.clock.at(self._heal_at, self._heal)
        actions = 0
        try:
            while not self._is_over:
                self.clock.take()()
                actions += 1
                if actions > ACTIONS_MAX:
                    self.ledger.note(Wrong.BUSY, f"the world turns in circles at {self.clock.now}")
                    break
        finally:
            for user in self.users:
                user.abandon()
        for user in self.users:
            if user.actor is not None and user.actor.error is not None:
                self.ledger.note(Wrong.CRASHED, repr(user.actor.error))
        for violation in [] if self.guard is None else self.guard.violations:
            self.ledger.note(Wrong.LOGIN, violation)
        return GroupResult(self.plan, self.ledger.faults, actions, self.log_lines)

    def _heal(self) -> None:
        self.network.healthy = True
        self.faults.heal()
        if self.guard is not None:
            self.guard.heal()
        self._listen()  # what has healed has no scripts any more
        for partition in list(self.ledger.logs):
            self._write(partition)
        for user in self.users:
            user.calm_down()
        self.network.poll_brokers()
        self.clock.after(LOOK_INTERVAL, self._look)

    def _look(self) -> None:
        """See how far the group has come since all is healed."""
        self.clock.after(LOOK_INTERVAL, self._look)
        now = self.clock.now
        if self._leaving_since is not None:
            self._see_them_off(now - self._leaving_since)
        elif self._has_last and self._is_settled:
            self.log("all leave")
            self._leaving_since = now
            self._see_them_off(0.0)
        elif not self._is_settled:
            self._quiet_since = None
            if now > self._heal_at + HEALED_WAIT:
                owned = {reader.name: sorted(reader.owned) for reader in self.ledger.readers}
                self.ledger.note(Wrong.STUCK, f"at {now}: {owned}")
                for user in self.users:
                    if user.consumer is not None:
                        self.log(user.consumer.core.control.describe(now))
                self.ledger.check_read()
                self._is_over = True
        elif self._quiet_since is None:
            self._quiet_since = now
            self._quiet_turns = [
                (member.host, member.host.turns) for member in self.users if member.host
            ]
        elif now - self._quiet_since > QUIET:
            self._check_turns(now - self._quiet_since)
            self._write_last()

    def _write_last(self) -> None:
        """Have something read right before all leave: they must not go without committing it."""
        if not self._has_last:
            self._has_last = True
            for partition in list(self.ledger.logs):
                self._write(partition)
            self.network.poll_brokers()

    @property
    def _all_have_joined(self) -> bool:
        return all(reader.is_member() for reader in self.ledger.readers) and not any(
            user.is_gone for user in self.users if not user.is_leaving
        )

    @property
    def _is_settled(self) -> bool:
        """Whether all is read, and shared out among those who are there."""
        is_done = self.ledger.is_read and self.ledger.is_balanced and self._all_have_joined
        return is_done and self._is_at_rest

    @property
    def _is_at_rest(self) -> bool:
        """Whether the coordinator waits for nobody: a commit behind a JoinGroup takes its time."""
        group = self.cluster.state.groups.get(GROUP)
        if group is None or len(group.members) != len(self.ledger.readers):
            return False
        return not isinstance(group, ClassicGroup) or group.state in (State.STABLE, State.EMPTY)

    def _check_turns(self, seconds: float) -> None:
        """A client that has nothing to do but to fetch and to beat turns no more than that."""
        config, network = self.plan.config, self.plan.network
        fetches = self.plan.nodes * 1000.0 / float(config["fetch.max.wait.ms"])
        default = BROKER_SETTINGS.consumer_heartbeat_interval_ms
        beats = 1000.0 / float(config.get("heartbeat.interval.ms", default))
        most = (100.0 + 10 * (fetches + beats)) * (1.0 + network.choppiness / 8) * seconds
        for host, before in self._quiet_turns:
            if host.turns - before > most:
                self.ledger.note(Wrong.BUSY, f"{host.turns - before} turns in {seconds} s")

    def _see_them_off(self, waited: float) -> None:
        """Let one after the other leave; the next one goes when the last one has."""
        for user in self.users:
            if not user.is_leaving:
                if not self._is_settled:
                    break  # a commit in the middle of a rebalance would be refused
                user.leave()
            if not user.is_gone:
                break
        else:
            self.ledger.check_read()
            self.ledger.check_committed()
            self._is_over = True
        if waited > LEAVE_WAIT:
            self.ledger.note(Wrong.STUCK, "the users cannot leave")
            self._is_over = True

    # ---- members ----

    def _make_host(self, source: random.Random) -> VirtualConsumerHost:
        network = self.plan.network
        return VirtualConsumerHost(
            self.clock,
            self.network,
            source,
            hiccup_probability=network.hiccup_probability,
            lookup_failure_probability=network.lookup_failure_probability,
            unix_ms_at_zero=UNIX_MS_AT_ZERO,
            mechanism=None if self.guard is None else self.guard.mechanism,
        )

    def _is_member(self, consumer: VirtualConsumer) -> bool:
        """Whether the coordinator counts this consumer among its members, and it knows that.

        A static member that came too late for a generation is kept by its name (KIP-345), but as
        far as what it read goes it is out, as any other would be: its next heartbeat is refused.
        """
        group = self.cluster.state.groups.get(GROUP)
        mine = consumer.core.control.group
        if group is None or mine is None:
            return False
        who = mine.member.identity
        is_former = isinstance(group, ClassicGroup) and who.generation != group.generation
        return who.generation >= 0 and not is_former and who.member_id in group.members

    def _is_known(self, consumer: VirtualConsumer) -> bool:
        """Whether the coordinator counts this consumer among its members."""
        group = self.cluster.state.groups.get(GROUP)
        mine = consumer.core.control.group
        return (
            group is not None
            and mine is not None
            and mine.member.identity.member_id in group.members
        )

    def _is_behind(self, consumer: VirtualConsumer, partition: TopicPartition) -> bool:
        """Whether this consumer takes a partition for that of a topic that was deleted."""
        control = consumer.core.control
        known = control.cluster.topic_id(partition.topic)
        assigned = control.partitions.get(partition)
        # The control plane knows of the new one, and has yet to tell the user's thread.
        is_told = assigned is not None and assigned.state is FetchState.RECREATED
        return is_told or known != self.cluster.state.topics[partition.topic].topic_id

    # ---- records ----

    def _plan_records(self) -> None:
        left = self.plan.records
        while left > 0:
            count = self._source.randrange(1, 6)
            left -= count
            due = self._source.random() * self.plan.duration
            self.clock.after(due, lambda count=count: self._write_some(count))  # type: ignore[misc]
        if self.plan.grows:
            self.clock.after(self._source.random() * self.plan.duration, self._grow)
        for _ in range(self.plan.trims):
            self.clock.after(self._changes.random() * self.plan.duration, self._trim)
        for _ in range(self.plan.recreations):
            self.clock.after(self._changes.random() * self.plan.duration, self._recreate)
        for number in range(self.plan.new_topics):
            name = f"topic-new-{number}"
            due = self._changes.random() * self.plan.duration
            self.clock.after(due, lambda name=name: self._add_topic(name))  # type: ignore[misc]

    def _write_some(self, count: int) -> None:
        partition = self._source.choice(list(self.ledger.logs))
        if self.cluster.state.partition(*partition).leader == NO_LEADER:
            self.clock.after(LOOK_INTERVAL, lambda: self._write_some(count))
            return  # nobody could append
        self._write(partition, count)
        self.network.poll_brokers()

    def _write(self, partition: TopicPartition, count: int = 1) -> None:
        """Plant a batch, plain or a transaction."""
        values = [b"%d %s" % (self._written + number, partition.topic.encode() * 3)
                  for number in range(count)]  # fmt: skip
        self._written += count
        is_visible = True
        if self._source.random() < TRANSACTIONS:
            commit = self._source.random() < 0.5
            is_visible = commit or self.plan.config["isolation.level"] == "read_uncommitted"
            first = self.cluster.plant_transaction(*partition, 1, values, commit=commit)
        else:
            builder = RecordBatchBuilder()
            for value in values:
                builder.append(None, value, UNIX_MS_AT_ZERO + int(self.clock.now * 1000))
            log = self.cluster.state.partition(*partition).log
            gap = self._source.randrange(1, 5) if self._source.random() < self.plan.gaps else 0
            at = log.end_offset + gap if gap else None
            first = self.cluster.plant(*partition, builder.build(), at=at)
        if is_visible:
            for number, value in enumerate(values):
                self.ledger.append(partition, first + number, value)
        self.log(f"{count} records in {partition} at {first}")

    def _grow(self) -> None:
        if len(self.cluster.state.live_nodes) < self.plan.nodes:
            self.clock.after(LOOK_INTERVAL, self._grow)
            return  # there may not be enough for the replicas
        topic = self._source.choice(self.plan.topics)
        self.cluster.add_partitions(topic.name, topic.partitions + self._source.choice((1, 3)))
        self._note_partitions(topic.name)
        self.log(f"{topic.name} has grown")

    def _trim(self) -> None:
        """Have retention delete what is old in a partition, whether somebody has read it or not."""
        partition = self._changes.choice(list(self.ledger.logs))
        log = self.cluster.state.partition(*partition).log
        before = self._changes.randint(log.start_offset, log.end_offset)
        self.cluster.delete_records(*partition, before)
        self.ledger.delete(partition, before)
        self.log(f"{partition} begins at {before}")
        self.network.poll_brokers()

    def _recreate(self) -> None:
        """Delete a topic with all its records, and make another one of its name elsewhere."""
        name = self._changes.choice(self.plan.topics).name
        if len(self.cluster.state.live_nodes) < self.plan.nodes:
            self.clock.after(LOOK_INTERVAL, self._recreate)
            return  # there may not be enough for the replicas
        partitions = self.cluster.state.topics[name].partitions
        self.cluster.delete_topic(name)
        # Each partition gets the nodes that another one had, and with them another leader.
        self.cluster.create_topic(
            name,
            assignment={
                former.index: [1 + node % self.plan.nodes for node in former.replicas]
                for former in partitions
            },
        )
        for partition in partitions:
            self.ledger.recreate(TopicPartition(name, partition.index))
        self.log(f"{name} is created again")
        self.network.poll_brokers()

    def _add_topic(self, name: str) -> None:
        """Make a topic that the members' pattern matches."""
        live = len(self.cluster.state.live_nodes)
        if not live:
            self.clock.after(LOOK_INTERVAL, lambda: self._add_topic(name))
            return
        self.cluster.create_topic(name, self._changes.choice((1, 3)), 1)
        self._note_partitions(name)
        self.log(f"{name} is made")
        self.network.poll_brokers()

    def _listen(self) -> None:
        """Hear what brokers answer to who asks where to begin."""

        def hear(response: ListOffsetsResponse, node: int) -> None:
            for topic in response.topics:
                for told in topic.partitions:
                    if told.offset >= 0:
                        partition = TopicPartition(topic.name, told.partition_index)
                        self.ledger.tell(partition, told.offset)

        self.cluster.faults.script(LIST_OFFSETS, hear)

    def _note_partitions(self, topic: str) -> None:
        for partition in self.cluster.state.topics[topic].partitions:
            self.ledger.add_partition(TopicPartition(topic, partition.index))


def _make_cluster(plan: GroupPlan) -> Cluster:
    nodes = [Node(number, f"node-{number}", 9000 + number) for number in range(1, plan.nodes + 1)]
    settings = Settings(
        auto_create=False,
        unix_ms_at_zero=UNIX_MS_AT_ZERO,
        groups=BROKER_SETTINGS,
    )
    cluster = Cluster(nodes, settings, random.Random(f"cluster/{plan.seed}"))
    for topic in plan.topics:
        cluster.create_topic(topic.name, topic.partitions, topic.replication_factor)
    cluster.faults.limit_versions(VERSIONS[plan.version])
    return cluster
