"""Planted secrets show nowhere while clients work at real Kafka, or are refused by it.

Neither in logs at DEBUG, nor in dumps, metrics and `repr`, nor in errors with the locals of our
frames, nor on the screen of the command line: plain, in base64, or as a token. The configuration
comes from a properties file, as users have it. GSSAPI is in test_kerberos.py.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_fast import (
    AuthenticationError,
    Consumer,
    Producer,
    TopicPartition,
    aio,
    read_properties,
)
from kafka_fast.cli.main import main
from kafka_fast.testing._client_properties import write_properties_file
from kafka_fast.testing._kafka.secure_kafka import MECHANISMS, USERS, SecureKafka
from tests.unit.canary import CANARY, assert_hidden, traces

TIMEOUT = 20.0
TOKEN = "eyJhbGciOi"
"""What the provider's tokens begin with: `{"alg":` in base64."""

PlantedFile = Callable[[str], Path]


def test_the_tokens_beginning(secure_kafka: SecureKafka) -> None:
    assert secure_kafka.provider.token("alice").startswith(TOKEN)


@pytest.fixture(params=MECHANISMS)
def planted(
    request: pytest.FixtureRequest, secure_kafka: SecureKafka, tmp_path: Path
) -> PlantedFile:
    """Make the properties file of a client with a given password, by one mechanism."""
    if request.param not in secure_kafka.mechanisms:
        pytest.skip(f"Kafka 3.1: {request.param} with signed tokens")

    def write(password: str) -> Path:
        properties = secure_kafka.client_properties("SASL_SSL", request.param)
        login = properties["sasl.jaas.config"]
        assert USERS["alice"] in login
        properties["sasl.jaas.config"] = login.replace(USERS["alice"], password)
        return write_properties_file(tmp_path / "client.properties", properties)

    return write


@pytest.fixture
def topic(secure_kafka: SecureKafka, tmp_path: Path) -> str:
    secure_kafka.create_topic(tmp_path.name)
    return tmp_path.name


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What is logged at any level, by anybody."""
    caplog.set_level(logging.DEBUG)
    return caplog


def shown_by(client: Producer[Any, Any] | Consumer[Any, Any]) -> list[str]:
    return [repr(client), str(client), client.debug_dump(), repr(client.metrics())]


def assert_nothing_is_told(secret: str, *texts: str) -> None:
    for hidden in (secret, TOKEN):
        assert_hidden(*texts, secret=hidden)


def test_by_clients_that_work(
    planted: PlantedFile, topic: str, told: pytest.LogCaptureFixture
) -> None:
    password = USERS["alice"]
    properties = read_properties(planted(password))
    with Producer(properties) as producer:
        producer.send(topic, b"x").result(TIMEOUT)
        texts = shown_by(producer)
    with Consumer({**properties, "auto.offset.reset": "earliest", "group.id": topic}) as consumer:
        consumer.subscribe([topic])
        assert len(consumer.poll(TIMEOUT)) == 1
        texts += shown_by(consumer)
    assert "is ready" in told.text
    assert_nothing_is_told(password, repr(properties), told.text, *texts)


def test_by_clients_that_are_refused(planted: PlantedFile, told: pytest.LogCaptureFixture) -> None:
    properties = read_properties(planted(CANARY))
    with Producer(properties) as producer:
        with pytest.raises(AuthenticationError) as of_send:
            producer.send("any", b"x").result(TIMEOUT)
        texts = shown_by(producer)
    with Consumer({**properties, "group.id": "any"}) as consumer:
        consumer.subscribe(["any"])
        with pytest.raises(AuthenticationError) as of_poll:
            consumer.poll(TIMEOUT)
        texts += shown_by(consumer)
    for caught in (of_send, of_poll):
        for secret in (CANARY, TOKEN):
            assert traces(caught.value, secret) == []
    assert_nothing_is_told(CANARY, told.text, *texts)


@pytest.mark.parametrize("planted", ["PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"], indirect=True)
def test_by_clients_of_event_loops(
    planted: PlantedFile, topic: str, told: pytest.LogCaptureFixture
) -> None:
    async def use(properties: Any) -> None:
        async with (
            aio.Producer(properties) as producer,
            aio.Consumer({**properties, "auto.offset.reset": "earliest"}) as consumer,
        ):
            consumer.assign([TopicPartition(topic, 0)])
            try:
                await producer.send_and_wait(topic, b"x")
                assert len(await consumer.poll(TIMEOUT)) == 1
            finally:
                dumps = [await producer.debug_dump(), await consumer.debug_dump()]
                texts.extend(map(repr, (producer, consumer, producer.metrics(), *dumps)))

    texts: list[str] = []
    asyncio.run(use(read_properties(planted(USERS["alice"]))))
    assert_nothing_is_told(USERS["alice"], told.text, *texts)
    with pytest.raises(AuthenticationError) as caught:
        asyncio.run(use(read_properties(planted(CANARY))))
    assert [shown for hidden in (CANARY, TOKEN) for shown in traces(caught.value, hidden)] == []
    assert_nothing_is_told(CANARY, told.text, *texts)


@pytest.mark.parametrize("planted", ["PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"], indirect=True)
@pytest.mark.parametrize("password", [USERS["alice"], CANARY], ids=["works", "is refused"])
def test_by_the_command_line(
    planted: PlantedFile, topic: str, capsys: pytest.CaptureFixture[str], password: str
) -> None:
    file = str(planted(password))
    for command in (
        ["check"],
        ["check", "--output", "json"],
        ["consume", topic, "--from", "beginning", "--until", "end"],
        ["lag", topic, topic],
        ["config"],
    ):
        main([*command, "--config", file, "-vv"])
        shown = capsys.readouterr()
        assert shown.out + shown.err
        assert_nothing_is_told(password, shown.out, shown.err)
