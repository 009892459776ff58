"""Fixtures of the tests over TLS: an authority, what it has issued, and both ways to speak TLS."""

from __future__ import annotations

import pytest

from kafka_fast.config._security_settings import Store, TlsSettings
from kafka_fast.testing.certificates import Certificate, CertificateAuthority


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def certificate(authority: CertificateAuthority) -> Certificate:
    """For `localhost` and its addresses."""
    return authority.issue("localhost", "127.0.0.1", "::1", common_name="broker")


@pytest.fixture(scope="session")
def settings(authority: CertificateAuthority) -> TlsSettings:
    """A client's that trusts the authority."""
    return TlsSettings(truststore=Store(location=str(authority.certificate)))


@pytest.fixture(params=["native", "relay"])
def way(request: pytest.FixtureRequest) -> str:
    """Both ways to speak TLS."""
    return str(request.param)
