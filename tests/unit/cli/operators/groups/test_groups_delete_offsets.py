"""`kafka-fast groups delete-offsets`."""

from __future__ import annotations

import pytest

from kafka_fast import OffsetAndMetadata, TopicPartition
from kafka_fast.cli.main import main
from kafka_fast.errors import GroupSubscribedToTopic, TopicAuthorizationFailed
from tests.unit.cli.operators.fake_admin import (
    FakeAdmin,
    faked,
    on_a_terminal,
    report,
)
from tests.unit.cli.operators.scripted_admin import answered

ZERO, ONE, BILLS = (TopicPartition(*one) for one in (("orders", 0), ("orders", 1), ("bills", 0)))
HIDDEN = TopicPartition("hidden", 0)
WORDS = ["groups", "delete-offsets", "audit"]


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeAdmin:
    offsets = answered(
        {ONE: OffsetAndMetadata(7), ZERO: OffsetAndMetadata(3), BILLS: OffsetAndMetadata(5)},
        {HIDDEN: TopicAuthorizationFailed("no")},
    )
    return faked(
        monkeypatch,
        list_consumer_group_offsets=answered({"audit": offsets}),
        delete_consumer_group_offsets=lambda group, ones: answered(dict.fromkeys(ones)),
    )


@pytest.mark.parametrize(
    ("words", "chosen"),
    [
        (["--topic", "orders"], [ZERO, ONE]),
        (["--partition", "orders:1,9"], [ONE]),
        (["--partition", "bills:0", "--topic", "orders"], [BILLS, ZERO, ONE]),
        (["--topic", "nothing"], []),
    ],
)
def test_offsets_are_forgotten(
    words: list[str],
    chosen: list[TopicPartition],
    fake: FakeAdmin,
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = report(capsys, *WORDS, *words, "--dry-run")
    assert [(one["topic"], one["partition"]) for one in told["partitions"]] == chosen
    assert len(fake.calls) == 1
    again = report(capsys, *WORDS, *words, "--yes")
    assert again == {**told, "dry_run": False}
    asked = [list(call[2]) for call in fake.calls if call[0].startswith("delete")]
    assert asked == ([chosen] if chosen else [])


def test_it_asks(
    fake: FakeAdmin, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*WORDS, "--topic", "orders"]) == 2
    on_a_terminal(monkeypatch, "n\n")
    assert main([*WORDS, "--topic", "orders"]) == 1
    assert "forget what audit has committed of 2 partitions? [y/N]" in capsys.readouterr().err
    assert main([*WORDS, "--yes"]) == 2
    assert "say of which topics or partitions" in capsys.readouterr().err


def test_what_cannot_be_forgotten(fake: FakeAdmin, capsys: pytest.CaptureFixture[str]) -> None:
    refused = answered({ONE: None}, {ZERO: GroupSubscribedToTopic("they read it")})
    fake.answers["delete_consumer_group_offsets"] = refused
    told = report(capsys, *WORDS, "--topic", "orders", "--topic", "hidden", "--yes", status=1)
    assert [one["partition"] for one in told["partitions"]] == [1]
    assert [(one["topic"], one["error"]) for one in told["errors"]] == [
        ("hidden", "TOPIC_AUTHORIZATION_FAILED"),
        ("orders", "GROUP_SUBSCRIBED_TO_TOPIC"),
    ]
