"""`kafka-fast quotas`: whom they limit, and what is shown of them."""

from __future__ import annotations

import pytest

from kafka_fast.admin import ClientQuotaEntity, ClientQuotaFilter, ClientQuotaName
from kafka_fast.cli.main import main
from kafka_fast.errors import InvalidRequest
from tests.unit.cli.operators.fake_admin import check_page, faked, report
from tests.unit.cli.operators.scripted_admin import answered

DEFAULT, ANY = ClientQuotaName.DEFAULT, ClientQuotaName.ANY


def test_list(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    quotas = {
        ClientQuotaEntity("bob", DEFAULT): {"request_percentage": 12.5, "producer_byte_rate": 1e9},
        ClientQuotaEntity(ip="10.0.0.7"): {"connection_creation_rate": 3.0},
    }
    faked(monkeypatch, describe_client_quotas=quotas)
    assert main(["quotas"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["-", "-", "10.0.0.7", "connection_creation_rate", "3"],
        ["bob", "<default>", "-", "producer_byte_rate", "1000000000"],
        ["bob", "<default>", "-", "request_percentage", "12.5"],
    ]
    assert report(capsys, "quotas", "list")["quotas"][1] == {
        "user": "bob",
        "client_id": "<default>",
        "ip": None,
        "values": {"request_percentage": 12.5, "producer_byte_rate": 1e9},
    }


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        ("", ClientQuotaFilter()),
        ("--user default", ClientQuotaFilter(DEFAULT)),
        ("--user any --client-id c --only", ClientQuotaFilter(ANY, "c", strict=True)),
        ("--ip 10.0.0.7", ClientQuotaFilter(ip="10.0.0.7")),
    ],
)
def test_filters(
    words: str,
    chosen: ClientQuotaFilter,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    fake = faked(monkeypatch, describe_client_quotas={})
    assert main(["quotas", "list", *words.split()]) == 0
    assert fake.calls == [("describe_client_quotas", chosen)]
    assert "there is no such quota" in capsys.readouterr().err


def test_set(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    entity = ClientQuotaEntity("alice", DEFAULT)
    fake = faked(
        monkeypatch, alter_client_quotas=lambda quotas, validate_only: answered({entity: None})
    )
    words = ["quotas", "set", "--user", "alice", "--client-id", "default", "request_percentage=50"]
    told = report(capsys, *words, "--delete", "producer_byte_rate", "--dry-run")
    of = {"user": "alice", "client_id": "<default>", "ip": None}
    assert told == {
        "dry_run": True,
        "quotas": [
            {**of, "quota": "request_percentage", "value": 50.0, "outcome": "set"},
            {**of, "quota": "producer_byte_rate", "value": None, "outcome": "deleted"},
        ],
    }
    values = {"request_percentage": 50.0, "producer_byte_rate": None}
    assert fake.calls == [("alter_client_quotas", {entity: values}, {"validate_only": True})]


def test_set_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    entity = ClientQuotaEntity(ip="a")
    refused = answered({}, {entity: InvalidRequest("no address")})
    faked(monkeypatch, alter_client_quotas=refused)
    told = report(capsys, "quotas", "set", "--ip", "a", "x=1", status=1)
    assert told["quotas"] == []
    assert (told["errors"][0]["entity"], told["errors"][0]["error"]) == (
        "ip 'a'",
        "INVALID_REQUEST",
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("list --only", "--only needs something"),
        ("set x=1", "say whose quotas"),
        ("set --user any x=1", "any is for list"),
        ("set --user a", "say which quotas"),
        ("set --user a x=1 --delete x", "x is named twice"),
        ("set --user a x", "expected NAME=NUMBER"),
        ("set --user a x=nan", "expected NAME=NUMBER"),
        ("set --user a =1", "expected NAME=NUMBER"),
    ],
)
def test_misuse(
    words: str, why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    faked(monkeypatch)
    try:
        status: object = main(["quotas", *words.split()])
    except SystemExit as exit_:
        status = exit_.code
    assert status == 2
    assert why in capsys.readouterr().err


def test_the_page(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of docs/command-line.md, word by word."""
    alice = ClientQuotaEntity("alice")
    faked(
        monkeypatch,
        alter_client_quotas=lambda quotas, validate_only: answered(dict.fromkeys(quotas)),
        describe_client_quotas={alice: {"producer_byte_rate": 1048576.0}},
    )
    check_page(__file__, capsys)
