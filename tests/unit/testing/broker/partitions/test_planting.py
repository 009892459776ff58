"""What tests put into a log, and what a reader gets of it."""

from __future__ import annotations

import pytest

from kafka_fast import errors
from kafka_fast.protocol.apis.records.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionData,
)
from kafka_fast.protocol.apis.records.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafka_fast.record import ControlType, RecordBatchBuilder, build_control_batch, read_batches
from tests.unit.testing.broker.memory import Client, World, batch

READ_COMMITTED = 1


@pytest.fixture
def world() -> World:
    world = World()
    world.cluster.create_topic("t")
    return world


def transactional(producer_id: int, count: int = 1, sequence: int = 0) -> bytes:
    builder = RecordBatchBuilder(
        producer_id=producer_id, producer_epoch=0, base_sequence=sequence, is_transactional=True
    )
    for number in range(count):
        builder.append(None, b"%d" % number, 1000)
    return builder.build()


def marker(producer_id: int, kind: ControlType) -> bytes:
    return build_control_batch(
        kind, base_offset=0, producer_id=producer_id, producer_epoch=0, timestamp_ms=1000
    )


def fetch(client: Client, offset: int, isolation: int = 0) -> PartitionData:
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
    request = FetchRequest(
        max_bytes=1 << 20,
        isolation_level=isolation,
        topics=[FetchTopic(topic="t", partitions=[asked])],
    )
    data: PartitionData = client.ask(request, 12).responses[0].partitions[0]
    return data


def spans(data: PartitionData) -> list[tuple[int, int, int]]:
    stored = read_batches(data.records or b"")
    return [(one.base_offset, one.last_offset, one.record_count) for one in stored]


def test_batches_get_offsets_and_epoch_as_on_a_replica(world: World) -> None:
    world.cluster.move_leader("t", 0, 1)
    assert world.cluster.plant("t", 0, batch(2) + batch(1)) == 0
    assert world.cluster.plant("t", 0, batch(1), at=10) == 10
    data = fetch(world.connect(), 0)
    assert spans(data) == [(0, 1, 2), (2, 2, 1), (10, 10, 1)]
    assert [one.leader_epoch for one in read_batches(data.records or b"")] == [1, 1, 1]
    assert (data.high_watermark, data.log_start_offset) == (11, 0)


def test_a_producer_goes_on_where_it_was_planted(world: World) -> None:
    world.cluster.plant("t", 0, batch(2, producer=(7, 0, 0)))
    client = world.connect()
    assert client.produce("t", batch(producer=(7, 0, 2))).base_offset == 2
    refused = client.produce("t", batch(producer=(7, 0, 9)))
    assert refused.error_code == errors.OutOfOrderSequenceNumber.code


@pytest.mark.parametrize("data", [b"", b"x" * 100, batch() + b"x"])
def test_what_is_not_whole_batches_is_planted_as_bytes(world: World, data: bytes) -> None:
    with pytest.raises(ValueError, match="whole record batches"):
        world.cluster.plant("t", 0, data)
    assert world.cluster.plant_bytes("t", 0, data, count=5) == 0
    answer = fetch(world.connect(), 3)
    assert (answer.records, answer.high_watermark) == (data, 5)


def test_offsets_before_the_end_are_refused(world: World) -> None:
    world.cluster.plant("t", 0, batch(3))
    with pytest.raises(ValueError, match="before the end of the log, 3"):
        world.cluster.plant("t", 0, batch(), at=2)
    with pytest.raises(ValueError, match="0 offsets"):
        world.cluster.plant_bytes("t", 0, b"x", count=0)


def test_read_committed_stops_at_the_first_open_transaction(world: World) -> None:
    cluster, client = world.cluster, world.connect()
    cluster.plant("t", 0, batch(2))  # 0 1
    cluster.plant("t", 0, transactional(7, 2))  # 2 3
    cluster.plant("t", 0, batch(1))  # 4
    assert spans(fetch(client, 0)) == [(0, 1, 2), (2, 3, 2), (4, 4, 1)]
    data = fetch(client, 0, READ_COMMITTED)
    assert spans(data) == [(0, 1, 2)]
    assert (data.last_stable_offset, data.high_watermark) == (2, 5)
    assert fetch(client, 2, READ_COMMITTED).records == b""
    cluster.plant("t", 0, marker(7, ControlType.COMMIT))  # 5
    data = fetch(client, 0, READ_COMMITTED)
    assert (data.last_stable_offset, data.aborted_transactions) == (6, [])
    assert len(spans(data)) == 4


def test_aborted_transactions_come_in_the_order_of_their_markers(world: World) -> None:
    cluster, client = world.cluster, world.connect()
    for producer_id in (7, 8, 9):
        cluster.plant("t", 0, transactional(producer_id))  # 0 1 2
    for producer_id in (9, 7, 8):
        cluster.plant("t", 0, marker(producer_id, ControlType.ABORT))  # 3 4 5

    def listed(offset: int) -> list[tuple[int, int]]:
        aborted = fetch(client, offset, READ_COMMITTED).aborted_transactions or []
        return [(one.producer_id, one.first_offset) for one in aborted]

    assert listed(0) == [(9, 2), (7, 0), (8, 1)]
    assert listed(4) == [(7, 0), (8, 1)]
    assert listed(6) == []
    assert fetch(client, 0).aborted_transactions is None


def test_compaction_leaves_gaps_and_empty_batches(world: World) -> None:
    cluster, client = world.cluster, world.connect()
    for _ in range(3):
        cluster.plant("t", 0, batch(3))
    cluster.compact("t", 0, {1, 3, 4, 5})
    data = fetch(client, 0)
    assert spans(data) == [(0, 2, 2), (6, 8, 3)]
    first = read_batches(data.records or b"")[0]
    assert [(one.offset, one.value) for one in first.records()] == [
        (0, b"value-0"),
        (2, b"value-2"),
    ]
    assert spans(fetch(client, 3)) == [(6, 8, 3)]
    cluster.compact("t", 0, {6, 7, 8}, keep_empty=True)
    assert spans(fetch(client, 3)) == [(6, 8, 0)]
    cluster.compact("t", 0, {6, 7, 8})
    assert spans(fetch(client, 3)) == []
    assert fetch(client, 9).high_watermark == 9


def test_a_log_without_its_tail(world: World) -> None:
    cluster, client = world.cluster, world.connect()
    cluster.plant("t", 0, batch(2))
    cluster.plant("t", 0, transactional(7))
    cluster.plant("t", 0, marker(7, ControlType.ABORT))
    cluster.compact("t", 0, {3}, keep_empty=True)
    assert spans(fetch(client, 2)) == [(2, 2, 1), (3, 3, 0)]
    cluster.compact("t", 0, {2, 3})
    data = fetch(client, 2)
    assert (data.error_code, data.records, data.high_watermark) == (0, b"", 4)


def test_compaction_leaves_what_is_no_batch(world: World) -> None:
    world.cluster.plant_bytes("t", 0, b"x" * 70)
    world.cluster.compact("t", 0, {0})
    assert fetch(world.connect(), 0).records == b"x" * 70


def test_transactions_in_one_call(world: World) -> None:
    cluster, client = world.cluster, world.connect()
    assert cluster.plant_transaction("t", 0, 7, [b"a", b"b"], commit=False) == 0
    assert cluster.plant_transaction("t", 0, 7, [b"c"], commit=None) == 3
    data = fetch(client, 0, READ_COMMITTED)
    assert spans(data) == [(0, 1, 2), (2, 2, 1)]
    assert [one.first_offset for one in data.aborted_transactions or ()] == [0]
    assert cluster.end_transaction("t", 0, 7, commit=True) == 4
    data = fetch(client, 3, READ_COMMITTED)
    assert (spans(data), data.aborted_transactions) == ([(3, 3, 1), (4, 4, 1)], [])
    stored = read_batches(data.records or b"")[0]
    assert (stored.is_transactional, stored.base_sequence) == (True, 2)
    with pytest.raises(ValueError, match="no open transaction"):
        cluster.end_transaction("t", 0, 7, commit=True)


def test_an_unclean_election_loses_records() -> None:
    here = World(nodes=2, replication_factor=2)
    here.cluster.create_topic("t")
    for _ in range(3):
        here.cluster.plant("t", 0, batch(2, producer=(7, 0, 0)))
    here.cluster.plant_transaction("t", 0, 8, [b"lost"], commit=None)
    here.cluster.lose_records("t", 0, 3, leader=2)
    client = here.connect(2)
    assert client.fetch("t", 0).high_watermark == 2
    assert client.fetch("t", 0).last_stable_offset == 2
    assert client.fetch("t", 6).error_code == errors.OffsetOutOfRange.code
    assert client.produce("t", batch(3)).base_offset == 2
    asked = OffsetForLeaderPartition(partition=0, leader_epoch=0)
    request = OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic="t", partitions=[asked])]
    )
    ended = client.ask(request, 4).topics[0].partitions[0]
    assert (ended.leader_epoch, ended.end_offset) == (0, 2)
    reader = FetchPartition(
        partition=0, fetch_offset=4, last_fetched_epoch=0, partition_max_bytes=100
    )
    diverged = client.ask(FetchRequest(topics=[FetchTopic(topic="t", partitions=[reader])]), 12)
    told = diverged.responses[0].partitions[0].diverging_epoch
    assert (told.epoch, told.end_offset) == (0, 2)


def test_partitions_that_are_added(world: World) -> None:
    client = world.connect()
    world.cluster.add_partitions("t", 3)
    assert [one.partition_index for one in client.metadata("t").topics[0].partitions] == [0, 1, 2]
    assert client.produce("t", batch(), partition=2).base_offset == 0
    with pytest.raises(errors.InvalidPartitions, match="has 3 partitions already"):
        world.cluster.add_partitions("t", 3)
    with pytest.raises(errors.UnknownTopicOrPartition):
        world.cluster.add_partitions("unknown", 3)
