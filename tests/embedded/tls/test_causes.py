"""What goes wrong with TLS, and in which words: each cause by a real server, in both ways."""

from __future__ import annotations

import datetime as dt
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_fast.config.security._security_settings import Store, TlsSettings
from kafka_fast.control.connections.link_errors import close_error
from kafka_fast.control.messages import CloseReason
from kafka_fast.errors import TlsError
from kafka_fast.net.tls.causes import Failure, broken, refused
from kafka_fast.testing.certificates import Certificate, CertificateAuthority
from kafka_fast.values import replace
from tests.embedded.tls.harness import client_with, echo, server_context
from tests.embedded.tls.making import WEAK, make_self_signed, make_weak, revoke
from tests.embedded.tls.servers import Server, over_tls

PLAINTEXT = "a plaintext listener? security.protocol is SSL"


def days(count: int) -> dt.datetime:
    return dt.datetime.now(dt.timezone.utc) + dt.timedelta(days=count)


def refusal(
    way: str, settings: TlsSettings, context: ssl.SSLContext, host: str = "localhost"
) -> str:
    """Return why a client cannot connect to a server with this context."""
    with Server(over_tls(context, echo)) as server, client_with(settings, way) as client:
        return client.failure(server.port, host)


def test_expired(way: str, authority: CertificateAuthority, settings: TlsSettings) -> None:
    certificate = authority.issue("localhost", not_before=days(-9), not_after=days(-1))
    text = refusal(way, settings, server_context(certificate))
    assert text.startswith("TlsError: its certificate")
    assert " expired" in text
    if way == "native":
        assert f"{days(-1):%Y-%m-%d}" in text


def test_not_yet_valid(way: str, authority: CertificateAuthority, settings: TlsSettings) -> None:
    certificate = authority.issue("localhost", not_before=days(2), not_after=days(9))
    text = refusal(way, settings, server_context(certificate))
    assert " is not valid before" in text
    if way == "native":
        assert f"{days(2):%Y-%m-%d}" in text


def test_self_signed(way: str, settings: TlsSettings, tmp_path: Path) -> None:
    text = refusal(way, settings, server_context(make_self_signed(tmp_path)))
    assert "is self-signed and not trusted (see ssl.ca.location)" in text


def test_unknown_authority(way: str, settings: TlsSettings, tmp_path: Path) -> None:
    stranger = CertificateAuthority(tmp_path).issue("localhost")
    text = refusal(way, settings, server_context(stranger))
    assert "issued by an authority that is not trusted (see ssl.ca.location)" in text


@pytest.mark.parametrize("host", ["another.example", "127.0.0.9"])
def test_wrong_host(way: str, host: str, settings: TlsSettings, certificate: Certificate) -> None:
    text = refusal(way, settings, server_context(certificate), host)
    assert f" is not for {host}" in text
    if way == "native":
        assert "it is for localhost, 127.0.0.1, 0:0:0:0:0:0:0:1" in text


def test_an_address_that_stands_as_a_name_is_no_address(
    way: str, authority: CertificateAuthority, settings: TlsSettings
) -> None:
    certificate = authority.issue("localhost")
    assert "is not for 127.0.0.1" in refusal(
        way, settings, server_context(certificate), "127.0.0.1"
    )


def test_checks_that_are_switched_off(
    way: str, settings: TlsSettings, certificate: Certificate, tmp_path: Path
) -> None:
    with (
        Server(over_tls(server_context(certificate), echo)) as server,
        client_with(replace(settings, checks_host=False), way) as client,
    ):
        client.open(server.port, "another.example")
    with (
        Server(over_tls(server_context(make_self_signed(tmp_path)), echo)) as server,
        client_with(TlsSettings(verifies=False), way) as client,
    ):
        client.open(server.port, "another.example")


def test_revoked(way: str, tmp_path: Path) -> None:
    authority = CertificateAuthority(tmp_path)
    good, bad = authority.issue("localhost"), authority.issue("localhost")
    settings = TlsSettings(
        truststore=Store(location=str(authority.certificate)),
        crl_location=str(revoke(authority, bad, tmp_path / "crl.pem")),
    )
    assert "was revoked" in refusal(way, settings, server_context(bad))
    with (
        Server(over_tls(server_context(good), echo)) as server,
        client_with(settings, way) as client,
    ):
        client.open(server.port)


@pytest.mark.parametrize("kind", WEAK)
def test_weak_cryptography(way: str, kind: str, tmp_path: Path) -> None:
    certificate, trusted = make_weak(kind, tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.load_cert_chain(certificate.chain, certificate.key)
    settings = TlsSettings(truststore=Store(location=str(trusted)))
    text = refusal(way, settings, context)
    assert text.startswith("TlsError: its certificate")
    assert text.endswith("has a weak key or signature")
    content = replace(settings, cipher_suites=("DEFAULT", "@SECLEVEL=0"))
    with Server(over_tls(context, echo)) as server, client_with(content, way) as client:
        client.open(server.port)


def test_no_cipher_in_common(way: str, settings: TlsSettings, certificate: Certificate) -> None:
    context = server_context(certificate)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256")
    picky = replace(
        settings,
        cipher_suites=("ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
        maximum_version="TLSv1.2",
    )
    assert "no cipher suite in common" in refusal(way, picky, context)


def test_no_version_in_common(way: str, settings: TlsSettings, certificate: Certificate) -> None:
    context = server_context(certificate)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    modern = replace(settings, minimum_version="TLSv1.3")
    assert "no TLS version in common" in refusal(way, modern, context)


def test_only_old_versions(way: str, settings: TlsSettings, certificate: Certificate) -> None:
    context = server_context(certificate)
    with pytest.warns(DeprecationWarning, match="TLSv1 is deprecated"):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning, match="TLSv1_1 is deprecated"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    context.set_ciphers("ALL:@SECLEVEL=0")
    assert "no TLS version in common" in refusal(way, settings, context)


def test_a_client_certificate_is_asked_for_under_tls_1_2(
    way: str, authority: CertificateAuthority, settings: TlsSettings, certificate: Certificate
) -> None:
    context = asking(authority, certificate)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    text = refusal(way, settings, context)
    assert "TlsError: " in text
    if way == "native":
        assert "asked for a client certificate, and this client has none" in text


def test_a_certificate_that_is_not_checked_is_no_cause(
    way: str, authority: CertificateAuthority, certificate: Certificate
) -> None:
    """What broke the handshake is told, not what the user does not want to know."""
    context = asking(authority, certificate)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    text = refusal(way, TlsSettings(verifies=False), context)
    assert "not trusted" not in text and "self-signed" not in text


def test_a_client_certificate_is_asked_for_under_tls_1_3(
    way: str, authority: CertificateAuthority, settings: TlsSettings, certificate: Certificate
) -> None:
    """The server refuses after the handshake, so the link tells."""
    words = refused_later(way, settings, asking(authority, certificate))
    assert "asked for a client certificate, and this client has none" in words


def test_a_client_certificate_of_a_stranger_is_refused(
    way: str,
    authority: CertificateAuthority,
    settings: TlsSettings,
    certificate: Certificate,
    tmp_path: Path,
) -> None:
    stranger = CertificateAuthority(tmp_path).issue("client")
    mutual = replace(settings, keystore=Store(location=str(stranger.both)))
    words = refused_later(way, mutual, asking(authority, certificate))
    assert words == "it refused this client's certificate: it does not know who issued it"


def asking(authority: CertificateAuthority, certificate: Certificate) -> ssl.SSLContext:
    context = server_context(certificate)
    context.load_verify_locations(authority.certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def refused_later(way: str, settings: TlsSettings, context: ssl.SSLContext) -> str:
    with Server(over_tls(context, echo)) as server, client_with(settings, way) as client:
        link = client.open(server.port)
        event = client.end(link)
    assert event.reason is CloseReason.LAYER
    error = close_error(event, "", "")
    assert isinstance(error, TlsError)
    return str(error)


def test_a_refusal_is_heard_although_writing_fails_first(
    authority: CertificateAuthority, settings: TlsSettings, certificate: Certificate
) -> None:
    with (
        Server(over_tls(asking(authority, certificate), echo)) as server,
        client_with(settings) as client,
    ):
        for _ in range(20):
            link = client.open(server.port)
            client.ask(link, 1000)
            event = client.end(link)
            assert event.reason is CloseReason.LAYER, event


def talks(data: bytes) -> Callable[[socket.socket], None]:
    def serve(connection: socket.socket) -> None:
        connection.recv(1)
        connection.sendall(data)
        while connection.recv(1000):
            pass

    return serve


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP"),
        (b"\x00\x00\x00\x0a\x00\x00\x00\x01\x00\x23\x00\x00\x00\x00", "answered without TLS"),
    ],
)
def test_a_listener_that_answers_without_tls(
    way: str, data: bytes, words: str, settings: TlsSettings
) -> None:
    with Server(talks(data)) as server, client_with(settings, way) as client:
        text = client.failure(server.port)
    assert PLAINTEXT in text
    if way == "native":
        assert words in text


def test_all_that_python_says_of_a_bad_record_from_openssl_3_2_on() -> None:
    """The relay's words, whichever OpenSSL this Python has."""
    said = refused(Failure(reason="RECORD_LAYER_FAILURE"), "broker", "SSL")
    assert said.startswith("it answered without TLS, or sent a record that was changed on its way")
    assert PLAINTEXT in said
    later = broken("record layer failure", was_asked=False)
    assert later == "it sent a record that was changed on its way"


def test_a_listener_that_closes(way: str, settings: TlsSettings) -> None:
    """As Kafka's plaintext listener does: it takes the handshake for the length of a request."""

    def serve(connection: socket.socket) -> None:
        connection.recv(4096)

    with Server(serve) as server, client_with(settings, way) as client:
        text = client.failure(server.port)
    assert text.startswith("KafkaConnectionError: ")
    assert "during the TLS handshake" in text or "broke the TLS handshake off" in text
    assert PLAINTEXT in text


def test_a_listener_that_is_silent(way: str, settings: TlsSettings) -> None:
    def serve(connection: socket.socket) -> None:
        while connection.recv(1000):
            pass

    with Server(serve) as server, client_with(settings, way) as client:
        text = client.failure(server.port, timeout=0.3)
    assert text.startswith("KafkaConnectionError: ")
    assert "accepted the connection and did not finish the TLS handshake" in text


def test_a_chain_that_is_too_long(
    way: str, authority: CertificateAuthority, settings: TlsSettings, tmp_path: Path
) -> None:
    certificate = authority.issue("localhost")
    chain = tmp_path / "chain.pem"
    chain.write_bytes(certificate.chain.read_bytes() + authority.certificate.read_bytes() * 300)
    text = refusal(way, settings, server_context(replace(certificate, chain=chain)))
    assert "a certificate chain that is too long" in text
