"""The world under one client: gives both planes their turns, connects, resolves, in virtual time.

    clock ─► VirtualHost ─ turn ─► data plane ─► Port ─► network
                │  ▲    └─ turn ─► ClientCore ─ connect, drop, resolve ─┐
                │  └───────────────────────────────────────────────────┘
                └─ handle_connected, handle_connect_failed ─► ClientCore

It is to the shipped cores what `ThreadedHost` is in reality: they run when their threads would wake
up, a little late, as threads do.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from kafka_fast.control.authentication.mechanism import Mechanism, Work
from kafka_fast.control.messages import OpenLink
from kafka_fast.dataplane.core._plane import DataPlane, Environment
from kafka_fast.dataplane.produce._queues import Queues
from kafka_fast.net.host import Addresses, Client
from kafka_fast.net.waiting.callers import Callers, ThreadCallers
from kafka_fast.net.waiting.steps import Driver, Steps, Yielded, run_steps
from kafka_fast.sending._observers import notify
from kafka_fast.testing._memory import Turner, VirtualMachine
from tests.sim.worlds.clock import Clock
from tests.sim.worlds.network import HangError, Network, Port

T = TypeVar("T")

FOREVER = float("inf")
LATE_THREAD = 0.02
"""Seconds that a thread may wait for the processor, when it waits."""


LONG_WORK = 0.5
"""Seconds that a piece of work takes at the most."""

LONG_ASSIGNMENT = 5.0
"""Seconds that an assignor takes at the most, when it takes long."""


class VirtualHost:
    """The virtual world under one client: a `ProducerHost`."""

    callers: Callers = ThreadCallers()

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
        choose: random.Random | None = None,
        mechanism: Mechanism | None = None,
    ) -> None:
        """Store how this machine behaves; `start` brings the planes.

        Args:
            clock: of the world.
            network: that the client is connected to.
            source: of the machine's randomness.
            hiccup_probability: of a turn: that its thread gets the processor late.
            lookup_failure_probability: of a look-up, while the network is not healthy.
            unix_ms_at_zero: the wall clock when virtual time is 0.
            codec: that compresses batches, by its number in their attributes.
            compression_level: of the codec.
            choose: source of what the control plane chooses by chance; None: the machine's.
            mechanism: how the client says who it is; None: brokers do not ask.
        """
        self.clock = clock
        self.source = source
        self.machine = VirtualMachine(codec, compression_level, unix_ms_at_zero)
        self.machine.advance(clock.now)
        self.environment: Environment = self.machine
        self.mechanism = mechanism
        self.random = (choose or source).random
        self.unix_ms_at_zero = unix_ms_at_zero
        self.port = Port(network, self._wake_data)
        self.turns = 0
        """Of both planes, together."""
        self.on_turned: Callable[[], None] = lambda: None
        """Called after each of them: somebody may wait for what it brought."""
        self._network = network
        self.assignment_takes = 0.0  # seconds, at least, of an assignor at work
        self._hiccup_probability = hiccup_probability
        self._lookup_failure_probability = lookup_failure_probability
        self._connecting: set[int] = set()
        self._data_due = FOREVER  # when the data plane's next turn is planned
        self._control_due = FOREVER
        self._gil_held_until = 0.0
        self.calls_aside = 0
        """How many calls of assignors have not returned."""
        self._is_off = False

    # ---- what a core asks for, as in `kafka_fast.net.host` ----

    def start(self, client: Client, plane: DataPlane) -> None:
        """Plan the first turn of each plane."""
        self._client = client
        self.turner = Turner(plane, self.machine)
        self._plan_data(self.clock.now)
        self._plan_control(self.clock.now)

    def stop(self, patience: float | None = None) -> bool:
        """Give no more turns; the connections are closed by the planes, or by `Port.unplug`."""
        self._is_off = True
        return True

    def close(self) -> None:
        """There is nothing to give back."""

    @property
    def is_current(self) -> bool:
        """Whether the caller is the control thread: here no user is."""
        return False

    def wait_ended(self, timeout: float) -> bool:
        """Return that no thread runs."""
        return True

    def now(self) -> float:
        """Return virtual seconds."""
        return self.clock.now

    def wall_ms(self) -> int:
        """Return the Unix time in ms, of virtual time."""
        return self.unix_ms_at_zero + int(self.clock.now * 1000)

    def random_bits(self) -> int:
        """Return 63 random bits."""
        return self.source.getrandbits(63)

    def wake(self) -> None:
        """Plan a turn of the control plane."""
        self._plan_control(self.clock.now + self.lateness())

    def connect(self, command: OpenLink, now: float) -> None:
        """Try to connect to the node with this address; the attempt takes a while, or hangs."""
        node = int(command.ip.rpartition(".")[2])
        self._connecting.add(command.link_id)
        try:
            fate = self._network.fate_of_attempt(node)
        except HangError:
            return
        self.clock.after(
            2 * self._network.delay(), partial(self._finish_connect, command, node, fate)
        )

    def drop_link(self, link_id: int) -> None:
        """Give up a link that is still being opened."""
        self._connecting.discard(link_id)

    def resolve(self, host: str, done: Callable[[Addresses], None]) -> None:
        """Look a host name up."""
        self.clock.after(self._network.delay(), partial(self._resolve, host, done))

    def run_work(self, work: Work, done: Callable[[object], None]) -> None:
        """Do a piece of work of a login, which takes its time."""
        duration = self.source.random() * LONG_WORK * self.source.random() ** 3
        self.clock.after(duration, lambda: done(_result(work.function)))

    def call_in_thread(
        self, function: Callable[[], object], done: Callable[[object], None]
    ) -> None:
        """Call a function that may take long: an assignor."""
        duration = self.assignment_takes + self.lateness()
        if not self._network.healthy and self.source.random() < self._hiccup_probability:
            duration += self.source.random() * LONG_ASSIGNMENT
        self.calls_aside += 1
        self.clock.after(duration, partial(self._end_call_in_thread, function, done))

    def _end_call_in_thread(
        self, function: Callable[[], object], done: Callable[[object], None]
    ) -> None:
        self.calls_aside -= 1
        done(_result(function))

    def compress_with(self, codec: str, level: int) -> None:
        """The virtual machine was made with a codec."""

    def make_callbacks(self, queues: Queues) -> VirtualCallbacks:
        """Return where callbacks run."""
        self.callbacks = VirtualCallbacks(self, queues)
        return self.callbacks

    def make_loop_bridge(self, queues: Queues) -> None:
        """Nobody awaits."""

    def make_driver(self, plane: DataPlane) -> Driver:
        """Return what runs the steps of users: of such who never wait."""
        return NoWaits()

    # ---- threads ----

    def hold_gil(self, seconds: float) -> None:
        """Let no Python run but the caller's: the data plane is on its own."""
        self._gil_held_until = self.clock.now + seconds

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
        if until < 0.0 or self.port.has_ready:
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
        self._client.turn(now)
        deadline = self._client.next_deadline()
        if deadline != FOREVER:
            self._plan_control(max(deadline, now) + self.lateness())
        self.on_turned()
        self.settle()

    # ---- the network ----

    def _resolve(self, host: str, done: Callable[[Addresses], None]) -> None:
        """Answer a look-up: node-3 has the address 10.0.0.3."""
        address = f"10.0.0.{host.removeprefix('node-')}"
        addresses: Addresses = (address,)
        if not self._network.healthy:
            if self.source.random() < self._lookup_failure_probability:
                addresses = socket.gaierror(
                    socket.EAI_AGAIN, "temporary failure in name resolution"
                )
            elif self.source.random() < 0.1:
                addresses = ("10.0.0.99", address)  # nobody listens there
        done(addresses)

    def _finish_connect(self, command: OpenLink, node: int, fate: OSError | None) -> None:
        client, link_id = self._client, command.link_id
        if link_id not in self._connecting or self._is_off:
            return  # given up meanwhile
        self._connecting.discard(link_id)
        link = None
        if fate is None:
            link = self.port.connect(link_id, node, command.key.node_id)
        if link is None:
            refused = fate or ConnectionRefusedError("connection refused")
            client.call(lambda now: client.handle_connect_failed(link_id, refused, now))
            return
        self.turner.add_link(link)
        client.call(lambda now: client.handle_connected(link_id, now))
        self.settle()


class NoWaits:
    """The driver of users who are called when there is something for them to do."""

    def run(self, steps: Steps[T]) -> T:
        """Run steps that do not wait."""
        return run_steps(steps, _refuse)

    def wake(self) -> None:
        """Nobody waits."""


def _result(function: Callable[[], object]) -> object:
    """Return what a function returns, or what it raises."""
    try:
        return function()
    except Exception as error:  # noqa: BLE001  # as on its thread
        return error


def _refuse(yielded: Yielded) -> object:
    raise AssertionError(f"nobody waits here: {yielded}")


class VirtualCallbacks:
    """Where the users' delivery callbacks run: after a while, as on a thread."""

    is_current = False

    def __init__(self, host: VirtualHost, queues: Queues) -> None:
        """Store whose callbacks these are; none runs before `wake`.

        Args:
            host: knows how late threads are.
            queues: their batches have the callbacks.
        """
        self._host = host
        self._queues = queues
        self.due = FOREVER
        """When they run."""

    def start(self) -> None:
        """There is a first callback."""

    def wake(self) -> None:
        """Run soon what there is."""
        if self.due == FOREVER:
            self.due = self._host.clock.now + self._host.lateness()
            self._host.clock.at(self.due, self._run)

    def run(self) -> None:
        """Call what there is; what a callback raises ends the world."""
        notify(self._queues, _raise)

    def await_run(self, deadline: float) -> Steps[None]:
        """Nobody waits: users go on when they are called."""
        yield from ()

    def join(self, patience: float | None) -> None:
        """Run the last ones."""
        self.run()

    def _run(self) -> None:
        self.due = FOREVER
        self.run()


def _raise(callback: object, error: BaseException) -> None:
    raise error
