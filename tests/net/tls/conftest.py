"""Fixtures of the tests over TLS: an authority, and clients that trust it."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_fast import Producer
from kafka_fast.config._security_settings import Store, TlsSettings
from kafka_fast.net import threaded_host
from kafka_fast.net.tls import connector
from kafka_fast.testing.broker.server import EmbeddedKafka
from kafka_fast.testing.certificates import Certificate, CertificateAuthority
from kafka_fast.values import replace

Context = Callable[..., ssl.SSLContext]


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def certificate(authority: CertificateAuthority) -> Certificate:
    return authority.issue("localhost", "127.0.0.1", "::1")


@pytest.fixture(scope="session")
def settings(authority: CertificateAuthority) -> TlsSettings:
    return TlsSettings(truststore=Store(location=str(authority.certificate)))


@pytest.fixture(params=["native", "relay"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to speak TLS."""
    monkeypatch.setenv("KAFKA_FAST_TLS", request.param)
    return str(request.param)


def server_context(certificate: Certificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.chain, certificate.key)
    return context
