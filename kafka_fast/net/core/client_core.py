"""What every client consists of: both planes, on a host that gives them their turns.

    any thread ── call ─────► ┌────────────┐ ── commands ─────────► data plane
    data plane ── events ───► │ ClientCore │ ── connect, resolve ─► Host
    Host ── turn, sockets ──► └────────────┘ ── commands ─────────► users' threads
                               │ ▲ events, decisions
                               ▼ │
                              control plane

A producer's or a consumer's core adds its own events, commands, and ways to end.

Threads hold a reference to the core, and the core holds none to the `Producer` or `Consumer` in
front of it. So the garbage collector can find a client that the user has dropped.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from kafka_fast.control.client_control import ClientControl
from kafka_fast.control.connections.connection_key import ConnectionKey
from kafka_fast.control.messages import (
    CallInThread,
    ClientCommand,
    CloseLink,
    DoWork,
    DumpEvent,
    OpenLink,
    ResolveHost,
    TopicSettled,
    TransportCommand,
    TransportEvent,
)
from kafka_fast.dataplane.core._events import PlaneEvent
from kafka_fast.dataplane.core._plane import DataPlane
from kafka_fast.errors import InternalError, UsageError
from kafka_fast.net._transport_carrier import carry_transport
from kafka_fast.net.calls import AT_ONCE, Calls
from kafka_fast.net.core.dump import LinkDump
from kafka_fast.net.host import Addresses, Host
from kafka_fast.net.process import process_life
from kafka_fast.net.waiting.steps import Steps
from kafka_fast.net.waiting.topic_waits import TopicWaits

EVENTS_AT_ONCE = 0.0001
BREATH = 0.001
"""Seconds that a turn handles events, and that the thread then sleeps before it handles the rest:
no other Python thread runs during a turn, and two hundred links may have news at once."""

TOUCH_INTERVAL = 30.0
"""Seconds, at most, between two reports of the topics in use, whose metadata must be kept."""


CommandT = TypeVar("CommandT")
EventT = TypeVar("EventT")


class ClientCore(ABC, Generic[CommandT, EventT]):
    """Both planes of one client. Control thread unless said otherwise.

    `CommandT` and `EventT` are those of its `ClientControl`.
    """

    kind: str
    """The client's name in messages for people: "producer" or "consumer"."""

    touch_interval = TOUCH_INTERVAL
    """Seconds between two calls of `_touch`."""

    topics: TopicWaits
    """The waits of users' threads for the metadata of topics."""

    exit_patience: float
    """Seconds, at most, that the end of the process waits for this client."""

    def __init__(
        self,
        client_id: str,
        host: Host,
        control: ClientControl[Any, CommandT, EventT],
        plane: DataPlane,
    ) -> None:
        """Bring the parts together; `_start` lets them run.

        Args:
            client_id: sent in all requests.
            host: the world under this client.
            control: the control plane.
            plane: the data plane, made with the host's environment.
        """
        self.client_id = client_id
        self.control = control
        self.plane = plane
        self.pid = os.getpid()
        self.call = Calls(host)
        """Hands a function of `now` to the control thread. Any thread."""
        self.driver = host.make_driver(plane)
        """Runs, in users' threads, the steps that may wait."""
        self._host = host
        self._dump = LinkDump(plane, control.link_name, host)
        self._connecting: dict[int, float] = {}  # deadline by id of a link being opened
        self._touch_at = 0.0
        self._events: deque[PlaneEvent] = deque()  # of the data plane, not handled yet
        self._has_commands = False  # there were too many for the last turn

    def _start(self) -> None:
        """Have the host give turns: the last step of making a client.

        After an exception nothing runs, and nothing that the host has taken is kept. A second
        Ctrl-C may cut even that short, so the end of the process knows the core before it starts.
        """
        process_life.add(self)
        try:
            self._host.start(self, self.plane)
        except BaseException:
            self._end()
            self._host.close()
            raise

    # ---- what differs from client to client ----

    @abstractmethod
    def _read_event(self, event: PlaneEvent) -> TransportEvent | DumpEvent | EventT:
        """Return the control plane's record for an event of the data plane."""

    @abstractmethod
    def _touch(self, now: float) -> None:
        """Keep the metadata of the topics in use."""

    @abstractmethod
    def _program(self, command: CommandT) -> None:
        """Carry out a command that only this kind of client has."""

    @abstractmethod
    def _fail(self, failure: InternalError) -> None:
        """End every wait with `failure`: there is no control thread any more."""

    @abstractmethod
    def _end(self) -> None:
        """End the threads, and give up what is not done. Called again after an interruption."""

    # ---- the end of the process, see `process_life`; its main thread ----

    @abstractmethod
    def begin_exit(self) -> None:
        """Start the work that must be done before the process ends, and do not wait for it."""

    @abstractmethod
    def wait_exit(self, timeout: float) -> bool:
        """Wait for that work, at most `timeout` seconds; return whether it is done."""

    @abstractmethod
    def log_exit(self) -> None:
        """Tell the log what the end of the process waits for."""

    @abstractmethod
    def end_exit(self, interrupted: str) -> None:
        """End now, and report the work that is not done.

        Args:
            interrupted: why the wait was cut short; "" if it was not.
        """

    # ---- users' threads ----

    def now(self) -> float:
        """Return monotonic seconds. Any thread."""
        return self._host.now()

    def check_lives(self) -> None:
        """Raise UsageError if this core was inherited through a fork. Any thread."""
        if os.getpid() != self.pid:
            raise UsageError(
                f"this {self.kind} belongs to the parent of this process: make a new one"
            )

    def debug_dump(self, timeout: float) -> Steps[str]:
        """Return the state of both planes and the latest events of the links, as text for people.

        Args:
            timeout: seconds to wait for the data plane; links that have not answered by then are
                left out.
        """
        self.check_lives()
        lines = yield from self._dump.ask_links(self.now() + timeout, lambda: self.plane.dead)
        self.driver.wake()  # another caller may wait to ask
        return self._dump_text(lines)

    def _dump_text(self, lines: Sequence[str]) -> str:
        """Return the state of both planes, and these lines about the links. Any thread."""
        now = self.now()
        head = f"{self.kind} {self.client_id!r} at {self._dump.head_stamp(now)}"
        return "\n".join([head, self.control.view.describe(now), *self._describe_own(), *lines])

    def _describe_own(self) -> list[str]:
        """Return the state of the user's thread, in lines for people. Any thread."""
        return []

    def mark_forked(self) -> None:
        """Refuse all use in a forked child: no thread runs there, and locks may be held."""
        self.plane.mark_inherited()

    # ---- turns ----

    def turn(self, now: float) -> None:
        """Run calls, handle events, do what is due, carry out commands."""
        self.control.begin_turn(now)
        self.call.run_calls(now)
        for link_id in [
            overdue for overdue, deadline in self._connecting.items() if deadline <= now
        ]:
            self._drop(link_id)  # the control plane lets its connection time out, too
        self._handle_events(now)
        if now >= self._touch_at:
            self._touch_at = now + self.touch_interval
            self._touch(now)
        self.control.tick(now)
        self._carry_out_commands(now)
        self.driver.wake()  # once, and last: any part of the turn may have ended a user's wait

    def _carry_out_commands(self, now: float) -> None:
        """Carry out commands in their order; leave the rest to the next turn if it takes long."""
        until = self.now() + AT_ONCE
        while (command := self.control.poll_command()) is not None:
            self.carry_out(command, now)
            if self.now() > until:
                self._has_commands = True
                return
        self._has_commands = False

    def _handle_events(self, now: float) -> None:
        """Handle events in their order; leave the rest to the next turn if there are too many."""
        self._events.extend(self.plane.take_events())
        until = self.now() + EVENTS_AT_ONCE
        while self._events and self.now() <= until:
            event = self._read_event(self._events.popleft())
            if isinstance(event, DumpEvent):
                self._dump.take_event(event)
            else:
                self.handle_event(event, now)

    def next_deadline(self) -> float:
        """Return when `turn` has something to do that no wake announces."""
        if self._has_commands or self.call.are_waiting:
            return self.now()
        deadline = min(self.control.next_deadline(), self._touch_at, *self._connecting.values())
        return min(deadline, self.now() + BREATH) if self._events else deadline

    def handle_event(self, event: TransportEvent | EventT, now: float) -> None:
        """Pass an event of the data plane to the control plane."""
        self.control.handle_event(event, now)

    def carry_out(self, command: ClientCommand | CommandT, now: float) -> None:
        """Carry out a command of the control plane."""
        match command:
            case OpenLink(link_id, deadline=deadline):
                self._connecting[link_id] = deadline
                self._host.connect(command, now)
            case CloseLink(link_id) if link_id in self._connecting:
                self._drop(link_id)
            case ResolveHost(owner, host, _):
                self._host.resolve(host, partial(self._take_addresses, owner, host))
            case DoWork(link_id, work):
                self._host.run_work(work, partial(self._take_result, link_id))
            case CallInThread(function, done):
                self._host.call_in_thread(function, partial(self._take_returned, done))
            case TopicSettled(topic, error):
                self.topics.settle(topic, error)
            case _ if isinstance(command, TransportCommand):
                carry_transport(command, self.plane)
            case _:
                self._program(command)

    # ---- what the host reports ----

    def handle_connected(self, link_id: int, now: float) -> None:
        """Tell the control plane that the link is open; the data plane has it."""
        del self._connecting[link_id]
        self.control.handle_connected(link_id, now)

    def handle_connect_failed(self, link_id: int, error: OSError, now: float) -> None:
        """Tell the control plane that a link could not be opened."""
        del self._connecting[link_id]
        self.control.handle_not_connected(link_id, error, now)

    def handle_crash(self, error: BaseException) -> None:
        """End the client after a turn that has failed; there is no further turn."""
        failure = InternalError(
            f"the {self.kind}'s control thread has failed: {error!r}. This is a fault of "
            "kafka_fast: please report it, with the traceback in the log and this error's `dump`",
            dump=self._dump_of_crash(),
        )
        failure.__cause__ = error
        self._fail(failure)
        self.driver.wake()

    def _dump_of_crash(self) -> str:
        """Return what `debug_dump` would, but for the links: nobody answers for them any more."""
        try:
            return self._dump_text([])
        except Exception as error:  # noqa: BLE001  # what has failed may not be able to tell
            return f"{self.kind} {self.client_id!r}: no state to show: {error!r}"

    def _drop(self, link_id: int) -> None:
        del self._connecting[link_id]
        self._host.drop_link(link_id)

    def _take_result(self, link_id: int, result: object) -> None:
        """Pass the result of a login's work to the control plane. Any thread."""
        self.call(lambda now: self.control.handle_work_done(link_id, result, now))

    def _take_returned(self, done: Callable[[object, float], None], result: object) -> None:
        """Pass the result of a function that was called in a thread to its caller. Any thread."""
        self.call(partial(done, result))

    def _take_addresses(self, owner: ConnectionKey, host: str, addresses: Addresses) -> None:
        """Pass the result of a look-up to the control plane. Any thread."""
        self.call(lambda now: self.control.handle_resolved(owner, host, addresses, now))
