"""What a server may send beside data once the handshake is done: a flood, or what is refused."""

from __future__ import annotations

import array
import fcntl
import socket
import ssl
import termios
import threading

import pytest

from kafka_fast.config.security._security_settings import TlsSettings
from kafka_fast.control.connections.link_errors import close_error
from kafka_fast.control.messages import CloseReason
from kafka_fast.testing.certificates import Certificate
from tests.embedded.tls.harness import client_with, echo, read_exactly, server_context
from tests.embedded.tls.openssl import native_or_skip
from tests.embedded.tls.servers import Server, over_tls, shaken_in_memory
from tests.waiting import TIMEOUT, eventually

TICKETS = 100_000
KEY_UPDATES = 5_000
ANSWER = (100).to_bytes(4, "big") + bytes(100)
"""To the first request on a link."""


def test_a_flood_of_session_tickets_ends_and_data_goes_on(
    way: str, settings: TlsSettings, certificate: Certificate
) -> None:
    """One call of OpenSSL would read all 25 MB, so the data plane reads the connection in turns.

    Python's `ssl` leaves that to OpenSSL: such a broker holds the relay's other links up.
    """
    context = server_context(certificate)
    context.num_tickets = TICKETS
    has_begun, was_sent = threading.Event(), threading.Event()

    def serve(connection: socket.socket) -> None:
        tls, out = shaken_in_memory(context, connection)
        tls.write(ANSWER)
        flood = memoryview(out.read())
        assert len(flood) > 200 * TICKETS
        connection.sendall(flood[:65_536])
        has_begun.set()
        connection.sendall(flood[65_536:])
        was_sent.set()
        while connection.recv(65_536):
            pass

    with (
        Server(over_tls(server_context(certificate), echo)) as good,
        Server(serve) as bad,
        client_with(settings, way) as client,
    ):
        calm = client.open(good.port)
        flooded = client.open(bad.port)
        client.ask(flooded, token=1000)
        assert has_begun.wait(TIMEOUT)
        for token in range(5):
            client.ask(calm, token=token)
            assert client.answer(token)
        if way == "native":
            assert not was_sent.is_set(), "the other link had to wait"
        assert len(client.answer(1000) or b"") == 100


def test_a_flood_of_new_keys_ends_and_data_goes_on(
    way: str, settings: TlsSettings, certificate: Certificate
) -> None:
    """Each wants an answer, which is written while the client reads."""
    native = native_or_skip()
    context = server_context(certificate)

    def serve(connection: socket.socket) -> None:
        tls, out = shaken_in_memory(context, connection)
        for _ in range(KEY_UPDATES):
            native.renew_keys(tls)
            native.send_messages(tls)
        tls.write(ANSWER)
        connection.sendall(out.read())
        while connection.recv(65_536):
            pass

    with Server(serve) as server, client_with(settings, way) as client:
        client.ask(client.open(server.port))
        assert len(client.answer() or b"") == 100


def test_a_server_that_wants_to_renegotiate_is_refused(
    way: str, settings: TlsSettings, certificate: Certificate
) -> None:
    """By a warning: what it sends meanwhile is read. OpenSSL's servers then give up."""
    native = native_or_skip()
    context = server_context(certificate)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    heard: list[str] = []

    def serve(connection: ssl.SSLSocket) -> None:
        read_exactly(connection, 44)
        native.ask_to_renegotiate(connection)
        connection.sendall(ANSWER)
        try:
            connection.recv(1)
        except ssl.SSLError as error:
            heard.append(error.reason)

    with Server(over_tls(context, serve)) as server, client_with(settings, way) as client:
        link = client.open(server.port)
        client.ask(link)
        assert len(client.answer() or b"") == 100
        event = client.end(link)
    assert heard == ["NO_RENEGOTIATION"]
    assert event.reason is CloseReason.LAYER
    assert str(close_error(event, "", "")) == (
        "it ended the TLS session: handshake failure: it may have wanted to renegotiate, which "
        "this client refuses"
    )


def test_a_server_that_goes_on_without_renegotiation_is_served(
    way: str, settings: TlsSettings, certificate: Certificate
) -> None:
    native = native_or_skip()
    context = server_context(certificate)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256")
    sealed = 5 + 8 + 16  # what a record has besides its content

    def serve(connection: socket.socket) -> None:
        tls, out = shaken_in_memory(context, connection)
        native.ask_to_renegotiate(tls)
        connection.sendall(out.read())
        read_exactly(connection, sealed + 2)  # the alert
        for number in range(20):
            read_exactly(connection, sealed + 44)
            tls.write((40).to_bytes(4, "big") + number.to_bytes(4, "big") + bytes(36))
            connection.sendall(out.read())

    with Server(serve) as server, client_with(settings, way) as client:
        link = client.open(server.port)
        for token in range(20):
            client.ask(link, token=token)
            assert client.answer(token)


@pytest.mark.parametrize("_", range(5), ids=str)
def test_new_keys_while_a_write_is_held_up(
    _: int, settings: TlsSettings, certificate: Certificate
) -> None:
    """OpenSSL itself would answer in the middle of a record, and end the session: "bad length".

    It does so below Python's `ssl`: the relay's link is lost then. Whether a record is under way
    when the keys come is up to the kernel, so there are a few tries.
    """
    native = native_or_skip()
    may_read = threading.Event()

    def serve(connection: ssl.SSLSocket) -> None:
        read_exactly(connection, 104)
        unread = [-1, 0]
        eventually(lambda: unread.append(waiting(connection)) or unread[-1] == unread[-2] > 0)
        for _ in range(3):
            native.renew_keys(connection)
            native.send_messages(connection)
        connection.sendall(ANSWER)
        may_read.wait(TIMEOUT)
        echo(connection)

    with (
        Server(over_tls(server_context(certificate), serve)) as server,
        client_with(settings) as client,
    ):
        link = client.open(server.port)
        client.ask(link, 100)
        for token in range(1, 8):
            client.ask(link, 3_000_000, token)
        assert len(client.answer() or b"") == 100
        may_read.set()
        assert [len(client.answer(token) or b"") for token in range(1, 8)] == [3_000_000] * 7


def waiting(connection: socket.socket) -> int:
    """Return how many bytes nobody has read."""
    count = array.array("i", [0])
    fcntl.ioctl(connection, termios.FIONREAD, count)
    return count[0]
