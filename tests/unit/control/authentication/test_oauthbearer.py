from __future__ import annotations

import pytest

from kafka_fast.control.authentication.mechanism import Work
from kafka_fast.control.authentication.oauthbearer import OAuthBearerMechanism, Token
from kafka_fast.errors import AuthenticationError, ConfigError, KafkaConnectionError
from kafka_fast.secret import Secret
from tests.unit.canary import CANARY, traces
from tests.unit.control.authentication.conversing import converse


class Tokens:
    """A source that returns one token, or fails."""

    what = "a token is asked of a test"

    def __init__(self, token: Token | Exception) -> None:
        self.token = token
        self.refused: list[Token] = []

    def current(self) -> Token:
        if isinstance(self.token, Exception):
            raise self.token
        return self.token

    def handle_refused(self, token: Token) -> None:
        self.refused.append(token)


def tokens(value: str = "abc.def-_~+/=", **fields: object) -> Tokens:
    return Tokens(Token(Secret(value), **fields))


def test_a_token_is_one_message() -> None:
    source = tokens()
    said = converse(OAuthBearerMechanism(source).converse("broker"), b"")
    assert said == [b"n,,\1auth=Bearer abc.def-_~+/=\1\1"]
    assert source.refused == []


def test_extensions_come_after_the_token_and_its_own_win() -> None:
    source = tokens("t", extensions=(("b", "3"), ("c", "a b\t4")))
    mechanism = OAuthBearerMechanism(source, [("a", "1"), ("b", "2")])
    assert converse(mechanism.converse("broker"), b"") == [
        b"n,,\1auth=Bearer t\1a=1\1b=3\1c=a b\t4\1\1"
    ]


BAD_EXTENSIONS = [("auth", "x"), ("a1", "x"), ("", "x"), ("a", ""), ("a", "\1"), ("a", "ü")]


@pytest.mark.parametrize("pair", BAD_EXTENSIONS)
def test_an_extension_that_cannot_be_sent_is_refused(pair: tuple[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"sasl\.oauthbearer\.extensions: "):
        OAuthBearerMechanism(tokens(), [pair])
    source = tokens(extensions=(pair,))
    with pytest.raises(AuthenticationError, match="extension"):
        converse(OAuthBearerMechanism(source).converse("broker"))
    assert source.refused == [source.token]


@pytest.mark.parametrize("value", ["", "a b", "a\1b", "a\n", "tokén", "\ud800"])
def test_a_token_that_cannot_be_sent_is_refused_and_not_shown(value: str) -> None:
    source = tokens(value and CANARY + value)
    with pytest.raises(AuthenticationError, match="token") as caught:
        converse(OAuthBearerMechanism(source).converse("broker"))
    assert traces(caught.value) == []


def test_what_the_broker_says_of_a_token_it_refuses_is_the_error() -> None:
    source = tokens(CANARY)
    with pytest.raises(AuthenticationError, match="refused the token: ") as caught:
        converse(
            OAuthBearerMechanism(source).converse("broker"),
            b'{"status":"invalid_token"}\r\n\x1b[31m' + b"x" * 10_000,
            lambda said: b"" if said == b"\1" else said,
        )
    assert r'{"status":"invalid_token"}\r\n\x1b[31mxxx' in str(caught.value)
    assert len(str(caught.value)) < 600
    assert traces(caught.value) == []
    assert source.refused == [source.token]


def test_the_brokers_error_after_that_says_no_more() -> None:
    source = tokens()
    conversation = OAuthBearerMechanism(source).converse("broker")
    work = next(conversation)
    assert isinstance(work, Work) and work.what == source.what
    conversation.send(source.token)
    assert conversation.send(b'{"status":"invalid_token"}') == b"\1"
    with pytest.raises(AuthenticationError, match="invalid_token"):
        conversation.throw(AuthenticationError("refused the credentials"))
    assert source.refused == [source.token]


def test_a_token_is_not_used_again_after_the_brokers_error() -> None:
    source = tokens()
    conversation = OAuthBearerMechanism(source).converse("broker")
    next(conversation)
    conversation.send(source.token)
    with pytest.raises(AuthenticationError, match="no such user"):
        conversation.throw(AuthenticationError("no such user"))
    assert source.refused == [source.token]


def test_a_link_that_is_lost_says_nothing_of_the_token() -> None:
    source = tokens()
    conversation = OAuthBearerMechanism(source).converse("broker")
    next(conversation)
    conversation.send(source.token)
    conversation.close()
    assert source.refused == []


def test_without_a_token_there_is_no_conversation() -> None:
    source = Tokens(KafkaConnectionError("needs a token, and …"))
    with pytest.raises(KafkaConnectionError, match="needs a token"):
        converse(OAuthBearerMechanism(source).converse("broker"))
