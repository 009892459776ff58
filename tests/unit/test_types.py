"""The public value types."""

from __future__ import annotations

import pickle

import pytest

from kafka_fast.types import PartitionInfo, RecordMetadata, TopicPartition

VALUES = [
    TopicPartition("orders", 3),
    RecordMetadata("orders", 3, 42, 1_700_000_000_000),
    PartitionInfo("orders", 3, 1, 7, (1, 2, 3), (1, 2), (3,)),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_frozen_hashable_picklable(value: tuple[object, ...]) -> None:
    copy = pickle.loads(pickle.dumps(value))
    assert copy == value
    assert type(copy) is type(value)
    assert hash(copy) == hash(value)
    with pytest.raises(AttributeError):
        value.topic = "other"  # type: ignore[attr-defined]


def test_notation() -> None:
    assert str(TopicPartition("orders-2", 3)) == "orders-2-3"
