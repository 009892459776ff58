"""The network of a simulation: connections between the clients' links and the brokers' cores.

    data plane ─ MemoryLink ─► Wire.outbound ─ latency ─► Broker.handle_bytes
    data plane ◄ MemoryLink ─ Wire.inbound ◄─ latency ─── Cluster.poll_output

Bytes arrive in order and after a while. A wire can break at any byte in either direction: then a
part of what is on its way still arrives, and the rest never does, as with TCP.
"""

from __future__ import annotations

import errno
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from kafka_fast.testing._memory import MemoryLink
from kafka_fast.testing._tls_stand_in import TlsStandIn
from kafka_fast.testing.broker.cluster import Cluster
from tests.sim.worlds.clock import Clock
from tests.sim.worlds.guard import Guard
from tests.sim.worlds.plan import NetworkPlan

Log = Callable[[str], None]

RECORD_BYTES = 16_384  # as TLS has it


class HangError(Exception):
    """An attempt to connect that nobody answers."""


@dataclass(slots=True, eq=False)
class Wire:
    """One established connection."""

    link: MemoryLink
    port: Port
    """The client at this end."""
    connection_id: int
    node: int
    """The broker at the other end."""
    latency: float
    out_budget: int
    """Bytes towards the broker after which the wire breaks; -1: it does not."""
    in_budget: int
    outbound: deque[bytes] = field(default_factory=deque)
    inbound: deque[tuple[bytes, bool]] = field(default_factory=deque)
    """Bytes for the client, and whether the broker closes after them."""
    outbound_due: float = 0.0
    inbound_due: float = 0.0
    broken: bool = False
    left: bool = False
    """The client's end is closed, and the broker will hear of it."""


class Network:
    """All wires, and the brokers at their other ends."""

    def __init__(
        self,
        clock: Clock,
        cluster: Cluster,
        plan: NetworkPlan,
        source: random.Random,
        log: Log,
        guard: Guard | None = None,
    ) -> None:
        """Let `plan` and `source` decide what happens to each wire.

        Args:
            clock: of the world.
            cluster: the brokers.
            plan: how the network behaves.
            source: of its randomness.
            log: takes what happens.
            guard: has clients log in; None: nobody does.
        """
        self._guard = guard
        self._clock = clock
        self._cluster = cluster
        self._plan = plan
        self._source = source
        self._log = log
        self._wires: dict[int, Wire] = {}  # by connection id
        self._next_connection_id = 1
        self._polled_for = float("inf")
        self.healthy = False
        """No wire that is made from now on breaks by itself."""

    # ---- getters ----

    @property
    def wires(self) -> list[Wire]:
        """The wires that have not broken."""
        return [wire for wire in self._wires.values() if not wire.broken]

    # ---- connecting ----

    def delay(self) -> float:
        """Return how long something takes on its way."""
        return self._plan.latency * (1 + self._source.random() * self._plan.jitter)

    def fate_of_attempt(self, node_id: int) -> OSError | None:
        """Return why a connection is refused, None if it is established.

        Raises:
            HangError: nobody answers.
        """
        chance = self._source.random()
        node = self._cluster.state.nodes.get(node_id)
        if node is None or not node.alive:
            return ConnectionRefusedError(errno.ECONNREFUSED, "connection refused")
        if self.healthy:
            return None
        if chance < self._plan.refuse_probability:
            return ConnectionRefusedError(errno.ECONNREFUSED, "connection refused")
        if chance < self._plan.refuse_probability + self._plan.hang_probability:
            raise HangError
        return None

    def connect(self, port: Port, link_id: int, node: int, node_id: int) -> Wire | None:
        """Establish a wire to a broker; None if it takes no connection.

        Args:
            port: the client's end.
            link_id: the client's number of it.
            node: the broker.
            node_id: what the client takes it for (-1: a bootstrap server).
        """
        connection_id = self._next_connection_id
        if not self._cluster.brokers[node].connect(connection_id):
            return None
        self._next_connection_id += 1
        if self._guard is not None:
            self._guard.connect(connection_id)
        seed = self._source.getrandbits(63)
        link = MemoryLink(link_id, node_id, self._plan.choppiness, seed, _draw_layer(seed))
        budgets = [-1, -1]
        if not self.healthy and self._source.random() < self._plan.cut_probability:
            budgets[self._source.randrange(2)] = self._source.choice(
                (self._source.randrange(60), self._source.randrange(3_000))
            )
        wire = Wire(link, port, connection_id, node, self._plan.latency, budgets[0], budgets[1])
        self._wires[connection_id] = wire
        return wire

    # ---- from the client ----

    def collect(self, wire: Wire) -> None:
        """Take what the client has written and closed since the last call on its way."""
        data = wire.link.take_sent()
        if data and not wire.broken:
            if self._guard is not None:
                late = wire.link.is_full or self._plan.choppiness > 0
                self._guard.note_written(wire.connection_id, data, self._clock.now, late=late)
            self._send(wire, data)
        if wire.link.is_closed and not wire.left:
            self._leave(wire)
        elif wire.link.is_full:
            self._clock.after(self.delay() / 2, partial(self._make_room, wire))

    def _send(self, wire: Wire, data: bytes) -> None:
        wire.outbound.append(data)
        wire.outbound_due = max(wire.outbound_due, self._clock.now + self._hop(wire))
        self._clock.at(wire.outbound_due, lambda: self._deliver(wire))

    def _hop(self, wire: Wire) -> float:
        return wire.latency * (1 + self._source.random() * self._plan.jitter)

    def _deliver(self, wire: Wire) -> None:
        if not wire.outbound:
            return
        data = wire.outbound.popleft()
        if 0 <= wire.out_budget < len(data):
            wire.outbound.clear()  # what would follow the missing bytes never arrives either
            wire.outbound.append(data[: wire.out_budget])
            self.cut(wire, whole=True)
            return
        if wire.out_budget >= 0:
            wire.out_budget -= len(data)
        self._hand_over(wire, data)

    def _hand_over(self, wire: Wire, data: bytes) -> None:
        broker = self._cluster.brokers[wire.node]
        if self._guard is not None:
            admitted = self._guard.admit(wire.connection_id, data, self._clock.now)
            data = admitted.forward
            if admitted.answer or admitted.close:
                self._answer(wire, admitted.answer, close=admitted.close)
            if admitted.close:
                broker.disconnect(wire.connection_id)
                return
        broker.handle_bytes(wire.connection_id, data, self._clock.now)
        self.poll_brokers()

    def _make_room(self, wire: Wire) -> None:
        if wire.link.make_room() and not wire.left:
            wire.port.wake()

    def _leave(self, wire: Wire) -> None:
        """The client has closed: what it wrote before may still arrive, or not."""
        wire.left = True
        if wire.broken or self._source.random() < 0.3:
            self._log(f"wire {wire.link.link_id} reset by client")
            self._forget(wire)
            return
        self._clock.at(
            max(wire.outbound_due, self._clock.now + wire.latency), lambda: self._forget(wire)
        )

    def abandon(self, wire: Wire) -> None:
        """The client's machine closes for a process that is gone; the broker hears of it later."""
        if not wire.left:
            wire.left = True
            self._clock.after(wire.latency, lambda: self._forget(wire))

    def _forget(self, wire: Wire) -> None:
        wire.outbound.clear()
        wire.inbound.clear()
        wire.broken = True
        self._wires.pop(wire.connection_id, None)
        wire.port.forget(wire)
        self._cluster.brokers[wire.node].disconnect(wire.connection_id)

    # ---- from the brokers ----

    def poll_brokers(self) -> None:
        """Take what the brokers have to say by now on its way, and look again when it is time."""
        for _, output in self._cluster.poll_output(self._clock.now):
            wire = self._wires.get(output.connection_id)
            if wire is None or wire.broken:
                continue
            data = output.data
            if self._guard is not None:
                data = self._guard.announce(wire.connection_id, data)
            self._answer(wire, data, close=bool(output.close))
        due = self._cluster.next_due()
        if due is not None and not self._clock.now < self._polled_for <= due:
            self._polled_for = due
            self._clock.at(due, self.poll_brokers)

    def _answer(self, wire: Wire, data: bytes, *, close: bool) -> None:
        wire.inbound.append((data, close))
        wire.inbound_due = max(wire.inbound_due, self._clock.now + self._hop(wire))
        self._clock.at(wire.inbound_due, partial(self._arrive, wire))

    def _arrive(self, wire: Wire) -> None:
        if not wire.inbound:
            return
        data, close = wire.inbound.popleft()
        if 0 <= wire.in_budget < len(data):
            wire.inbound.clear()
            wire.inbound.append((data[: wire.in_budget], False))
            self.cut(wire, whole=True)
            return
        if wire.in_budget >= 0:
            wire.in_budget -= len(data)
        wire.link.arrive(data)
        if close:
            self._end(wire)
        wire.port.wake()

    def _end(self, wire: Wire) -> None:
        """The client sees the end of the connection: a close, or a reset."""
        wire.broken = True
        if self._source.random() < 0.5:
            wire.link.end()
        else:
            wire.link.fail(errno.ECONNRESET)

    # ---- faults ----

    def garble(self, wire: Wire, data: bytes) -> None:
        """Let bytes arrive that are no answer to anything."""
        self._answer(wire, data, close=False)

    def cut(self, wire: Wire, *, whole: bool = False) -> None:
        """Break a wire now: a part of what is on its way arrives, or with `whole` all of it."""
        if wire.broken:
            return
        out = b"".join(wire.outbound)
        back = b"".join(data for data, _ in wire.inbound)
        wire.outbound.clear()
        wire.inbound.clear()
        if not whole:
            out = out[: self._source.randint(0, len(out))]
            back = back[: self._source.randint(0, len(back))]
        self._log(
            f"wire {wire.link.link_id} to node {wire.node} breaks after {len(out)} bytes there "
            f"and {len(back)} back"
        )
        if out:
            self._hand_over(wire, out)
            wire.inbound.clear()
        wire.link.arrive(back)
        self._end(wire)
        self._cluster.brokers[wire.node].disconnect(wire.connection_id)
        wire.port.wake()


def _draw_layer(seed: int) -> TlsStandIn | None:
    """Return what lies over one connection of four: bytes wait there that no poller sees."""
    if seed >> 61:
        return None
    return TlsStandIn(record_bytes=RECORD_BYTES, read_bytes=1 + seed % 500, answer_every=3)


class Port:
    """One client's end of the network: its wires."""

    def __init__(self, network: Network, wake: Callable[[], None]) -> None:
        """Store the network; each connection adds a wire.

        Args:
            network: that the wires belong to.
            wake: tells that a link can be read or written now.
        """
        self._network = network
        self._wires: dict[int, Wire] = {}  # by connection id
        self._links: list[MemoryLink] = []  # all that ever were
        self.wake = wake

    @property
    def has_ready(self) -> bool:
        """Whether the data plane can go on reading or writing."""
        return any(wire.link.is_ready for wire in self._wires.values())

    def traces(self) -> list[str]:
        """Return the debug rings of all links that ever were."""
        lines = []
        for link in self._links:
            lines.append(f"link {link.link_id} to node {link.node_id}:")
            lines += [f"  {line}" for line in link.trace()]
        return lines

    def connect(self, link_id: int, node: int, node_id: int) -> MemoryLink | None:
        """Establish a wire; see `Network.connect`."""
        wire = self._network.connect(self, link_id, node, node_id)
        if wire is None:
            return None
        self._wires[wire.connection_id] = wire
        self._links.append(wire.link)
        return wire.link

    def collect(self) -> None:
        """Take what the client has written and closed since the last call on its way."""
        for wire in list(self._wires.values()):
            self._network.collect(wire)

    def unplug(self) -> None:
        """The client is gone, as with kill -9: its machine closes what was open."""
        self.wake = _nobody
        for wire in list(self._wires.values()):
            self._network.abandon(wire)

    def forget(self, wire: Wire) -> None:
        """Nothing goes over this wire any more."""
        self._wires.pop(wire.connection_id, None)


def _nobody() -> None:
    """Wake a client that is gone."""
