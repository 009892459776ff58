"""Cipher suites: OpenSSL's names of Java's, and which version of TLS a suite is of."""

from __future__ import annotations

import ssl

import pytest

from kafka_fast.config.security._cipher_suites import sorted_suites
from kafka_fast.errors import ConfigError

# From OpenSSL's manual page of `openssl ciphers`.
NAMES = {
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
    "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384": "DHE-RSA-AES256-GCM-SHA384",
    "TLS_DHE_RSA_WITH_AES_128_CBC_SHA": "DHE-RSA-AES128-SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384": "ECDHE-RSA-AES256-SHA384",
    "TLS_RSA_WITH_AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA": "AES256-SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256": "AES128-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CCM": "ECDHE-ECDSA-AES128-CCM",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CCM_8": "ECDHE-ECDSA-AES256-CCM8",
}


@pytest.mark.parametrize(("java", "openssl"), NAMES.items())
def test_javas_names(java: str, openssl: str) -> None:
    assert sorted_suites([java]).tls12 == (openssl,)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers(f"{openssl}:@SECLEVEL=0")  # this library knows the name
    assert openssl in {cipher["name"] for cipher in context.get_ciphers()}


def test_suites_of_tls13_go_apart() -> None:
    suites = sorted_suites(["TLS_AES_256_GCM_SHA384", "TLS_RSA_WITH_AES_128_GCM_SHA256"])
    assert suites == (("AES128-GCM-SHA256",), ("TLS_AES_256_GCM_SHA384",), True)


def test_cipher_strings_stay_as_they_are() -> None:
    suites = sorted_suites(["HIGH:!MD5:@SECLEVEL=1", "TLS_AES_128_GCM_SHA256"])
    assert suites == (("HIGH", "!MD5", "@SECLEVEL=1"), ("TLS_AES_128_GCM_SHA256",), False)


def test_javas_signal_is_no_suite() -> None:
    assert sorted_suites(["TLS_EMPTY_RENEGOTIATION_INFO_SCSV"]).tls12 == ()


@pytest.mark.parametrize("name", ["TLS_RSA_WITH_RC4_128_MD5", "TLS_AES_1", "SSL_RSA_WITH_NULL_MD5"])
def test_what_openssl_has_not_is_refused_by_name(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        sorted_suites([name])
