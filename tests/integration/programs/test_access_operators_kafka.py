"""Commands about access, passwords and tokens, on real Kafka with an authorizer."""

from __future__ import annotations

import io
import json
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from kafka_fast.cli.main import main
from kafka_fast.testing._kafka.secure_kafka import SecureKafka
from tests.waiting import eventually

pytestmark = pytest.mark.broker

Told: TypeAlias = Callable[..., dict[str, Any]]


@pytest.fixture
def told(secure_kafka: SecureKafka, capsys: pytest.CaptureFixture[str]) -> Told:
    def tell(*words: str, status: int = 0) -> dict[str, Any]:
        capsys.readouterr()
        server = () if "-b" in words else ("-b", secure_kafka.bootstrap)
        assert main([*words, *server, "-o", "json"]) == status
        shown: dict[str, Any] = json.loads(capsys.readouterr().out)
        return shown

    return tell


def test_rules(told: Told) -> None:
    topic = f"ruled-{uuid.uuid4().hex}"
    user = f"User:{topic}"
    words = ["--topic", topic, "--principal", user, "--operation", "read", "--operation", "write"]
    created = told("acls", "create", *words)["acls"]
    assert [one["operation"] for one in created] == ["READ", "WRITE"]

    def rules(*chosen: str) -> list[str]:
        return [one["operation"] for one in told("acls", *chosen)["acls"]]

    eventually(lambda: rules("--principal", user) == ["READ", "WRITE"], "the rules")
    assert rules("--topic", topic, "--deny") == []
    prefix = ["--topic", topic[:-2], "--prefixed", "--principal", user, "--operation", "all"]
    told("acls", "create", *prefix, "--deny")
    matching = ["--topic", topic, "--principal", user, "--matching"]
    eventually(lambda: rules(*matching) == ["ALL", "READ", "WRITE"], "the rule of the prefix")
    again = told("acls", "create", *words, "--dry-run")["acls"]
    assert [one["outcome"] for one in again] == ["exists"] * 2
    deleted = told("acls", "delete", "--topic", topic, "--operation", "write", "--yes")["acls"]
    assert [one["operation"] for one in deleted] == ["WRITE"]
    told("acls", "delete", "--principal", user, "--yes")
    told("acls", "delete", "--principal", user, "--prefixed", "--yes")
    eventually(lambda: rules("--principal", user) == [], "no rules")


def test_passwords(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    user = f"user-{uuid.uuid4().hex}"
    monkeypatch.setattr(sys, "stdin", io.StringIO("secret\n"))
    both = ["--mechanism", "SCRAM-SHA-256", "--mechanism", "SCRAM-SHA-512"]
    assert len(told("users", "set", user, *both, "--iterations", "8192")["users"]) == 2
    credentials = [{"mechanism": mechanism, "iterations": 8192} for mechanism in (both[1], both[3])]
    known = [{"user": user, "credentials": credentials}]

    def users() -> list[dict[str, Any]]:
        return [one for one in told("users")["users"] if one["user"] == user]

    eventually(lambda: users() == known, "the user")
    assert told("users", "list", user)["users"] == known
    deleted = told("users", "delete", user, "--yes")["users"]
    assert [one["outcome"] for one in deleted] == ["deleted"] * 2
    eventually(lambda: users() == [], "the end of the user")
    assert told("users", "delete", user, "--yes", status=1)["errors"][0]["user"] == user


def test_tokens(secure_kafka: SecureKafka, told: Told, tmp_path: Path) -> None:
    properties = secure_kafka.client_properties("SASL_SSL", "SCRAM-SHA-256")
    login = tmp_path / "alice.properties"
    login.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
    file = tmp_path / "hmac"
    of = ["--hmac-file", str(file), "--config", str(login)]

    def as_alice(*words: str) -> dict[str, Any]:
        return told(*words, "-b", str(properties["bootstrap.servers"]))

    (created,) = as_alice("tokens", "create", "--max-lifetime", "2h", *of)["tokens"]
    assert created["hmac"] is None
    assert created["max_ms"] - created["issued_ms"] == 7_200_000

    def listed() -> bool:
        tokens = as_alice("tokens", "--config", str(login))["tokens"]
        return created["token"] in [one["token"] for one in tokens]

    eventually(listed, "the token")
    renewed = as_alice("tokens", "renew", "--for", "1h", *of)["tokens"][0]
    assert renewed["expires_ms"] < created["max_ms"]
    seen = as_alice("tokens", "expire", "--dry-run", *of)["tokens"][0]
    assert seen["token"] == created["token"]
    as_alice("tokens", "expire", "--yes", *of)
    eventually(lambda: not listed(), "the end of the token")


def test_a_token_needs_a_login(
    secure_kafka: SecureKafka, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "hmac"
    words = ["tokens", "create", "--hmac-file", str(file), "-b", secure_kafka.bootstrap]
    assert main(words) == 1
    assert "DELEGATION_TOKEN" in capsys.readouterr().err
    assert not file.exists()
