"""WriteTxnMarkers and DescribeProducers: transactions that hang, and who ends them (KIP-664)."""

from __future__ import annotations

import pytest

from kafka_fast import errors
from kafka_fast.protocol.apis.transactions.describe_producers import (
    DescribeProducersRequest,
    PartitionResponse,
    TopicRequest,
)
from tests.integration.scenarios.transactions.conftest import Site
from tests.integration.scenarios.transactions.producers import STALE_EPOCH, fetch, log_of
from tests.integration.scenarios.wire import batch

FENCED_COORDINATOR = errors.TransactionCoordinatorFenced.code
NOWHERE = errors.UnknownTopicOrPartition.code

Known = tuple[int, int, int, int]


def describe(site: Site, topic: str, partition: int = 0) -> PartitionResponse:
    """Return what a partition says of its producers."""
    asked = TopicRequest(name=topic, partition_indexes=[partition])
    answer = site.client.ask(DescribeProducersRequest(topics=[asked]), 0)
    described: PartitionResponse = answer.topics[0].partitions[0]
    return described


def known(site: Site, topic: str) -> list[Known]:
    """Return epoch, last sequence, coordinator epoch and start of each producer's transaction."""
    return [
        (one.producer_epoch, one.last_sequence, one.coordinator_epoch, one.current_txn_start_offset)
        for one in describe(site, topic).active_producers
    ]


def test_what_a_partition_knows_of_a_producer(site: Site, topic: str) -> None:
    site.client.produce(topic, batch(2))
    producer = site.producer()
    producer.written(topic)
    assert producer.write(topic, count=3) == 0
    assert known(site, topic) == [(0, 3, -1, 2)]
    (one,) = describe(site, topic).active_producers
    assert (one.producer_id, one.last_timestamp > 0) == (producer.producer_id, True)
    producer.end(commit=True)
    coordinator = known(site, topic)[0][2]
    assert coordinator >= 0
    expected = (1, -1) if site.version == 2 else (0, 3)
    assert known(site, topic) == [(*expected, coordinator, -1)]
    assert describe(site, topic, 77).error_code == NOWHERE
    assert describe(site, "no/topic").error_code == errors.InvalidTopicException.code


@pytest.mark.parametrize("transaction_version", [0, 1, 2])
def test_a_hanging_transaction_is_ended(site: Site, topic: str, transaction_version: int) -> None:
    """In version 2 a marker of the same epoch would be one that came too late."""
    producer = site.producer()
    producer.written(topic)
    assert fetch(site.client, topic).last_stable_offset == 0

    def mark(epoch: int) -> int:
        return producer.write_marker(topic, epoch=epoch, transaction_version=transaction_version)

    markers = []
    if transaction_version < 2:
        assert (mark(0), mark(0)) == (0, 0)
        markers += [("ABORT", 0), ("ABORT", 0)]
    else:
        assert (mark(0), mark(0)) == (STALE_EPOCH, STALE_EPOCH)
    assert (mark(1), mark(1), mark(0)) == (0, 0, STALE_EPOCH)
    markers += [("ABORT", 1), ("ABORT", 1)]
    assert log_of(site.client, topic) == [("data", 0), *markers]
    assert known(site, topic) == [(1, -1, 0, -1)]
    end = len(markers) + 1
    assert fetch(site.client, topic).last_stable_offset == end
    aborted = fetch(site.client, topic, isolation=1).aborted_transactions
    assert [(one.producer_id, one.first_offset) for one in aborted or ()] == [
        (producer.producer_id, 0)
    ]


def test_a_marker_of_a_former_coordinator(site: Site, topic: str) -> None:
    producer = site.producer()
    producer.written(topic)
    assert producer.write_marker(topic, epoch=5, coordinator_epoch=9) == 0
    assert producer.write_marker(topic, epoch=6, coordinator_epoch=8) == FENCED_COORDINATOR
    assert known(site, topic) == [(5, -1, 9, -1)]
    assert producer.write(topic) == STALE_EPOCH


def test_a_marker_without_a_transaction(site: Site, topic: str) -> None:
    producer = site.producer()
    assert producer.write_marker(topic, epoch=0, commit=True, version=1) == 0
    assert log_of(site.client, topic) == [("COMMIT", 0)]
    assert known(site, topic) == [(0, -1, 0, -1)]
    producer.written(topic)
    assert producer.write_marker(topic, 77, epoch=1) == NOWHERE
    assert producer.write_marker("nowhere", epoch=1) == NOWHERE
    assert producer.write_marker(topic, epoch=-1) == errors.UnknownServerError.code
