"""Handshakes that are cut, dripped or disturbed at every byte."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Callable

import pytest

from kafka_fast.config.security._security_settings import TlsSettings
from kafka_fast.testing.certificates import Certificate, CertificateAuthority
from tests.embedded.tls.harness import client_with, echo, server_context
from tests.embedded.tls.servers import Server

Send = Callable[[bytes], None]


def shake(context: ssl.SSLContext, connection: socket.socket, send: Send) -> ssl.SSLObject:
    """Shake hands as the server, with our own way to send."""
    incoming, out = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, out, server_side=True)
    while True:
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            send(out.read())
            incoming.write(connection.recv(65_536))
            continue
        send(out.read())
        return tls


class CutError(Exception):
    """The server has sent enough."""


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_handshake_that_is_cut_at_any_byte(
    version: ssl.TLSVersion, settings: TlsSettings, certificate: Certificate
) -> None:
    context = server_context(certificate)
    context.maximum_version = version
    left = 0

    def serve(connection: socket.socket) -> None:
        room = left

        def send(data: bytes) -> None:
            nonlocal room
            connection.sendall(data[:room])
            room -= len(data)
            if room < 0:
                raise CutError

        with contextlib.suppress(CutError):
            shake(context, connection, send)
            connection.recv(1)

    with Server(serve) as server, client_with(settings) as client:
        for left in (*range(200), *range(200, 900, 13)):
            text = client.failure(server.port)
            # No refusal: it is tried again, and those who wait go on waiting.
            assert text.startswith("KafkaConnectionError: "), (left, text)
            assert "closed the connection during the TLS handshake" in text or (
                "Connection reset" in text
            ), (left, text)


def test_a_handshake_that_comes_byte_by_byte(
    way: str, settings: TlsSettings, certificate: Certificate
) -> None:
    context = server_context(certificate)

    def serve(connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def send(data: bytes) -> None:
            for byte in data:
                connection.sendall(bytes([byte]))

        shake(context, connection, send)
        connection.recv(1000)

    with Server(serve) as server, client_with(settings, way) as client:
        client.open(server.port)


@pytest.mark.parametrize("place", [0, 1, 3, 5, 9, 43, 80, 200, 500])
def test_a_handshake_with_a_flipped_byte(
    place: int, settings: TlsSettings, certificate: Certificate
) -> None:
    context = server_context(certificate)

    def serve(connection: socket.socket) -> None:
        sent = 0

        def send(data: bytes) -> None:
            nonlocal sent
            if sent <= place < sent + len(data):
                at = place - sent
                data = data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]
            sent += len(data)
            connection.sendall(data)

        with contextlib.suppress(ssl.SSLError):
            shake(context, connection, send)

    with Server(serve) as server, client_with(settings) as client:
        text = client.failure(server.port, timeout=5.0)
        assert text.startswith(("TlsError: ", "KafkaConnectionError: ")), text


def test_records_after_the_handshake_that_were_changed(
    way: str, settings: TlsSettings, certificate: Certificate
) -> None:
    context = server_context(certificate)

    def serve(connection: socket.socket) -> None:
        shake(context, connection, connection.sendall)
        connection.recv(1)
        connection.sendall(b"\x17\x03\x03\x00\x40" + bytes(64))
        while connection.recv(1000):
            pass

    with Server(serve) as server, client_with(settings, way) as client:
        link = client.open(server.port)
        client.ask(link)
        assert client.end(link).words == "it sent a record that was changed on its way"


def test_a_changed_record_of_a_broker_that_asked_for_a_certificate(
    settings: TlsSettings, certificate: Certificate, authority: CertificateAuthority
) -> None:
    """The alert of Kafka 2.8 for a client without a certificate comes in such a record.

    Python's `ssl`, and so the relay, does not tell what the broker asked for.
    """
    context = server_context(certificate)
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(authority.certificate)

    def serve(connection: socket.socket) -> None:
        shake(context, connection, connection.sendall)
        connection.recv(1)
        connection.sendall(b"\x17\x03\x03\x00\x40" + bytes(64))
        while connection.recv(1000):
            pass

    with Server(serve) as server, client_with(settings) as client:
        link = client.open(server.port)
        client.ask(link)
        words = client.end(link).words
        assert "changed on its way; and it asked for a client certificate" in words


def test_a_plaintext_answer_in_the_middle(settings: TlsSettings, certificate: Certificate) -> None:
    context = server_context(certificate)

    def serve(connection: socket.socket) -> None:
        shake(context, connection, connection.sendall)
        connection.recv(1)
        connection.sendall(b"HTTP/1.1 500 Oh\r\n\r\n")
        while connection.recv(1000):
            pass

    with Server(serve) as server, client_with(settings) as client:
        link = client.open(server.port)
        client.ask(link)
        assert client.end(link).words.startswith("it broke the rules of TLS: ")


def test_echo_is_what_the_others_would_do(settings: TlsSettings, certificate: Certificate) -> None:
    """The server of these tests serves well if nothing disturbs it."""
    context = server_context(certificate)

    def serve(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as wrapped:
            echo(wrapped)

    with Server(serve) as server, client_with(settings) as client:
        link = client.open(server.port)
        client.ask(link)
        assert client.answer()
