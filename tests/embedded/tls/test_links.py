"""Links over TLS: bytes both ways, sizes, closing, stalls, in both ways to speak it."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading

import pytest

from kafka_fast.config.security._security_settings import TlsSettings
from kafka_fast.control.messages import CloseLink, CloseReason
from kafka_fast.errors import TlsError
from kafka_fast.net._transport_carrier import carry_transport
from kafka_fast.testing.certificates import Certificate
from kafka_fast.values import replace
from tests.embedded.producing import entries
from tests.embedded.tls.harness import Client, client_with, echo, server_context
from tests.embedded.tls.servers import Server, over_tls, shaken_in_memory

SIZES = [16, 100, 16_379, 16_380, 16_381, 100_000, 5_000_000]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_what_is_sent_arrives(
    way: str, version: ssl.TLSVersion, settings: TlsSettings, certificate: Certificate
) -> None:
    context = server_context(certificate)
    context.maximum_version = version
    with Server(over_tls(context, echo)) as server, client_with(settings, way) as client:
        link = client.open(server.port)
        for token, size in enumerate(SIZES):
            client.ask(link, size, token)
        for token, size in enumerate(SIZES):
            answer = client.answer(token)
            assert answer is not None
            assert len(answer) == size


def test_a_reader_that_is_slow_holds_writing_up_and_loses_nothing(
    way: str, settings: TlsSettings, certificate: Certificate
) -> None:
    may_read = threading.Event()

    def serve(connection: socket.socket) -> None:
        may_read.wait(30)
        echo(connection)

    with (
        Server(over_tls(server_context(certificate), serve)) as server,
        client_with(settings, way) as client,
    ):
        link = client.open(server.port)
        for token in range(8):
            client.ask(link, 3_000_000, token)
        assert not client.has_answer()
        may_read.set()
        assert [len(client.answer(token) or b"") for token in range(8)] == [3_000_000] * 8


@pytest.mark.parametrize("send_buffer", [2_000, 10_000, 40_000, 150_000])
def test_writes_that_stop_anywhere_lose_nothing(
    send_buffer: int, settings: TlsSettings, certificate: Certificate
) -> None:
    """Several records go out with one call, which the socket may end within any of them."""
    sizes = [200_000, 16, 16_380, 100, 70_000, 300_001] * 4
    with (
        Server(over_tls(server_context(certificate), echo)) as server,
        client_with(settings) as client,
    ):
        link = client.open(server.port, send_buffer=send_buffer)
        for token, size in enumerate(sizes):
            client.ask(link, size, token)
        assert [len(client.answer(token) or b"") for token in range(len(sizes))] == sizes


@pytest.mark.parametrize("says_good_bye", [True, False])
def test_a_broker_that_closes_ends_the_link(
    way: str, says_good_bye: bool, settings: TlsSettings, certificate: Certificate
) -> None:
    """Kafka's peers often close without close_notify, which is no error."""

    def serve(connection: socket.socket) -> None:
        connection.recv(4)
        connection.sendall(b"\x00\x00\x01\x00begun")  # in the middle of an answer
        if says_good_bye:
            with contextlib.suppress(OSError):
                connection.unwrap()  # type: ignore[attr-defined]

    with (
        Server(over_tls(server_context(certificate), serve)) as server,
        client_with(settings, way) as client,
    ):
        link = client.open(server.port)
        client.ask(link)
        assert client.answer() is None
        assert client.end(link).reason in (CloseReason.EOF, CloseReason.OS_ERROR)


def test_a_client_that_closes_says_good_bye(
    way: str, settings: TlsSettings, certificate: Certificate
) -> None:
    heard: list[bytes] = []

    def serve(connection: socket.socket) -> None:
        connection.suppress_ragged_eofs = False  # type: ignore[attr-defined]
        heard.append(connection.recv(1))

    with (
        Server(over_tls(server_context(certificate), serve)) as server,
        client_with(settings, way) as client,
    ):
        link = client.open(server.port)
        carry_transport(CloseLink(link), client.plane)
        client.end(link)
    assert heard == [b""], "without close_notify this raises SSLEOFError"


def test_a_record_that_stalls_in_the_middle_is_read_when_the_rest_comes(
    settings: TlsSettings, certificate: Certificate
) -> None:
    """OpenSSL then holds bytes that are no whole record; the data plane must sleep meanwhile."""
    context = server_context(certificate)
    go_on = threading.Event()

    def serve(connection: socket.socket) -> None:
        tls, out = shaken_in_memory(context, connection)
        connection.sendall(out.read())
        tls.write((100).to_bytes(4, "big") + bytes(100))
        record = out.read()
        connection.sendall(record[:20])
        go_on.wait(30)
        for byte in record[20:]:
            connection.sendall(bytes([byte]))
        while connection.recv(1000):
            pass

    with Server(serve) as server, client_with(settings) as client:
        link = client.open(server.port)
        client.ask(link)
        assert not client.has_answer()
        go_on.set()
        assert len(client.answer() or b"") == 100


def test_a_thousand_links_leave_nothing_behind(
    way: str, settings: TlsSettings, certificate: Certificate
) -> None:
    """As many as one run has time for; what one link leaves behind shows after a few."""
    with (
        Server(over_tls(server_context(certificate), echo)) as server,
        client_with(settings, way) as client,
    ):
        _open_and_close(client, server.port, 5)
        files = len(entries("/proc/self/fd"))
        _open_and_close(client, server.port, 100)
        assert len(entries("/proc/self/fd")) <= files + 10


def _open_and_close(client: Client, port: int, count: int) -> None:
    for _ in range(count):
        link = client.open(port)
        carry_transport(CloseLink(link), client.plane)
        client.end(link)


def test_many_handshakes_at_once(way: str, settings: TlsSettings, certificate: Certificate) -> None:
    with (
        Server(over_tls(server_context(certificate), echo)) as server,
        client_with(settings, way) as client,
    ):
        links = [client.begin(server.port) for _ in range(30)]
        assert client.take(30) == dict.fromkeys(links)


def test_a_handshake_that_is_given_up_is_not_heard_of_again(
    way: str, settings: TlsSettings
) -> None:
    go_on = threading.Event()

    def serve(connection: socket.socket) -> None:
        go_on.wait(30)

    with Server(serve) as server, client_with(settings, way) as client:
        first, second, third = (client.begin(server.port) for _ in range(3))
        client.connector.drop_handshake(second)
        go_on.set()
        assert set(client.take(2)) == {first, third}


def test_an_end_while_handshakes_run_closes_their_sockets(way: str, settings: TlsSettings) -> None:
    ended = threading.Semaphore(0)

    def serve(connection: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while connection.recv(1000):
                pass
        ended.release()

    with Server(serve) as server:
        with client_with(settings, way) as client:
            for _ in range(3):
                client.begin(server.port)
        for _ in range(3):
            assert ended.acquire(timeout=30)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "localhost."])
def test_names_and_addresses_of_the_certificate(
    way: str, host: str, settings: TlsSettings, certificate: Certificate
) -> None:
    asked: list[str | None] = []
    context = server_context(certificate)
    context.sni_callback = lambda _, name, __: asked.append(name)
    with Server(over_tls(context, echo)) as server, client_with(settings, way) as client:
        client.open(server.port, host)
    assert asked == [None if host == "127.0.0.1" else "localhost"]


def test_a_context_of_the_users_own_is_used_to_the_letter(
    authority: object, certificate: Certificate
) -> None:
    context = ssl.create_default_context(cafile=str(authority.certificate))  # type: ignore[attr-defined]
    context.check_hostname = False
    settings = replace(TlsSettings(), context=context)
    with (
        Server(over_tls(server_context(certificate), echo)) as server,
        client_with(settings, "relay") as client,
    ):
        client.open(server.port, "another.example")
        context.check_hostname = True
        assert "is not for another.example" in client.failure(server.port, "another.example")


def test_a_name_that_openssl_does_not_take_is_no_reason_to_check_none(
    settings: TlsSettings, certificate: Certificate
) -> None:
    serve = over_tls(server_context(certificate), echo)
    with Server(serve) as server, client_with(settings, "native") as client:
        assert "memory" in client.failure(server.port, "a." * 150)


@pytest.mark.parametrize("host", ["", ".", "localhost\0.evil", "a..b", "\u00ad"])
def test_what_no_certificate_can_name_is_refused(
    way: str, host: str, settings: TlsSettings, certificate: Certificate
) -> None:
    """OpenSSL would check nothing for an empty name, and what stands before a NUL."""
    serve = over_tls(server_context(certificate), echo)
    with (
        Server(serve) as server,
        client_with(settings, way) as client,
        pytest.raises(TlsError, match="no certificate can be for"),
    ):
        client.begin(server.port, host)
