"""Records for tests, and waiting for what the tested code does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from kafka_fast._wire._hash import partition_for_key
from kafka_fast.errors import (
    InvalidTopicException,
    KafkaTimeoutError,
    MessageTooLarge,
    NotEnoughReplicas,
    UnknownTopicOrPartition,
)
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import PRODUCE
from tests.integration.scenarios.groups import commit, ready
from tests.integration.scenarios.wire import connected


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(partitions=3) as made:
        yield made


def test_what_is_written(kafka: EmbeddedKafka) -> None:
    places = kafka.produce("t", ["ü", b"\xff", None], partition=1, headers={"h": "x", "n": None})
    assert places == [(1, 0), (1, 1), (1, 2)]
    records = kafka.records("t", 1)
    assert [record.value for record in records] == ["ü".encode(), b"\xff", None]
    assert {record.headers for record in records} == {(("h", b"x"), ("n", None))}
    assert {record.key for record in records} == {None}
    kafka.produce("t", ["later"], timestamp_ms=5, partition=1)
    assert kafka.records("t", 1)[-1].timestamp_ms == 5 < records[0].timestamp_ms


def test_keys_decide_as_in_clients(kafka: EmbeddedKafka) -> None:
    keys = [b"%d" % number for number in range(50)]
    places = kafka.produce("t", ["v"] * 50, keys=keys)
    assert [partition for partition, _ in places] == [partition_for_key(key, 3) for key in keys]
    keys_by_partition = [
        [record.key for record in kafka.records("t", number)] for number in range(3)
    ]
    for key, (partition, offset) in zip(keys, places, strict=True):
        assert keys_by_partition[partition][offset] == key
    assert [record.key for record in kafka.records("t")] == [
        key for one in keys_by_partition for key in one
    ]


def test_without_keys_partitions_take_turns(kafka: EmbeddedKafka) -> None:
    assert kafka.produce("t", list("abcd")) == [(0, 0), (1, 0), (2, 0), (0, 1)]
    assert kafka.produce("t", []) == []


def test_many_records_are_many_batches(kafka: EmbeddedKafka) -> None:
    places = kafka.produce("t", [b"x" * 100_000] * 50, partition=0)
    assert places == [(0, offset) for offset in range(50)]
    assert kafka.on_cluster(lambda cluster: len(list(cluster.batches("t", 0)))) > 10


def test_faults_do_not_strike_but_rules_hold(kafka: EmbeddedKafka) -> None:
    kafka.faults.error(PRODUCE, NotEnoughReplicas)
    assert kafka.produce("t", ["a"]) == [(0, 0)]
    with pytest.raises(MessageTooLarge):
        kafka.produce("t", [b"x" * 2_000_000])
    with pytest.raises(UnknownTopicOrPartition):
        kafka.produce("t", ["a"], partition=3)
    with pytest.raises(InvalidTopicException):
        kafka.produce("no topic", ["a"])
    with EmbeddedKafka(auto_create=False) as strict, pytest.raises(UnknownTopicOrPartition):
        strict.produce("t", ["a"])


@pytest.mark.parametrize(
    ("values", "keys", "error", "said"),
    [
        ("abc", None, TypeError, "values must be a list, not str"),
        ([1], None, TypeError, r"values\[0\] must be bytes, str or None, not int"),
        (["a", {}], None, TypeError, r"values\[1\] .* not dict"),
        (["a"], b"k", TypeError, "keys must be a list, not bytes"),
        (["a"], ["k", "l"], ValueError, "2 keys for 1 values"),
    ],
)
def test_misuse(
    kafka: EmbeddedKafka, values: Any, keys: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        kafka.produce("t", values, keys=keys)
    with pytest.raises(UnknownTopicOrPartition):
        kafka.records("t")


def test_waiting_for_records(kafka: EmbeddedKafka) -> None:
    writer = threading.Timer(0.05, kafka.produce, ["t", ["a", "b", "c"]])
    writer.start()
    assert len(kafka.wait_for_records("t", 2)) == 3
    writer.join()
    with pytest.raises(KafkaTimeoutError, match=r"'t' after 0 s: 3 of 4 records are there"):
        kafka.wait_for_records("t", 4, timeout=0)
    with pytest.raises(KafkaTimeoutError, match="'none' after 0 s: no such topic"):
        kafka.wait_for_records("none", 1, timeout=0)


def test_waiting_for_a_commit(kafka: EmbeddedKafka) -> None:
    kafka.produce("t", ["a"])
    with pytest.raises(KafkaTimeoutError, match="'g' has committed nothing of t-0 after 0 s"):
        kafka.wait_for_commit("g", "t", 1, timeout=0)
    with connected(kafka.bootstrap) as client:
        ready(client, "g")
        assert commit(client, "g", "t", 1) == 0
        assert commit(client, "g", "t", 5, partition=2) == 0
    kafka.wait_for_commit("g", "t", 1)
    kafka.wait_for_commit("g", "t", 4, partition=2)
    assert kafka.committed("g") == {("t", 0): 1, ("t", 2): 5}
    with pytest.raises(KafkaTimeoutError, match="offset 1 of t-0 after 0 s, not 2"):
        kafka.wait_for_commit("g", "t", 2, timeout=0)
