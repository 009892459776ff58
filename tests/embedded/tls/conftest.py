"""Fixtures of the tests over TLS: an authority, what it has issued, and both ways to speak TLS."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_fast.config.security._security_settings import Store, TlsSettings
from kafka_fast.logs import naming
from kafka_fast.net.tls._tls import library_version
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


HAS_NATIVE = library_version() is not None


@pytest.fixture(params=["native", "relay"] if HAS_NATIVE else ["relay"])
def way(request: pytest.FixtureRequest) -> str:
    """Both ways to speak TLS, if this build has both."""
    return str(request.param)


@pytest.fixture(autouse=True)
def _has_what_it_tests(request: pytest.FixtureRequest) -> None:
    """Skip, in a build without OpenSSL, the tests of the native way alone."""
    if not HAS_NATIVE and "way" not in request.fixturenames:
        pytest.skip("this build has no OpenSSL")


@pytest.fixture(autouse=True)
def a_name_for_the_log() -> Iterator[None]:
    """Most tests here make no client, whose name would be in each line."""
    with naming("no client"):
        yield
