"""Murmur2: the vectors of Apache Kafka's own UtilsTest."""

from __future__ import annotations

import pytest

from kafka_fast._wire._hash import murmur2, partition_for_key

JAVA_VECTORS = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


@pytest.mark.parametrize(("data", "expected"), JAVA_VECTORS.items())
def test_java_vectors(data: bytes, expected: int) -> None:
    assert murmur2(data) == expected
    assert murmur2(memoryview(b"x" + data)[1:]) == expected


def test_empty_key() -> None:
    assert murmur2(b"") == 275646681


def test_agrees_with_another_client_for_each_tail_length() -> None:
    default = pytest.importorskip("kafka.partitioner.default")
    data = bytes(range(200, 256)) * 2
    for size in range(len(data)):
        assert murmur2(data[:size]) & 0xFFFFFFFF == default.murmur2(data[:size]) & 0xFFFFFFFF


def test_partition_drops_the_sign_instead_of_negating() -> None:
    assert partition_for_key(b"21", 10) == (-973932308 & 0x7FFFFFFF) % 10
    assert all(0 <= partition_for_key(str(i).encode(), 7) < 7 for i in range(1000))
    assert partition_for_key(b"anything", 1) == 0


@pytest.mark.parametrize("count", [0, -1])
def test_partition_count_must_be_positive(count: int) -> None:
    with pytest.raises(ValueError, match="at least one partition"):
        partition_for_key(b"k", count)
