"""Classic groups under churn: whatever members do, nobody waits forever, and no two are one."""

from __future__ import annotations

import random

import pytest

from kafka_fast import errors
from kafka_fast.protocol.apis.groups.join_group import JoinGroupResponse
from kafka_fast.protocol.apis.groups.leave_group import LeaveGroupRequest, MemberIdentity
from kafka_fast.protocol.apis.groups.sync_group import SyncGroupResponse
from kafka_fast.testing.broker.cluster import Cluster
from kafka_fast.testing.broker.groups.classic import ClassicGroup
from tests.unit.testing.broker.groups.test_classic import JOIN, LEAVE, SYNC, Member, world
from tests.unit.testing.broker.memory import World

STEPS = 60
MEMBERS = 4
REJOIN = {errors.RebalanceInProgress.code, errors.IllegalGeneration.code}


class Churner(Member):
    """A member that joins, syncs and beats at random, and now and then does nothing for long."""

    def __init__(self, here: World, number: int) -> None:
        instance = f"static-{number}" if number == 0 else None
        super().__init__(here, group_instance_id=instance, rebalance_timeout_ms=20_000)
        self.instance = instance
        self.waits_for: str | None = None  # "join" or "sync"
        self.since = 0.0  # when it began to wait

    def step(self, source: random.Random) -> None:
        """Take an answer if there is one, else do something."""
        if self.client.closed:
            self.waits_for = None
            if self.here.cluster.coordinator("g") != -1:
                self.reconnect()
            return
        if self.waits_for is not None:
            self.take()
            return
        kind = source.choice(["join", "join", "sync", "beat", "beat", "leave", "nothing"])
        if kind == "join" and self.instance is None and not self.member_id:
            self.member_id = self.client.ask(self.request(), JOIN).member_id
        elif kind == "join":
            self.client.send(self.request(), JOIN)
            self.wait("join")
        elif kind == "sync" and self.generation > 0:
            self.client.send(self.sync_request(), SYNC)
            self.wait("sync")
        elif kind == "beat" and self.generation > 0:
            self.judge(self.heartbeat())
        elif kind == "leave" and self.member_id and source.random() < 0.3:
            leaving = MemberIdentity(member_id=self.member_id, group_instance_id=self.instance)
            self.client.ask(LeaveGroupRequest(group_id="g", members=[leaving]), LEAVE)
            self.member_id, self.generation = "", -1

    def wait(self, what: str) -> None:
        self.waits_for, self.since = what, self.here.now
        self.take()

    def take(self) -> None:
        body = self.request() if self.waits_for == "join" else self.sync_request()
        answer = self.client.take(body, JOIN if self.waits_for == "join" else SYNC)
        if answer is None:
            return
        self.waits_for = None
        assert isinstance(answer, JoinGroupResponse | SyncGroupResponse)
        if isinstance(answer, JoinGroupResponse) and answer.error_code == 0:
            self.member_id, self.generation = answer.member_id, answer.generation_id
        else:
            self.judge(answer.error_code)

    def judge(self, code: int) -> None:
        """Do as a client does with an error code."""
        if code == errors.NotCoordinator.code:
            self.reconnect()
        elif code and code not in REJOIN:
            self.member_id, self.generation = "", -1


def disturb(cluster: Cluster, source: random.Random) -> None:
    """Move the coordinator, or kill or restart a broker; one of them always runs."""
    kind = source.choice(["move", "kill", "restart"])
    alive = [node.node_id for node in cluster.state.live_nodes]
    dead = [node_id for node_id in cluster.state.nodes if node_id not in alive]
    if kind == "move":
        cluster.move_coordinator("g", source.choice(alive))
    elif kind == "kill" and len(alive) > 1:
        cluster.kill(source.choice(alive))
    elif dead:
        cluster.restart(dead[0])


def check(group: ClassicGroup) -> None:
    """Check what must hold of a group at any time."""
    members = list(group.members)
    ids = [member.member_id for member in members]
    assert len(ids) == len(set(ids))
    instances = [member.instance_id for member in members if member.instance_id is not None]
    assert len(instances) == len(set(instances))
    assert (group.members.leader in ids) if members else group.members.leader is None
    assert not (group.is_empty and members)


@pytest.mark.parametrize("block", range(5))
def test_nobody_waits_for_ever(block: int) -> None:
    answered = 0
    for seed in range(block * 20, block * 20 + 20):
        source = random.Random(seed)
        here = world(nodes=3, initial_rebalance_delay_ms=source.choice([0, 3000]))
        members = [Churner(here, number) for number in range(MEMBERS)]
        for _ in range(STEPS):
            here.run_until(here.now + source.choice([0.01, 0.5, 3.0]))
            here.settle()
            if source.random() < 0.04:
                disturb(here.cluster, source)
                here.settle()
            source.choice(members).step(source)
            group = here.cluster.state.groups.get("g")
            if isinstance(group, ClassicGroup):
                check(group)
        here.run_until(here.now + 60.0)
        for member in members:
            if member.waits_for is not None and not member.client.closed:
                member.take()
                assert member.waits_for is None, (seed, member.waits_for, member.since)
                answered += 1
        here.run_until(here.now + 60.0)
        group = here.cluster.state.groups.get("g")
        assert group is None or group.is_empty, seed
    assert answered > 0


def test_the_same_churn_gives_the_same_group() -> None:
    def run() -> list[object]:
        source = random.Random(7)
        here = world(nodes=3)
        members = [Churner(here, number) for number in range(MEMBERS)]
        log: list[object] = []
        for _ in range(STEPS):
            here.run_until(here.now + 0.5)
            here.settle()
            member = source.choice(members)
            member.step(source)
            log.append((member.member_id, member.generation, member.waits_for))
        return log

    assert run() == run()
