"""Errors of what was listed: those that mean nothing, and those that hide something."""

from __future__ import annotations

import pytest

from kafka_fast.cli.main import main
from kafka_fast.control.admin.types.topics import TopicListing
from kafka_fast.errors import KafkaTimeoutError, UnknownTopicOrPartition
from tests.unit.cli.operators.scripted_admin import answered, replace_admin

COMMANDS = [
    ["topics", "list"],
    ["topics", "describe", "--under-replicated"],
    ["topics", "offsets"],
    ["elect", "--preferred", "--dry-run"],
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_topic_of_which_nothing_is_known_is_no_success(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    admin = replace_admin(monkeypatch)
    admin.answers["list_topics"] = {"a": TopicListing("a", None, False)}
    admin.answers["list_offsets"] = answered({})
    admin.answers["describe_topics"] = answered({}, {"a": KafkaTimeoutError("a is late")})
    assert main(words) == 1
    assert "a is late" in capsys.readouterr().err
    admin.answers["describe_topics"] = answered({}, {"a": UnknownTopicOrPartition("a is gone")})
    assert main(words) == 0
    assert "a is gone" not in capsys.readouterr().err
