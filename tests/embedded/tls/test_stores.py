"""Certificates and keys from wherever users have them, and what is said of those that do not do."""

from __future__ import annotations

import datetime as dt
import logging
import os
import shutil
import ssl
from pathlib import Path

import pytest

from kafka_fast.config.security._security_settings import Store, TlsSettings
from kafka_fast.errors import ConfigError, MissingPackageError
from kafka_fast.net.tls._tls import TlsContext
from kafka_fast.net.tls.context import make_context
from kafka_fast.net.tls.expiry import end_of
from kafka_fast.net.tls.relay_context import make_ssl_context
from kafka_fast.secret import Secret
from kafka_fast.testing.certificates import Certificate, CertificateAuthority
from kafka_fast.values import replace
from tests.embedded.tls.harness import client_with, echo, server_context
from tests.embedded.tls.making import as_pkcs12, as_trusted_pkcs12, encrypted_key, make_self_signed
from tests.embedded.tls.servers import Server, over_tls
from tests.waiting import eventually

PASSWORD = "a pass phrase"


@pytest.fixture(scope="module")
def own(authority: CertificateAuthority) -> Certificate:
    return authority.issue("client", common_name="somebody")


@pytest.fixture
def seen(authority: CertificateAuthority, certificate: Certificate) -> ssl.SSLContext:
    """A server's context that wants a client certificate."""
    context = server_context(certificate)
    context.load_verify_locations(authority.certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def stores(own: Certificate, folder: Path) -> dict[str, Store]:
    password = Secret(PASSWORD)
    locked = encrypted_key(own, folder / "locked.key", PASSWORD.encode())
    together = folder / "together.pem"
    together.write_bytes(own.chain.read_bytes() + locked.read_bytes())
    return {
        "PEM, both in one": Store(location=str(own.both)),
        "PEM, two files": Store(location=str(own.chain), key_location=str(own.key)),
        "PEM, encrypted": Store(
            location=str(own.chain), key_location=str(locked), key_password=password
        ),
        "PEM, encrypted, in one": Store(location=str(together), key_password=password),
        "texts": Store(certificates=own.chain.read_text(), key=Secret(own.key.read_text())),
        "texts, encrypted": Store(
            certificates=own.chain.read_text(),
            key=Secret(locked.read_text()),
            key_password=Secret(lambda: PASSWORD),
        ),
        "PKCS12": Store(
            location=str(as_pkcs12(own, folder / "own.p12", PASSWORD.encode())), password=password
        ),
    }


KINDS = [
    "PEM, both in one",
    "PEM, two files",
    "PEM, encrypted",
    "PEM, encrypted, in one",
    "texts",
    "texts, encrypted",
    "PKCS12",
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_client_shows_its_certificate(
    way: str,
    kind: str,
    settings: TlsSettings,
    own: Certificate,
    seen: ssl.SSLContext,
    tmp_path: Path,
) -> None:
    mutual = replace(settings, keystore=stores(own, tmp_path)[kind])
    names: list[object] = []

    def serve(connection: ssl.SSLSocket) -> None:
        shown = connection.getpeercert()
        assert shown is not None
        names.append(shown["subject"])
        echo(connection)

    with Server(over_tls(seen, serve)) as server, client_with(mutual, way) as client:
        link = client.open(server.port)
        client.ask(link)
        assert client.answer()
    assert "somebody" in str(names)


def test_the_kinds_of_stores_are_all_tried(own: Certificate, tmp_path: Path) -> None:
    assert list(stores(own, tmp_path)) == KINDS


@pytest.mark.parametrize("kind", ["PEM text", "DER", "PKCS12", "folder"])
def test_trust_in_each_form(
    way: str, kind: str, authority: CertificateAuthority, certificate: Certificate, tmp_path: Path
) -> None:
    pem = authority.certificate.read_text()
    match kind:
        case "PEM text":
            store = Store(certificates=pem)
        case "DER":
            path = tmp_path / "ca.der"
            path.write_bytes(ssl.PEM_cert_to_DER_cert(pem))
            store = Store(location=str(path))
        case "PKCS12":
            path = as_trusted_pkcs12(authority, tmp_path / "ca.p12", PASSWORD.encode())
            store = Store(location=str(path), password=Secret(PASSWORD))
        case _:
            shutil.copy(authority.certificate, tmp_path / "ca.pem")
            ssl_hash(tmp_path)
            store = Store(location=str(tmp_path))
    with (
        Server(over_tls(server_context(certificate), echo)) as server,
        client_with(TlsSettings(truststore=store), way) as client,
    ):
        client.open(server.port)


def ssl_hash(folder: Path) -> None:
    """Name the certificates of a folder as OpenSSL looks for them."""
    import subprocess

    subprocess.run(["openssl", "rehash", str(folder)], check=True, capture_output=True)


def test_without_a_truststore_the_systems_one_counts(
    way: str,
    authority: CertificateAuthority,
    certificate: Certificate,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Server(over_tls(server_context(certificate), echo)) as server:
        with client_with(TlsSettings(), way) as doubter:
            assert "not trusted" in doubter.failure(server.port)
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))
        with client_with(TlsSettings(), way) as client:
            client.open(server.port)


def test_what_is_trusted_need_not_be_an_authority(way: str, certificate: Certificate) -> None:
    first = certificate.chain.read_text().partition("-----END CERTIFICATE-----")
    settings = TlsSettings(truststore=Store(certificates=first[0] + first[1] + "\n"))
    with (
        Server(over_tls(server_context(certificate), echo)) as server,
        client_with(settings, way) as client,
    ):
        client.open(server.port)


def test_a_trust_store_with_a_private_key(
    way: str, authority: CertificateAuthority, certificate: Certificate, tmp_path: Path
) -> None:
    """As in Java, the chain behind the key is not trusted, but the key's own certificate is."""
    path, password = tmp_path / "store.p12", PASSWORD.encode()
    settings = TlsSettings(truststore=Store(location=str(path), password=Secret(PASSWORD)))
    own = authority.issue("localhost")

    def result(one: Certificate) -> OSError | None:
        with (
            Server(over_tls(server_context(one), echo)) as server,
            client_with(settings, way) as client,
        ):
            link = client.begin(server.port)
            return client.take()[link]

    as_pkcs12(own, path, password, others=[authority.certificate])
    assert result(own) is None
    assert "an authority that is not trusted" in str(result(certificate))
    # As keytool writes it, once for the chain and once as an entry of its own.
    as_pkcs12(own, path, password, others=[authority.certificate, authority.certificate])
    assert result(certificate) is None


@pytest.mark.parametrize("name", ["größe", "\udcff"])
def test_names_of_files_that_are_not_ascii(
    way: str,
    name: str,
    own: Certificate,
    authority: CertificateAuthority,
    seen: ssl.SSLContext,
    tmp_path: Path,
) -> None:
    folder = tmp_path / name
    trusted = folder / "trusted"
    trusted.mkdir(parents=True)
    shutil.copy(authority.certificate, trusted / "ca.pem")
    shutil.copy(own.both, folder / "own.pem")
    ssl_hash(trusted)
    for location in (trusted, trusted / "ca.pem"):
        settings = TlsSettings(
            truststore=Store(location=str(location)),
            keystore=Store(location=str(folder / "own.pem")),
        )
        with Server(over_tls(seen, echo)) as server, client_with(settings, way) as client:
            link = client.open(server.port)
            client.ask(link)
            assert client.answer()


# ---- what does not do ----


def make(way: str, settings: TlsSettings) -> None:
    (make_context if way == "native" else make_ssl_context)(settings)


def refused(way: str, settings: TlsSettings) -> str:
    with pytest.raises(ConfigError) as caught:
        make(way, settings)
    assert PASSWORD not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "No such file or directory"),
        (b"", "the file is empty"),
        (b"no certificate", "there is no certificate in it"),
        (b"-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n", "certificate"),
    ],
)
def test_trust_that_cannot_be_read(
    way: str, content: bytes | None, why: str, tmp_path: Path
) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_bytes(content)
    text = refused(way, TlsSettings(truststore=Store(location=str(path))))
    assert text.startswith(f"{path}: ")
    assert why in text


@pytest.mark.parametrize("kind", ["PEM, encrypted", "texts, encrypted", "PKCS12"])
@pytest.mark.parametrize("given", [Secret("wrong"), None])
def test_a_wrong_or_missing_password(
    way: str, kind: str, given: Secret | None, own: Certificate, tmp_path: Path
) -> None:
    store = stores(own, tmp_path)[kind]
    changed = {"password": given} if kind == "PKCS12" else {"key_password": given}
    text = refused(way, TlsSettings(verifies=False, keystore=replace(store, **changed)))
    assert "the password is wrong or missing" in text


def test_a_key_of_another_certificate(way: str, own: Certificate, certificate: Certificate) -> None:
    store = Store(location=str(own.chain), key_location=str(certificate.key))
    text = refused(way, TlsSettings(verifies=False, keystore=store))
    assert "the private key is not the one of the certificate" in text


def test_a_store_without_a_key(way: str, own: Certificate) -> None:
    text = refused(way, TlsSettings(verifies=False, keystore=Store(location=str(own.chain))))
    assert "key" in text


def test_suites_that_nobody_knows(way: str) -> None:
    assert "ssl.cipher.suites" in refused(way, TlsSettings(cipher_suites=("NO-SUCH-SUITE",)))


def test_revocation_lists_that_are_none(way: str, settings: TlsSettings, own: Certificate) -> None:
    text = refused(way, replace(settings, crl_location=str(own.chain)))
    assert "there is no revocation list in it" in text


def test_jks_without_the_package(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "jks", None)
    path = tmp_path / "trust.jks"
    path.write_bytes(b"\xfe\xed\xfe\xed\x00\x00\x00\x02")
    with pytest.raises(MissingPackageError, match="pip install pyjks") as caught:
        make(way, TlsSettings(truststore=Store(location=str(path))))
    assert (caught.value.package, caught.value.extra) == ("pyjks", "jks")


# ---- time passes ----


@pytest.mark.parametrize("kind", KINDS)
def test_a_certificate_that_ends_soon_is_warned_of_once(
    way: str,
    kind: str,
    authority: CertificateAuthority,
    caplog: pytest.LogCaptureFixture,
    settings: TlsSettings,
    tmp_path: Path,
) -> None:
    soon = dt.datetime.now(dt.timezone.utc) + dt.timedelta(days=13)
    own = authority.issue("client", common_name="leaving", not_after=soon)
    with caplog.at_level(logging.WARNING, "kafka_fast"):
        make(way, replace(settings, keystore=stores(own, tmp_path)[kind]))
    (record,) = caplog.records
    assert "client certificate" in record.getMessage()
    assert "CN=leaving" in record.getMessage()
    assert f"expires at {soon:%Y-%m-%d}" in record.getMessage()


def test_a_trusted_certificate_that_ends_soon_is_warned_of(
    way: str, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    certificate = make_self_signed(tmp_path, dt.timedelta(days=13), is_authority=True)
    with caplog.at_level(logging.WARNING, "kafka_fast"):
        make(way, TlsSettings(truststore=Store(location=str(certificate.chain))))
    (record,) = caplog.records
    assert "the trusted certificate CN=localhost expires at " in record.getMessage()


@pytest.mark.parametrize("days", [20, 365 * 40])
def test_what_the_relay_reads_in_a_certificate_is_what_openssl_does(
    days: int, tmp_path: Path
) -> None:
    """Years from 2050 on are written in another form."""
    chain = make_self_signed(tmp_path, dt.timedelta(days=days)).chain
    with chain.open() as pem:
        subject, until = end_of(ssl.PEM_cert_to_DER_cert(pem.read()))
    context = make_context(TlsSettings(truststore=Store(location=str(chain))))
    assert (subject, until) == context.trusted_until


def test_a_certificate_that_ends_later_is_not(
    way: str, own: Certificate, caplog: pytest.LogCaptureFixture, settings: TlsSettings
) -> None:
    with caplog.at_level(logging.WARNING, "kafka_fast"):
        make(way, replace(settings, keystore=Store(location=str(own.both))))
    assert caplog.records == []


def test_changed_certificates_are_read_at_the_next_connect(
    way: str,
    settings: TlsSettings,
    authority: CertificateAuthority,
    certificate: Certificate,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    trusted = tmp_path / "trusted.pem"
    stranger = CertificateAuthority(tmp_path)
    shutil.copy(stranger.certificate, trusted)
    settings = TlsSettings(truststore=Store(location=str(trusted)))
    with (
        Server(over_tls(server_context(certificate), echo)) as server,
        client_with(settings, way) as client,
    ):
        assert "not trusted" in client.failure(server.port)
        trusted.write_bytes(b"half of ")
        with caplog.at_level(logging.WARNING, "kafka_fast"):
            assert "not trusted" in client.failure(server.port), "the old ones count"
        assert "changed certificates are not used yet" in caplog.text
        shutil.copy(authority.certificate, trusted)
        client.open(server.port)


def test_keys_are_logged_only_if_asked_for(
    way: str,
    settings: TlsSettings,
    certificate: Certificate,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    unasked = tmp_path / "unasked"
    monkeypatch.setenv("SSLKEYLOGFILE", str(unasked))
    asked = tmp_path / "asked"
    with Server(over_tls(server_context(certificate), echo)) as server:
        for one in (settings, replace(settings, key_log_location=str(asked))):
            with client_with(one, way) as client:
                link = client.open(server.port)
                client.ask(link)
                assert client.answer()
    assert not unasked.exists()
    eventually(asked.exists)
    assert "CLIENT_TRAFFIC_SECRET_0" in asked.read_text()
    assert asked.stat().st_mode & 0o077 == 0


def test_a_file_for_keys_that_cannot_be_written_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.touch()
    context = TlsContext(minimum=0x0303, maximum=0x0304, verifies=True, checks_host=True)
    fd = os.open(path, os.O_RDONLY)
    with pytest.raises(OSError, match="Invalid argument"):
        context.log_keys(fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
