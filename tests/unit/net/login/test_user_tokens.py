from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_fast.control.authentication.oauthbearer import Token
from kafka_fast.errors import AuthenticationError, KafkaConnectionError
from kafka_fast.net.login.user_tokens import TOKEN_MAX, file_tokens, user_tokens
from tests.unit.canary import CANARY, traces
from tests.unit.net.login.test_jwt import jwt

END = 1_900_000_000


def read(token: Token) -> tuple[str, float | None, tuple[tuple[str, str], ...]]:
    return token.value.reveal(), token.expires_at, token.extensions


def test_a_function_returns_a_token() -> None:
    assert read(user_tokens(lambda: "token", None)()) == ("token", None, ())
    text = jwt({"exp": END})
    assert read(user_tokens(lambda: text, None)()) == (text, END, ())


def test_a_function_returns_a_token_and_its_end() -> None:
    assert read(user_tokens(lambda: ("token", END), None)()) == ("token", END, ())
    assert read(user_tokens(lambda: ("token", None), None)()) == ("token", None, ())


def test_the_end_may_be_in_ms() -> None:
    """As the signer of MSK's IAM tokens returns it."""
    assert read(user_tokens(lambda: ("token", END * 1000), None)()) == ("token", END, ())


def test_an_oauth_cb() -> None:
    configs: list[str] = []

    def oauth_cb(config: str) -> tuple[str, float]:
        configs.append(config)
        return "token", END

    assert read(user_tokens(oauth_cb, "a=b")()) == ("token", END, ())
    assert read(user_tokens(oauth_cb, "")()) == ("token", END, ())
    assert configs == ["a=b", ""]
    full = ("token", END, "principal", {"a": "1"})
    assert read(user_tokens(lambda _: full, "")()) == ("token", END, (("a", "1"),))


def test_an_asynchronous_function() -> None:
    async def token() -> tuple[str, int]:
        return "token", END

    assert read(user_tokens(token, None)()) == ("token", END, ())


def test_a_token_provider_as_kafka_python_has_them() -> None:
    class Provider:
        def token(self) -> str:
            return "token"

        def extensions(self) -> dict[str, str]:
            return {"logicalCluster": "lkc-1"}

    assert read(user_tokens(Provider(), None)()) == ("token", None, (("logicalCluster", "lkc-1"),))


def test_a_token_provider_of_aiokafka() -> None:
    from aiokafka.abc import AbstractTokenProvider

    class Provider(AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return "token"

        def extensions(self) -> None:
            return None

    assert read(user_tokens(Provider(), None)()) == ("token", None, ())


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        (None, "returned NoneType"),
        (CANARY.encode(), "returned bytes"),
        ({"access_token": CANARY}, "returned dict"),
        ((CANARY,), r"returned \(str\)"),
        ((CANARY, "tomorrow"), r"returned \(str, str\)"),
        ((CANARY, True), r"returned \(str, bool\)"),
        ((CANARY, float("nan")), r"returned \(str, float\)"),
        ((CANARY, END, "principal"), r"returned \(str, int, str\)"),
        ((CANARY, END, "principal", ["a"]), r"returned \(str, int, str, list\)"),
        ((CANARY, END, "principal", {"a": 1}), r"returned \(str, int, str, dict\)"),
    ],
)
def test_what_is_no_token_is_refused_and_not_shown(given: object, shape: str) -> None:
    with pytest.raises(AuthenticationError, match=shape) as caught:
        user_tokens(lambda: given, None)()
    assert traces(caught.value) == []


def test_a_function_that_fails_is_the_cause() -> None:
    def fail() -> str:
        raise LookupError("no\x1btoken")

    with pytest.raises(AuthenticationError, match=r"raised LookupError: no\\x1btoken") as caught:
        user_tokens(fail, None)()
    assert isinstance(caught.value.__cause__, LookupError)


def test_a_function_that_cannot_reach_its_source_may_be_asked_again() -> None:
    def fail() -> str:
        raise ConnectionRefusedError("vault")

    with pytest.raises(KafkaConnectionError, match="vault") as caught:
        user_tokens(fail, None)()
    assert not isinstance(caught.value, AuthenticationError)


def test_a_file_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "token"
    fetch = file_tokens(str(path))
    with pytest.raises(KafkaConnectionError, match="No such file") as caught:
        fetch()
    assert not isinstance(caught.value, AuthenticationError)
    path.write_text(f"{jwt({'exp': END})}\n")
    assert read(fetch()) == (jwt({"exp": END}), END, ())
    path.write_text("another")
    assert read(fetch())[0] == "another"


BAD: list[Callable[[Path], Any]] = [
    lambda path: path.write_text(" \n"),
    lambda path: path.write_text(CANARY * TOKEN_MAX),
    lambda path: path.write_bytes(CANARY.encode() + b"\xff"),
]


@pytest.mark.parametrize("write", BAD, ids=["empty", "long", "no text"])
def test_a_file_without_a_token(tmp_path: Path, write: Callable[[Path], Any]) -> None:
    write(tmp_path / "token")
    with pytest.raises(AuthenticationError, match="token holds none") as caught:
        file_tokens(str(tmp_path / "token"))()
    assert traces(caught.value) == []
