from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_fast.testing.certificates import Certificate, CertificateAuthority
from tests.unit.net.login.provider import Provider, serving


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    return CertificateAuthority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="session")
def certificate(authority: CertificateAuthority) -> Certificate:
    return authority.issue("localhost")


@pytest.fixture
def provider(certificate: Certificate) -> Iterator[Provider]:
    with serving(certificate) as made:
        yield made
