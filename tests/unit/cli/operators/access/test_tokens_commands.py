"""`kafka-fast tokens`: where HMACs come from, and that nothing shows them but `create`."""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Callable
from errno import ENOSPC
from pathlib import Path

import pytest

from kafka_fast.admin import DelegationToken
from kafka_fast.cli.main import main
from kafka_fast.errors import (
    DelegationTokenNotFound,
    DelegationTokenRequestNotAllowed,
    KafkaTimeoutError,
)
from kafka_fast.secret import Secret
from tests.unit.cli.operators.fake_admin import (
    FakeAdmin,
    check_page,
    faked,
    on_a_terminal,
    report,
)

HMAC = "c2VjcmV0"
DAY = 86_400_000
START = 1_772_323_200_000


def token(name: str = "Vq3kT8Rw", hmac: str = HMAC) -> DelegationToken:
    return DelegationToken(
        name,
        Secret(hmac),
        "User:alice",
        "User:alice",
        ("User:scheduler",),
        START,
        START + DAY,
        START + 7 * DAY,
    )


SHOWN = {
    "token": "Vq3kT8Rw",
    "owner": "User:alice",
    "requester": "User:alice",
    "renewers": ["User:scheduler"],
    "issued_ms": START,
    "expires_ms": START + DAY,
    "max_ms": START + 7 * DAY,
}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeAdmin:
    return faked(
        monkeypatch,
        describe_delegation_token=lambda owners=None: [token("other", "b3RoZXI="), token()],
        create_delegation_token=token(),
        renew_delegation_token=START + DAY // 2,
        expire_delegation_token=START,
    )


def without(told: pytest.CaptureFixture[str], hmac: str = HMAC) -> str:
    captured = told.readouterr()
    assert hmac not in captured.out + captured.err
    return captured.out + captured.err


def test_list(fake: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tokens", "-o", "wide"]) == 0
    assert "Vq3kT8Rw" in without(capsys)
    assert report(capsys, "tokens", "list", "User:alice")["tokens"][1] == SHOWN
    assert [list(call[1]) for call in fake.calls if call[1:] != (None,)] == [["User:alice"]]  # type: ignore[call-overload]


def test_create_shows_the_hmac_once(fake: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--renewer", "User:scheduler", "--owner", "User:alice", "--max-lifetime", "1d12h"]
    assert report(capsys, "tokens", "create", *words) == {
        "dry_run": False,
        "tokens": [{**SHOWN, "outcome": "created", "hmac": HMAC}],
    }
    (name, renewers, options) = fake.calls[0]
    assert (name, list(renewers)) == ("create_delegation_token", ["User:scheduler"])  # type: ignore[call-overload]
    assert options == {"max_lifetime_ms": 36 * 3_600_000, "owner": "User:alice"}
    assert main(["tokens", "create"]) == 0
    assert HMAC in capsys.readouterr().out


def test_create_writes_a_file(
    fake: FakeAdmin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "job.hmac"
    words = ["tokens", "create", "--hmac-file", str(file)]
    assert main([*words, "--dry-run"]) == 0
    assert not file.exists()
    assert main([*words, "-o", "json"]) == 0
    assert '"hmac": null' in without(capsys)
    assert file.read_text() == HMAC + "\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert main(words) == 1  # the file is there: no token is made that nobody could use
    assert "File exists" in capsys.readouterr().err
    assert len(fake.calls) == 1


def test_create_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = DelegationTokenRequestNotAllowed("log in by SASL")
    faked(monkeypatch, create_delegation_token=refused)
    file = tmp_path / "job.hmac"
    assert main(["tokens", "create", "--hmac-file", str(file)]) == 1
    assert not file.exists()


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_no_token_is_made_without_room_for_its_hmac(
    call: str,
    fake: FakeAdmin,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(os, call, failing(OSError(ENOSPC, os.strerror(ENOSPC))))
    file = tmp_path / "job.hmac"
    told = report(capsys, "tokens", "create", "--hmac-file", str(file), status=1)
    (error,) = told["errors"]
    assert error["message"] == f"{file}: No space left on device"
    assert fake.calls == []
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("call", ["ftruncate", "link"])
@pytest.mark.parametrize("error", [OSError(ENOSPC, os.strerror(ENOSPC)), KeyboardInterrupt()])
def test_a_token_whose_hmac_cannot_be_kept_is_withdrawn(
    call: str,
    error: BaseException,
    fake: FakeAdmin,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Regression: a token stayed that nobody could use or end, beside half of a file."""
    monkeypatch.setattr(os, call, failing(error))
    monkeypatch.setattr(os, "rename", failing(error))
    file = tmp_path / "job.hmac"
    is_full = isinstance(error, OSError)
    words = ["tokens", "create", "--hmac-file", str(file)]
    assert main(words) == (1 if is_full else 130)
    told = without(capsys)
    assert "token Vq3kT8Rw of User:alice was created, but its HMAC could not be written" in told
    assert "It was withdrawn: it has expired" in told
    assert (f"{file}: No space left on device" in told) is is_full
    assert [name for name, *_ in fake.calls] == [  # type: ignore[misc]
        "create_delegation_token",
        "expire_delegation_token",
    ]
    assert [*tmp_path.iterdir()] == []
    fake.answers["expire_delegation_token"] = KafkaTimeoutError("no answer")
    assert main(words) == 1
    assert "its HMAC is lost, and it ends at 2026-03-02T00:00:00Z" in without(capsys)


def test_a_file_that_somebody_makes_meanwhile_stays(
    fake: FakeAdmin, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "job.hmac"

    def made_meanwhile(*_: object, **__: object) -> DelegationToken:
        file.write_text("theirs")
        return token()

    fake.answers["create_delegation_token"] = made_meanwhile
    assert main(["tokens", "create", "--hmac-file", str(file)]) == 1
    assert "It was withdrawn" in without(capsys)
    assert file.read_text() == "theirs"
    assert [*tmp_path.iterdir()] == [file]


def test_a_file_system_without_links(
    fake: FakeAdmin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", failing(PermissionError(1, "no links")))
    file = tmp_path / "job.hmac"
    assert main(["tokens", "create", "--hmac-file", str(file)]) == 0
    assert file.read_text() == HMAC + "\n"
    assert [*tmp_path.iterdir()] == [file]


def failing(error: BaseException) -> Callable[..., object]:
    def fail(*_: object) -> object:
        raise error

    return fail


def test_renew(
    fake: FakeAdmin, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{HMAC}\n{HMAC}\n"))
    assert report(capsys, "tokens", "renew", "--for", "12h")["tokens"] == [
        {"token": None, "owner": None, "expires_ms": START + DAY // 2, "outcome": "renewed"}
    ]
    (call,) = fake.calls
    assert call[1].reveal() == HMAC  # type: ignore[attr-defined]
    assert call[2] == {"renew_period_ms": DAY // 2}
    told = report(capsys, "tokens", "renew", "--dry-run")["tokens"][0]
    assert (told["token"], told["expires_ms"]) == ("Vq3kT8Rw", None)


def test_expire(
    fake: FakeAdmin,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "job.hmac"
    file.write_text(HMAC)
    words = ["tokens", "expire", "--hmac-file", str(file)]
    assert main(words) == 2
    assert main([*words, "--yes"]) == 0
    assert [call[0] for call in fake.calls] == ["expire_delegation_token"]
    on_a_terminal(monkeypatch, "n\ny\n")
    assert main(words) == 1
    assert "let the token Vq3kT8Rw of User:alice expire? [y/N]" in without(capsys)
    assert report(capsys, *words, "--in", "1h")["tokens"][0]["token"] == "Vq3kT8Rw"
    assert fake.calls[-1][2] == {"expiry_period_ms": 3_600_000}
    file.write_text("bm9uZQ==")
    assert main([*words, "--dry-run"]) == 1
    assert "no token with this HMAC" in without(capsys, "bm9uZQ==")


def test_a_token_that_is_gone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    faked(monkeypatch, renew_delegation_token=DelegationTokenNotFound("gone"))
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{HMAC}\n"))
    assert main(["tokens", "renew"]) == 1
    assert "gone" in without(capsys)


@pytest.mark.parametrize("words", ["create --owner alice", "renew --for 1", "expire --in -1h"])
def test_misuse(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["tokens", *words.split()])
    assert caught.value.code == 2
    assert "expected" in capsys.readouterr().err


def test_the_page(
    fake: FakeAdmin,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Those of docs/command-line.md, word by word."""
    monkeypatch.chdir(tmp_path)
    check_page(__file__, capsys)
