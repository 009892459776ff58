"""The sockets round a cluster: one selector, one thread, all brokers.

Everything that touches the cluster happens in the thread that runs `serve`; other threads hand
their commands in with `call`. The clock is read here and nowhere below.
"""

from __future__ import annotations

import contextlib
import logging
import selectors
import socket
import ssl
import struct
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from kafka_fast.errors import UsageError
from kafka_fast.testing.broker.broker import Closing
from kafka_fast.testing.broker.cluster import Cluster
from kafka_fast.testing.broker.serving.tls import TlsSession

log = logging.getLogger(__name__)

T = TypeVar("T")

_READ_SIZE = 256 * 1024
_BACKLOG = 128
_MAX_UNSENT = 64 * 1024 * 1024  # bytes that a client has not taken, before reading from it stops

LINGER_NONE = struct.pack("ii", 1, 0)
"""Of SO_LINGER, with a time of zero: close() sends RST and drops what was not sent."""


class _Client:
    """The socket of one connection and what it has not taken yet."""

    def __init__(
        self, sock: socket.socket, node_id: int, connection_id: int, tls: TlsSession | None
    ) -> None:
        self.sock = sock
        self.tls = tls
        self.node_id = node_id
        self.connection_id = connection_id
        self.unsent: deque[memoryview] = deque()
        self.unsent_size = 0
        self.close_when_sent = Closing.NO
        self.events = selectors.EVENT_READ  # what the selector watches, 0: not registered

    def queue(self, data: bytes) -> None:
        """Have bytes of the broker sent."""
        if self.tls is None:
            self._queue_raw(data)
        else:
            self.tls.send(data)
            self.queue_tls()

    def queue_tls(self) -> None:
        """Queue the bytes that the TLS session has to send."""
        if self.tls is not None:
            self._queue_raw(self.tls.poll_output())

    def end(self, how: Closing) -> None:
        """Close when all is sent; take nothing more."""
        if self.tls is not None and how is Closing.FIN and not self.close_when_sent:
            self.tls.end()
            self.queue_tls()
        self.close_when_sent = max(self.close_when_sent, how)

    def _queue_raw(self, data: bytes) -> None:
        if data:
            self.unsent.append(memoryview(data))
            self.unsent_size += len(data)

    def send(self) -> None:
        """Write what the kernel takes."""
        while self.unsent:
            sent = self.sock.send(self.unsent[0])
            self.unsent_size -= sent
            if sent < len(self.unsent[0]):
                self.unsent[0] = self.unsent[0][sent:]
                return
            self.unsent.popleft()


class Listener:
    """The listening socket of one broker; while the broker is down its port stays reserved."""

    def __init__(self, host: str, port: int) -> None:
        """Reserve the port (0: any free one)."""
        self._host = host
        self._sock = self._bound(port)
        self.port: int = self._sock.getsockname()[1]

    def listen(self, selector: selectors.BaseSelector, data: object) -> None:
        """Accept connections from now on, and have the selector watch for them."""
        self._sock.listen(_BACKLOG)
        selector.register(self._sock, selectors.EVENT_READ, data)

    def refuse(self, selector: selectors.BaseSelector) -> None:
        """Refuse connections from now on."""
        selector.unregister(self._sock)
        self._sock.close()
        self._sock = self._bound(self.port)  # bound but not listening: the kernel refuses

    def close(self) -> None:
        """Give the port back."""
        self._sock.close()

    def _bound(self, port: int) -> socket.socket:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((self._host, port))
        except OSError:
            sock.close()
            raise
        return sock


class SocketServer:
    """Serves a cluster on its listeners until `stop`."""

    def __init__(
        self,
        cluster: Cluster,
        listeners: dict[int, Listener],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Listen for every node; nothing is accepted before `serve` runs.

        Args:
            cluster: what is served.
            listeners: by node id.
            tls: how clients have to speak TLS; None: they do not.
        """
        self._cluster = cluster
        self._listeners = listeners
        self._tls = tls
        self._selector = selectors.DefaultSelector()
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)
        self._selector.register(self._wake_in, selectors.EVENT_READ, None)
        self._clients: dict[tuple[int, int], _Client] = {}
        self._stalled: set[_Client] = set()  # not read from until the broker catches up
        self._read_buffer = memoryview(bytearray(_READ_SIZE))  # the broker copies what it keeps
        self._next_connection_id = 1
        self._commands: deque[tuple[Callable[[], object], Future[object]]] = deque()
        # Between `call` or `stop` and the end of `serve`; a signal may call `stop` while `serve`
        # holds it.
        self._commands_lock = threading.RLock()
        self._running = True
        for node_id in listeners:
            self.listen(node_id)

    # ---- from any thread ----

    def call(self, command: Callable[[], T]) -> T:
        """Run a command in the serving thread and return what it returns."""
        future: Future[object] = Future()
        with self._commands_lock:
            if not self._running:
                raise UsageError("the embedded broker has been stopped")
            self._commands.append((command, future))
        self._wake()
        return future.result()  # type: ignore[return-value]  # the command's own type

    def stop(self) -> None:
        """End `serve`; commands that wait are still run."""
        with self._commands_lock:
            self._running = False
        self._wake()

    def _wake(self) -> None:
        # Under the lock: the descriptor of a socket that is closed meanwhile may be another's.
        with self._commands_lock, contextlib.suppress(BlockingIOError, OSError):
            self._wake_out.send(b"\0")  # full: it wakes anyway; closed: it has ended

    # ---- commands about sockets, in the serving thread ----

    def listen(self, node_id: int) -> None:
        """Accept connections for a node."""
        self._listeners[node_id].listen(self._selector, node_id)

    def refuse(self, node_id: int) -> None:
        """Refuse connections for a node."""
        self._listeners[node_id].refuse(self._selector)

    # ---- the serving thread ----

    def serve(self) -> None:
        """Serve until `stop`; then close every socket."""
        try:
            while self._running:
                self._turn()
        finally:
            with self._commands_lock:
                self._running = False
            self._run_commands()
            self._close_all()

    def _turn(self) -> None:
        due = self._cluster.next_due()
        timeout = None if due is None else max(0.0, due - time.monotonic())
        events = self._selector.select(timeout)
        now = time.monotonic()
        for key, mask in events:
            if isinstance(key.data, _Client):
                self._handle_client(key.data, mask, now)
            elif key.data is None:
                self._drain_wakes()
            else:
                self._accept(key.fileobj, key.data)  # type: ignore[arg-type]  # our listener
        self._run_commands()
        self._flush(time.monotonic())
        for client in list(self._stalled):
            self._watch(client)

    def _accept(self, listener: socket.socket, node_id: int) -> None:
        try:
            sock, _ = listener.accept()
        except OSError:  # gone again, or out of descriptors: the next turn tries anew
            return
        connection_id = self._next_connection_id
        if self._tls is None and not self._cluster.brokers[node_id].connect(connection_id):
            sock.close()
            return
        self._next_connection_id += 1
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        tls = None if self._tls is None else TlsSession(self._tls)
        client = _Client(sock, node_id, connection_id, tls)
        self._clients[node_id, connection_id] = client
        self._selector.register(sock, selectors.EVENT_READ, client)

    def _handle_client(self, client: _Client, mask: int, now: float) -> None:
        try:
            if mask & selectors.EVENT_WRITE:
                client.send()
            if mask & selectors.EVENT_READ and not client.close_when_sent:
                size = client.sock.recv_into(self._read_buffer)
                if size == 0:
                    self._close(client)
                    return
                if client.tls is None:
                    broker = self._cluster.brokers[client.node_id]
                    broker.handle_bytes(client.connection_id, self._read_buffer[:size], now)
                else:
                    self._handle_tls(client, client.tls, self._read_buffer[:size], now)
                    client.send()
        except BlockingIOError:
            pass
        except OSError:
            self._close(client)
            return
        self._settle(client)

    def _handle_tls(self, client: _Client, tls: TlsSession, data: memoryview, now: float) -> None:
        """Take bytes of a client that speaks TLS; only now the broker learns who it is."""
        was_ready = tls.is_ready
        broker = self._cluster.brokers[client.node_id]
        try:
            plain = tls.receive(data)
        except ssl.SSLError as error:
            log.warning("node %d ends a TLS session: %s", client.node_id, error)
            client.queue_tls()  # the alert
            client.end(Closing.FIN)
            return
        client.queue_tls()
        if tls.is_ready and not was_ready and not broker.connect(client.connection_id, tls.user):
            client.end(Closing.FIN)
            return
        if plain:
            broker.handle_bytes(client.connection_id, plain, now)
        if tls.is_ended:
            client.end(Closing.FIN)

    def _flush(self, now: float) -> None:
        """Hand the brokers' output to the kernel, or keep what it does not take."""
        for node_id, output in self._cluster.poll_output(now):
            client = self._clients.get((node_id, output.connection_id))
            if client is None:
                continue
            if output.data:
                client.queue(output.data)
            if output.close:
                client.end(output.close)
            try:
                client.send()
            except BlockingIOError:
                pass
            except OSError:
                self._close(client)
                continue
            self._settle(client)

    def _settle(self, client: _Client) -> None:
        """Close a connection that ends and has nothing left to send, else watch its socket."""
        if client.close_when_sent and not client.unsent:
            self._close(client)
        else:
            self._watch(client)

    def _watch(self, client: _Client) -> None:
        wants_bytes = (
            not client.close_when_sent
            and client.unsent_size < _MAX_UNSENT
            and self._cluster.brokers[client.node_id].wants_bytes(client.connection_id)
        )
        events = selectors.EVENT_READ if wants_bytes else 0
        if client.unsent:
            events |= selectors.EVENT_WRITE
        if wants_bytes:
            self._stalled.discard(client)
        else:
            self._stalled.add(client)
        if events == client.events:
            return
        if not events:
            self._selector.unregister(client.sock)
        elif client.events:
            self._selector.modify(client.sock, events, client)
        else:
            self._selector.register(client.sock, events, client)
        client.events = events

    def _close(self, client: _Client) -> None:
        self._cluster.brokers[client.node_id].disconnect(client.connection_id)
        self._clients.pop((client.node_id, client.connection_id), None)
        self._stalled.discard(client)
        if client.events:
            self._selector.unregister(client.sock)
        if client.close_when_sent is Closing.RST:
            client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NONE)
        client.sock.close()

    def _drain_wakes(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._wake_in.recv(4096)

    def _run_commands(self) -> None:
        while self._commands:
            command, future = self._commands.popleft()
            try:
                future.set_result(command())
            except Exception as error:  # noqa: BLE001  # belongs to the thread that called
                future.set_exception(error)

    def _close_all(self) -> None:
        for client in list(self._clients.values()):
            self._close(client)
        for listener in self._listeners.values():
            listener.close()
        self._selector.close()
        with self._commands_lock:
            self._wake_in.close()
            self._wake_out.close()
