"""`kafka-fast users`: passwords come from files, pipes and keyboards, and are never shown."""

from __future__ import annotations

import getpass
import io
import sys
from pathlib import Path
from typing import Any

import pytest

from kafka_fast.admin import (
    ScramCredentialInfo,
    UserScramCredentialDeletion,
    UserScramMechanism,
)
from kafka_fast.cli.main import main
from kafka_fast.errors import ClusterAuthorizationFailed, ResourceNotFound
from tests.unit.cli.operators.fake_admin import (
    FakeAdmin,
    check_page,
    faked,
    on_a_terminal,
    report,
)
from tests.unit.cli.operators.scripted_admin import answered

SHA_256, SHA_512 = UserScramMechanism.SCRAM_SHA_256, UserScramMechanism.SCRAM_SHA_512
CREDENTIALS = {
    "alice": (ScramCredentialInfo(SHA_256, 4096), ScramCredentialInfo(SHA_512, 8192)),
    "bob": (ScramCredentialInfo(SHA_512, 4096),),
}


def altered(upsertions: Any = (), *, deletions: Any = ()) -> object:
    return answered(dict.fromkeys(one.user for one in (*upsertions, *deletions)))


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeAdmin:
    def describe(users: Any) -> object:
        absent = {name: ResourceNotFound("no such") for name in users or () if name == "eve"}
        there = {name: CREDENTIALS[name] for name in users or CREDENTIALS if name not in absent}
        return answered(there, absent)

    return faked(
        monkeypatch,
        describe_user_scram_credentials=describe,
        alter_user_scram_credentials=altered,
    )


def test_list(fake: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    told = report(capsys, "users", "list", "bob", "eve", status=1)
    assert told["users"] == [
        {"user": "bob", "credentials": [{"mechanism": "SCRAM-SHA-512", "iterations": 4096}]}
    ]
    assert told["errors"][0]["user"] == "eve"


def set_password(fake: FakeAdmin, *words: str) -> tuple[Any, ...]:
    assert main(["users", "set", "alice", *words]) == 0
    return tuple(fake.calls[-1][1])  # type: ignore[call-overload, no-any-return]


def test_a_password_of_a_file(
    fake: FakeAdmin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "password"
    file.write_bytes("gänse\r\nsecond line\n".encode())
    words = ["--new-password-file", str(file), "--iterations", "8192"]
    both = ["--mechanism", "scram-sha-256", "--mechanism", "SCRAM-SHA-512"]
    first, second = set_password(fake, *words, *both)
    assert (first.mechanism, second.mechanism) == (SHA_256, SHA_512)
    assert (first.user, first.iterations, first.password.reveal()) == ("alice", 8192, "gänse")
    told = capsys.readouterr()
    assert "gänse" not in told.out + told.err


@pytest.mark.parametrize("words", [[], ["--new-password-file", "-"]])
def test_a_password_of_a_pipe(
    words: list[str], fake: FakeAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("secret\nmore\n"))
    (one,) = set_password(fake, *words)
    assert (one.mechanism, one.iterations, one.password.reveal()) == (SHA_512, 4096, "secret")


def test_a_typed_password(
    fake: FakeAdmin, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = iter(["secret", "secret", "secret", "secrte"])
    on_a_terminal(monkeypatch, "")
    monkeypatch.setattr(getpass, "getpass", lambda question: next(typed))
    (one,) = set_password(fake)
    assert one.password.reveal() == "secret"
    assert main(["users", "set", "alice"]) == 2
    assert capsys.readouterr().err == "kafka-fast: the two differ: nothing was changed\n"
    assert len(fake.calls) == 1


def test_nothing_is_typed_or_what_is_no_text(
    fake: FakeAdmin,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def end_of_input(question: str) -> str:
        raise EOFError

    on_a_terminal(monkeypatch, "")
    monkeypatch.setattr(getpass, "getpass", end_of_input)
    assert main(["users", "set", "alice"]) == 2
    assert "was typed: nothing was changed" in capsys.readouterr().err
    file = tmp_path / "password"
    file.write_bytes(b"secret\xff")
    assert main(["users", "set", "alice", "--new-password-file", str(file)]) == 2
    told = capsys.readouterr().err
    assert "is no text in UTF-8" in told
    assert "secret" not in told
    assert fake.calls == []


def test_no_password(
    fake: FakeAdmin, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n"))
    assert main(["users", "set", "alice"]) == 2
    assert "new password of alice is empty" in capsys.readouterr().err
    assert main(["users", "set", "alice", "--new-password-file", "absent"]) == 1
    told = report(capsys, "users", "set", "alice", "--dry-run")  # reads none
    assert told["users"][0]["outcome"] == "set"
    assert fake.calls == []


def test_set_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = answered({}, {"alice": ClusterAuthorizationFailed("no")})
    faked(monkeypatch, alter_user_scram_credentials=refused)
    monkeypatch.setattr(sys, "stdin", io.StringIO("secret\n"))
    told = report(capsys, "users", "set", "alice", status=1)
    assert told["users"] == []
    assert told["errors"][0]["error"] == "CLUSTER_AUTHORIZATION_FAILED"


def test_delete(fake: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["users", "delete", "alice", "bob", "eve"]
    assert main(words) == 2
    capsys.readouterr()
    told = report(capsys, *words, "--mechanism", "SCRAM-SHA-256", "--yes", status=1)
    assert told["users"] == [
        {
            "user": "alice",
            "mechanism": "SCRAM-SHA-256",
            "iterations": 4096,
            "outcome": "deleted",
        }
    ]
    assert [one["user"] for one in told["errors"]] == ["eve", "bob"]
    assert fake.calls[-1] == (
        "alter_user_scram_credentials",
        {"deletions": [UserScramCredentialDeletion("alice", SHA_256)]},
    )


def test_delete_asks(
    fake: FakeAdmin, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_a_terminal(monkeypatch, "n\n")
    assert main(["users", "delete", "alice"]) == 1
    assert "delete the passwords of 1 user? [y/N]" in capsys.readouterr().err
    assert [call[0] for call in fake.calls] == ["describe_user_scram_credentials"]


def test_misuse(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["users", "set", "alice", "--mechanism", "PLAIN"])
    assert caught.value.code == 2
    assert "'PLAIN' is none of SCRAM-SHA-256" in capsys.readouterr().err


def test_the_page(
    fake: FakeAdmin, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of docs/command-line.md, word by word."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("secret\n"))
    check_page(__file__, capsys)
