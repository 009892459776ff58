from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_fast.config._security_settings import SaslSettings
from kafka_fast.control.authentication.scram import HASHES
from kafka_fast.errors import ConfigError
from kafka_fast.net.login import make_mechanism
from kafka_fast.secret import Secret
from tests.reference.scram_server import ScramServer
from tests.unit.control.authentication.conversing import converse


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
    with pytest.raises(ConfigError, match=r"OAUTHBEARER needs sasl_oauth_token_provider, or"):
        make_mechanism(settings("OAUTHBEARER"))


def test_a_mechanism_that_is_not_known() -> None:
    with pytest.raises(ConfigError, match="CRAM-MD5 is not known"):
        make_mechanism(settings("CRAM-MD5"))
