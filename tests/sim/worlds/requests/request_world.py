"""A world for the requester alone: many calls, brokers that fail, a checker.

    calls ─► Requester ─► links ─► commands ─┐
      ▲                                      ▼   delays, cuts, refusals
      └── endings ◄── answers ◄── brokers that move leaders, coordinators and the controller

What is shipped: the requester with its ways and coordinators, connections, links, metadata. What is
not: the data plane and the brokers, which are a page of Python each. One seed decides everything.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter
from collections.abc import Callable
from typing import Any, NoReturn

from kafka_fast.config import ConsumerSettings, consumer_settings
from kafka_fast.control.client_control import ClientControl
from kafka_fast.control.messages import (
    CloseLink,
    CloseReason,
    LinkClosed,
    OpenLink,
    PauseLink,
    RawResponse,
    ResolveHost,
    SendRaw,
)
from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.control.metadata.metadata import ClusterChanges
from kafka_fast.control.requests.call import ONLY
from kafka_fast.control.requests.targets import (
    AllNodes,
    AnyNode,
    Controller,
    CoordinatorKind,
    CoordinatorOfEach,
    Leaders,
    OneNode,
)
from kafka_fast.instants import NEVER
from kafka_fast.logs import get_logger
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.groups.describe_groups import DescribeGroupsRequest
from kafka_fast.protocol.apis.records.list_offsets import ListOffsetsRequest
from kafka_fast.protocol.apis.topics.create_topics import CreateTopicsRequest
from kafka_fast.values import assert_never
from tests.sim.worlds.requests.request_brokers import (
    FIRST_PORT,
    GROUPS,
    HOST,
    NODE_IDS,
    TOPICS,
    Brokers,
)
from tests.sim.worlds.requests.request_calls import (
    REQUEST_TIMEOUT,
    CreateTopics,
    DescribeConfigs,
    DescribeGroups,
    InitProducerId,
    InitProducerIdBeside,
    ListOffsets,
    Probe,
    Trial,
)

BACKOFF_MS, BACKOFF_MAX_MS = 50, 400
LEAST_BACKOFF = 0.79 * BACKOFF_MS / 1000
FAULTS_END = 8.0
PATIENCE = 6.0
"""Seconds after the last fault within which every call without a deadline has ended."""

THROTTLED = ListOffsetsRequest | DescribeGroupsRequest | CreateTopicsRequest
"""What is not sent to a node that has asked for a pause."""


class Wire:
    """A connection as its broker has it."""

    def __init__(self, link_id: int, node_id: int, *, is_known: bool) -> None:
        self.link_id = link_id
        self.node_id = node_id
        self.is_known = is_known  # the client knows which broker it leads to
        self.unanswered: set[int] = set()  # tokens
        self.free_at = 0.0  # requests are answered in order, and none is read in a pause
        self.paused_until = 0.0  # as the client knows it: the time of requests does not run


class WorldControl(ClientControl[ConsumerSettings, NoReturn, NoReturn]):
    """A client that only calls."""

    kind = "world"
    logger = get_logger("kafka_fast.consumer")

    def __init__(self, settings: ConsumerSettings, chance: Callable[[], float]) -> None:
        super().__init__(settings, "world", chance, lambda: 0, Cluster(settings, chance))

    def _want_metadata(self, now: float) -> None:
        for topic in TOPICS:
            self.cluster.want_topic(topic, now)

    def _handle_changes(self, changes: ClusterChanges, now: float) -> None:
        pass

    def _handle_own(self, event: NoReturn, now: float) -> None:
        assert_never(event)

    def _tick(self, now: float) -> None:
        pass

    def _next_deadline(self) -> float:
        return NEVER


class RequestWorld:
    """One run of one seed. `log` and `faults` tell what has happened."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 0.0
        self.log: list[str] = []
        self.faults: list[str] = []
        self.counts: Counter[str] = Counter()
        self.trials: list[Trial] = []
        self.calls: list[Probe] = []
        self.brokers = Brokers(self.random)
        self._wires: dict[int, Wire] = {}
        self._paused: dict[int, float] = {}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()
        settings = consumer_settings(
            {
                "bootstrap.servers": ",".join(
                    f"{HOST}:{FIRST_PORT + i}" for i in range(len(NODE_IDS))
                ),
                "retry.backoff.ms": BACKOFF_MS,
                "retry.backoff.max.ms": BACKOFF_MAX_MS,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "request.timeout.ms": int(REQUEST_TIMEOUT * 1000),
                "default.api.timeout.ms": 5000,
            }
        )
        self.control = WorldControl(settings, self.random.random)
        self.connections = self.control.connections
        self.requester = self.control.requester

    # ---- the checker ----

    def fail(self, what: str) -> None:
        """Keep that something is wrong."""
        self.faults.append(f"{self.now:.3f} {what}")

    def note(self, what: str) -> None:
        """Write down what happens."""
        self.log.append(f"{self.now:.4f} {what}")

    def new_trial(self, call: Probe, item: Any) -> Trial:
        """Return a new record of an item."""
        trial = Trial(
            f"{next(self._numbers)} {call.describe(item)}",
            deadline=call.deadline,
            is_repeatable=type(call) is not CreateTopics,
        )
        self.trials.append(trial)
        return trial

    def check_send(self, trial: Trial, *, beside: bool) -> None:
        """Judge that an item is sent."""
        self.note(f"send {trial.name}")
        self.counts["sent"] += 1
        if trial.given_up or trial.endings:
            self.fail(f"{trial.name}: sent after its end")
        if self.now > trial.deadline:
            self.fail(f"{trial.name}: sent after its deadline")
        if not trial.is_repeatable and trial.is_unanswered:
            self.fail(f"{trial.name}: sent again although it may have been done")
        if not beside and self.now - trial.sent_at < LEAST_BACKOFF:
            self.fail(f"{trial.name}: sent again after {self.now - trial.sent_at:.3f} s")
        trial.sent_at = self.now
        trial.is_unanswered = True

    def check_end(self, trial: Trial, how: str) -> None:
        """Judge how an item ends."""
        self.note(f"end {trial.name}: {how}")
        self.counts[how.split(" ", maxsplit=1)[0]] += 1
        if trial.given_up:
            self.fail(f"{trial.name}: heard of after it was given up")
        if trial.endings:
            self.fail(f"{trial.name}: ended twice: {trial.endings}, {how}")
        if self.now > trial.deadline + 0.001:
            self.fail(f"{trial.name}: ended {self.now - trial.deadline:.3f} s after its deadline")
        if " in time" in how and self.now < trial.deadline:
            self.fail(f"{trial.name}: gave up before its deadline")
        trial.endings.append((self.now, how))

    def judge_end(self) -> None:
        """Look for items of which nothing was heard."""
        for trial in self.trials:
            if not trial.endings and not trial.given_up:
                self.fail(f"{trial.name}: never ended")

    # ---- time ----

    def at(self, delay: float, what: Callable[[], None]) -> None:
        """Have something happen later."""
        heapq.heappush(self._events, (self.now + delay, next(self._numbers), what))

    def run(self, seconds: float) -> None:
        """Let the world go on."""
        end = self.now + seconds
        spins = 0
        while True:
            self._turn()
            event_at = self._events[0][0] if self._events else NEVER
            due = min(self.control.next_deadline(), event_at)
            spins = spins + 1 if due <= self.now else 0
            if spins > 1000:
                self.fail("busy: a deadline in the past, and nothing to do")
                return
            if due > end:
                self.now = end
                return
            self.now = max(self.now, due)
            while self._events and self._events[0][0] <= self.now:
                heapq.heappop(self._events)[2]()

    def _turn(self) -> None:
        self.control.tick(self.now)
        if self.control.fatal is not None:
            self.fail(f"fatal: {self.control.fatal}")
        while (command := self.control.poll_command()) is not None:
            match command:
                case ResolveHost(owner, host, _):
                    self.connections.handle_resolved(owner, host, (host,), self.now)
                case OpenLink():
                    self._open(command)
                case SendRaw():
                    self._send(command)
                case PauseLink(link_id, seconds):
                    if link_id in self._wires:
                        wire = self._wires[link_id]
                        wire.paused_until = max(wire.paused_until, self.now + seconds)
                case CloseLink(link_id):
                    self._cut(link_id, CloseReason.BY_US)
                case _:
                    self.fail(f"unknown command {command}")

    # ---- the network ----

    def _delay(self) -> float:
        slow = 0.3 if self.brokers.is_odd(0.03) else 0.0
        return 0.001 + 0.01 * self.random.random() + slow

    def _open(self, command: OpenLink) -> None:
        node_id = NODE_IDS[command.port - FIRST_PORT]

        def arrive() -> None:
            if node_id in self.brokers.up:
                self._wires[command.link_id] = Wire(
                    command.link_id, node_id, is_known=not command.key.is_bootstrap
                )
                self.connections.handle_connected(command.link_id, self.now)
            else:
                refused = ConnectionRefusedError("nobody there")
                self.connections.handle_connect_failed(command.link_id, refused, self.now)

        self.at(self._delay(), arrive)

    def _send(self, command: SendRaw) -> None:
        wire = self._wires.get(command.link_id)
        if wire is None:
            self.control.handle_event(
                RawResponse(command.link_id, command.token, None, 0), self.now
            )
            return
        header, request = frame.decode_request(command.frame[4:])
        if isinstance(request, THROTTLED) and self._paused.get(wire.node_id, 0.0) > self.now:
            self.fail(f"{request} to node {wire.node_id}, which has asked for a pause")
        wire.unanswered.add(command.token)
        wire.free_at = max(self.now + self._delay(), wire.free_at)
        if not self.brokers.is_odd(0.02):  # else it hangs, and is given up
            self.at(
                wire.free_at - self.now,
                lambda: self._arrive(command, wire, request, header.version),
            )
        self.at(command.timeout, lambda: self._expire(command, wire))

    def _expire(self, command: SendRaw, wire: Wire) -> None:
        if command.token not in wire.unanswered:
            return
        deadline = wire.paused_until + command.timeout
        if self.now < deadline:
            self.at(deadline - self.now, lambda: self._expire(command, wire))
        else:
            self._cut(wire.link_id, CloseReason.TIMEOUT)

    def _arrive(self, command: SendRaw, wire: Wire, request: Any, version: int) -> None:
        """Let a broker answer."""
        if wire.link_id not in self._wires:
            return
        body = self.brokers.answer(request, wire.node_id)

        def deliver() -> None:
            if wire.link_id not in self._wires or command.token not in wire.unanswered:
                return
            wire.unanswered.discard(command.token)
            pause = getattr(body, "throttle_time_ms", 0) / 1000
            wire.free_at = max(wire.free_at, self.now + pause)
            if pause and wire.is_known:
                until = max(self.now + pause, self._paused.get(wire.node_id, 0.0))
                self._paused[wire.node_id] = until
            data = frame.encode_response(body, version, 0)[4:]
            self.control.handle_event(RawResponse(wire.link_id, command.token, data, 0), self.now)

        self.at(self._delay(), deliver)

    def _cut(self, link_id: int, reason: CloseReason) -> None:
        wire = self._wires.pop(link_id, None)
        if wire is None:
            return
        self.note(f"link {link_id} to {wire.node_id} closed: {reason.name}")
        for token in sorted(wire.unanswered):
            self.control.handle_event(RawResponse(link_id, token, None, reason), self.now)
        self.control.handle_event(LinkClosed(link_id, reason, 0), self.now)

    # ---- what happens ----

    def disturb(self) -> None:
        """Do one thing to the brokers or the network."""
        match self.random.randrange(6):
            case 0 if self._wires:
                self._cut(self.random.choice(sorted(self._wires)), CloseReason.EOF)
            case 1 if len(self.brokers.up) > 1:
                self._stop(self.random.choice(sorted(self.brokers.up)))
            case 2:
                self.brokers.up = set(NODE_IDS)
            case _:
                self.brokers.move_something()

    def _stop(self, node_id: int) -> None:
        self.note(f"node {node_id} stops")
        self.brokers.up.discard(node_id)
        for wire in [broken for broken in self._wires.values() if broken.node_id == node_id]:
            self._cut(wire.link_id, CloseReason.EOF)

    def heal(self) -> None:
        """End all faults."""
        self.brokers.are_odd = False
        self.brokers.up = set(NODE_IDS)

    def call(self) -> None:
        """Make a call of a random kind, with random items and a random deadline."""
        deadline = self.now + self.random.choice([0.05, 0.3, 1.0, 3.0, NEVER])
        call: Probe
        items: list[Any] | None = [ONLY]
        match self.random.randrange(7):
            case 0 | 1:
                call = ListOffsets(self, Leaders(), deadline)
                partitions = sorted(self.brokers.leaders)
                items = self.random.sample(partitions, self.random.randrange(1, 6))
            case 2:
                call = DescribeGroups(self, CoordinatorOfEach(CoordinatorKind.GROUP), deadline)
                items = self.random.sample(GROUPS, self.random.randrange(1, 4))
            case 3:
                kind = self.random.choice([InitProducerId, InitProducerIdBeside])
                call = kind(self, AnyNode(), deadline)
            case 4:
                call = CreateTopics(self, Controller(), deadline)
                items = [f"new-{next(self._numbers)}"]
            case 5:
                call = DescribeConfigs(self, OneNode(self.brokers.any_id()), deadline)
            case _:
                call, items = DescribeConfigs(self, AllNodes(), deadline), None
        call.is_slow = self.random.random() < 0.2
        self.calls.append(call)
        call.begin(items)

    def change_mind(self) -> None:
        """Cancel a call, or an item, or ask about it anew."""
        candidates = [
            candidate
            for candidate in self.calls
            if candidate.opened is not None and candidate.opened.is_open
        ]
        if candidates:
            call = self.random.choice(candidates)
            match self.random.randrange(3):
                case 0:
                    call.cancel()
                case 1 if type(call) is not CreateTopics:
                    call.ask_anew(self.random)
                case _:
                    call.discard(self.random)


def run(seed: int) -> RequestWorld:
    """Run a world to its end."""
    world = RequestWorld(seed)
    for count, what in (
        (60, world.call),
        (25, world.change_mind),
        (world.random.randrange(25), world.disturb),
    ):
        for _ in range(count):
            world.at(FAULTS_END * world.random.random(), what)
    world.run(FAULTS_END)
    world.heal()
    world.run(PATIENCE)
    world.judge_end()
    return world


def judge(seed: int) -> str | None:
    """Return what is wrong with a seed, and the end of its log; None if nothing is."""
    world = run(seed)
    if not world.faults:
        return None
    return "\n".join([f"seed {seed}:", *world.faults[:5], "log:", *world.log[-40:]])
