"""Partitions of columns of keys: those of the producer's own partitioner, key by key."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_fast import key_partitions
from kafka_fast._wire._hash import partition_for_key
from kafka_fast.errors import UsageError

KEYS = [b"a", None, b"", b"longer than the twelve bytes of a view", b"21", "ü".encode()]
KINDS = ["binary", "large_binary", "binary_view", "string", "large_string", "string_view"]


def expected(keys: list[bytes | None], partitions: int) -> list[int]:
    return [-1 if key is None else partition_for_key(key, partitions) for key in keys]


@pytest.mark.parametrize("kind", KINDS)
def test_every_layout(kind: str) -> None:
    is_text = "string" in kind
    items: list[Any] = [key.decode() if is_text and key is not None else key for key in KEYS]
    keys = pa.array(items, getattr(pa, kind)())
    assert key_partitions(keys, 6).tolist() == expected(KEYS, 6)
    assert key_partitions(keys[2:5], 6).tolist() == expected(KEYS[2:5], 6)
    chunked = pa.chunked_array([keys[:2], keys[:0], keys[3:]])
    assert key_partitions(chunked, 6).tolist() == expected(KEYS[:2] + KEYS[3:], 6)
    assert key_partitions(keys[:0], 6).tolist() == []


def test_fixed_size_and_null() -> None:
    assert key_partitions(pa.array([b"ab", None], pa.binary(2)), 9).tolist() == expected(
        [b"ab", None], 9
    )
    assert key_partitions(pa.nulls(3), 9).tolist() == [-1, -1, -1]


@given(st.lists(st.none() | st.binary(max_size=40)), st.integers(1, 2**31 - 1))
def test_any_keys(keys: list[bytes | None], partitions: int) -> None:
    numbers = key_partitions(pa.array(keys, pa.binary()), partitions)
    assert numbers.tolist() == expected(keys, partitions)


@pytest.mark.parametrize("partitions", [0, -1, 2**31])
def test_a_topic_has_partitions(partitions: int) -> None:
    with pytest.raises(UsageError, match=f"a topic has 1 to .* partitions, not {partitions}"):
        key_partitions(pa.array([b"a"]), partitions)


def test_other_types_are_refused() -> None:
    with pytest.raises(TypeError, match=r"keys must be .*binary or string"):
        key_partitions(pa.array([1, 2]), 3)
    with pytest.raises(TypeError, match="keys must be an Arrow array or stream, not list"):
        key_partitions([b"a"], 3)
