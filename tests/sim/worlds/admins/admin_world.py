"""One simulated world of an admin client: its shipped core on a virtual host, brokers, a network.

    users' tasks ─► aio.Admin ─► AdminCore ─► MemoryLink ─► network ─► embedded brokers
         ▲                           ▲                                      ▲      │
    AdminChecker ◄─ AdminWatch   VirtualHost              faults ───────────┘      ▼
         ▲                                                                  TopicHistory
         └──────────────────────────────────────────────────────────────────────────┘

The calls, their steps, the operations and both planes are what ships. One seed decides everything.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from kafka_fast.admin.admin_core import AdminCore
from kafka_fast.config import admin_settings
from kafka_fast.dataplane.core._loop_share import begin_share
from kafka_fast.testing.broker.cluster import Cluster
from kafka_fast.testing.broker.state import Node, Settings
from tests.sim.worlds.admins.admin_checker import AdminChecker
from tests.sim.worlds.admins.admin_faults import AdminFaults
from tests.sim.worlds.admins.admin_plan import AdminPlan, make_admin_plan
from tests.sim.worlds.admins.admin_records import AdminAnomaly, AdminKind, Findings
from tests.sim.worlds.admins.admin_users import SETTLED_TIMEOUT, AdminUsers
from tests.sim.worlds.admins.admin_watch import AdminWatch, VirtualAdmin
from tests.sim.worlds.admins.topic_history import TopicHistory
from tests.sim.worlds.clock import Clock
from tests.sim.worlds.host import VirtualHost
from tests.sim.worlds.network import Network
from tests.sim.worlds.plan import VERSIONS
from tests.sim.worlds.virtual_loop import VirtualLoopDriver, make_loop

UNIX_MS_AT_ZERO = 1_700_000_000_000
ACTIONS_MAX = 50_000
"""A world that does more than this in one virtual second turns in circles."""

LONGEST_CALL = 60.0
"""Seconds: the longest default.api.timeout.ms of all plans."""


@dataclass(slots=True)
class AdminRun:
    """What became of a world."""

    plan: AdminPlan
    anomalies: list[AdminAnomaly]
    counts: Counter[str]
    log: list[str]
    traces: list[str]

    def report(self) -> str:
        """Return everything that a failure needs, the seed first."""
        lines = [f"seed {self.plan.seed}: {len(self.anomalies)} anomalies"]
        lines += [f"  {anomaly}" for anomaly in self.anomalies[:20]]
        again = f"pytest tests/sim/test_admin_world.py --seed {self.plan.seed}"
        lines += [f"run it again: {again}", repr(self.plan)]
        return "\n".join([*lines, "log:", *self.log, "links:", *self.traces])


def run_admin_seed(seed: int) -> AdminRun:
    """Run the world of a seed to its end."""
    return AdminWorld(make_admin_plan(seed)).run()


class AdminWorld:
    """One client, its users, its brokers, and what happens to them."""

    def __init__(self, plan: AdminPlan) -> None:
        """Build the world; nothing happens before `run`."""
        self.plan = plan
        self.clock = Clock()
        self.findings = Findings(self.clock)
        settings = admin_settings(plan.config)
        self.cluster = _make_cluster(plan)
        self.history = TopicHistory(self.cluster.state, self.clock, self.findings.log)
        self.network = Network(
            self.clock,
            self.cluster,
            plan.network,
            random.Random(f"admin/network/{plan.seed}"),
            self.findings.log,
        )
        self.host = VirtualHost(
            self.clock,
            self.network,
            random.Random(f"admin/machine/{plan.seed}"),
            hiccup_probability=plan.network.hiccup_probability,
            lookup_failure_probability=plan.network.lookup_failure_probability,
            unix_ms_at_zero=UNIX_MS_AT_ZERO,
            choose=random.Random(f"admin/control/{plan.seed}"),
        )
        self.host.on_turned = self._look
        self.core = AdminCore(settings, "simulated", self.host)
        self.faults = AdminFaults(
            self.clock,
            plan,
            self.cluster,
            self.network,
            random.Random(f"admin/faults/{plan.seed}"),
            self.findings.log,
        )
        self.loop = make_loop(self.clock, self._wake_loop)
        self._looks_at = float("inf")
        watch = AdminWatch(self.core, settings, self.findings)
        self.users = AdminUsers(
            plan,
            self.loop,
            VirtualAdmin(self.core, settings, VirtualLoopDriver(self.clock), watch),
            watch,
            AdminChecker(plan, self.history, self.findings),
            self.findings,
        )
        begin_share(self.clock.now)  # the world before this one used the same thread

    # ---- the run ----

    def run(self, *, stop_at: Collection[AdminKind] = ()) -> AdminRun:
        """Let everything happen; calls are judged as they end.

        Args:
            stop_at: anomalies after which nothing more is of interest.
        """
        heal_at = self.clock.now + self.plan.duration * 1.25
        self.users.settled_at = heal_at + self.plan.recovery
        self.clock.at(heal_at, self.faults.heal)
        if self.plan.closes_early:
            self.clock.after(self.host.source.random() * self.plan.duration, self._close)
        end = self.users.settled_at + LONGEST_CALL + 6 * SETTLED_TIMEOUT
        self.users.start()
        actions, second = 0, 0
        while self.users.unfinished and self.clock.next_due() <= end:
            action = self.clock.take()
            self.host.machine.advance(self.clock.now)
            action()
            self.host.settle()
            actions += 1
            if int(self.clock.now) != second:
                actions, second = 0, int(self.clock.now)
            if actions > ACTIONS_MAX:
                self.findings.add(AdminKind.STUCK, "the world turns in circles")
            if self.findings.anomalies and self._ends_early(actions, stop_at):
                break
        return self._finish()

    def _ends_early(self, actions: int, stop_at: Collection[AdminKind]) -> bool:
        return actions > ACTIONS_MAX or any(
            anomaly.kind in stop_at for anomaly in self.findings.anomalies
        )

    def _finish(self) -> AdminRun:
        if self.users.unfinished:
            self.findings.add(AdminKind.STUCK, f"{self.users.unfinished} users have not ended")
            self.loop.abandon()
        else:
            self.users.raise_errors()
        traces = self.host.port.traces()
        self.core.close()
        return AdminRun(
            self.plan,
            self.findings.anomalies,
            self.findings.counts,
            self.findings.log_lines,
            traces,
        )

    def _close(self) -> None:
        self.findings.log("the client is closed")
        self.core.close()
        self._look()

    # ---- the users' tasks ----

    def _wake_loop(self) -> None:
        self.clock.after(0.0, self._run_loop)

    def _run_loop(self) -> None:
        with self.loop.running():
            self.loop.run_ready()
        self._plan_look()

    def _look(self) -> None:
        """Let those tasks go on whose wait is over."""
        now = self.clock.now
        over = [
            suspended
            for suspended in self.loop.suspended
            if not suspended.done() and (suspended.wait.is_over() or now >= suspended.wait.deadline)
        ]
        for suspended in over:
            suspended.set_result(None)
        if over:
            self._wake_loop()

    def _plan_look(self) -> None:
        """Look again when the next wait of a task ends by its deadline."""
        deadlines = (suspended.wait.deadline for suspended in self.loop.suspended)
        self._look_by(min(deadlines, default=float("inf")))

    def _look_by(self, due: float) -> None:
        if due < self._looks_at:
            self._looks_at = due
            self.clock.at(due, self._look_in_time)

    def _look_in_time(self) -> None:
        if self.clock.now >= self._looks_at:
            self._looks_at = float("inf")
            self._look()
            self._plan_look()


def _make_cluster(plan: AdminPlan) -> Cluster:
    nodes = [Node(number, f"node-{number}", 9000 + number) for number in range(1, plan.nodes + 1)]
    settings = Settings(auto_create=False, unix_ms_at_zero=UNIX_MS_AT_ZERO)
    cluster = Cluster(nodes, settings, random.Random(f"admin/cluster/{plan.seed}"))
    cluster.faults.limit_versions(VERSIONS[plan.version])
    return cluster
