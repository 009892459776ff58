"""The control plane's thread: carries calls, connects sockets, sleeps until something is due.

    any thread ── call ──► ┌───────────────┐ ── turn(now) ──► the client's own events and commands
    data plane ── event ─► │ ControlThread │
    sockets, look-ups ───► └───────────────┘ ── links.handle_… (connected, failed, resolved)

What a turn consists of is the client's business; what every client's control plane needs of the
operating system is here.
"""

from __future__ import annotations

import selectors
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from typing import Protocol

from kafka_fast.config import CommonSettings
from kafka_fast.control.connection_key import ConnectionKey
from kafka_fast.control.instants import NEVER
from kafka_fast.control.links import Links
from kafka_fast.control.plane import CloseLink, OpenLink, ResolveHost
from kafka_fast.dataplane._plane import WAIT_SLICE
from kafka_fast.logs import get_logger
from kafka_fast.net._pump import Machine, Pump
from kafka_fast.net.machine import Addresses, Connecting, begin_connect, finish_connect, resolve

logger = get_logger("kafka_fast.net")


class Client(Protocol):
    """What runs on the thread."""

    def turn(self, now: float) -> None:
        """Take events, do what is due, carry out commands."""

    def next_deadline(self) -> float:
        """Return when `turn` has something to do that no event announces."""

    def handle_crash(self, error: BaseException) -> None:
        """The thread has failed: tell everybody who waits."""


class ControlThread:
    """One client's control thread. `call`, `start`, `stop`: any thread; the rest: its own."""

    def __init__(
        self, client: Client, links: Links, machine: Machine, pump: Pump, settings: CommonSettings
    ) -> None:
        """Begin stopped.

        Args:
            client: does the work.
            links: hears what becomes of sockets and look-ups.
            machine: its `control_event` ends the thread's sleep.
            pump: takes the sockets that are connected.
            settings: the client's configuration.
        """
        self._client = weakref.ref(client)  # strong while the thread runs, see `_run`
        self._links = links
        self._machine = machine
        self._pump = pump
        self._settings = settings
        self._calls: deque[Callable[[float], None]] = deque()
        self._connecting: dict[int, Connecting] = {}
        self._stopping = False
        self._selector = selectors.EpollSelector()
        self._selector.register(machine.control_event, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._run, name="kf-control", daemon=True)

    @property
    def is_current(self) -> bool:
        """Whether the caller runs on this thread."""
        return threading.current_thread() is self._thread

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether the thread turns: it has started, and neither ended nor failed."""
        return self._thread.is_alive()

    def stop(self, patience: float | None = None) -> bool:
        """End the thread and give up what is still connecting. The thread itself may call this.

        Args:
            patience: Seconds to wait for the thread's end; None: as long as it takes. A name
                that is looked up in place, see `resolve`, may hold it.

        Returns:
            Whether the thread has ended, or is the caller and ends next.
        """
        self._stopping = True
        self._machine.wake_control()
        if self._thread.is_alive() and not self.is_current:
            self._thread.join(patience)
            if self._thread.is_alive():
                return False
        for connecting in self._connecting.values():
            connecting.socket.close()
        self._connecting.clear()
        self._selector.close()
        return True

    def wait_ended(self, timeout: float) -> bool:
        """Wait until the thread has ended, in slices that look for signals."""
        deadline = time.monotonic() + timeout
        while self._thread.is_alive() and (left := deadline - time.monotonic()) > 0:
            self._thread.join(min(WAIT_SLICE, left))
        return not self._thread.is_alive()

    def call(self, what: Callable[[float], None]) -> None:
        """Have `what(now)` called on the thread, before its next turn."""
        self._calls.append(what)
        self._machine.wake_control()

    def carry_out(self, command: object, now: float) -> bool:
        """Carry out a command that is for the operating system; False if it is not."""
        match command:
            case OpenLink():
                self._open(command, now)
            case CloseLink(link_id) if link_id in self._connecting:
                self._drop(link_id)
            case ResolveHost(owner, host, _):
                resolve(host, lambda found: self._take_addresses(owner, host, found))
            case _:
                return False
        return True

    def _run(self) -> None:
        client = self._client()
        if client is None:
            return
        try:
            while not self._stopping:
                now = time.monotonic()
                self._links.begin_turn(now)
                while self._calls:
                    self._calls.popleft()(now)
                for connecting in [it for it in self._connecting.values() if it.deadline <= now]:
                    self._drop(connecting.link_id)  # its connection has timed out as well
                client.turn(now)
                self._sleep(client)
        except BaseException as error:
            logger.exception("a control thread has failed; its client is of no use any more")
            client.handle_crash(error)

    def _take_addresses(self, owner: ConnectionKey, host: str, found: Addresses) -> None:
        self.call(lambda now: self._links.handle_resolved(owner, host, found, now))

    def _open(self, command: OpenLink, now: float) -> None:
        try:
            connecting = begin_connect(command, self._settings)
        except OSError as error:
            self._connect_failed(command.link_id, error, now)
            return
        self._connecting[command.link_id] = connecting
        self._selector.register(connecting.socket, selectors.EVENT_WRITE, connecting)

    def _drop(self, link_id: int) -> None:
        """Give up a socket that is still connecting."""
        connecting = self._connecting.pop(link_id)
        self._selector.unregister(connecting.socket)
        connecting.socket.close()

    def _finish(self, connecting: Connecting) -> None:
        now = time.monotonic()
        self._selector.unregister(connecting.socket)
        del self._connecting[connecting.link_id]
        try:
            fd = finish_connect(connecting)
            self._pump.add_link(connecting.link_id, connecting.node_id, fd)
        except OSError as error:
            self._connect_failed(connecting.link_id, error, now)
            return
        self._links.handle_connected(connecting.link_id, now)

    def _connect_failed(self, link_id: int, error: OSError, now: float) -> None:
        # It is kept for later reports; its traceback would keep the client with it.
        self._links.handle_connect_failed(link_id, error.with_traceback(None), now)

    def _sleep(self, client: Client) -> None:
        """Wait for events, calls, sockets or the next deadline."""
        if self._calls or self._stopping:
            return
        deadline = client.next_deadline()
        for connecting in self._connecting.values():
            deadline = min(deadline, connecting.deadline)
        if self._pump.is_inline:
            self._pump.turn(self._selector.fileno(), deadline)
            deadline = 0.0
        timeout = None if deadline == NEVER else max(0.0, deadline - time.monotonic())
        for key, _ in self._selector.select(timeout):
            if key.data is None:
                self._machine.clear_control()
            else:
                self._finish(key.data)
