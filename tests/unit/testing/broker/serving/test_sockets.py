"""The embedded broker's sockets: who closes what while another thread uses it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.waiting import eventually


class ToldLock:
    """A lock that tells when a thread has to wait for it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.is_waited_for = threading.Event()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            self.is_waited_for.set()
            self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()


class SlowSocket:
    """A socket whose `send` lasts until the other thread has closed it, or waits for the lock."""

    def __init__(self, sock: Any, lock: ToldLock) -> None:
        self._sock = sock
        self._lock = lock
        self._is_closed = threading.Event()
        self.was_closed_in_send: bool | None = None

    def send(self, data: bytes) -> int:
        size: int = self._sock.send(data)
        eventually(lambda: self._is_closed.is_set() or self._lock.is_waited_for.is_set())
        self.was_closed_in_send = self._is_closed.is_set()
        return size

    def close(self) -> None:
        self._is_closed.set()
        self._sock.close()


def test_stop_does_not_write_to_a_socket_that_is_closed_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Regression: its descriptor might have been another socket's already."""
    with EmbeddedKafka() as kafka:
        server = kafka._running_server
        lock = ToldLock()
        sock = SlowSocket(server._wake_out, lock)
        monkeypatch.setattr(server, "_commands_lock", lock)
        monkeypatch.setattr(server, "_wake_out", sock)
    assert sock.was_closed_in_send is False
