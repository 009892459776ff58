"""Planted secrets, plain and in base64, are in no text that the configuration makes.

Texts are those of errors with the locals of our frames, as error trackers send them, of `repr` and
`str`, and of all logs. Secrets are given in every wrong way.
"""

from __future__ import annotations

import base64
import copy
import logging
import pickle
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kafka_fast import Consumer, Producer, aio, read_properties, read_range
from kafka_fast.config import (
    KEYS,
    ValueKind,
    conceal,
    consumer_settings,
    normalize,
    producer_settings,
)
from kafka_fast.secret import Secret
from tests.unit.canary import CANARY, assert_hidden, traces

SERVERS = {"bootstrap.servers": "localhost:1"}

KEY = (
    "-----BEGIN PRIVATE KEY-----\n"
    f"{base64.b64encode(CANARY.encode()).decode()}\n-----END PRIVATE KEY-----"
)

PASSWORDS = [
    name
    for key in KEYS.values()
    if key.kind is ValueKind.PASSWORD
    for name in (key.name, key.field_name, *(alias.name for alias in key.aliases))
]


def assert_refused_without_a_trace(call: Callable[[], object]) -> None:
    with pytest.raises(Exception) as caught:
        call()
    assert traces(caught.value) == []


@pytest.fixture(autouse=True)
def no_secret_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.DEBUG)
    yield
    assert_hidden(caplog.text)


CLIENTS: list[Callable[[Mapping[str, Any]], object]] = [
    Producer,
    Consumer,
    lambda config: Producer(**{name.replace(".", "_"): value for name, value in config.items()}),
    lambda config: read_range("t", config=config),
    aio.Producer,
    aio.Consumer,
    lambda config: aio.Consumer(
        **{name.replace(".", "_"): value for name, value in config.items()}
    ),
    lambda config: aio.read_range("t", config=config),
    producer_settings,
]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    "given",
    [
        {"sasl.passwordd": CANARY},
        {"sasl.password": [CANARY]},
        {"sasl.password": CANARY.encode()},
        {"sasl.password": {"value": CANARY}},
        {"sasl.password": CANARY, "sasl_plain_password": "another"},
        {"sasl.password": "another", "sasl_plain_password": CANARY},
        {"sasl.password": CANARY},  # without security.protocol
        {"sasl.username": {"user": CANARY}},
        {"sasl.password": CANARY, "linger.mss": 5},
        {"sasl.password": CANARY, "request.timeout.ms": "soon"},
        {"security.protocol": "SASL_SSL", "sasl.password": CANARY},
        {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.password": CANARY},
        {"security.protocol": "SASL_SSL", "sasl.jaas.config": CANARY},
        {"security.protocol": "SASL_SSL", "sasl.jaas.config": f"P required password='{CANARY}"},
        {"security.protocol": "SSL", "ssl.key.pem": CANARY, "ssl.certificate.pem": CANARY},
        {"security.protocol": "SSL", "ssl.ca.pem": CANARY},
        {"security.protocol": "SSL", "ssl.ca.pem": KEY},
        {"schema.registry.basic.auth.user.info": CANARY},
    ],
)
def test_a_wrong_configuration(
    client: Callable[[Mapping[str, Any]], object], given: dict[str, Any]
) -> None:
    assert_refused_without_a_trace(lambda: client({**SERVERS, **given}))


def test_what_is_no_mapping() -> None:
    assert_refused_without_a_trace(lambda: Producer([("sasl.password", CANARY)]))  # type: ignore[arg-type]
    assert_refused_without_a_trace(lambda: Producer({("sasl.password",): CANARY}))  # type: ignore[dict-item]


@pytest.mark.parametrize("name", PASSWORDS)
def test_every_password(name: str) -> None:
    for value in (CANARY, lambda: CANARY):
        config = normalize({name: value})
        assert_hidden(repr(config), str(config), dict(config), conceal({name: value}, "producer"))
        (secret,) = (config[key] for key in config.explicit)
        assert isinstance(secret, Secret)
        assert secret.reveal() == CANARY
    for wrong in ([CANARY], CANARY.encode(), 5):
        assert_refused_without_a_trace(lambda wrong=wrong: normalize({name: wrong}))  # type: ignore[misc]


def test_settings() -> None:
    jaas = f"x.ScramLoginModule required username=u password='{CANARY}';"
    for settings in (
        producer_settings(
            SERVERS,
            {
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": "SCRAM-SHA-256",
                "sasl_jaas_config": jaas,
                "ssl_keystore_location": "/k",
                "ssl_key_password": CANARY,
            },
        ),
        consumer_settings(
            SERVERS,
            {
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": "OAUTHBEARER",
                "sasl_oauthbearer_token_endpoint_url": "https://idp",
                "sasl.oauthbearer.client.id": "me",
                "sasl.oauthbearer.client.secret": CANARY,
            },
        ),
    ):
        assert_hidden(repr(settings), str(settings))
        for copied in (pickle.dumps, copy.deepcopy):
            with pytest.raises(TypeError, match="a secret is not pickled"):
                copied(settings)


def test_a_configuration_with_secrets_is_not_pickled() -> None:
    config = normalize({"sasl.password": CANARY})
    with pytest.raises(TypeError, match=r"with sasl\.password is not pickled: make it where"):
        pickle.dumps(config)


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text(f"basic.auth.user.info={CANARY}\nsasl.password={CANARY}\n")
    assert_hidden(repr(read_properties(path)))
    for wrong in ("sasl.passwordd=x", "a=\\u12"):
        path.write_text(f"sasl.password={CANARY}\n{wrong}\n")
        assert_refused_without_a_trace(lambda: read_properties(path))
