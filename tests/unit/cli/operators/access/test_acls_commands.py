"""`kafka-fast acls`: which rules its options mean, and what is shown of them."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_fast.admin import (
    CLUSTER_NAME,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    DeletedAcl,
    PatternType,
    ResourceType,
)
from kafka_fast.cli.main import main
from kafka_fast.errors import ClusterAuthorizationFailed, UnknownServerError
from tests.unit.cli.operators.fake_admin import check_page, faked, on_a_terminal, report
from tests.unit.cli.operators.scripted_admin import answered

READ = AclBinding(ResourceType.TOPIC, "orders", "User:alice", AclOperation.READ)
ALTER = AclBinding(
    ResourceType.CLUSTER,
    CLUSTER_NAME,
    "User:ops",
    AclOperation.ALTER,
    AclPermissionType.DENY,
    "10.0.0.1",
)
SHOWN = {
    "resource_type": "TOPIC",
    "name": "orders",
    "pattern_type": "LITERAL",
    "principal": "User:alice",
    "permission": "ALLOW",
    "operation": "READ",
    "host": "*",
}


def test_list(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    fake = faked(monkeypatch, describe_acls=[READ, ALTER])
    assert main(["acls", "-o", "text"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.split() for line in told] == [
        ["RESOURCE", "NAME", "PATTERN", "PRINCIPAL", "PERMISSION", "OPERATION", "HOST"],
        ["CLUSTER", "kafka-cluster", "LITERAL", "User:ops", "DENY", "ALTER", "10.0.0.1"],
        ["TOPIC", "orders", "LITERAL", "User:alice", "ALLOW", "READ", "*"],
    ]
    assert fake.calls == [("describe_acls", AclBindingFilter())]
    assert report(capsys, "acls", "list")["acls"][1] == SHOWN


@pytest.mark.parametrize(
    ("words", "filters"),
    [
        ("--topic a", [AclBindingFilter(ResourceType.TOPIC, "a")]),
        (
            "--topic a --matching --deny",
            [
                AclBindingFilter(
                    ResourceType.TOPIC,
                    "a",
                    permission=AclPermissionType.DENY,
                    pattern_type=PatternType.MATCH,
                )
            ],
        ),
        ("--prefixed", [AclBindingFilter(pattern_type=PatternType.PREFIXED)]),
        (
            "--group g --cluster --host h --operation describe-configs --allow",
            [
                AclBindingFilter(
                    kind,
                    name,
                    operation=AclOperation.DESCRIBE_CONFIGS,
                    permission=AclPermissionType.ALLOW,
                    host="h",
                )
                for kind, name in (
                    (ResourceType.GROUP, "g"),
                    (ResourceType.CLUSTER, CLUSTER_NAME),
                )
            ],
        ),
        (
            "--principal User:a --principal User:b",
            [AclBindingFilter(principal="User:a"), AclBindingFilter(principal="User:b")],
        ),
    ],
)
def test_filters(
    words: str, filters: list[AclBindingFilter], monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = faked(monkeypatch, describe_acls=[])
    assert main(["acls", "list", *words.split()]) == 0
    assert fake.calls == [("describe_acls", one) for one in filters]


def test_create(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    refused = ClusterAuthorizationFailed("CreateAcls: no")

    def create_acls(rules: list[AclBinding]) -> object:
        return answered(dict.fromkeys(rules[:-1]), {rules[-1]: refused})

    fake = faked(monkeypatch, create_acls=create_acls, describe_acls=[READ])
    words = ["acls", "create", "--topic", "orders", "--principal", "User:alice"]
    words += ["--operation", "read", "--operation", "WRITE"]
    told = report(capsys, *words, status=1)
    assert told["acls"] == [{**SHOWN, "outcome": "created"}]
    assert [one["error"] for one in told["errors"]] == ["CLUSTER_AUTHORIZATION_FAILED"]
    assert "WRITE of topic 'orders'" in told["errors"][0]["acl"]
    told = report(capsys, *words, "--dry-run")
    assert [one["outcome"] for one in told["acls"]] == ["exists", "created"]
    assert [call[0] for call in fake.calls] == ["create_acls", "describe_acls"]


def test_create_a_denial_of_a_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = faked(monkeypatch, create_acls=lambda rules: answered(dict.fromkeys(rules)))
    words = "--token t --transactional-id x --user User:u --principal User:a --operation all"
    assert main(["acls", "create", *words.split(), "--deny", "--prefixed", "--host", "h"]) == 0
    assert fake.calls == [
        (
            "create_acls",
            [
                AclBinding(
                    kind,
                    name,
                    "User:a",
                    AclOperation.ALL,
                    AclPermissionType.DENY,
                    "h",
                    PatternType.PREFIXED,
                )
                for kind, name in (
                    (ResourceType.TRANSACTIONAL_ID, "x"),
                    (ResourceType.DELEGATION_TOKEN, "t"),
                    (ResourceType.USER, "User:u"),
                )
            ],
        )
    ]


def deleting(broken: AclBinding | None = None) -> Any:
    def delete_acls(filters: list[AclBindingFilter]) -> object:
        error = UnknownServerError("no disk")
        rules = [DeletedAcl(READ), *([DeletedAcl(broken, error)] if broken else [])]
        return answered({filters[0]: rules})

    return delete_acls


def test_delete_asks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    fake = faked(monkeypatch, describe_acls=[READ], delete_acls=deleting())
    on_a_terminal(monkeypatch, "n\ny\n")
    words = ["acls", "delete", "--principal", "User:alice"]
    assert main(words) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert "User:alice" in told.err
    assert "delete 1 rule? [y/N]" in told.err
    assert report(capsys, *words)["acls"] == [{**SHOWN, "outcome": "deleted"}]
    exactly = AclBindingFilter(
        ResourceType.TOPIC,
        "orders",
        "User:alice",
        AclOperation.READ,
        AclPermissionType.ALLOW,
        "*",
        PatternType.LITERAL,
    )
    assert fake.calls[-1] == ("delete_acls", [exactly])


def test_delete_in_a_pipe(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake = faked(monkeypatch, describe_acls=[READ], delete_acls=deleting(ALTER))
    assert main(["acls", "delete", "--topic", "orders"]) == 2
    told = report(capsys, "acls", "delete", "--topic", "orders", "--dry-run")
    assert told == {"dry_run": True, "acls": [{**SHOWN, "outcome": "deleted"}]}
    told = report(capsys, "acls", "delete", "--topic", "orders", "--yes", status=1)
    assert told["acls"] == [{**SHOWN, "outcome": "deleted"}]
    assert told["errors"] == [
        {
            "acl": str(ALTER),
            "error": "UNKNOWN_SERVER_ERROR",
            "message": told["errors"][0]["message"],
        }
    ]
    literal = AclBindingFilter(ResourceType.TOPIC, "orders", pattern_type=PatternType.LITERAL)
    assert fake.calls == [("describe_acls", literal), ("delete_acls", [literal])]


def test_delete_all(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    fake = faked(monkeypatch, describe_acls=[], delete_acls=deleting())
    assert main(["acls", "delete", "--yes"]) == 2
    assert "--all" in capsys.readouterr().err
    assert main(["acls", "delete", "--all", "--yes"]) == 0
    assert fake.calls == [("delete_acls", [AclBindingFilter()])]
    assert main(["acls", "delete", "--all", "--dry-run"]) == 0
    assert "there is no such rule" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("--principal User:a --operation read", "say for which resource"),
        ("--topic a --operation read", "say about whom"),
        ("--topic a --principal User:a", "say what is done"),
        ("--cluster --prefixed --principal User:a --operation all", "no prefix"),
        ("--topic a --principal alice --operation read", "expected a principal"),
        ("--topic a --principal User:a --operation any", "is none of all, read"),
    ],
)
def test_misuse(
    words: str, why: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    faked(monkeypatch)
    try:
        status: object = main(["acls", "create", *words.split()])
    except SystemExit as exit_:
        status = exit_.code
    assert status == 2
    assert why in capsys.readouterr().err


def test_the_page(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of docs/command-line.md, word by word."""
    rules: list[AclBinding] = []

    def create_acls(added: list[AclBinding]) -> object:
        rules.extend(added)
        return answered(dict.fromkeys(added))

    faked(monkeypatch, create_acls=create_acls, describe_acls=lambda chosen: rules[-1:])
    check_page(__file__, capsys)
