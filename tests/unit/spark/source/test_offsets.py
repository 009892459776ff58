"""Offsets in Spark's JSON."""

from __future__ import annotations

import pytest

from kafka_fast.errors import UsageError
from kafka_fast.spark.source.offsets import (
    from_plain,
    parse_offsets,
    parse_partitions,
    parse_timestamps,
    to_plain,
)
from kafka_fast.types import TopicPartition


def test_they_are_written_as_spark_does_in_order() -> None:
    offsets = {TopicPartition("b", 10): 3, TopicPartition("b", 9): 2, TopicPartition("a", 0): 2**40}
    plain = to_plain(offsets)
    assert plain == {"a": {"0": 2**40}, "b": {"9": 2, "10": 3}}
    assert list(plain["b"]) == ["9", "10"]
    assert from_plain(plain) == offsets
    assert from_plain(to_plain({})) == {}


def test_users_offsets() -> None:
    assert parse_offsets(' {"topicA":{"0":23,"1":-1},"topicB":{"0":-2}} ') == {
        TopicPartition("topicA", 0): 23,
        TopicPartition("topicA", 1): -1,
        TopicPartition("topicB", 0): -2,
    }
    assert parse_timestamps('{"t": {"0": 1000}}') == {TopicPartition("t", 0): 1000}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "earlyest",
        "[]",
        "{",
        '{"t": 1}',
        '{"t": [0]}',
        '{"t": {"x": 1}}',
        '{"t": {"-1": 1}}',
        '{"t": {"0": 1.5}}',
        '{"t": {"0": true}}',
        '{"t": {"0": "1"}}',
        '{"t": {"0": 9223372036854775808}}',
        '{"t": {"2147483648": 1}}',
    ],
)
def test_malformed_offsets_are_shown_with_an_example(text: str) -> None:
    with pytest.raises(UsageError) as raised:
        parse_offsets(text)
    example = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
    assert str(raised.value) == f"Expected e.g. {example}, got {text}"


def test_partitions_of_assign() -> None:
    assert parse_partitions('{"a": [1, 0, 1], "b": []}') == [
        TopicPartition("a", 1),
        TopicPartition("a", 0),
    ]


@pytest.mark.parametrize("text", ['{"a": 1}', '{"a": ["0"]}', '{"a": [-1]}', '{"a": [0.0]}', "1"])
def test_malformed_partitions(text: str) -> None:
    with pytest.raises(UsageError, match=r"Expected e\.g\. "):
        parse_partitions(text)
