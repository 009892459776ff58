"""One client's machine: gives both planes their turns, connects and resolves, all in virtual time.

    clock ─► Host ─ turn ─► data plane ─► Port ─► network
              │  └─ turn ─► control plane ─ OpenLink, CloseLink, ResolveHost ─┐
              └───────────────────────────────────────────────────────────────┘

It is to the planes what net/ is in reality: they run when their threads would wake up, a little
late, as threads do.
"""

from __future__ import annotations

import random
import socket
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

from kafka_fast.control.connection_key import ConnectionKey
from kafka_fast.control.links import Links
from kafka_fast.control.plane import CloseLink, OpenLink, ResolveHost
from kafka_fast.dataplane._plane import DataPlane
from kafka_fast.testing._memory import Turner, VirtualMachine
from kafka_fast.testing.simulation.clock import Clock
from kafka_fast.testing.simulation.network import HangError, Network, Port

FOREVER = float("inf")
LATE_THREAD = 0.02
"""Seconds that a thread may wait for the processor, when it waits."""


class Client(Protocol):
    """What runs on the control thread."""

    def turn(self, now: float) -> None:
        """Take events, do what is due, carry out commands."""

    def next_deadline(self) -> float:
        """Return when `turn` has something to do that no event announces."""


class Host:
    """The machine under one client: stands in for `Pump` and `ControlThread`."""

    def __init__(
        self,
        clock: Clock,
        network: Network,
        source: random.Random,
        *,
        hiccup_probability: float,
        lookup_failure_probability: float,
        unix_ms_at_zero: int,
        codec: int = 0,
        compression_level: int = 0,
    ) -> None:
        """Begin without planes.

        Args:
            clock: of the world.
            network: that the client is connected to.
            source: of the machine's randomness.
            hiccup_probability: of a turn: that its thread gets the processor late.
            lookup_failure_probability: of a look-up, while the network is not healthy.
            unix_ms_at_zero: the wall clock when virtual time is 0.
            codec: that compresses batches, by its number in their attributes.
            compression_level: of the codec.
        """
        self.clock = clock
        self.source = source
        self.machine = VirtualMachine(codec, compression_level, unix_ms_at_zero)
        self.machine.advance(clock.now)
        self.unix_ms_at_zero = unix_ms_at_zero
        self.port = Port(network, self._wake_data)
        self.turns = 0
        """Of both planes, together."""
        self.on_turned: Callable[[], None] = lambda: None
        """Called after each of them: somebody may wait for what it brought."""
        self._network = network
        self._hiccup_probability = hiccup_probability
        self._lookup_failure_probability = lookup_failure_probability
        self._calls: deque[Callable[[float], None]] = deque()
        self._connecting: dict[int, OpenLink] = {}
        self._data_due = FOREVER  # when the data plane's next turn is planned
        self._control_due = FOREVER
        self._gil_held_until = 0.0
        self._is_off = False

    def start(self, client: Client, links: Links, plane: DataPlane) -> None:
        """Begin to give turns.

        Args:
            client: the control plane with its events and commands.
            links: hears what becomes of sockets and look-ups.
            plane: the data plane, made on this machine.
        """
        self._client = client
        self._links = links
        self._plane = plane
        self.turner = Turner(plane, self.machine)
        self._plan_data(self.clock.now)
        self._plan_control(self.clock.now)

    def stop(self) -> None:
        """Give no more turns; the connections are closed by the planes, or by `Port.unplug`."""
        self._is_off = True

    def hold_gil(self, seconds: float) -> None:
        """Let no Python run but the caller's: the data plane is on its own."""
        self._gil_held_until = self.clock.now + seconds

    # ---- what threads ask for ----

    @property
    def is_current(self) -> bool:
        """Whether the caller runs on the control thread: as `ControlThread.is_current`."""
        return False

    def call(self, what: Callable[[float], None]) -> None:
        """Have `what(now)` called on the control thread, before its next turn."""
        self._calls.append(what)
        self._plan_control(self.clock.now + self.lateness())

    def carry_out(self, command: object, now: float) -> bool:
        """Carry out a command that is for the operating system; False if it is not."""
        match command:
            case OpenLink():
                self._open(command)
            case CloseLink(link_id) if link_id in self._connecting:
                del self._connecting[link_id]
            case ResolveHost(owner, host, _):
                self.clock.after(self._network.delay(), partial(self._resolve, owner, host))
            case _:
                return False
        return True

    def lateness(self) -> float:
        """Return how long a thread that was woken waits for the processor."""
        if self.source.random() < self._hiccup_probability:
            return self.source.random() * LATE_THREAD
        return self.source.random() * 20e-6

    def settle(self) -> None:
        """See who has been woken."""
        if self._is_off:
            return
        if self.machine.take_data_wake():
            self._wake_data()
        if self.machine.take_control_wake():
            self._plan_control(self.clock.now + self.lateness())

    # ---- the data plane ----

    def _wake_data(self) -> None:
        self._plan_data(self.clock.now + self.lateness())

    def _plan_data(self, due: float) -> None:
        if due < self._data_due:
            self._data_due = due
            self.clock.at(due, lambda: self._turn_data(due))

    def _turn_data(self, due: float) -> None:
        """One turn of the data plane's thread, and its sleep."""
        if due != self._data_due or self._is_off:
            return  # an earlier turn took its place
        self._data_due = FOREVER
        self.machine.advance(self.clock.now)
        self.turns += 1
        until = self.turner.turn()
        self.port.collect()
        if until < 0.0 or self.port.has_readable:
            self._plan_data(self.clock.now)
        elif until > 0.0:
            self._plan_data(until + self.lateness())
        self.on_turned()
        self.settle()

    # ---- the control thread ----

    def _plan_control(self, due: float) -> None:
        if due < self._control_due:
            self._control_due = due
            self.clock.at(due, lambda: self._turn_control(due))

    def _turn_control(self, due: float) -> None:
        if due != self._control_due or self._is_off:
            return
        self._control_due = FOREVER
        now = self.clock.now
        if now < self._gil_held_until:
            self._plan_control(self._gil_held_until + self.lateness())
            return
        self.machine.advance(now)
        self.turns += 1
        self._links.begin_turn(now)
        while self._calls:
            self._calls.popleft()(now)
        for link_id in [it.link_id for it in self._connecting.values() if it.deadline <= now]:
            del self._connecting[link_id]
        self._client.turn(now)
        deadline = self._client.next_deadline()
        for attempt in self._connecting.values():
            deadline = min(deadline, attempt.deadline)
        if deadline != FOREVER:
            self._plan_control(max(deadline, now) + self.lateness())
        self.on_turned()
        self.settle()

    # ---- the operating system ----

    def _resolve(self, owner: ConnectionKey, host: str) -> None:
        """Answer a look-up: node-3 has the address 10.0.0.3."""
        address = f"10.0.0.{host.removeprefix('node-')}"
        found: tuple[str, ...] | OSError = (address,)
        if not self._network.healthy:
            if self.source.random() < self._lookup_failure_probability:
                found = socket.gaierror(socket.EAI_AGAIN, "temporary failure in name resolution")
            elif self.source.random() < 0.1:
                found = ("10.0.0.99", address)  # nobody listens there
        self.call(lambda now: self._links.handle_resolved(owner, host, found, now))

    def _open(self, command: OpenLink) -> None:
        node = int(command.ip.rpartition(".")[2])
        self._connecting[command.link_id] = command
        try:
            fate = self._network.fate_of_attempt(node)
        except HangError:
            return
        self.clock.after(
            2 * self._network.delay(), partial(self._finish_connect, command, node, fate)
        )

    def _finish_connect(self, command: OpenLink, node: int, fate: OSError | None) -> None:
        if self._connecting.pop(command.link_id, None) is None or self._is_off:
            return  # given up meanwhile
        link = None
        if fate is None:
            link = self.port.connect(command.link_id, node, command.key.node_id)
        if link is None:
            refused = fate or ConnectionRefusedError("connection refused")
            self.call(lambda now: self._links.handle_connect_failed(command.link_id, refused, now))
            return
        self.turner.add_link(link)
        self.call(lambda now: self._links.handle_connected(command.link_id, now))
        self.settle()
