"""Whole clients over TLS sessions that stall, end without a word, or always renew their keys."""

from __future__ import annotations

import contextlib
import ctypes
import select
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_fast import TopicPartition
from kafka_fast.config import CommonSettings
from kafka_fast.control.messages import OpenLink
from kafka_fast.net import threaded_host
from kafka_fast.net.sockets import Connecting, begin_connect
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.certificates import Certificate, CertificateAuthority
from kafka_fast.values import replace
from tests.embedded.consuming import MakeConsumer
from tests.embedded.producing import MakeProducer, values
from tests.embedded.tls.harness import server_context
from tests.embedded.tls.servers import Server, terminating
from tests.waiting import TIMEOUT, eventually

Serve = Callable[[int], Callable[[socket.socket], None]]
"""Of a broker's port, what to do with a connection in front of it."""


class Front:
    """Servers in front of the brokers; what they do with new connections may change."""

    def __init__(self, kafka: EmbeddedKafka, serve: Serve) -> None:
        self.serve = serve
        ports = [int(address.rpartition(":")[2]) for address in kafka.bootstrap.split(",")]
        self.servers = {port: Server(self._serving(port)) for port in ports}

    def _serving(self, port: int) -> Callable[[socket.socket], None]:
        def serve(connection: socket.socket) -> None:
            self.serve(port)(connection)

        return serve

    @property
    def accepted(self) -> int:
        return sum(server.accepted for server in self.servers.values())


@pytest.fixture
def context(certificate: Certificate) -> ssl.SSLContext:
    return server_context(certificate)


@pytest.fixture
def front(
    kafka: EmbeddedKafka, context: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Front]:
    """Servers that take TLS off until a test has them do something else."""
    made = Front(kafka, lambda port: terminating(context, port))

    def connect(command: OpenLink, settings: CommonSettings) -> Connecting:
        return begin_connect(replace(command, port=made.servers[command.port].port), settings)

    monkeypatch.setattr(threaded_host, "begin_connect", connect)
    yield made
    for server in made.servers.values():
        server.__exit__()


@pytest.fixture
def secure(
    way: str, authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch
) -> dict[str, object]:
    monkeypatch.setenv("KAFKA_FAST_TLS", way)
    return {"security_protocol": "SSL", "ssl_ca_location": str(authority.certificate)}


class Middle:
    """Takes TLS off with `ssl` objects in memory, so that records can be cut on their way."""

    def __init__(self, context: ssl.SSLContext, port: int, spoil: Spoil) -> None:
        self._context = context
        self._port = port
        self._spoil = spoil

    def __call__(self, connection: socket.socket) -> None:
        incoming, out = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = self._context.wrap_bio(incoming, out, server_side=True)
        lock = threading.Lock()
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                connection.sendall(out.read())
                data = connection.recv(65_536)
                if not data:
                    return
                incoming.write(data)
        connection.sendall(out.read())
        with socket.create_connection(("127.0.0.1", self._port)) as broker:
            back = threading.Thread(
                target=self._pass_back, args=(broker, connection, tls, out, lock), daemon=True
            )
            back.start()
            try:
                data = b""  # with its last bytes the handshake may have brought a request
                while True:
                    with lock:
                        incoming.write(data)
                        plain = b""
                        try:
                            while got := tls.read(65_536):
                                plain += got
                        except ssl.SSLWantReadError:
                            pass
                        except ssl.SSLError:
                            break
                        said = out.read()
                    if said:
                        connection.sendall(said)
                    broker.sendall(plain)
                    data = connection.recv(65_536)
                    if not data:
                        break
            finally:
                broker.shutdown(socket.SHUT_RDWR)
                back.join(TIMEOUT)

    def _pass_back(
        self,
        broker: socket.socket,
        connection: socket.socket,
        tls: ssl.SSLObject,
        out: ssl.MemoryBIO,
        lock: threading.Lock,
    ) -> None:
        try:
            while data := broker.recv(65_536):
                with lock:
                    tls.write(data)
                    sealed = out.read()
                if not self._spoil(connection, sealed):
                    break
        except OSError:
            pass
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


Spoil = Callable[[socket.socket, bytes], bool]
"""Sends a record, or part of it; False: the connection ends, without close_notify."""


def test_a_record_that_stalls_while_an_answer_is_due(
    front: Front,
    secure: dict[str, object],
    context: ssl.SSLContext,
    kafka: EmbeddedKafka,
    topic: str,
    producer_on: MakeProducer,
) -> None:
    """The request's time-out ends it; what was written already is not written again."""
    stalls = True
    told = threading.Event()

    def spoil(connection: socket.socket, sealed: bytes) -> bool:
        half = len(sealed) // 2 if stalls else len(sealed)
        connection.sendall(sealed[:half])
        if half < len(sealed):
            assert told.wait(TIMEOUT)
        return True

    producer = producer_on(linger_ms=0, request_timeout_ms=500, **secure)
    producer.send(topic, b"0").result(TIMEOUT)
    front.serve = lambda port: Middle(context, port, spoil)
    for server in front.servers.values():
        server.cut()
    stalls = False
    producer.send(topic, b"1").result(TIMEOUT)
    stalls = True
    futures = [producer.send(topic, b"%d" % number) for number in range(2, 10)]
    eventually(lambda: producer.metrics()["links_closed"].get("timeout"), "the time-out")
    stalls = False
    told.set()
    assert [future.result(TIMEOUT).offset for future in futures] == list(range(2, 10))
    assert values(kafka, topic) == [b"%d" % number for number in range(10)]


def test_a_fetch_answer_that_ends_in_the_middle_without_close_notify(
    front: Front,
    secure: dict[str, object],
    context: ssl.SSLContext,
    topic: str,
    producer_on: MakeProducer,
    consumer_on: MakeConsumer,
) -> None:
    ends = 0

    def spoil(connection: socket.socket, sealed: bytes) -> bool:
        nonlocal ends
        if len(sealed) > 20_000 and ends < 10:
            ends += 1
            connection.sendall(sealed[: 1_000 * ends + ends])
            return False
        connection.sendall(sealed)
        return True

    producer = producer_on(**secure)
    for number in range(40):
        producer.send(topic, bytes([number]) * 30_000)
    producer.flush(TIMEOUT)
    front.serve = lambda port: Middle(context, port, spoil)
    consumer = consumer_on(reconnect_backoff_max_ms=50, **secure)
    consumer.assign([TopicPartition(topic, 0)])
    got: list[bytes] = []
    eventually(lambda: got.extend(consumer.poll(0.2).values()) or len(got) >= 40)
    assert got == [bytes([number]) * 30_000 for number in range(40)]
    assert ends == 10


class Native:
    """OpenSSL below a socket of Python's `ssl`, for what `ssl` does not do."""

    REQUESTED = 1

    def __init__(self) -> None:
        """Find the library that `_ssl` uses.

        Raises:
            OSError: it is not a shared library of its own.
        """
        maps = Path("/proc/self/maps").read_text().splitlines()
        libraries = {line.split()[-1] for line in maps if "libssl" in line}
        if not libraries:
            raise OSError("Python's ssl has no libssl of its own")
        self.count = 0
        self._library = ctypes.CDLL(libraries.pop())
        self._library.SSL_key_update.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self._library.SSL_new_session_ticket.argtypes = [ctypes.c_void_p]
        self._library.SSL_version.argtypes = [ctypes.c_void_p]

    def session(self, wrapped: ssl.SSLSocket) -> int:
        inner = wrapped._sslobj  # type: ignore[attr-defined]
        head = object.__basicsize__
        place = id(inner) + head + ctypes.sizeof(ctypes.c_void_p)
        pointer = ctypes.c_void_p.from_address(place).value
        assert pointer is not None
        assert self._library.SSL_version(pointer) == 0x0304
        return pointer

    def disturb(self, wrapped: ssl.SSLSocket) -> None:
        """Renew the keys of both directions, and send a session ticket, with the next record."""
        session = self.session(wrapped)
        assert self._library.SSL_key_update(session, self.REQUESTED) == 1
        self._library.SSL_new_session_ticket(session)
        self.count += 1


def test_keys_that_are_renewed_all_the_time(
    front: Front,
    secure: dict[str, object],
    context: ssl.SSLContext,
    kafka: EmbeddedKafka,
    topic: str,
    producer_on: MakeProducer,
    consumer_on: MakeConsumer,
) -> None:
    try:
        native = Native()
    except OSError as error:
        pytest.skip(str(error))

    def serve(port: int) -> Callable[[socket.socket], None]:
        def run(connection: socket.socket) -> None:
            with (
                context.wrap_socket(connection, server_side=True) as outer,
                socket.create_connection(("127.0.0.1", port)) as inner,
            ):
                outer.setblocking(False)
                inner.setblocking(False)
                pass_on(native, outer, inner)

        return run

    front.serve = serve
    producer = producer_on(batch_size=200_000, linger_ms=1, **secure)
    sent = [producer.send(topic, bytes([number % 256]) * 50_000) for number in range(400)]
    assert [one.result(TIMEOUT).offset for one in sent] == list(range(400))
    consumer = consumer_on(**secure)
    consumer.assign([TopicPartition(topic, 0)])
    got: list[bytes] = []
    eventually(lambda: got.extend(consumer.poll(0.2).values()) or len(got) >= 400)
    assert got == [bytes([number % 256]) * 50_000 for number in range(400)]
    assert native.count > 100
    for client in (producer, consumer):
        assert client.metrics()["links_closed"] == {}


def pass_on(native: Native, outer: ssl.SSLSocket, inner: socket.socket) -> None:
    """Pass bytes both ways in one thread, which renews the keys again and again, until an end."""
    not_now = (ssl.SSLWantReadError, ssl.SSLWantWriteError, BlockingIOError)
    to_client = b""
    next_at = 0.0
    while True:
        select.select([outer, inner], [outer] if to_client else [], [], 0.005)
        now = time.monotonic()
        if now >= next_at and not to_client:
            native.disturb(outer)
            next_at = now + 0.002
            with contextlib.suppress(*not_now):
                outer.send(b"")
        with contextlib.suppress(*not_now):
            to_broker = outer.recv(16_384)
            if not to_broker:
                return
            inner.setblocking(True)
            inner.sendall(to_broker)
            inner.setblocking(False)
        with contextlib.suppress(*not_now):
            if not to_client:
                to_client = inner.recv(65_536)
                if not to_client:
                    return
            to_client = to_client[outer.send(to_client) :]
