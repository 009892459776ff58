"""One simulated world: a producer's shipped core on a virtual host, brokers, a network, a seed.

    users ─► append path ─► ProducerCore ─► MemoryLink ─► network ─► embedded brokers
                                 ▲                                        ▲
                            VirtualHost            faults ────────────────┘

The core with both planes is what ships; its host is the world's. Everything is decided by the seed,
so that a run can be repeated; its log is the same, byte by byte.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from kafka_fast.config import producer_settings
from kafka_fast.control.producer.producer_messages import (
    ProducerCommand,
    ProducerEvent,
    SetPartitions,
    SetProducerId,
)
from kafka_fast.net.planes import CODECS
from kafka_fast.producer.producer_core import ProducerCore
from kafka_fast.testing.broker.cluster import Cluster
from kafka_fast.testing.broker.state import Node, Settings
from tests.sim.worlds.checker import Anomaly, Kind, Logs, check
from tests.sim.worlds.clock import Clock
from tests.sim.worlds.guard import Guard
from tests.sim.worlds.host import FOREVER, VirtualHost
from tests.sim.worlds.network import Network
from tests.sim.worlds.plan import SLACK, VERSIONS, Plan, make_plan
from tests.sim.worlds.producers.producer_faults import ProducerFaults
from tests.sim.worlds.producers.producer_tasks import ProducerTasks, VirtualAsyncProducer
from tests.sim.worlds.producers.users import Users
from tests.sim.worlds.virtual_loop import VirtualLoopDriver

UNIX_MS_AT_ZERO = 1_700_000_000_000
ACTIONS_MAX = 100_000
"""A world that does more than this in one virtual second turns in circles."""

HEALED_WAIT = 60.0
"""Seconds after which nobody may wait for a topic or memory any more, once all is healed."""


@dataclass(slots=True)
class Result:
    """What became of a world."""

    plan: Plan
    anomalies: list[Anomaly]
    log: list[str] = field(default_factory=list)
    traces: list[str] = field(default_factory=list)

    def report(self) -> str:
        """Return everything that a failure needs, the seed first."""
        lines = [f"seed {self.plan.seed}: {len(self.anomalies)} anomalies"]
        lines += [f"  {anomaly}" for anomaly in self.anomalies[:20]]
        lines += [f"run it again: pytest tests/sim --seed {self.plan.seed}", repr(self.plan)]
        return "\n".join([*lines, "log:", *self.log, "links:", *self.traces])


def run_seed(seed: int) -> Result:
    """Run the world of a seed to its end."""
    return World(make_plan(seed)).run()


class World:
    """One client, its brokers, and what happens to them."""

    def __init__(self, plan: Plan) -> None:
        """Build the world; nothing happens before `run`."""
        self.plan = plan
        self.log_lines: list[str] = []
        self._recovered_by = FOREVER
        self.clock = Clock()
        self.settings = producer_settings(plan.config)
        self.cluster = _make_cluster(plan)
        self.guard = Guard.of(plan.logins, f"guard/{plan.seed}", self.log)
        self.network = Network(
            self.clock,
            self.cluster,
            plan.network,
            random.Random(f"network/{plan.seed}"),
            self.log,
            self.guard,
        )
        self.host = VirtualHost(
            self.clock,
            self.network,
            random.Random(f"machine/{plan.seed}"),
            hiccup_probability=plan.network.hiccup_probability,
            lookup_failure_probability=plan.network.lookup_failure_probability,
            unix_ms_at_zero=UNIX_MS_AT_ZERO,
            codec=CODECS[self.settings.compression_type],
            compression_level=self.settings.compression_level,
            choose=random.Random(f"control/{plan.seed}"),
            mechanism=None if self.guard is None else self.guard.mechanism,
        )
        self.core = LoggedProducerCore(self)
        self.queues = self.core.queues
        self.faults = ProducerFaults(
            self.clock,
            plan,
            self.cluster,
            self.network,
            random.Random(f"faults/{plan.seed}"),
            self.log,
        )
        driver = VirtualLoopDriver(self.clock)
        self.users = Users(
            self.clock,
            plan,
            self.queues,
            self.host.turner,
            random.Random(f"users/{plan.seed}"),
            self.log,
            lambda topic: driver.run(self.core.topics.need(topic)),
            ProducerTasks(self.clock, random.Random(f"tasks/{plan.seed}"), plan.cancels, self.log),
            VirtualAsyncProducer(self.core, self.settings, driver),
        )

    def log(self, line: str) -> None:
        """Add a line with the virtual time to the log of this run."""
        self.log_lines.append(f"{self.clock.now:.6f} {line}")

    # ---- the run ----

    def run(self) -> Result:
        """Let everything happen, then check what came of it."""
        heal_at = self.clock.now + self.plan.duration * 1.25
        self._recovered_by = heal_at + self.plan.recovery
        self.clock.at(heal_at, self.faults.heal)
        if self.guard is not None:
            self.guard.plan_rotation(self.clock, self.plan.duration)
            self.clock.at(heal_at, self.guard.heal)
        close_at = FOREVER
        if self.plan.closes_early:
            close_at = self.clock.now + self.host.source.random() * self.plan.duration
        actions, second = 0, 0
        while self.clock.next_due() <= min(self._end(heal_at), close_at):
            action = self.clock.take()
            self.host.machine.advance(self.clock.now)
            action()
            self._settle()
            actions += 1
            if int(self.clock.now) != second:
                actions, second = 0, int(self.clock.now)
            if actions > ACTIONS_MAX:
                self.users.history.stuck = "the world turns in circles"
            if self.users.history.stuck or self._is_over(heal_at):
                break
        return self._finish()

    def _end(self, heal_at: float) -> float:
        """Return when everything must have ended, the memory of what failed included."""
        if self.users.unfinished:
            return heal_at + HEALED_WAIT
        sent = self.users.history.sent
        last = max(heal_at, sent[-1].at if sent else heal_at)
        return last + self.settings.delivery_timeout + self.settings.request_timeout + 2 * SLACK

    def _is_over(self, heal_at: float) -> bool:
        """All is sent and has ended, its memory too."""
        return (
            self.clock.now >= heal_at
            and not self.users.unfinished
            and self.users.ended == len(self.users.history.sent)
            and not self.host.turner.reserved_bytes()
            and self.host.callbacks.due == FOREVER
        )

    def _finish(self) -> Result:
        self.users.look()
        self.host.callbacks.run()
        if self.plan.closes_early:
            self.log("closed")
            self.core.stop()
        elif self.users.unfinished and not self.users.history.stuck:
            self.users.history.stuck = f"{self.users.unfinished} users wait forever"
        self.users.finish()
        promises = replace(
            self.plan.promises,
            lost_exactly=self.queues.stats()["splits"] == 0,
            recovered_by=self._recovered_by,
        )
        anomalies = check(self.users.history, self._logs(), promises)
        if self.guard is not None:
            anomalies += [Anomaly(Kind.LOGIN, text) for text in self.guard.violations]
        result = Result(self.plan, anomalies, self.log_lines, self.host.port.traces())
        self.core.stop()
        return result

    def _logs(self) -> Logs:
        return {
            (topic.name, partition.index): [
                None if record.value is None else bytes(record.value)
                for record in self.cluster.records(topic.name, partition.index)
            ]
            for topic in self.cluster.state.topics.values()
            for partition in topic.partitions
        }

    def _settle(self) -> None:
        """After every action: see who has been woken, and what has ended."""
        self.host.settle()
        if self.host.machine.take_observers_wake():
            self.host.callbacks.wake()
        self.users.look()


class LoggedProducerCore(ProducerCore):
    """The shipped core; the world hears of its events and commands."""

    _host: VirtualHost

    def __init__(self, world: World) -> None:
        """Start both planes.

        Args:
            world: hears of what happens.
        """
        self._world = world
        self._numbered: set[int] = set()  # queues that were told where to begin
        super().__init__(world.settings, "simulated", world.host)

    def handle_event(self, event: ProducerEvent, now: float) -> None:
        """Log an event, and hand it to the control plane."""
        self._world.log(f"event {_short(event)}")
        super().handle_event(event, now)

    def carry_out(self, command: ProducerCommand, now: float) -> None:
        """Log a command, carry it out, and set first sequences if the plan says so."""
        world = self._world
        world.log(f"command {_short(command)}")
        super().carry_out(command, now)
        if world.plan.first_sequence and isinstance(command, SetProducerId | SetPartitions):
            self._number_near_the_edge(world.plan.first_sequence)

    def _number_near_the_edge(self, first: int) -> None:
        """Let partitions begin as if they had sent nearly 2**31 records under their identity."""
        identity = self.control.identity.identity
        if identity is None:
            return
        routes = self.control.routes
        for topic in routes.topics:
            for partition in range(self.queues.partition_count(topic)):
                queue = routes.queue_of(topic, partition)
                if queue is not None and queue.id not in self._numbered:
                    self._numbered.add(queue.id)
                    self._host.turner.number_from(
                        self.queues, queue.id, identity.producer_id, identity.epoch, first
                    )

    def stop(self) -> None:
        """End, and fail what was not delivered."""
        if not self.queues.dead:
            self._end()


def _make_cluster(plan: Plan) -> Cluster:
    nodes = [Node(number, f"node-{number}", 9000 + number) for number in range(1, plan.nodes + 1)]
    settings = Settings(
        auto_create=False, unix_ms_at_zero=UNIX_MS_AT_ZERO, first_epoch=plan.first_epoch
    )
    cluster = Cluster(nodes, settings, random.Random(f"cluster/{plan.seed}"))
    for topic in plan.topics:
        cluster.create_topic(
            topic.name,
            topic.partitions,
            topic.replication_factor,
            config={"max.message.bytes": str(topic.max_message_bytes)},
        )
    cluster.faults.limit_versions(VERSIONS[plan.version])
    return cluster


def _short(what: object) -> str:
    """Return a record of the planes in one line of bounded length."""
    return repr(what)[:400]
