"""One simulated world: the shipped client over a virtual machine, brokers, a network, and a seed.

    users ─► append path ─► data plane ─► MemoryLink ─► network ─► embedded brokers
                               ▲ │ events                              ▲
                      commands │ ▼                                     │
                          control plane        faults ─────────────────┘

With its `Host` this is the shell that net/ is in reality; the planes themselves are the extensions
and modules that ship. Everything is decided by the seed, so that a run can be repeated; its log is
the same, byte by byte.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from kafka_fast.config import ProducerSettings, producer_settings
from kafka_fast.control.plane import Command, SetPartitions, SetProducerId, TopicSettled
from kafka_fast.control.producer.control import ProducerControl
from kafka_fast.dataplane._observers import collect, notify
from kafka_fast.dataplane._plane import DataPlane
from kafka_fast.net import carrier
from kafka_fast.net.producer_core import CODECS, TOUCH_INTERVAL_MAX
from kafka_fast.testing._memory import VirtualMachine
from kafka_fast.testing.broker.cluster import Cluster
from kafka_fast.testing.broker.state import Node, Settings
from kafka_fast.testing.checker import Anomaly, Logs, check
from kafka_fast.testing.simulation.clock import Clock
from kafka_fast.testing.simulation.host import FOREVER, Host
from kafka_fast.testing.simulation.network import Network
from kafka_fast.testing.simulation.plan import SLACK, VERSIONS, Plan, make_plan
from kafka_fast.testing.simulation.producer_faults import ProducerFaults
from kafka_fast.testing.simulation.users import Users

UNIX_MS_AT_ZERO = 1_700_000_000_000
ACTIONS_MAX = 100_000
"""A world that does more than this turns in circles."""

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
        self.clock = Clock()
        self.settings = producer_settings(plan.config)
        self.cluster = _make_cluster(plan)
        control_source = random.Random(f"control/{plan.seed}")
        self.control = ProducerControl(self.settings, "simulated", control_source.random)
        self.network = Network(
            self.clock,
            self.cluster,
            plan.network,
            random.Random(f"network/{plan.seed}"),
            self.log,
        )
        self.host = Host(
            self.clock,
            self.network,
            random.Random(f"machine/{plan.seed}"),
            hiccup_probability=plan.network.hiccup_probability,
            lookup_failure_probability=plan.network.lookup_failure_probability,
            unix_ms_at_zero=UNIX_MS_AT_ZERO,
            codec=CODECS[self.settings.compression_type],
            compression_level=self.settings.compression_level,
        )
        self.plane = _make_plane(self.host.machine, self.settings)
        self.host.start(self, self.control.links, self.plane)
        self.faults = ProducerFaults(
            self.clock,
            plan,
            self.cluster,
            self.network,
            random.Random(f"faults/{plan.seed}"),
            self.log,
        )
        self.users = Users(
            self.clock,
            plan,
            self.plane,
            self.host.turner,
            random.Random(f"users/{plan.seed}"),
            self.log,
            lambda topic: self.host.call(lambda now: self.control.want_topic(topic, now)),
        )
        self._numbered: set[int] = set()  # queues that were told where to begin
        self._touch_at = 0.0
        self._callbacks_due = FOREVER

    def log(self, line: str) -> None:
        """Note what happens."""
        self.log_lines.append(f"{self.clock.now:.6f} {line}")

    # ---- the run ----

    def run(self) -> Result:
        """Let everything happen, then check what came of it."""
        heal_at = self.clock.now + self.plan.duration * 1.25
        self.clock.at(heal_at, self.faults.heal)
        close_at = FOREVER
        if self.plan.closes_early:
            close_at = self.clock.now + self.host.source.random() * self.plan.duration
        actions = 0
        while self.clock.next_due() <= min(self._end(heal_at), close_at):
            action = self.clock.take()
            self.host.machine.advance(self.clock.now)
            action()
            self._settle()
            actions += 1
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
            and self._callbacks_due == FOREVER
        )

    def _finish(self) -> Result:
        self.users.look()
        notify(self.plane, self._report_callback)
        if self.plan.closes_early:
            self.log("closed")
            self.plane.shut_down()
            notify(self.plane, self._report_callback)
        elif self.users.unfinished and not self.users.history.stuck:
            self.users.history.stuck = f"{self.users.unfinished} users wait for ever"
        self.users.finish()
        promises = replace(self.plan.promises, lost_exactly=self.plane.stats()["splits"] == 0)
        anomalies = check(self.users.history, self._logs(), promises)
        return Result(self.plan, anomalies, self.log_lines, self.host.port.traces())

    def _logs(self) -> Logs:
        return {
            (topic.name, partition.index): [
                None if record.value is None else bytes(record.value)
                for record in self.cluster.records(topic.name, partition.index)
            ]
            for topic in self.cluster.state.topics.values()
            for partition in topic.partitions
        }

    # ---- threads ----

    def _settle(self) -> None:
        """After every action: see who has been woken, and what has ended."""
        self.host.settle()
        if self.host.machine.take_observers_wake():
            self._plan_callbacks()
        self.users.look()

    def _plan_callbacks(self) -> None:
        if self._callbacks_due == FOREVER:
            self._callbacks_due = self.clock.now + self.host.lateness()
            self.clock.at(self._callbacks_due, self._run_callbacks)

    def _run_callbacks(self) -> None:
        self._callbacks_due = FOREVER
        notify(self.plane, self._report_callback)

    def _report_callback(self, callback: object, error: BaseException) -> None:
        raise error

    # ---- the control thread ----

    def turn(self, now: float) -> None:
        """Take events, do what is due, carry out commands; as net/producer_core does."""
        for event in self.plane.take_events():
            carried = carrier.read_event(event)
            self.log(f"event {_short(carried)}")
            self.control.handle_event(carried, now)
        if now >= self._touch_at:
            self._touch_at = now + min(TOUCH_INTERVAL_MAX, self.settings.metadata_max_idle / 3)
            self.control.touch_topics(self.plane.take_used_topics(), now)
        self.control.tick(now)
        while (command := self.control.poll_command()) is not None:
            self.log(f"command {_short(command)}")
            self._carry_out(command, now)
        if collect(self.plane):
            self._plan_callbacks()

    def next_deadline(self) -> float:
        """Return when `turn` has something to do that no event announces."""
        return min(self._touch_at, self.control.next_deadline())

    def _carry_out(self, command: Command, now: float) -> None:
        match command:
            case TopicSettled(topic, error):
                self.clock.after(
                    self.host.lateness(), lambda: self.users.topic_settled(topic, error)
                )
            case _:
                if not self.host.carry_out(command, now):
                    carrier.carry_out(self.plane, command, self.host.source.getrandbits(63))
                if self.plan.first_sequence and isinstance(command, SetProducerId | SetPartitions):
                    self._number_near_the_edge()

    def _number_near_the_edge(self) -> None:
        """Let partitions begin as if they had sent nearly 2**31 records under their identity."""
        identity = self.control.identity.identity
        if identity is None:
            return
        routes, first = self.control.routes, self.plan.first_sequence
        for topic in routes.topics:
            for partition in range(self.plane.partition_count(topic)):
                queue = routes.queue_of(topic, partition)
                if queue is not None and queue.id not in self._numbered:
                    self._numbered.add(queue.id)
                    self.host.turner.number_from(
                        queue.id, identity.producer_id, identity.epoch, first
                    )


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


def _make_plane(machine: VirtualMachine, settings: ProducerSettings) -> DataPlane:
    return DataPlane(
        machine,
        buffer_memory=settings.buffer_memory,
        batch_size=settings.batch_size,
        max_request_size=settings.max_request_size,
        coalesce_bytes=settings.request_coalesce_bytes,
        max_frame=settings.receive_message_max_bytes,
        linger=settings.linger,
        delivery_timeout=settings.delivery_timeout,
        request_timeout=settings.request_timeout,
        max_in_flight=settings.max_in_flight_requests_per_connection,
        max_idle=max(settings.connections_max_idle_ms, 0) / 1000,
        availability_timeout=settings.partitioner_availability_timeout,
        codec=CODECS[settings.compression_type],
        idempotent=settings.enable_idempotence,
        acks_zero=settings.acks == 0,
    )


def _short(what: object) -> str:
    """Return a record of the planes in one line of bounded length."""
    return repr(what)[:400]
