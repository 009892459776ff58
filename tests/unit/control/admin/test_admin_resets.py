"""Reset plans as text, and how the place of a reset is given."""

from __future__ import annotations

import json
import pickle
import re
from datetime import datetime, timedelta, timezone

import pytest

from kafka_fast import TopicPartition
from kafka_fast.admin import PartitionReset, ResetKind, ResetPlan, ResetTo
from kafka_fast.errors import KafkaError, UnknownTopicOrPartition, UsageError

HERE, THERE = TopicPartition("t", 0), TopicPartition("t", 3)

PLAN = ResetPlan(
    "g",
    (
        PartitionReset(HERE, 5, 2, 0, 2, 9),
        PartitionReset(THERE, None, 4, 4, 0, 4),
    ),
)


def test_a_plan_goes_into_text_and_back() -> None:
    text = PLAN.to_json()
    assert ResetPlan.from_json(text) == PLAN
    assert ResetPlan.from_json(text.encode()) == PLAN
    assert pickle.loads(pickle.dumps(PLAN)) == PLAN
    first, second = json.loads(text)["partitions"]
    assert first == {
        "topic": "t",
        "partition": 0,
        "from": 5,
        "to": 2,
        "requested": 0,
        "clamped": True,
        "log_start": 2,
        "log_end": 9,
    }
    assert (second["from"], second["clamped"]) == (None, False)
    assert PLAN.targets == {HERE: 2, THERE: 4}


def test_errors_come_back_as_text() -> None:
    plan = ResetPlan("g", (), {HERE: UnknownTopicOrPartition("gone")})
    with pytest.raises(UnknownTopicOrPartition, match="gone"):
        plan.raise_first()
    read = ResetPlan.from_json(plan.to_json())
    with pytest.raises(KafkaError, match=r"UNKNOWN_TOPIC_OR_PARTITION .*: gone"):
        read.raise_first()
    assert PLAN.raise_first() is PLAN


def test_a_plan_may_be_written_by_hand() -> None:
    text = '{"version": 1, "group": "g", "partitions": [{"topic": "t", "partition": 0, "to": 7}]}'
    (reset,) = ResetPlan.from_json(text).resets
    assert reset == PartitionReset(HERE, None, 7, 7, 7, 7)
    assert not reset.clamped


def entry(fields: str) -> str:
    return f'{{"version": 1, "group": "g", "partitions": [{{{fields}}}]}}'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Expecting value"),
        ("[]", "list indices"),
        ("null", "not subscriptable"),
        ("{}", "'version' is missing"),
        ('{"version": 2}', "a plan of version 2, not of 1"),
        ('{"version": 1, "group": 7, "partitions": []}', "7 is no text"),
        ('{"version": 1, "group": "g"}', "'partitions' is missing"),
        (entry('"topic": "t", "partition": 0'), "'to' is missing"),
        (entry('"topic": "t", "partition": 0, "to": -1'), "-1 is no number from 0 on"),
        (entry('"topic": "t", "partition": 0, "to": 1.5'), "1.5 is no number"),
        (entry('"topic": "t", "partition": true, "to": 1'), "True is no number"),
        (
            entry('"topic": "t", "partition": 0, "to": 9223372036854775808'),
            "is no number from 0 on",
        ),
        (entry('"topic": "t", "partition": 0, "to": 1, "requested": 1e400'), "inf is no number"),
        (
            entry('"topic": "t", "partition": 0, "to": 1}, {"topic": "t", "partition": 0, "to": 2'),
            "t-0 is named twice",
        ),
        ("[" * 100_000, "while decoding a JSON array"),
    ],
)
def test_what_is_no_plan_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        ResetPlan.from_json(text)


def test_places_are_checked() -> None:
    when = datetime(2024, 1, 1, tzinfo=timezone.utc)
    assert ResetTo.to_time(when) == ResetTo(ResetKind.TIME, 1_704_067_200_000)
    assert ResetTo.by_duration(timedelta(hours=1)) == ResetTo(ResetKind.DURATION, 3_600_000)
    assert ResetTo.shift_by(-3).amount == -3
    with pytest.raises(UsageError, match="below 0"):
        ResetTo.to_offset(-1)
    with pytest.raises(UsageError, match="seconds instead of milliseconds"):
        ResetTo.to_time(1_704_067_200)
    with pytest.raises(UsageError, match="in the future"):
        ResetTo.by_duration(timedelta(seconds=-1))
    with pytest.raises(TypeError, match="a duration is a timedelta"):
        ResetTo.by_duration(3600)  # type: ignore[arg-type]
