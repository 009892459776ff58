"""Links by Python's `ssl`: for a user's own SSLContext, and where this build has no OpenSSL.

    data plane ── socket pair ──► ┌──────────────┐ ──► SSLSocket ──► broker
                                  │ kf-tls-relay │
                             ◄──  └──────────────┘ ◄──

Handshakes run in a thread each: `wrap_socket` of a user's context may be the user's own, so it is
called as everybody calls it. One more thread then moves the bytes of all links.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import ssl
import threading
import time
import traceback
from collections.abc import Callable

from kafka_fast.config.security._security_settings import TlsSettings
from kafka_fast.net._pump import Pump
from kafka_fast.net.sockets import Connecting
from kafka_fast.net.tls._relayed import Relayed
from kafka_fast.net.tls.causes import Failure, alike
from kafka_fast.net.tls.connector import OWN_SHARE, Ended, TlsConnector, told
from kafka_fast.net.tls.relay_context import make_ssl_context
from kafka_fast.net.tls.relayed_pair import RelayedPair

__all__ = ["RelayConnector"]


class RelayConnector(TlsConnector):
    """Makes links; see `TlsConnector`."""

    _event = -1  # none yet: eventfd may fail

    def __init__(self, settings: TlsSettings, protocol: str) -> None:
        """Read the certificates, if the user has given no context; see `TlsConnector`."""
        self._event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._shaking: dict[int, _Handshake] = {}
        self._dropped: list[_Handshake] = []  # whose threads may still run, and raise the event
        super().__init__(settings, protocol, make_ssl_context, self._wake)
        self._relay = RelayThread()

    @property
    def event(self) -> int:
        """See `TlsConnector`."""
        return self._event

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        """Close the event, which a thread that reads certificates may raise after the end."""
        if self._event >= 0:
            close(self._event)

    def _shake(
        self, context: ssl.SSLContext, connecting: Connecting, name: str, *, is_ip: bool
    ) -> None:
        shaking = _Handshake(connecting, name, context, self._wake)
        try:
            shaking.thread.start()
        except RuntimeError as error:  # the interpreter ends, or the process is out of threads
            shaking.give_up()
            raise OSError(str(error)) from error
        self._shaking[connecting.link_id] = shaking

    def _drop(self, link_id: int) -> None:
        shaking = self._shaking.pop(link_id, None)
        if shaking is not None:
            shaking.give_up()
            self._dropped.append(shaking)

    def _take(self, pump: Pump) -> list[Ended]:
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self._event)
        self._dropped = [dropped for dropped in self._dropped if not dropped.has_ended]
        ended: list[Ended] = []
        for link_id, shaking in list(self._shaking.items()):
            if shaking.has_ended:
                del self._shaking[link_id]
                ended.append((link_id, self._open(pump, shaking)))
        return ended

    def _stop(self) -> None:
        for shaking in self._shaking.values():
            shaking.give_up()
        for shaking in (*self._shaking.values(), *self._dropped):
            shaking.thread.join()
        self._shaking.clear()
        self._dropped.clear()
        self._relay.stop()

    def _open(self, pump: Pump, shaking: _Handshake) -> OSError | None:
        """Make a link of a connection whose handshake has ended."""
        wrapped = shaking.take_socket()
        if wrapped is None:
            return told(shaking.failure, shaking.connecting.host, self._protocol)
        connecting, link = shaking.connecting, Relayed()
        own, plane = socket.socketpair()
        pair = RelayedPair(wrapped, own, link)
        try:
            link.add_link(pump, connecting.link_id, connecting.node_id, plane.detach())
            self._relay.add_pair(pair)
        except (OSError, RuntimeError) as error:
            pair.close()
            return error if isinstance(error, OSError) else OSError(str(error))
        return None

    def _wake(self) -> None:
        os.eventfd_write(self._event, 1)


class _Handshake:
    """One handshake and its thread."""

    def __init__(
        self,
        connecting: Connecting,
        name: str,
        context: ssl.SSLContext,
        wake: Callable[[], None],
    ) -> None:
        self.connecting = connecting
        self.failure = Failure()
        self.has_ended = False
        self._name = name
        self._context = context
        self._wake = wake
        self._wrapped: ssl.SSLSocket | None = None
        self._lock = threading.Lock()
        self._is_dropped = False
        self._guard = connecting.socket.dup()  # wrap_socket takes the socket away
        self.thread = threading.Thread(target=self._run, name="kf-tls-shake", daemon=True)

    def take_socket(self) -> ssl.SSLSocket | None:
        """Return the connection, or None if the handshake has failed. Control thread."""
        self._guard.close()
        return self._wrapped

    def give_up(self) -> None:
        """Give the handshake up. Control thread."""
        with self._lock:
            self._is_dropped = True
        with contextlib.suppress(OSError):
            self._guard.shutdown(socket.SHUT_RDWR)  # ends a handshake under way
        self._guard.close()
        if self.thread.ident is None:
            self.connecting.socket.close()
        elif self._wrapped is not None:
            self._wrapped.close()

    def _run(self) -> None:
        now = time.monotonic()
        raw = self.connecting.socket
        wrapped = None
        try:
            raw.settimeout(max(0.001, OWN_SHARE * (self.connecting.deadline - now)))
            wrapped = self._context.wrap_socket(raw, server_hostname=self._name)
            wrapped.setblocking(False)
        except Exception as error:  # noqa: BLE001 - a user's context may raise anything
            self.failure = failure_of(error)
            raw.close()
            close_forgotten(error)
        with self._lock:
            if wrapped is not None and self._is_dropped:
                wrapped.close()
            else:
                self._wrapped = wrapped
        self._context = None  # type: ignore[assignment]
        self.has_ended = True
        self._wake()


def close_forgotten(error: Exception) -> None:
    """Close the socket that `wrap_socket` has made and lost.

    If the broker has reset the connection before, CPython raises from the middle of the making of
    an SSLSocket (`SSLSocket._create` in ssl.py), which has taken the socket over and is not closed.
    """
    for frame, _ in traceback.walk_tb(error.__traceback__):
        made = frame.f_locals.get("self")
        if isinstance(made, ssl.SSLSocket):
            made.close()


def failure_of(error: Exception) -> Failure:
    """Return what an exception of a handshake tells."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return Failure(verify=error.verify_code or 1, reason=alike(error.verify_message or ""))
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return Failure(is_closed=True)
    if isinstance(error, ssl.SSLError):
        return Failure(reason=alike(error.reason or str(error)))
    if isinstance(error, TimeoutError):
        return Failure(is_late=True)
    if isinstance(error, OSError) and error.errno:
        return Failure(error=error.errno)
    return Failure(reason=str(error) or type(error).__name__)


class RelayThread:
    """Copies bytes between sockets and Python's TLS objects, in a thread. Control thread only."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._added: list[RelayedPair] = []
        self._is_stopping = False
        self._event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def add_pair(self, pair: RelayedPair) -> None:
        """Move the bytes of one more link; start the thread with the first.

        Raises:
            RuntimeError: no thread can be started.
        """
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="kf-tls-relay", daemon=True)
            thread.start()
            self._thread = thread
        self._added.append(pair)
        os.eventfd_write(self._event, 1)

    def stop(self) -> None:
        """End the thread, and close all its links."""
        self._is_stopping = True
        if self._event < 0:
            return
        os.eventfd_write(self._event, 1)
        if self._thread is not None:
            self._thread.join()
        os.close(self._event)
        self._event = -1

    def _run(self) -> None:
        pairs: set[RelayedPair] = set()
        with selectors.EpollSelector() as selector:
            selector.register(self._event, selectors.EVENT_READ, None)
            ready: set[RelayedPair] = set()
            while not self._is_stopping:
                while self._added:
                    pair = self._added.pop()
                    pairs.add(pair)
                    ready.add(pair)
                busy = set()
                for pair in ready:
                    if not pair.move():
                        pair.unwatch(selector)
                        pair.close()
                        pairs.discard(pair)
                        continue
                    pair.watch(selector)
                    if pair.is_busy:
                        busy.add(pair)
                events = selector.select(0.0 if busy else None)
                ready = busy | {key.data for key, _ in events if key.data is not None}
                if len(events) > 0:
                    with contextlib.suppress(BlockingIOError):
                        os.eventfd_read(self._event)
            for pair in (*pairs, *self._added):
                pair.close()
