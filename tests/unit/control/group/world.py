"""Group members on the embedded broker in virtual time: shipped control planes, no data plane.

    ConsumerControl ── commands ──► World ── bytes ──► embedded brokers
    Member (the user's thread) ◄── news ──┘   heartbeats are repeated here, as the data plane would

Each member plays its user: it polls every `poll_every` seconds, gives up and takes over what its
control plane asks for, and notes who owned what and when.
"""

from __future__ import annotations

import heapq
import itertools
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kafka_fast.config import ConsumerSettings, consumer_settings
from kafka_fast.control.consumer.control import ConsumerControl
from kafka_fast.control.group.member import AssignWanted, MemberFailed, RevokeWanted, Subscription
from kafka_fast.control.plane import (
    CloseLink,
    CloseReason,
    Interject,
    LinkClosed,
    OpenLink,
    PlaneEvent,
    Repeat,
    RepeatEnded,
    ResolveHost,
    Response,
    SendRaw,
    StopRepeat,
)
from kafka_fast.errors import KafkaError
from kafka_fast.protocol.apis.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kafka_fast.protocol.apis.join_group import JoinGroupRequest, JoinGroupResponse
from kafka_fast.protocol.frame import decode_response, encode_response
from kafka_fast.testing.broker.cluster import Cluster
from kafka_fast.testing.broker.state import Node, Settings
from kafka_fast.types import OffsetAndMetadata, TopicPartition

LATENCY = 0.001


@dataclass(slots=True)
class Repetition:
    """As the data plane has it."""

    command: Repeat
    due: float
    frame: bytes
    expected: bytes
    period: float
    in_flight: int | None = None  # the token that its answer comes up under
    sent: bytes = b""
    is_told: bool = False
    told: int = 0
    aside: Interject | None = None

    @property
    def is_silent(self) -> bool:
        """Whether no epoch is known."""
        pos = self.command.epoch_pos
        told = int.from_bytes(self.frame[pos : pos + 4], "big", signed=True)
        return pos > 0 and not self.is_told and told <= 0

    def learn(self, request: bytes, frame: bytes) -> None:
        """Go on under the epoch, or generation, that the answer to a request tells."""
        api_key, version = request[5], request[7]
        if api_key == JoinGroupRequest.api_key:
            _, joined = decode_response(JoinGroupResponse, frame, version)
            if joined.error_code == 0:
                self._go_by(joined.generation_id)
        elif api_key == ConsumerGroupHeartbeatRequest.api_key:
            _, told = decode_response(ConsumerGroupHeartbeatResponse, frame, version)
            if told.error_code == 0 and told.member_epoch > 0 and told.heartbeat_interval_ms > 0:
                self._go_by(told.member_epoch)
                told.assignment = None
                self.expected = encode_response(told, version, 0)[8:]
                self.due += told.heartbeat_interval_ms / 1000 - self.period
                self.period = told.heartbeat_interval_ms / 1000

    def _go_by(self, epoch: int) -> None:
        pos, self.is_told = self.command.epoch_pos, True
        self.frame = self.frame[:pos] + epoch.to_bytes(4, "big") + self.frame[pos + 4 :]


@dataclass(slots=True, eq=False)
class Member:
    """One consumer: its control plane, and its user."""

    name: str
    control: ConsumerControl
    settings: ConsumerSettings
    poll_every: float = 0.1
    next_poll: float = 0.0
    alive_until: float = 0.0
    owned: frozenset[TopicPartition] = frozenset()
    news: list[Any] = field(default_factory=list)
    history: list[tuple[float, str, frozenset[TopicPartition]]] = field(default_factory=list)
    errors: list[KafkaError] = field(default_factory=list)
    links: dict[int, int] = field(default_factory=dict)  # link id -> node id
    repetitions: dict[int, Repetition] = field(default_factory=dict)
    in_flight: dict[tuple[int, int], tuple[str, int]] = field(default_factory=dict)
    sent: dict[int, int] = field(default_factory=dict)  # requests by connection
    dead: bool = False
    unheard: list[PlaneEvent] | None = None  # what came up since Python cannot run
    streams: dict[TopicPartition, int] = field(default_factory=dict)
    on_revoked: Callable[[frozenset[TopicPartition]], None] | None = None

    def hold_gil(self) -> None:
        """Let no Python run: neither the user, nor the control plane."""
        self.unheard = []
        self.next_poll = 1e9

    def release_gil(self, now: float) -> None:
        """Let all run again, and hear what came up."""
        unheard, self.unheard = self.unheard or [], None
        self.next_poll = now
        for event in unheard:
            self.control.handle_event(event, now)

    def kinds(self) -> list[str]:
        """Return what happened to this member, in order."""
        return [kind for _, kind, _ in self.history]


class World:
    """Brokers, members and their time."""

    def __init__(self, *, nodes: int = 1, seed: int = 0, **given: object) -> None:
        self.random = random.Random(seed)
        self.now = 100.0
        self.given = given
        self.cluster = Cluster(
            [Node(n, "127.0.0.1", 9092 + n) for n in range(1, nodes + 1)],
            Settings(replication_factor=nodes),
            random.Random(seed + 1),
        )
        self.members: list[Member] = []
        self._connections = itertools.count(1)
        self._by_connection: dict[int, tuple[Member, int, int]] = {}
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._buffers: dict[int, bytes] = {}

    # ---- members ----

    def join(self, name: str, topics: str | list[str] | None, **given: object) -> Member:
        """Start a member that subscribes; None: one that stays outside."""
        settings = consumer_settings(
            {"bootstrap.servers": "127.0.0.1:9093", "group.id": "g"}, {**self.given, **given}
        )
        control = ConsumerControl(settings, name, self.random.random, lambda: int(self.now * 1000))
        member = Member(name, control, settings)
        member.alive_until = self.now + member.settings.max_poll_interval
        self.members.append(member)
        if topics is None:
            return member
        wanted = (
            Subscription(pattern=re.compile(topics))
            if isinstance(topics, str)
            else Subscription(frozenset(topics))
        )
        assert control.group is not None
        control.group.member.subscribe(wanted, self.now)
        return member

    def leave(self, member: Member) -> None:
        """Close a member as its user would."""
        assert member.control.group is not None
        self._give_up(member, member.owned, "left")
        member.poll_every = 1e9
        member.next_poll = 1e9
        member.control.group.member.leave(self.now, lambda: None)
        self.run(0.1)
        self.kill(member)

    def kill(self, member: Member) -> None:
        """End a member as kill -9 does."""
        member.dead = True
        for connection, (owner, _, _) in list(self._by_connection.items()):
            if owner is member:
                self._disconnect(connection)
        member.history.append((self.now, "killed", member.owned))
        member.owned = frozenset()
        self.members.remove(member)

    def commit(self, member: Member, offsets: dict[TopicPartition, int]) -> list[Any]:
        """Commit; the list gets what becomes of it."""
        found: list[Any] = []
        assert member.control.group is not None
        member.control.group.commits.commit(
            {it: OffsetAndMetadata(at) for it, at in offsets.items()},
            found.append,
            self.now,
            deadline=self.now + 60,
        )
        return found

    # ---- time ----

    def run(self, seconds: float) -> None:
        """Let time pass."""
        end = self.now + seconds
        for _ in range(200_000):
            self._turn()
            due = self._next_due()
            if due > end:
                self.now = end
                return
            self.now = max(self.now, due)
        raise AssertionError(
            f"busy at {self.now}: {[(m.name, m.control.next_deadline()) for m in self.members]}"
        )

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
            f"{m.name} {m.control.group.member.state} {sorted(map(str, m.owned))}"  # type: ignore[union-attr]
            for m in self.members
        )

    def _next_due(self) -> float:
        due = [it.control.next_deadline() for it in self.members if it.unheard is None]
        due += [member.next_poll for member in self.members]
        for member in self.members:
            due += [
                it.due
                for it in member.repetitions.values()
                if it.in_flight is None and not it.is_silent
            ]
        if self._events:
            due.append(self._events[0][0])
        broker = self.cluster.next_due()
        if broker is not None:
            due.append(broker)
        return min(due, default=float("inf"))

    def _turn(self) -> None:
        for _ in range(1000):
            if not self._step():
                return
        raise AssertionError(f"no end at {self.now}: {self.describe()}")

    def _step(self) -> bool:
        busy = False
        while self._events and self._events[0][0] <= self.now:
            heapq.heappop(self._events)[2]()
            busy = True
        for _, output in self.cluster.poll_output(self.now):
            self._take_output(output)
            busy = True
        for member in list(self.members):
            busy |= self._run_member(member)
        return busy

    def _later(self, what: Callable[[], None]) -> None:
        delay = LATENCY * (0.5 + self.random.random())
        heapq.heappush(self._events, (self.now + delay, next(self._order), what))

    # ---- one member ----

    def _run_member(self, member: Member) -> bool:
        busy = False
        for token, repetition in list(member.repetitions.items()):
            if self.now >= member.alive_until:
                del member.repetitions[token]
                event = RepeatEnded(repetition.command.link_id, token)
                self._tell(member, event)
                busy = True
            elif repetition.in_flight is None:
                busy |= self._repeat(member, token, repetition)
        if member.unheard is not None:
            return busy
        member.control.tick(self.now)
        while (command := member.control.poll_command()) is not None:
            busy = True
            self._carry_out(member, command)
        if self.now >= member.next_poll:
            member.next_poll = self.now + member.poll_every
            self._poll(member)
            busy = True
        return busy

    def _tell(self, member: Member, event: PlaneEvent) -> None:
        if member.unheard is None:
            member.control.handle_event(event, self.now)
        else:
            member.unheard.append(event)

    def _repeat(self, member: Member, token: int, repetition: Repetition) -> bool:
        frame = repetition.frame
        if repetition.aside is not None:
            token, frame = repetition.aside.aside, repetition.aside.frame
            repetition.aside = None
        elif repetition.is_silent or repetition.due > self.now:
            return False
        repetition.in_flight, repetition.sent = token, frame
        repetition.due = self.now + repetition.period
        self._send(member, repetition.command.link_id, frame, repetition.command.token)
        return True

    def _poll(self, member: Member) -> None:
        group = member.control.group
        assert group is not None
        member.alive_until = self.now + member.settings.max_poll_interval
        if group.member.is_paused:
            group.member.handle_polled(self.now)
        news, member.news = member.news, []
        for it in news:
            match it:
                case RevokeWanted(partitions, lost, _):
                    self._give_up(member, partitions, "lost" if lost else "revoked")
                    group.handle_revoked(it, self.now)
                case AssignWanted(partitions, _, _):
                    added = partitions - member.owned
                    member.owned = partitions
                    member.history.append((self.now, "assigned", added))
                    group.handle_assigned(it, self.now)
                case MemberFailed(error):
                    member.errors.append(error)

    def _give_up(self, member: Member, partitions: frozenset[TopicPartition], kind: str) -> None:
        gone = member.owned & partitions
        if member.on_revoked is not None and gone:
            member.on_revoked(gone)
        member.owned -= partitions
        member.history.append((self.now, kind, gone))

    def _carry_out(self, member: Member, command: Any) -> None:
        match command:
            case ResolveHost(owner, host, _):
                member.control.links.handle_resolved(owner, host, ("127.0.0.1",), self.now)
            case OpenLink():
                self._open(member, command)
            case CloseLink(link_id):
                connection = member.links.get(link_id)
                if connection is not None:
                    self._disconnect(connection)
            case SendRaw(link_id, token, frame, _):
                self._send(member, link_id, frame, token)
            case Repeat():
                member.repetitions[command.token] = Repetition(
                    command,
                    self.now + command.delay,
                    command.frame,
                    command.expected,
                    command.period,
                )
            case Interject(token, _, heard, _) if token in member.repetitions:
                if member.repetitions[token].told == heard:
                    member.repetitions[token].aside = command
            case StopRepeat(token):
                member.repetitions.pop(token, None)
            case RevokeWanted() | AssignWanted() | MemberFailed():
                member.news.append(command)
            case _:
                pass  # streams and positions

    # ---- connections ----

    def _open(self, member: Member, command: OpenLink) -> None:
        node_id = command.port - 9092
        connection = next(self._connections)
        if not self.cluster.brokers[node_id].connect(connection):
            error = ConnectionRefusedError("refused")
            self._later(
                lambda: member.control.links.handle_connect_failed(command.link_id, error, self.now)
            )
            return
        member.links[command.link_id] = connection
        self._by_connection[connection] = (member, command.link_id, node_id)
        self._later(lambda: member.control.links.handle_connected(command.link_id, self.now))

    def _send(self, member: Member, link_id: int, frame: bytes, token: int) -> None:
        connection = member.links.get(link_id)
        if connection is None:
            self._later(lambda: self._tell(member, Response(link_id, token, None, 0)))
            return
        correlation = member.sent.get(connection, 0)
        member.sent[connection] = correlation + 1
        member.in_flight[connection, correlation] = (
            "repeat" if token in member.repetitions else "raw",
            token,
        )
        data = frame[:8] + correlation.to_bytes(4, "big") + frame[12:]
        node_id = self._by_connection[connection][2]
        self._later(lambda: self.cluster.brokers[node_id].handle_bytes(connection, data, self.now))

    def _take_output(self, output: Any) -> None:
        owner = self._by_connection.get(output.connection_id)
        if owner is None:
            return
        member, link_id, _ = owner
        if output.data:
            self._later(lambda: self._receive(member, link_id, output.connection_id, output.data))
        if output.close:
            self._later(lambda: self._closed(output.connection_id))

    def _receive(self, member: Member, link_id: int, connection: int, data: bytes) -> None:
        if connection not in self._by_connection:
            return
        data = self._buffers.pop(connection, b"") + data
        while len(data) >= 4 and len(data) - 4 >= int.from_bytes(data[:4], "big"):
            size = int.from_bytes(data[:4], "big")
            self._answer(member, link_id, connection, data[4 : 4 + size])
            data = data[4 + size :]
        if data:
            self._buffers[connection] = data

    def _answer(self, member: Member, link_id: int, connection: int, frame: bytes) -> None:
        correlation = int.from_bytes(frame[:4], "big")
        _, token = member.in_flight.pop((connection, correlation))
        repetition = member.repetitions.get(token)
        if repetition is not None:
            answered, repetition.in_flight = repetition.in_flight, None
            if frame[4:] == repetition.expected and answered == token:
                return
            if repetition.command.epoch_pos:
                repetition.learn(repetition.sent, frame)
            if answered != token:
                repetition.due = self.now + repetition.period
            repetition.told += 1
            repetition.aside = None
            assert answered is not None
            token = answered
        self._tell(member, Response(link_id, token, frame, 0))

    def _closed(self, connection: int) -> None:
        """The broker's side is gone."""
        owner = self._by_connection.pop(connection, None)
        if owner is None:
            return
        member, link_id, _ = owner
        del member.links[link_id]
        for key, (kind, token) in list(member.in_flight.items()):
            if key[0] == connection:
                del member.in_flight[key]
                if kind == "raw":
                    self._tell(member, Response(link_id, token, None, 0))
        for token, repetition in list(member.repetitions.items()):
            if repetition.command.link_id == link_id:
                del member.repetitions[token]
                self._tell(member, Response(link_id, token, None, 0))
        self._tell(member, LinkClosed(link_id, CloseReason.EOF, 0))

    def _disconnect(self, connection: int) -> None:
        """Our side closes."""
        _, _, node_id = self._by_connection[connection]
        self.cluster.brokers[node_id].disconnect(connection)
        self._closed(connection)
