"""What readers get of transactions: the last stable offset, and which of them were aborted.

On real Kafka transactions are made as a transactional producer makes them; into the embedded
broker, which coordinates none, their batches and markers are planted. The answers must agree.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from typing import Protocol

import pytest

from kafka_fast import errors
from kafka_fast.protocol.apis.cluster.find_coordinator import FindCoordinatorRequest
from kafka_fast.protocol.apis.records.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
)
from kafka_fast.protocol.apis.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kafka_fast.protocol.apis.transactions.end_txn import EndTxnRequest
from kafka_fast.protocol.apis.transactions.init_producer_id import InitProducerIdRequest
from kafka_fast.record import ControlType, build_control_batch, read_batches
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.integration.scenarios.groups import until
from tests.integration.scenarios.steps import EARLIEST, LATEST, list_offset, new_topic, unique_name
from tests.integration.scenarios.wire import (
    WireClient,
    batch,
    connected,
    produce_request,
)
from tests.waiting import eventually

READ_COMMITTED = 1
TRANSACTION = 1  # kind of coordinator
MAYBE_LATER = {
    errors.CoordinatorNotAvailable.code,
    errors.CoordinatorLoadInProgress.code,
    errors.NotCoordinator.code,
    errors.ConcurrentTransactions.code,
}


class Producer(Protocol):
    """One transactional producer on one partition."""

    producer_id: int

    def write(self, count: int) -> None: ...
    def end(self, *, commit: bool) -> None: ...


class RealProducer:
    """Does what a transactional producer of version 1 does."""

    def __init__(self, client: WireClient, topic: str) -> None:
        self._client = client
        self._topic = topic
        self._id = unique_name()
        self._sequence = 0
        self._begun = False
        find = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=[self._id])
        self._repeat(lambda: int(client.ask(find, 4).coordinators[0].error_code))
        made = InitProducerIdRequest(transactional_id=self._id, transaction_timeout_ms=60000)

        def init() -> int:
            answer = client.ask(made, 3)
            self.producer_id, self._epoch = answer.producer_id, answer.producer_epoch
            return int(answer.error_code)

        self._repeat(init)

    def write(self, count: int) -> None:
        if not self._begun:
            request = AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self._id,
                v3_and_below_producer_id=self.producer_id,
                v3_and_below_producer_epoch=self._epoch,
                v3_and_below_topics=[AddPartitionsToTxnTopic(name=self._topic, partitions=[0])],
            )
            self._repeat(lambda: self._added(request))
            self._begun = True
        records = batch(
            count, producer=(self.producer_id, self._epoch, self._sequence), is_transactional=True
        )
        request = produce_request(self._topic, [(0, records)], transactional_id=self._id)
        answer = self._client.ask(request, 9).responses[0].partition_responses[0]
        assert answer.error_code == 0
        self._sequence += count

    def end(self, *, commit: bool) -> None:
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=self.producer_id,
            producer_epoch=self._epoch,
            committed=commit,
        )
        before = self._client.fetch(self._topic, 0).high_watermark
        self._repeat(lambda: int(self._client.ask(request, 3).error_code))
        eventually(lambda: self._client.fetch(self._topic, 0).high_watermark > before, "the marker")
        self._begun = False

    def _added(self, request: AddPartitionsToTxnRequest) -> int:
        topic = self._client.ask(request, 3).results_by_topic_v3_and_below[0]
        return int(topic.results_by_partition[0].partition_error_code)

    def _repeat(self, step: Callable[[], int]) -> None:
        assert until(step, lambda code: code not in MAYBE_LATER) == 0


class PlantedProducer:
    """Plants what the producer and its coordinator would write."""

    _ids = itertools.count(5000)

    def __init__(self, kafka: EmbeddedKafka, topic: str) -> None:
        self.producer_id = next(self._ids)
        self._kafka = kafka
        self._topic = topic
        self._sequence = 0

    def write(self, count: int) -> None:
        self._plant(
            batch(count, producer=(self.producer_id, 0, self._sequence), is_transactional=True)
        )
        self._sequence += count

    def end(self, *, commit: bool) -> None:
        kind = ControlType.COMMIT if commit else ControlType.ABORT
        self._plant(
            build_control_batch(
                kind,
                base_offset=0,
                producer_id=self.producer_id,
                producer_epoch=0,
                timestamp_ms=int(time.time() * 1000),
            )
        )

    def _plant(self, data: bytes) -> None:
        self._kafka.on_cluster(lambda cluster: cluster.plant(self._topic, 0, data))


class World:
    """A broker, a topic on it, and its transactional producers."""

    def __init__(self, client: WireClient, embedded: EmbeddedKafka | None) -> None:
        self.client = client
        self.topic = new_topic(client)
        self._embedded = embedded

    def producer(self) -> Producer:
        if self._embedded is not None:
            return PlantedProducer(self._embedded, self.topic)
        return RealProducer(self.client, self.topic)

    def fetch(self, offset: int, *, isolation: int = READ_COMMITTED) -> PartitionData:
        asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_bytes=1 << 20,
            isolation_level=isolation,
            topics=[FetchTopic(topic=self.topic, partitions=[asked])],
        )
        data: PartitionData = self.client.ask(request, 12).responses[0].partitions[0]
        assert data.error_code == 0
        return data


@pytest.fixture(params=[pytest.param("real", marks=pytest.mark.broker), "embedded"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """Real Kafka first, then ours."""
    if request.param == "real":
        with connected(request.getfixturevalue("real_kafka").bootstrap) as client:
            yield World(client, None)
        return
    with EmbeddedKafka(auto_create=False) as kafka, connected(kafka.bootstrap) as client:
        yield World(client, kafka)


def spans(data: PartitionData) -> list[tuple[int, int, bool]]:
    batches = read_batches(data.records or b"")
    return [(one.base_offset, one.last_offset, one.is_control) for one in batches]


def test_an_open_transaction_holds_back_what_follows_it(world: World) -> None:
    world.client.produce(world.topic, batch(2))
    producer = world.producer()
    producer.write(2)
    world.client.produce(world.topic, batch(1))
    data = world.fetch(0)
    assert (data.last_stable_offset, data.high_watermark) == (2, 5)
    assert (spans(data), data.aborted_transactions) == ([(0, 1, False)], [])
    beyond = world.fetch(3)
    assert (beyond.records, beyond.aborted_transactions) == (b"", [])
    everything = world.fetch(0, isolation=0)
    assert spans(everything) == [(0, 1, False), (2, 3, False), (4, 4, False)]
    assert (everything.last_stable_offset, everything.aborted_transactions) == (2, None)
    producer.end(commit=True)
    data = world.fetch(0)
    assert (data.last_stable_offset, data.aborted_transactions) == (6, [])
    assert spans(data) == [(0, 1, False), (2, 3, False), (4, 4, False), (5, 5, True)]
    marker = read_batches(data.records or b"")[-1].control_record()
    assert marker.type == ControlType.COMMIT


def test_aborted_transactions_come_in_the_order_of_their_ends(world: World) -> None:
    first, second = world.producer(), world.producer()
    first.write(1)
    second.write(1)
    second.end(commit=False)
    first.end(commit=False)
    second.write(2)
    second.end(commit=False)

    def listed(offset: int) -> list[tuple[int, int]]:
        aborted = world.fetch(offset).aborted_transactions
        assert aborted is not None
        return [(one.producer_id, one.first_offset) for one in aborted]

    one, two = (first.producer_id, 0), (second.producer_id, 1)
    assert listed(0) == [two, one, (second.producer_id, 4)]
    assert listed(2) == [two, one, (second.producer_id, 4)]
    assert listed(3) == [one, (second.producer_id, 4)]
    assert listed(4) == [(second.producer_id, 4)]
    assert listed(6) == [(second.producer_id, 4)]
    assert listed(7) == []


def test_offsets_as_a_committed_reader_sees_them(world: World) -> None:
    world.client.produce(world.topic, batch(2, timestamp=1000))
    producer = world.producer()
    producer.write(1)
    world.client.produce(world.topic, batch(1, timestamp=5000))

    def offset(timestamp: int, isolation: int) -> tuple[int, int]:
        answer = list_offset(world.client, world.topic, timestamp, isolation=isolation)
        assert answer.error_code == 0
        return answer.offset, answer.leader_epoch

    assert offset(LATEST, 0) == (4, 0)
    assert offset(LATEST, READ_COMMITTED) == (2, 0)
    assert offset(EARLIEST, READ_COMMITTED) == (0, 0)
    assert offset(1001, READ_COMMITTED) == (1, 0)
    assert offset(1002, 0) == (2, 0)
    assert offset(1002, READ_COMMITTED) == (-1, -1)
    producer.end(commit=True)
    assert offset(1002, READ_COMMITTED) == (2, 0)
    assert offset(LATEST, READ_COMMITTED) == (5, 0)
