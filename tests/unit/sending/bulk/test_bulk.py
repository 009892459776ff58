"""send_many: where rows go, in which order, and what happens without room for them."""

from __future__ import annotations

import array
import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kafka_fast.errors import BrokerError, KafkaTimeoutError, Outcome, UsageError
from kafka_fast.producer import Producer
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.unit.sending.bulk.common import PARTITIONS, detached, fail_all, values_of


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    rows=st.lists(
        st.tuples(
            st.one_of(st.none(), st.binary(max_size=40), st.text(max_size=9)),
            st.one_of(st.none(), st.binary(max_size=9)),
            st.one_of(st.none(), st.integers(0, PARTITIONS - 1)),
            st.one_of(st.none(), st.integers(0, 1_700_000_000_000)),
        ),
        max_size=60,
    )
)
def test_is_as_many_single_sends(
    kafka: EmbeddedKafka, producer: Producer, rows: list[tuple[Any, ...]]
) -> None:
    """Each row lands where, and as, `send` puts it; without a key only the partition is free."""
    topics = [f"same-{test_is_as_many_single_sends.__name__}-{next(COUNTER)}" for _ in range(2)]
    values, keys, partitions, times = map(list, zip(*rows, strict=True)) if rows else [[]] * 4
    for value, key, partition, stamp in rows:
        producer.send(topics[0], value, key, partition=partition, timestamp_ms=stamp)
    future = producer.send_many(
        topics[1], values, keys=keys, partitions=partitions, timestamps_ms=times
    )
    producer.flush()
    assert future.done()
    if not rows:
        return
    one, many = (
        [
            [(r.key, r.value) for r in kafka.records(topic, i) if r.key is not None]
            for i in range(PARTITIONS)
        ]
        for topic in topics
    )
    placed = [key is not None or partition is not None for _, key, partition, _ in rows]
    if all(placed):
        assert one == many
    assert sorted(map(repr, values_of(kafka, topics[0]))) == sorted(
        map(repr, values_of(kafka, topics[1]))
    )


COUNTER = iter(range(10**9))


def test_order_within_a_partition_is_the_rows_order(
    kafka: EmbeddedKafka, producer: Producer, topic: str
) -> None:
    count = 30_000  # several windows
    values = [b"%d" % i for i in range(count)]
    producer.send_many(topic, values, keys=[b"%d" % (i % 61) for i in range(count)]).result(20)
    seen = 0
    for partition in range(PARTITIONS):
        numbers = [int(value) for value in _values(kafka, topic, partition)]
        assert numbers == sorted(numbers)
        seen += len(numbers)
    assert seen == count


def _values(kafka: EmbeddedKafka, topic: str, partition: int) -> list[bytes]:
    return [record.value or b"" for record in kafka.records(topic, partition)]


def test_sticky_rows_fill_batches_one_partition_after_another() -> None:
    bulk = detached(partitions=8)
    future = bulk.send_many("t", [b"v" * 100] * 20_000)  # 2.2 MB: some nine sticky stints
    fail_all(bulk._queues, 8)
    failures = future.failures(0)
    assert sum(count for _, count, _ in failures) == 20_000
    assert 8 <= len(failures) <= 20
    assert [first for first, _, _ in failures] == sorted(first for first, _, _ in failures)


def test_round_robin(kafka: EmbeddedKafka, topic: str) -> None:
    with Producer(
        bootstrap_servers=kafka.bootstrap, **{"partitioner.class": "round_robin"}
    ) as producer:
        result = producer.send_many(topic, [b"v"] * 40, keys=b"k").result(10)
    assert [delivered.records for delivered in result.partitions.values()] == [10] * PARTITIONS


def test_custom_partitioner_sees_key_and_value() -> None:
    seen = []

    def choose(topic: str, key: Any, value: Any, partition_count: int) -> int:
        seen.append((topic, key, value, partition_count))
        return 1

    bulk = detached(partitioner=choose)
    bulk.send_many("t", [b"a", "b"], keys=[None, b"k"], partitions=[None, 2])
    bulk.send_many("t", (b"xy", array.array("i", [0, 1, 2])), keys=b"z")
    assert seen == [("t", None, b"a", 4), ("t", b"z", b"x", 4), ("t", b"z", b"y", 4)]


def test_serializers_see_the_items_of_sequences(kafka: EmbeddedKafka, topic: str) -> None:
    with Producer(
        bootstrap_servers=kafka.bootstrap,
        key_serializer=lambda key: b"k%d" % key,
        value_serializer=lambda value: b"v%d" % value,
    ) as producer:
        producer.send_many(topic, [1, 2], keys=[3, 4], partitions=0).result(10)
    assert [(r.key, r.value) for r in kafka.records(topic, 0)] == [(b"k3", b"v1"), (b"k4", b"v2")]


def test_wrong_topics() -> None:
    bulk = detached()
    with pytest.raises(TypeError, match="topic must be str"):
        bulk.send_many(b"t", [])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="nothing is known of topic 'u'"):
        bulk.send_many("u", [b""])
    bulk._queues.shut_down()
    with pytest.raises(UsageError, match="closed"):
        bulk.send_many("t", [b""])


def test_no_room_at_all_raises_and_accepts_nothing() -> None:
    bulk = detached(memory=1 << 16)
    first = bulk.send_many("t", [b"v" * 1000] * 100)
    assert 30 < bulk._queues.pending() < 100
    assert len(first) == 100
    with pytest.raises(KafkaTimeoutError, match=r"no room in buffer\.memory"):
        bulk.send_many("t", [b"v" * 1000] * 100, partitions=0)


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("raw", [False, True])
def test_rows_without_room_fail_not_sent(keyed: bool, raw: bool) -> None:
    bulk = detached(memory=1 << 17)
    values: Any = [b"v" * 1000] * 200
    if raw:
        values = (b"v" * 200_000, array.array("i", range(0, 200_001, 1000)))
    keys = [b"%d" % i for i in range(200)] if keyed else None
    future = bulk.send_many("t", values, keys=keys)
    accepted = bulk._queues.pending()
    fail_all(bulk._queues)
    failed = future.failed(0)
    assert sorted(row for row, _ in failed) == list(range(200))
    assert {error.outcome for _, error in failed} == {Outcome.NOT_SENT}
    refused = [error for _, error in failed if isinstance(error.first, BrokerError)]
    assert len(refused) == accepted
    summary = future.exception(0)
    assert summary is not None
    assert summary.count == 200
    assert summary.outcome is Outcome.NOT_SENT


@pytest.mark.parametrize("raw", [False, True])
def test_goes_on_when_memory_comes_back(raw: bool) -> None:
    bulk = detached(memory=1 << 17, max_block=10.0)
    values: Any = [b"%0999d" % i for i in range(500)]
    if raw:
        values = (b"".join(values), array.array("i", range(0, 500 * 999 + 1, 999)))
    stop = threading.Event()

    def drain() -> None:
        while not stop.wait(0.001):
            fail_all(bulk._queues)

    thread = threading.Thread(target=drain)
    thread.start()
    try:
        future = bulk.send_many("t", values, keys=[b"%d" % i for i in range(500)])
        assert future.result(10).failed == 500
    finally:
        stop.set()
        thread.join()
    assert [row for row, _ in future.failed()] == list(range(500))
    assert {error.outcome for _, error in future.failed()} == {Outcome.NOT_SENT}


def test_a_record_too_large_fails_alone() -> None:
    bulk = detached()
    large = b"v" * (1 << 20)
    for values in ([b"a", large, b"b"], (b"a" + large + b"b", array.array("i", ends(large)))):
        future = bulk.send_many("t", values, partitions=0)
        fail_all(bulk._queues)
        failed = dict(future.failed(0))
        assert failed[1].outcome is Outcome.NOT_SENT
        assert "max.request.size" in str(failed[1])
        assert isinstance(failed[0].first, BrokerError)
        assert isinstance(failed[2].first, BrokerError)


def ends(large: bytes) -> list[int]:
    return [0, 1, 1 + len(large), 2 + len(large)]
