"""What the user's thread does when a log was cut off behind what it has handed over."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafka_fast.consumer.reading import Reading
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
        intake=SimpleNamespace(position=lambda partition: position),
        seek=lambda *where: sought.append(where),
    )
    Reading._go_back(reading, PARTITION, 45, 2)
    assert sought == [(PARTITION, *expected)]
