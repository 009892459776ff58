"""What the user's thread does when a log was cut off behind what it has handed over."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_fast.consumer.reading.reading_side import ReadingSide
from kafka_fast.control.consumer.consumer_messages import PartitionFailed, PartitionFound
from kafka_fast.errors import KafkaError, UnknownTopicOrPartition
from kafka_fast.types import OffsetAndMetadata, TopicPartition

PARTITION = TopicPartition("t", 0)


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (OffsetAndMetadata(38, 3), (38, 3)),  # regression: 38 to 44 were left out
        (OffsetAndMetadata(45, 3), (45, 2)),
        (OffsetAndMetadata(80, 4), (45, 2)),
        (None, (45, 2)),
    ],
)
def test_reading_goes_back_to_where_the_log_was_cut_off_and_never_ahead(
    position: OffsetAndMetadata | None, expected: tuple[int, int]
) -> None:
    sought: list[tuple[Any, ...]] = []
    reading: Any = SimpleNamespace(
        buffer=SimpleNamespace(position=lambda partition: position),
        seek=lambda *where: sought.append(where),
    )
    ReadingSide._go_back(reading, PARTITION, 45, 2)
    assert sought == [(PARTITION, *expected)]


def test_a_failure_that_comes_again_and_again_waits_once() -> None:
    """Regression: a partition that failed every second kept an error for each second."""
    reading: Any = SimpleNamespace(_news=deque(), _untold_failures={})
    for text in ("denied", "denied", "denied", "corrupt"):
        ReadingSide.put_news(reading, PartitionFailed(PARTITION, 0, KafkaError(text), False))
    ReadingSide.put_news(reading, PartitionFailed(PARTITION, 1, KafkaError("corrupt"), False))
    told = [(news.seeks, str(news.error)) for news in reading._news]
    assert told == [(0, "denied"), (0, "corrupt"), (1, "corrupt")]


def test_a_partition_that_is_gone_again_fails_again() -> None:
    reading: Any = SimpleNamespace(_news=deque(), _untold_failures={})
    failed = PartitionFailed(PARTITION, 0, UnknownTopicOrPartition("gone"), True)
    readable = PartitionFound(PARTITION, 0)
    for news in (failed, readable, failed):
        ReadingSide.put_news(reading, news)
    assert list(reading._news) == [failed, readable, failed]
