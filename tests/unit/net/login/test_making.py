from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from kafka_fast.config.security._security_settings import SaslSettings
from kafka_fast.control.authentication.mechanism import Conversation, Work
from kafka_fast.control.authentication.scram import HASHES
from kafka_fast.errors import AuthenticationError, ConfigError, KafkaConnectionError
from kafka_fast.net.login import make_mechanism
from kafka_fast.secret import Secret
from tests.reference.scram_server import ScramServer
from tests.unit.canary import CANARY, is_shown, traces
from tests.unit.control.authentication.conversing import Answer, converse


def settings(mechanism: str, **named: Any) -> SaslSettings:
    return SaslSettings(mechanism=mechanism, **named)


USER: dict[str, Any] = {"username": "user", "password": Secret("pencil")}


def test_plain() -> None:
    mechanism = make_mechanism(settings("PLAIN", **USER))
    assert mechanism.name == "PLAIN"
    assert converse(mechanism.converse("broker"), b"") == [b"\0user\0pencil"]


@pytest.mark.parametrize("name", HASHES)
def test_scram(name: str) -> None:
    mechanism = make_mechanism(settings(name, **USER))
    assert mechanism.name == name
    nonces = set()
    for _ in range(3):
        server = ScramServer(HASHES[name], {"user": "pencil"})
        said = converse(mechanism.converse("broker"), server.first, server.final)
        nonces.add(said[0].partition(b",r=")[2])
    assert len(nonces) == 3 and min(map(len, nonces)) >= 32


def test_a_delegation_token() -> None:
    server = ScramServer("sha256", {"user": "pencil"})
    mechanism = make_mechanism(settings("SCRAM-SHA-256", is_token=True, **USER))
    converse(mechanism.converse("broker"), server.first, server.final)
    assert server.extensions == ["tokenauth=true"]


@pytest.mark.parametrize("name", ["PLAIN", *HASHES])
@pytest.mark.parametrize("missing", USER)
def test_credentials_that_are_missing_are_named(name: str, missing: str) -> None:
    with pytest.raises(ConfigError, match=rf"{name} needs sasl\.username and sasl\.password"):
        make_mechanism(settings(name, **{**USER, missing: None}))


def test_tokens_of_a_function() -> None:
    mechanism = make_mechanism(
        settings("OAUTHBEARER", token_provider=lambda: "abc", extensions=(("a", "1"),))
    )
    assert mechanism.name == "OAUTHBEARER"
    assert converse(mechanism.converse("broker"), b"") == [b"n,,\1auth=Bearer abc\1a=1\1\1"]


def test_tokens_of_an_oauth_cb() -> None:
    mechanism = make_mechanism(
        settings(
            "OAUTHBEARER", token_provider=lambda config: (config, 9e9), token_provider_config="abc"
        )
    )
    assert converse(mechanism.converse("broker"), b"") == [b"n,,\1auth=Bearer abc\1\1"]


def test_tokens_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc\n")
    mechanism = make_mechanism(settings("OAUTHBEARER", token_file=str(tmp_path / "token")))
    assert converse(mechanism.converse("broker"), b"") == [b"n,,\1auth=Bearer abc\1\1"]


def test_no_source_of_tokens() -> None:
    with pytest.raises(ConfigError, match=r"OAUTHBEARER needs sasl_oauth_token_provider, sasl"):
        make_mechanism(settings("OAUTHBEARER"))


def test_a_mechanism_that_is_not_known() -> None:
    with pytest.raises(ConfigError, match="CRAM-MD5 is not known; known: PLAIN, "):
        make_mechanism(settings("CRAM-MD5"))


# ---- no secret gets out ----

SECRETS: dict[str, dict[str, Any]] = {
    "PLAIN": {"username": "user", "password": Secret(CANARY)},
    "SCRAM-SHA-256": {"username": "user", "password": Secret(lambda: CANARY)},
    "SCRAM-SHA-512": {"username": "user", "password": Secret(CANARY), "is_token": True},
    "OAUTHBEARER": {"token_provider": lambda: (CANARY, 9e9)},
    "AWS_MSK_IAM": {"aws_region": "eu-west-1"},
}


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("step", range(5))
def test_a_conversation_that_breaks_off_shows_no_secret(
    name: str, step: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """At any step: as a refusal, a lost link, or an answer that makes no sense."""
    caplog.set_level(logging.DEBUG)
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(variable, CANARY.upper() if variable.endswith("ID") else CANARY)
    mechanism = make_mechanism(settings(name, **SECRETS[name]))
    for error in (AuthenticationError("refused"), KafkaConnectionError("lost"), None):
        broker = ScramServer(HASHES.get(name, "sha256"), {"user": CANARY})
        answers = [broker.first, broker.final] if "SCRAM" in name else []
        assert traces(broken_off(mechanism.converse("broker"), answers, step, error)) == []
    assert not is_shown(caplog.text)
    assert not is_shown(f"{mechanism!r}{vars(mechanism)}")


def broken_off(
    conversation: Conversation, answers: list[Answer], step: int, error: Exception | None
) -> BaseException:
    """Return how a conversation ends that goes well for some steps, and then does not."""
    try:
        said = next(conversation)
        for _ in range(step):
            if isinstance(said, Work):
                assert not is_shown(f"{said.what}{said!r}{said.function!r}")
                said = conversation.send(said.function())
            else:
                said = conversation.send(answers.pop(0)(said) if answers else b"")
        if error is not None:
            conversation.throw(error)
        conversation.send(said.function() if isinstance(said, Work) else b"\xff" * 99)
    except (KafkaConnectionError, StopIteration) as end:
        return end
    return StopIteration()
