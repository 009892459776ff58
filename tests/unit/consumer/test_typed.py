"""Type parameters of consumers and records: only type checkers see them."""

from __future__ import annotations

from typing import get_args

import pytest

from kafka_fast import Consumer, ConsumerRecord, ConsumerRecords, aio


@pytest.mark.parametrize("kind", [Consumer, aio.Consumer, ConsumerRecord, ConsumerRecords])
def test_parameters_may_be_written_where_they_are_evaluated(kind: type) -> None:
    assert get_args(kind[str, bytes]) == (str, bytes)  # type: ignore[index]


def test_they_change_nothing() -> None:
    record = ConsumerRecord[bytes, bytes]("t", 0, 5, b"k", b"v")
    assert type(record) is ConsumerRecord
    assert record == ConsumerRecord("t", 0, 5, b"k", b"v")
    with Consumer[bytes, bytes](bootstrap_servers="127.0.0.1:1") as consumer:
        assert type(consumer) is Consumer
    assert not Consumer.__dict__.get("__new__"), "a consumer is made as before"
