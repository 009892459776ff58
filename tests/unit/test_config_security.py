"""TLS and SASL: what users write becomes one object of settings, or an error that names the key."""

from __future__ import annotations

import ssl
from typing import Any

import pytest

from kafka_fast.config import CommonSettings, consumer_settings, producer_settings
from kafka_fast.errors import ConfigError

SERVERS = {"bootstrap.servers": "localhost:9092"}


def settings_of(**properties: Any) -> CommonSettings:
    return producer_settings(SERVERS, properties)


def test_plaintext_has_neither() -> None:
    settings = settings_of()
    assert (settings.security_protocol, settings.tls, settings.sasl) == ("PLAINTEXT", None, None)


def test_protocol_says_which() -> None:
    user = {"sasl_mechanism": "SCRAM-SHA-256", "sasl_username": "u", "sasl_password": "p"}
    for settings in (producer_settings, consumer_settings):
        found = settings(SERVERS, {"security_protocol": "ssl"})
        assert found.tls is not None
        assert found.sasl is None
        found = settings(SERVERS, {"security_protocol": "sasl_plaintext", **user})
        assert found.tls is None
        assert found.sasl is not None
        found = settings(SERVERS, {"security_protocol": "SASL_SSL", **user})
        assert found.tls is not None
        assert found.sasl is not None


def test_user_and_password() -> None:
    sasl = settings_of(
        security_protocol="SASL_SSL",
        sasl_mechanism="plain",
        sasl_plain_username="alice",
        sasl_plain_password=" with spaces ",
    ).sasl
    assert sasl is not None
    assert (sasl.mechanism, sasl.username) == ("PLAIN", "alice")
    assert sasl.password is not None
    assert sasl.password.reveal() == " with spaces "
    assert "spaces" not in repr(sasl)


def test_context_is_used_to_the_letter() -> None:
    context = ssl.create_default_context()
    tls = settings_of(security_protocol="SSL", ssl_context=context).tls
    assert tls is not None
    assert tls.context is context
    with pytest.raises(ConfigError, match=r"ssl\.context.* set ssl\.truststore\.location in that"):
        settings_of(security_protocol="SSL", ssl_context=context, ssl_cafile="ca.pem")
