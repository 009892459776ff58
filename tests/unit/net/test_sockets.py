"""Sockets as they are opened, with the buffers that were asked for; names as they are looked up."""

from __future__ import annotations

import queue
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from kafka_fast.config import CommonSettings, producer_settings
from kafka_fast.control.connections.connection_key import ConnectionKey, Role
from kafka_fast.control.messages import OpenLink
from kafka_fast.net.sockets import Addresses, begin_connect, resolve
from tests.waiting import TIMEOUT

BUFFERS = (socket.SO_SNDBUF, socket.SO_RCVBUF)


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@contextmanager
def connected(settings: CommonSettings, port: int) -> Iterator[socket.socket]:
    """A socket as clients open it, once it is connected."""
    command = OpenLink(1, ConnectionKey(Role.DATA, 1), "localhost", "127.0.0.1", port, deadline=9e9)
    with closing(begin_connect(command, settings).socket) as sock:
        assert select.select([], [sock], [], TIMEOUT)[1]
        yield sock


def buffers(settings: CommonSettings, port: int) -> list[int]:
    """Return the sizes of a socket's buffers."""
    with connected(settings, port) as sock:
        return [sock.getsockopt(socket.SOL_SOCKET, option) for option in BUFFERS]


def test_the_operating_system_sizes_buffers(port: int) -> None:
    """A size that is set is one that is never adapted to the distance again."""
    with socket.create_connection(("127.0.0.1", port)) as plain:
        defaults = [plain.getsockopt(socket.SOL_SOCKET, option) for option in BUFFERS]
    assert buffers(producer_settings({"bootstrap.servers": "b:1"}), port) == defaults


def test_sizes_that_are_asked_for(port: int) -> None:
    settings = producer_settings(
        {
            "bootstrap.servers": "b:1",
            "send.buffer.bytes": 50_000,
            "receive.buffer.bytes": 40_000,
        }
    )
    assert buffers(settings, port) == [100_000, 80_000]  # Linux counts its own needs as well


def test_the_end_of_an_idle_connection_is_noticed_before_a_request_is_sent_over_it(
    port: int,
) -> None:
    """Regression: the kernel's first probe came after two hours, if nobody had set it earlier."""
    settings = producer_settings({"bootstrap.servers": "b:1"})
    options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
    with connected(settings, port) as sock:
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        idle, between, lost = (sock.getsockopt(socket.IPPROTO_TCP, option) for option in options)
    assert idle + between * lost < settings.connections_max_idle / 2


def test_a_name_is_looked_up_in_place_where_no_thread_can_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """CPython 3.12 and later start none while the interpreter ends, when a flush may need it."""

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    answers: list[Addresses] = []
    resolve("localhost", answers.append)
    ((address, *_),) = answers  # type: ignore[misc] # no OSError here
    assert address in ("127.0.0.1", "::1")


@pytest.mark.parametrize("host", ["a..b", "a" * 64 + ".b", "\ud800"])
def test_what_is_no_host_name_has_no_address(host: str) -> None:
    answers: queue.Queue[Addresses] = queue.Queue()
    resolve(host, answers.put)
    error = answers.get(timeout=TIMEOUT)
    assert isinstance(error, OSError) and error.strerror == "it is no host name"
