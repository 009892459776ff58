from __future__ import annotations

import pytest

from kafka_fast.control.authentication.plain import PlainMechanism
from kafka_fast.errors import AuthenticationError, ConfigError, KafkaConnectionError
from kafka_fast.secret import Secret
from tests.unit.canary import CANARY, traces
from tests.unit.control.authentication.conversing import converse


def test_user_and_password_are_one_message() -> None:
    said = converse(PlainMechanism("jörg", Secret("a,b=ü")).converse("broker"), b"")
    assert said == ["\0jörg\0a,b=ü".encode()]


def test_a_password_may_come_from_a_function_and_change() -> None:
    passwords = iter(["first", "second"])
    plain = PlainMechanism("user", Secret(lambda: next(passwords)))
    assert converse(plain.converse("a"), b"") == [b"\0user\0first"]
    assert converse(plain.converse("b"), b"") == [b"\0user\0second"]


@pytest.mark.parametrize("user", ["", "a\0b"])
def test_a_user_that_cannot_be_sent_is_refused_when_the_client_is_made(user: str) -> None:
    with pytest.raises(ConfigError, match=r"sasl\.username"):
        PlainMechanism(user, Secret("password"))


@pytest.mark.parametrize("password", [f"{CANARY}\0", f"{CANARY}\ud800"])
def test_a_password_that_cannot_be_sent_is_refused_and_not_shown(password: str) -> None:
    with pytest.raises(AuthenticationError, match="password") as caught:
        converse(PlainMechanism("user", Secret(password)).converse("broker"))
    assert traces(caught.value) == []


def test_a_function_that_fails_is_the_cause() -> None:
    def fail() -> str:
        raise ValueError("the vault is sealed\n")

    with pytest.raises(AuthenticationError, match=r"ValueError: the vault is sealed\\n") as caught:
        converse(PlainMechanism("user", Secret(fail)).converse("broker"))
    assert isinstance(caught.value.__cause__, ValueError)


def test_a_function_that_cannot_reach_its_source_may_be_asked_again() -> None:
    def fail() -> str:
        raise TimeoutError("the vault does not answer")

    with pytest.raises(KafkaConnectionError, match="the vault does not answer") as caught:
        converse(PlainMechanism("user", Secret(fail)).converse("broker"))
    assert not isinstance(caught.value, AuthenticationError)


def test_a_function_that_returns_something_else_gives_nothing_away() -> None:
    def give_bytes() -> bytes:
        return CANARY.encode()

    with pytest.raises(AuthenticationError, match="returned bytes") as caught:
        converse(PlainMechanism("user", Secret(give_bytes)).converse("broker"))  # type: ignore[arg-type]
    assert traces(caught.value) == []
