"""The proxy, between a client and an echo server of plain sockets."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from tests.support.proxy import Proxy
from tests.waiting import eventually


class Echo:
    """Sends back what it gets; remembers all of it, and how each connection ended."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.seen = bytearray()
        self.ends: list[str] = []
        self.ended = threading.Semaphore(0)
        self.thread = threading.Thread(target=self.accept, daemon=True)
        self.thread.start()

    def accept(self) -> None:
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(peer,), daemon=True).start()

    def serve(self, peer: socket.socket) -> None:
        with peer:
            try:
                while data := peer.recv(1 << 20):
                    self.seen += data
                    peer.sendall(data)
                self.ends.append("fin")
            except ConnectionError:
                self.ends.append("rst")
            self.ended.release()


@pytest.fixture
def echo() -> Iterator[Echo]:
    echo = Echo()
    yield echo
    echo.listener.shutdown(socket.SHUT_RDWR)
    echo.listener.close()
    echo.thread.join()


@pytest.fixture
def proxy(echo: Echo) -> Iterator[Proxy]:
    with Proxy("127.0.0.1", echo.port) as proxy:
        yield proxy


@pytest.fixture
def client(proxy: Proxy) -> Iterator[socket.socket]:
    with socket.create_connection(proxy.address, timeout=10) as client:
        ask(client, b"hello")
        yield client


def ask(client: socket.socket, data: bytes) -> None:
    """Send and read back; the echo proves that both directions pass."""
    client.sendall(data)
    assert read(client, len(data)) == data


def read(client: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = client.recv(size - len(data))
        if not piece:
            break
        data += piece
    return bytes(data)


def is_silent(client: socket.socket) -> bool:
    client.settimeout(0.05)
    try:
        client.recv(1)
    except TimeoutError:
        return True
    finally:
        client.settimeout(10)
    return False


def is_reset(proxy: Proxy) -> bool:
    """Say whether a new connection is reset, which may come as early as in connect()."""
    try:
        with socket.create_connection(proxy.address, timeout=10) as client:
            client.recv(1)
    except ConnectionResetError:
        return True
    return False


def test_it_passes_bytes_both_ways(client: socket.socket, proxy: Proxy):
    ask(client, bytes(range(256)) * 100)
    assert proxy.connections == 1
    assert proxy.bootstrap == "{}:{}".format(*client.getpeername())


def test_delay_is_added_each_way_and_overlaps(client: socket.socket, proxy: Proxy):
    proxy.set(delay=0.03)
    started = time.monotonic()
    for _ in range(100):
        client.sendall(b"x" * 10)
        time.sleep(0.001)  # a piece of its own for each
    assert read(client, 1000) == b"x" * 1000
    assert 0.06 <= time.monotonic() - started < 100 * 0.06


def test_bandwidth(client: socket.socket, proxy: Proxy):
    proxy.set(bandwidth=1e6)
    started = time.monotonic()
    ask(client, b"x" * 50_000)
    # One way holds back the last piece only on the writer's side: one way's time is certain.
    ask(client, b"y")
    assert time.monotonic() - started >= 0.05


def test_cut_after(client: socket.socket, proxy: Proxy, echo: Echo):
    proxy.set(cut_after=len(b"hello") + 7)
    client.sendall(b"0123456789")
    assert echo.ended.acquire(timeout=10)
    assert bytes(echo.seen) == b"hello0123456"
    assert read(client, 100) in (b"", b"0123456")


def test_drop_replies(client: socket.socket, proxy: Proxy, echo: Echo):
    proxy.set(drop_replies=True)
    client.sendall(b"lost answer")
    eventually(lambda: proxy.dropped == len(b"lost answer"), "the answer")
    assert is_silent(client)
    assert bytes(echo.seen) == b"hellolost answer"
    proxy.heal()
    ask(client, b"again")


def test_blackhole_holds_everything_until_it_heals(client: socket.socket, proxy: Proxy, echo: Echo):
    proxy.set(blackhole=True)
    client.sendall(b"into the dark")
    assert is_silent(client)
    assert bytes(echo.seen) == b"hello"
    proxy.heal()
    assert read(client, 13) == b"into the dark"


def segments_written(proxy: Proxy) -> int:
    """Return how many segments with data the proxy has sent to its only client.

    From Linux's struct tcp_info: tcpi_data_segs_out counts those that were sent again, too, which a
    probe for a lost tail does as soon as a busy client answers late; tcpi_total_retrans are these.
    """
    (link,) = proxy._links
    info = (
        link.client[1].get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 192)
    )
    (again,) = struct.unpack_from("=I", info, 100)
    (all_of_them,) = struct.unpack_from("=I", info, 156)
    return all_of_them - again


@pytest.mark.skipif(sys.platform != "linux", reason="counts segments by Linux's TCP_INFO")
@pytest.mark.not_under("emulator", "it passes on four bytes of TCP_INFO")
def test_crumbs(client: socket.socket, proxy: Proxy):
    proxy.set(crumbs=True)
    before = segments_written(proxy)
    ask(client, b"12345678")
    assert segments_written(proxy) - before == 8


def test_reset_reaches_both_sides(client: socket.socket, proxy: Proxy, echo: Echo):
    proxy.reset()
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    assert echo.ended.acquire(timeout=10)
    assert echo.ends == ["rst"]


def test_cut_reaches_both_sides(client: socket.socket, proxy: Proxy, echo: Echo):
    proxy.cut()
    assert client.recv(1) == b""
    assert echo.ended.acquire(timeout=10)
    assert echo.ends == ["fin"]


def test_refuse_resets_new_connections_only(client: socket.socket, proxy: Proxy):
    proxy.set(refuse=True)
    assert is_reset(proxy)
    ask(client, b"still here")


def test_no_broker_behind_it():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with Proxy("127.0.0.1", port) as proxy:
        assert is_reset(proxy)


def test_unknown_fault(proxy: Proxy):
    with pytest.raises(TypeError, match="latency"):
        proxy.set(latency=1)


def test_in_a_process_of_its_own(echo: Echo):
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.proxy", f"127.0.0.1:{echo.port}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        host, _, port = process.stdout.readline().strip().partition(":")
        with socket.create_connection((host, int(port)), timeout=10) as client:
            ask(client, b"hello")
        process.stdin.close()
        assert process.wait(10) == 0
