"""A client on the operating system: its two threads, connecting sockets, clocks, compression.

any thread ── wake ───► ┌──────────────┐ ── turn(now) ──────────────► the client's control plane
data plane ── event ──► │ ThreadedHost │ ── handle_connected, … ────► the same
sockets ──────────────► └──────────────┘ ── add_link ───────────────► Pump: the data plane

kf-data      native: turns the data plane, never takes the GIL (see `_pump`)
kf-control   Python: gives the control plane its turns, connects sockets, sleeps between turns
kf-tls       native: handshakes, if the client speaks TLS (see `tls`)
"""

from __future__ import annotations

import random
import selectors
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from kafka_fast.config import CommonSettings
from kafka_fast.control.authentication.mechanism import Mechanism, Work
from kafka_fast.control.messages import OpenLink
from kafka_fast.dataplane.core._plane import WAIT_SLICE, DataPlane, Environment
from kafka_fast.dataplane.core._wake import Wake
from kafka_fast.dataplane.fetch._streams import Streams
from kafka_fast.dataplane.produce._queues import Queues
from kafka_fast.instants import NEVER
from kafka_fast.logs import get_logger, name_thread
from kafka_fast.net._compressor import Compressor
from kafka_fast.net._pump import Machine, Pump
from kafka_fast.net.callbacks import CallbackThread
from kafka_fast.net.host import Addresses, Client
from kafka_fast.net.planes import CODECS
from kafka_fast.net.sockets import Connecting, begin_connect, finish_connect, resolve
from kafka_fast.net.waiting.blocking import BlockingDriver
from kafka_fast.net.waiting.callers import Callers, ThreadCallers
from kafka_fast.net.waiting.loop_bridge import LoopBridge
from kafka_fast.net.waiting.loop_readers import LoopReaders
from kafka_fast.net.work import LoginWork, call_in_thread
from kafka_fast.record import Codec, codecs_available

if TYPE_CHECKING:
    from kafka_fast.net.package_compressor import PackageCompressor
    from kafka_fast.net.tls.connector import TlsConnector
    from kafka_fast.net.waiting.looping import LoopDriver

logger = get_logger("kafka_fast.net")


START_PATIENCE = 0.5
"""Seconds after which a thread that an interruption kept from starting is taken for never begun."""


class ThreadedHost:
    """The threads and sockets of one client. Only the running control thread keeps the client."""

    def __init__(self, settings: CommonSettings, callers: Callers | None = None) -> None:
        """Make what the threads use, such as the TLS connector; `start` starts the threads.

        Args:
            settings: the client's configuration.
            callers: the kind of callers that the client has; None: threads.

        Raises:
            ConfigError: a certificate, a key or a setting of SASL cannot be used.
        """
        self._settings = settings
        self.callers = ThreadCallers() if callers is None else callers
        # The host's own, seeded by the operating system: a forked process must not repeat what its
        # parent does, and a system call for each float would be slow. Not a method: see `now`.
        chance = random.Random()
        self.random = chance.random
        self.random_bits = partial(chance.getrandbits, 63)
        self.mechanism = _make_mechanism(settings)
        self._tls = _make_connector(settings)
        self._login_work = LoginWork()
        self._machine = Machine()
        self._loop_readers = LoopReaders(self._machine, self.now)
        self.environment: Environment = self._machine
        self._compressor: Compressor | None = None
        self._packages: PackageCompressor | None = None
        self._pump: Pump | None = None
        self._thread: threading.Thread | None = None
        self._selector = selectors.EpollSelector()
        self._client: Client | None = None  # while its control thread runs
        self._connecting: dict[int, Connecting] = {}
        self._is_stopping = False
        # `is_alive` is not enough: before Python 3.13 it returns False after an interrupted `join`.
        self._has_ended = threading.Event()

    # ---- the life of the threads ----

    def start(self, client: Client, plane: DataPlane) -> None:
        """Start both threads. After an exception, Ctrl-C too, `stop` ends what has begun."""
        self._pump = Pump(plane, self._machine)
        self._pump.start()
        self._selector.register(self._machine.control_event, selectors.EVENT_READ, None)
        if self._tls is not None:
            self._selector.register(self._tls.event, selectors.EVENT_READ, self._tls)
        self._thread = threading.Thread(
            target=self._run, args=(weakref.ref(client),), name="kf-control", daemon=True
        )
        self._thread.start()

    def stop(self, patience: float | None = None) -> bool:
        """End both threads and give up unfinished connects; see `Host.stop`.

        A look-up in place (see `resolve`) may delay the control thread's end.
        """
        has_ended = self._stop_control(patience)
        if self._pump is not None:
            self._pump.stop()
        if self._compressor is not None:
            self._compressor.stop()
        self._loop_readers.close()
        return has_ended

    def _stop_control(self, patience: float | None) -> bool:
        self._is_stopping = True
        self.wake()
        if not self.is_current and not self._join(NEVER if patience is None else patience):
            return False
        for connecting in self._connecting.values():
            connecting.socket.close()
        self._connecting.clear()
        if self._tls is not None:
            self._tls.stop()
        self._selector.close()
        return True

    def _join(self, patience: float) -> bool:
        """Wait for the end of the control thread; return whether there is none any more."""
        thread = self._thread
        if thread is None:
            return True
        if thread.ident is None:  # it could not start, or Ctrl-C came and it begins yet, and ends
            return self.wait_ended(min(START_PATIENCE, patience)) or patience > START_PATIENCE
        if not self.wait_ended(patience):
            return False
        thread.join()
        return True

    def close(self) -> None:
        """Give back what was taken before the threads start."""
        self._selector.close()
        if self._compressor is not None:
            self._compressor.stop()
        if self._tls is not None:
            self._tls.stop()
        self._machine.close()

    @property
    def is_current(self) -> bool:
        """Whether the caller runs on the control thread."""
        return threading.current_thread() is self._thread

    def wait_ended(self, timeout: float) -> bool:
        """Wait until the control thread has ended, in slices that look for signals."""
        deadline = self.now() + timeout
        while not self._has_ended.is_set() and (left := deadline - self.now()) > 0:
            self._has_ended.wait(min(WAIT_SLICE, left))
        return self._has_ended.is_set()

    # ---- clocks, chance, and who wakes whom ----

    # Static, because a control plane keeps some of these functions, and is a cycle that only the
    # garbage collector frees. A bound method would keep this host's files open until then.

    @staticmethod
    def now() -> float:
        """Return monotonic seconds."""
        return time.monotonic()

    @staticmethod
    def wall_ms() -> int:
        """Return the Unix time in ms."""
        return int(time.time() * 1000)

    def wake(self) -> None:
        """Let the client take a turn soon."""
        self._machine.wake_control()

    def make_driver(self, plane: DataPlane) -> BlockingDriver:
        """Return the driver for blocking callers."""
        return BlockingDriver(Wake(plane), self.now)

    def make_loop_driver(self, plane: DataPlane) -> LoopDriver:
        """Return the driver for tasks of event loops."""
        # Here: only programs that await import asyncio.
        from kafka_fast.net.waiting.looping import LoopDriver

        return LoopDriver(Wake(plane), self._loop_readers, self.now)

    # ---- what only one kind of client has ----

    def compress_with(self, codec: str, level: int) -> None:
        """Have batches compressed: by threads of their own, or on the control thread."""
        if codecs_available()[codec] == "native":
            self._compressor = Compressor(CODECS[codec], level)
            self._machine.use_compressor(self._compressor)
        else:
            # only builds without a codec's library need it
            from kafka_fast.net.package_compressor import PackageCompressor

            self._packages = PackageCompressor(Codec(CODECS[codec]), level)
            self._machine.use_handover(self._packages.handover)

    def make_callbacks(self, queues: Queues) -> CallbackThread:
        """Return the thread that runs callbacks, not started yet."""
        return CallbackThread(queues, self._machine, Wake(queues.plane))

    def make_loop_bridge(self, queues: Queues) -> LoopBridge:
        """Return what wakes event loops when batches have ended."""
        return LoopBridge(queues, self._loop_readers)

    def make_streams(self, plane: DataPlane, **limits: int) -> Streams:
        """Return the plane's fetch side."""
        return Streams(plane, **limits)

    # ---- sockets and look-ups ----

    def resolve(self, host: str, done: Callable[[Addresses], None]) -> None:
        """Look a host name up, in a thread of its own if one can be started."""
        resolve(host, done)

    def run_work(self, work: Work, done: Callable[[object], None]) -> None:
        """Do work that may block, in a thread of its own if one can be started."""
        self._login_work.run_work(work, done)

    def call_in_thread(
        self, function: Callable[[], object], done: Callable[[object], None]
    ) -> None:
        """Call a function that may take long, in a thread of its own if one can be started."""
        call_in_thread("kf-assignor", function, done)

    def connect(self, command: OpenLink, now: float) -> None:
        """Start a non-blocking connect and watch its socket; report an immediate failure."""
        try:
            connecting = begin_connect(command, self._settings)
        except OSError as error:
            self._tell(command.link_id, error)
            return
        self._connecting[command.link_id] = connecting
        self._selector.register(connecting.socket, selectors.EVENT_WRITE, connecting)

    def drop_link(self, link_id: int) -> None:
        """Give up a socket that is still connecting, or in its handshake."""
        connecting = self._connecting.pop(link_id, None)
        if connecting is None:
            assert self._tls is not None
            self._tls.drop_handshake(link_id)
            return
        self._selector.unregister(connecting.socket)
        connecting.socket.close()

    # ---- the control thread ----

    def _run(self, ref: weakref.ref[Client]) -> None:
        try:
            self._turn(ref())
        finally:
            self._client = None
            self._has_ended.set()

    def _turn(self, client: Client | None) -> None:
        self._client = client
        if client is None:
            return
        name_thread(client.client_id)
        try:
            while not self._is_stopping:
                client.turn(self.now())
                if self._packages is not None:
                    self._packages.work()
                self._sleep(client)
        except BaseException as error:
            logger.exception("a control thread has failed; its client is of no use any more")
            client.handle_crash(error)

    def _sleep(self, client: Client) -> None:
        """Wait for a wake-up, a socket or the next deadline."""
        assert self._pump is not None
        if self._is_stopping:
            return  # the turn before has ended the client
        deadline = client.next_deadline()
        if self._pump.is_inline:
            self._pump.turn(self._selector.fileno(), deadline)
            deadline = 0.0
        timeout = None if deadline == NEVER else max(0.0, deadline - self.now())
        for key, _ in self._selector.select(timeout):
            if key.data is None:
                self._machine.clear_control()
            elif key.data is self._tls:
                self._take_encrypted(self._tls)
            else:
                self._finish(key.data)

    def _finish(self, connecting: Connecting) -> None:
        """Hand a connected socket to TLS or to the data plane, or report why it is none."""
        assert self._pump is not None
        self._selector.unregister(connecting.socket)
        del self._connecting[connecting.link_id]
        try:
            finish_connect(connecting)
            if self._tls is not None:
                self._tls.begin_handshake(connecting)
                return
            fd = connecting.socket.detach()
            self._pump.add_link(connecting.link_id, connecting.node_id, fd)
        except OSError as error:
            self._tell(connecting.link_id, error)
            return
        self._tell(connecting.link_id, None)

    def _take_encrypted(self, tls: TlsConnector) -> None:
        """Report the links whose handshakes have ended."""
        assert self._pump is not None
        for link_id, error in tls.take_ended(self._pump):
            self._tell(link_id, error)

    def _tell(self, link_id: int, error: OSError | None) -> None:
        """Report how opening a link has ended."""
        if self._client is None:
            return
        if error is None:
            self._client.handle_connected(link_id, self.now())
        else:
            # The control plane keeps the error for reports; a traceback would keep the client.
            self._client.handle_connect_failed(link_id, error.with_traceback(None), self.now())


def _make_connector(settings: CommonSettings) -> TlsConnector | None:
    """Return what encrypts the links; None: nothing does."""
    if settings.tls is None:
        return None
    from kafka_fast.net.tls.serving import make_connector  # a plaintext client needs none of it

    return make_connector(settings.tls, settings.security_protocol)


def _make_mechanism(settings: CommonSettings) -> Mechanism | None:
    """Return how the client says who it is; None: it does not."""
    if settings.sasl is None:
        return None
    from kafka_fast.net.login import make_mechanism  # the others need none of it

    return make_mechanism(settings.sasl)
