"""A producer whose links are cut at every byte of TLS's handshake, the login and what follows."""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from kafka_fast import Producer
from kafka_fast.config import CommonSettings
from kafka_fast.control.messages import OpenLink
from kafka_fast.net import threaded_host
from kafka_fast.net.sockets import Connecting, begin_connect
from kafka_fast.testing.secure_broker import SecureBroker
from kafka_fast.values import replace
from tests.embedded.tls.servers import CHUNK, Server
from tests.waiting import TIMEOUT

TO_BROKER, TO_CLIENT = 0, 1
STANDS_STILL = 1.0
"""Seconds after which a link that passes no more bytes has passed all."""
LINGER_NONE = struct.pack("ii", 1, 0)
"""SO_LINGER with which close() sends RST."""
EVERY_BYTE = pytest.param(
    "native", "SCRAM-SHA-256", 1, marks=[pytest.mark.long, pytest.mark.timeout(600)]
)
CASES = [
    *itertools.product(["native", "relay"], ["SCRAM-SHA-256", "PLAIN"], [29]),
    EVERY_BYTE,
]


class Cutter:
    """Passes bytes on; ends one connection after so many bytes in one direction."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._lock = threading.Lock()
        self._next: tuple[int, int, bool] | None = None
        self.passed = [0, 0]
        """Bytes of the last connection that was to be cut."""

    def cut_next(self, direction: int, after: int, *, reset: bool) -> None:
        """Cut the next connection."""
        with self._lock:
            self._next = (direction, after, reset)

    @property
    def is_armed(self) -> bool:
        return self._next is not None

    def reaches(self, direction: int, after: int) -> bool:
        """Tell whether so many bytes pass: the link may still be made, beside the one for records.

        A link that has passed all its bytes stands still, so this waits for a while.
        """
        deadline = time.monotonic() + STANDS_STILL
        while self.passed[direction] < after and time.monotonic() < deadline:
            time.sleep(0.005)
        return self.passed[direction] >= after

    def __call__(self, client: socket.socket) -> None:
        with self._lock:
            cut, self._next = self._next, None
        with socket.create_connection(("127.0.0.1", self._port)) as broker:
            if cut is not None:
                self.passed = [0, 0]
            ends = (client, broker)
            back = threading.Thread(target=self._pass, args=(ends, TO_CLIENT, cut), daemon=True)
            back.start()
            self._pass(ends, TO_BROKER, cut)
            back.join(TIMEOUT)
            if cut is not None and cut[2]:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGER_NONE)

    def _pass(
        self,
        ends: tuple[socket.socket, socket.socket],
        direction: int,
        cut: tuple[int, int, bool] | None,
    ) -> None:
        source, sink = ends if direction == TO_BROKER else ends[::-1]
        room = cut[1] if cut is not None and cut[0] == direction else None
        with contextlib.suppress(OSError):
            while room != 0 and (data := source.recv(CHUNK)):
                if room is not None:
                    data = data[:room]
                    room -= len(data)
                sink.sendall(data)
                if cut is not None:
                    self.passed[direction] += len(data)
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def cutter(
    secure_broker: SecureBroker, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Cutter, Server]]:
    """What stands in front of the broker, for every connection."""
    secure_broker.create_topic("t", 1)
    made = Cutter(int(secure_broker.bootstrap.rpartition(":")[2]))
    with Server(made) as server:

        def connect(command: OpenLink, settings: CommonSettings) -> Connecting:
            return begin_connect(replace(command, port=server.port), settings)

        monkeypatch.setattr(threaded_host, "begin_connect", connect)
        yield made, server


@pytest.mark.parametrize(("way", "mechanism", "step"), CASES)
@pytest.mark.parametrize("direction", [TO_BROKER, TO_CLIENT])
def test_links_that_are_cut_anywhere(
    cutter: tuple[Cutter, Server],
    secure_broker: SecureBroker,
    way: str,
    mechanism: str,
    direction: int,
    step: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each record is written once, whatever the byte; refusals and hangs would be none of these."""
    monkeypatch.setenv("KAFKA_FAST_TLS", way)
    properties = secure_broker.client_properties(mechanism) | {
        "linger.ms": "0",
        "retry.backoff.ms": "1",
        "retry.backoff.max.ms": "2",
        "reconnect.backoff.ms": "1",
        "reconnect.backoff.max.ms": "2",
    }
    made, server = cutter
    with Producer(properties) as producer:
        assert producer.send("t", b"0").result(TIMEOUT).offset == 0
        after, number = 0, 0
        while True:
            number += 1
            made.cut_next(direction, after, reset=number % 2 == 0)
            server.cut()
            assert producer.send("t", b"%d" % number).result(TIMEOUT).offset == number
            if not made.is_armed and not made.reaches(direction, after):
                break  # a whole link's bytes were fewer
            after += step
        failed = producer.metrics()["failed_logins"]
    assert after > 500
    assert failed.keys() <= {"KafkaConnectionError"}
    values = [record.value for record in secure_broker.records("t")]
    assert values == [b"%d" % index for index in range(number + 1)]


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("after", [0, 1, 300, 900])
def test_a_first_link_that_is_cut_ends_no_call(
    cutter: tuple[Cutter, Server],
    secure_broker: SecureBroker,
    way: str,
    after: int,
    reset: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A broker that restarts has refused nobody: who waits goes on waiting."""
    monkeypatch.setenv("KAFKA_FAST_TLS", way)
    for direction in (TO_BROKER, TO_CLIENT):
        cutter[0].cut_next(direction, after, reset=reset)
        with Producer(secure_broker.client_properties("PLAIN")) as producer:
            producer.send("t", b"").result(TIMEOUT)


def test_a_broker_that_stands_still_in_the_first_handshake_ends_no_call(
    secure_broker: SecureBroker, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one whose process is stopped: its machine accepts connections, and nobody answers."""
    monkeypatch.setenv("KAFKA_FAST_TLS", way)
    secure_broker.create_topic("t", 1)
    pass_on = Cutter(int(secure_broker.bootstrap.rpartition(":")[2]))
    silent = 3

    def serve(connection: socket.socket) -> None:
        nonlocal silent
        silent -= 1
        if silent < 0:
            pass_on(connection)
        else:
            while connection.recv(CHUNK):
                pass

    with Server(serve) as server:

        def connect(command: OpenLink, settings: CommonSettings) -> Connecting:
            return begin_connect(replace(command, port=server.port), settings)

        monkeypatch.setattr(threaded_host, "begin_connect", connect)
        properties = secure_broker.client_properties("PLAIN") | {
            "socket.connection.setup.timeout.ms": "300",
            "socket.connection.setup.timeout.max.ms": "5000",
        }
        with Producer(properties) as producer:
            producer.send("t", b"").result(TIMEOUT)
    assert silent < 0
