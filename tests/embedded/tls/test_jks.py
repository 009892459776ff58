"""Java's own key stores, read with the optional package."""

from __future__ import annotations

import ssl
from pathlib import Path
from random import Random
from typing import Any

import pytest

from kafka_fast.config.security._security_settings import Store, TlsSettings
from kafka_fast.errors import ConfigError
from kafka_fast.net.tls.context import make_context
from kafka_fast.net.tls.relay_context import make_ssl_context
from kafka_fast.net.tls.stores import Blob, read_jks
from kafka_fast.secret import Secret
from kafka_fast.testing.certificates import Certificate, CertificateAuthority
from kafka_fast.values import replace
from tests.embedded.tls.harness import client_with, echo, server_context
from tests.embedded.tls.servers import Server, over_tls

PASSWORD = "changeit"

DEEP = "pycryptodome loads libraries with RTLD_DEEPBIND"
pytestmark = [pytest.mark.not_under("address", DEEP), pytest.mark.not_under("thread", DEEP)]


def write_store(path: Path, entries: list[Any]) -> Store:
    jks = pytest.importorskip("jks")
    jks.KeyStore.new("jks", entries).save(str(path), PASSWORD)
    return Store(location=str(path), password=Secret(PASSWORD))


def trusting(authority: CertificateAuthority, path: Path) -> Store:
    jks = pytest.importorskip("jks")
    der = ssl.PEM_cert_to_DER_cert(authority.certificate.read_text())
    return write_store(path, [jks.TrustedCertEntry.new("ca", der)])


@pytest.fixture(scope="module")
def own(authority: CertificateAuthority) -> Certificate:
    return authority.issue("client")


def identifying(own: Certificate, path: Path, key_password: str | None = None) -> Store:
    jks = pytest.importorskip("jks")
    from cryptography.hazmat.primitives import serialization as form

    key = form.load_pem_private_key(own.key.read_bytes(), None)
    der = key.private_bytes(form.Encoding.DER, form.PrivateFormat.PKCS8, form.NoEncryption())
    first, *_ = own.chain.read_text().partition("-----END CERTIFICATE-----")
    cert = ssl.PEM_cert_to_DER_cert(first + "-----END CERTIFICATE-----\n")
    entry = jks.PrivateKeyEntry.new("own", [cert], der, "pkcs8")
    if key_password is not None:
        entry.encrypt(key_password)
    return write_store(path, [entry])


def test_trust_and_identity_from_jks(
    way: str, authority: CertificateAuthority, certificate: Certificate, tmp_path: Path
) -> None:
    own = authority.issue("client")
    settings = TlsSettings(
        truststore=trusting(authority, tmp_path / "trust.jks"),
        keystore=identifying(own, tmp_path / "own.jks"),
    )
    context = server_context(certificate)
    context.load_verify_locations(authority.certificate)
    context.verify_mode = ssl.CERT_REQUIRED
    with Server(over_tls(context, echo)) as server, client_with(settings, way) as client:
        link = client.open(server.port)
        client.ask(link)
        assert client.answer()


def test_of_a_key_its_own_certificate_is_trusted(own: Certificate, tmp_path: Path) -> None:
    """As in Java, whatever else is in the file, and without the chain behind it."""
    jks = pytest.importorskip("jks")
    key = jks.PrivateKeyEntry.new("own", [b"own", b"authority"], b"key", "rsa_raw")
    entries = [key, jks.TrustedCertEntry.new("ca", b"another")]
    store = write_store(tmp_path / "both.jks", entries)
    contents = read_jks(Blob("JKS", Path(str(store.location)).read_bytes(), b"changeit"), "place")
    assert contents.trusted == (b"another", b"own")
    assert contents.chain == (b"own", b"authority")


def test_a_wrong_password_of_a_jks_file(authority: CertificateAuthority, tmp_path: Path) -> None:
    store = trusting(authority, tmp_path / "trust.jks")
    wrong = Store(location=store.location, password=Secret("wrong"))
    with pytest.raises(ConfigError, match="the password is wrong or missing"):
        make_context(TlsSettings(truststore=wrong))


def test_a_key_with_a_password_of_its_own(way: str, own: Certificate, tmp_path: Path) -> None:
    """As keytool makes them with -keypass."""
    store = identifying(own, tmp_path / "own.jks", key_password="another")
    with pytest.raises(ConfigError, match=r"password of its own \(see ssl\.key\.password\)"):
        make(way, TlsSettings(verifies=False, keystore=store))
    with pytest.raises(ConfigError, match="the password is wrong or missing"):
        make(way, TlsSettings(verifies=False, keystore=replace(store, key_password=Secret("x"))))
    good = replace(store, key_password=Secret("another"))
    make(way, TlsSettings(verifies=False, keystore=good))
    make(way, TlsSettings(truststore=store))  # wants no key


@pytest.mark.parametrize("size", [12, 100, 300, 700])
def test_a_jks_file_that_is_cut(way: str, size: int, own: Certificate, tmp_path: Path) -> None:
    path = tmp_path / "own.jks"
    store = identifying(own, path)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ConfigError, match=r"own\.jks: "):
        make(way, TlsSettings(verifies=False, keystore=store))


def test_a_jks_file_that_is_changed(own: Certificate, tmp_path: Path) -> None:
    """Whatever the package raises, the error is ours."""
    path = tmp_path / "own.jks"
    identifying(own, path)
    data, random = path.read_bytes(), Random(1)
    for _ in range(300):
        changed = bytearray(data)
        changed[random.randrange(12, len(data))] ^= 1 << random.randrange(8)
        with pytest.raises(ConfigError, match=r"^place: "):
            read_jks(Blob("JKS", bytes(changed), PASSWORD.encode()), "place")


def make(way: str, settings: TlsSettings) -> None:
    (make_context if way == "native" else make_ssl_context)(settings)
