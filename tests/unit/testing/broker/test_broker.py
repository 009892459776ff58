"""One broker in memory: order of answers, waiting fetches, leaders that move, brokers that die."""

from __future__ import annotations

import struct

import pytest

from kafka_fast import errors
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest
from kafka_fast.protocol.apis.records.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka_fast.protocol.apis.records.produce import ProduceRequest
from tests.unit.testing.broker.memory import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    World,
    batch,
    fetch_request,
    produce_request,
)


@pytest.fixture
def world() -> World:
    world = World(nodes=3, partitions=3, replication_factor=3)
    world.cluster.create_topic("t")
    return world


def test_requests_sent_ahead_are_answered_in_order(world: World) -> None:
    client = world.connect()
    sent = [client.send(produce_request("t", batch()), PRODUCE_VERSION) for _ in range(10)]
    frames = [client.take_frame() for _ in sent]
    assert [struct.unpack(">i", (frame or b"")[:4])[0] for frame in frames] == sent


def test_a_topic_made_by_metadata_is_there_the_next_time(world: World) -> None:
    client = world.connect(2)
    request = MetadataRequest(topics=None)
    first = client.metadata("new").topics[0]
    assert first.error_code == errors.UnknownTopicOrPartition.code
    second = client.metadata("new").topics[0]
    assert (second.error_code, len(second.partitions)) == (0, 3)
    assert [topic.name for topic in client.ask(request, 12).topics] == ["t", "new"]


# ---- fetches that wait ----


def test_a_fetch_waits_until_records_come(world: World) -> None:
    consumer, producer = world.connect(), world.connect()
    request = fetch_request("t", 0, max_wait_ms=500)
    consumer.send(request, FETCH_VERSION)
    world.run_until(0.4)
    assert consumer.take(request, FETCH_VERSION) is None
    producer.produce("t", batch(3))
    answer = consumer.take(request, FETCH_VERSION)
    assert answer.responses[0].partitions[0].high_watermark == 3
    world.run_until(1.0)
    assert consumer.received == b""


def test_a_fetch_ends_at_its_time_with_what_there_is(world: World) -> None:
    consumer, producer = world.connect(), world.connect()
    request = fetch_request("t", 0, max_wait_ms=500, min_bytes=1_000_000)
    consumer.send(request, FETCH_VERSION)
    producer.produce("t", batch())
    world.run_until(0.499)
    assert consumer.take(request, FETCH_VERSION) is None
    world.run_until(0.5)
    assert len(consumer.take(request, FETCH_VERSION).responses[0].partitions[0].records) > 0


def test_a_waiting_fetch_holds_up_its_connection_only(world: World) -> None:
    consumer, other = world.connect(), world.connect()
    request = fetch_request("t", 0, max_wait_ms=500)
    consumer.send(request, FETCH_VERSION)
    later = consumer.send(MetadataRequest(topics=[]), 12)
    assert consumer.received == b""
    other.metadata()
    world.run_until(0.5)
    assert consumer.take(request, FETCH_VERSION) is not None
    frame = consumer.take_frame()
    assert frame is not None
    assert struct.unpack(">i", frame[:4])[0] == later


def test_a_waiting_fetch_hears_of_a_new_leader(world: World) -> None:
    consumer = world.connect()
    request = fetch_request("t", 0, max_wait_ms=500, leader_epoch=0)
    consumer.send(request, FETCH_VERSION)
    world.cluster.move_leader("t", 0, 2)
    world.settle()
    data = consumer.take(request, FETCH_VERSION).responses[0].partitions[0]
    assert data.error_code == errors.FencedLeaderEpoch.code


def test_a_fetch_that_waits_on_a_closed_connection_is_forgotten(world: World) -> None:
    consumer, producer = world.connect(), world.connect()
    consumer.send(fetch_request("t", 0, max_wait_ms=500), FETCH_VERSION)
    world.cluster.brokers[1].disconnect(consumer.connection_id)
    producer.produce("t", batch())
    world.run_until(1.0)
    assert consumer.received == b""


# ---- leaders ----


@pytest.mark.parametrize("version", [9, 10])
def test_the_old_leader_names_the_new_one(world: World, version: int) -> None:
    client = world.connect()
    assert client.produce("t", batch()).error_code == 0
    world.cluster.move_leader("t", 0, 3)
    response = client.ask(produce_request("t", batch()), version)
    refused = response.responses[0].partition_responses[0]
    assert refused.error_code == errors.NotLeaderOrFollower.code
    hint = (refused.current_leader.leader_id, refused.current_leader.leader_epoch)
    endpoints = [(one.node_id, one.port) for one in response.node_endpoints]
    if version >= 10:
        assert (hint, endpoints) == ((3, 1), [(3, 9003)])
    else:
        assert (hint, endpoints) == ((-1, -1), [])


def test_the_new_leader_knows_the_log_and_the_producers(world: World) -> None:
    first = batch(2, producer=(7, 0, 0))
    world.connect(1).produce("t", first)
    world.cluster.move_leader("t", 0, 2)
    client = world.connect(2)
    assert client.produce("t", first).base_offset == 0
    assert client.produce("t", batch(producer=(7, 0, 2))).base_offset == 2
    assert [one.leader_epoch for one in world.cluster.batches("t", 0)] == [0, 1]


def test_stale_and_unknown_leader_epochs(world: World) -> None:
    world.cluster.move_leader("t", 0, 1)
    client = world.connect()

    def code(epoch: int) -> int:
        partition = FetchPartition(partition=0, current_leader_epoch=epoch, partition_max_bytes=100)
        request = FetchRequest(topics=[FetchTopic(topic="t", partitions=[partition])])
        error_code: int = client.ask(request, FETCH_VERSION).responses[0].partitions[0].error_code
        return error_code

    assert code(-1) == 0
    assert code(1) == 0
    assert code(0) == errors.FencedLeaderEpoch.code
    assert code(2) == errors.UnknownLeaderEpoch.code


def test_records_that_retention_took(world: World) -> None:
    client = world.connect()
    for _ in range(2):
        client.produce("t", batch(2))
    world.cluster.delete_records("t", 0, 3)
    assert client.fetch("t", 0).error_code == errors.OffsetOutOfRange.code
    data = client.fetch("t", 3)
    assert (data.error_code, data.log_start_offset) == (0, 3)
    assert client.produce("t", batch()).log_start_offset == 3


# ---- brokers ----


def test_a_killed_broker_drops_and_refuses_connections(world: World) -> None:
    client = world.connect()
    world.cluster.kill(1)
    world.settle()
    assert client.closed
    assert not world.cluster.brokers[1].connect(99)
    other = world.connect(2)
    described = other.metadata("t")
    assert [node.node_id for node in described.brokers] == [2, 3]
    assert described.controller_id == 2
    assert described.topics[0].partitions[0].leader_id == 2
    assert described.topics[0].partitions[0].offline_replicas == [1]
    world.cluster.restart(1)
    assert [node.node_id for node in other.metadata().brokers] == [1, 2, 3]
    assert world.connect(1).metadata("t").topics[0].partitions[0].isr_nodes == [2, 3, 1]


def test_a_killed_broker_answers_nothing_that_was_under_way(world: World) -> None:
    client = world.connect()
    client.send(fetch_request("t", 0, max_wait_ms=500), FETCH_VERSION)
    world.cluster.kill(1)
    world.cluster.restart(1)
    world.run_until(1.0)
    assert (client.received, client.closed) == (b"", True)


def test_a_partition_without_leader(world: World) -> None:
    world.cluster.create_topic("alone", 1, 1)
    world.cluster.kill(1)
    client = world.connect(2)
    described = client.metadata("alone").topics[0].partitions[0]
    assert described.error_code == errors.LeaderNotAvailable.code
    assert described.leader_id == -1
    assert client.produce("alone", batch()).error_code == errors.NotLeaderOrFollower.code
    world.cluster.restart(1)
    assert world.connect(1).produce("alone", batch()).error_code == 0


def test_a_paused_broker_answers_when_it_goes_on(world: World) -> None:
    client = world.connect()
    waiting = world.connect()
    request = fetch_request("t", 0, max_wait_ms=100)
    waiting.send(request, FETCH_VERSION)
    world.cluster.pause(1)
    client.send(produce_request("t", batch()), PRODUCE_VERSION)
    world.run_until(5.0)
    assert (client.received, waiting.received) == (b"", b"")
    world.cluster.resume(1, world.now)
    world.settle()
    assert client.take(ProduceRequest(), PRODUCE_VERSION) is not None
    assert waiting.take(request, FETCH_VERSION) is not None


def test_too_few_replicas_in_sync(world: World) -> None:
    world.cluster.create_topic("safe", 1, 3, config={"min.insync.replicas": "2"})
    client = world.connect()
    world.cluster.set_in_sync("safe", 0, [1])
    assert client.produce("safe", batch()).error_code == errors.NotEnoughReplicas.code
    one_ack = client.ask(produce_request("safe", batch(), acks=1), PRODUCE_VERSION)
    assert one_ack.responses[0].partition_responses[0].error_code == 0
    world.cluster.set_in_sync("safe", 0, [1, 2])
    assert client.produce("safe", batch()).error_code == 0
    with pytest.raises(ValueError, match="needs the leader 1"):
        world.cluster.set_in_sync("safe", 0, [2])


# ---- limits ----


def test_frames_and_connections_are_limited() -> None:
    world = World(max_frame_size=100, max_connections=2, read_ahead=50)
    world.cluster.create_topic("t")
    client, _ = world.connect(), world.connect()
    broker = world.cluster.brokers[1]
    assert not broker.connect(99)
    client.send(fetch_request("t", 0, max_wait_ms=500), FETCH_VERSION)
    assert broker.wants_bytes(client.connection_id)
    client.send(MetadataRequest(topics=[]), 12)
    client.send(MetadataRequest(topics=[]), 12)
    client.send(MetadataRequest(topics=[]), 12)
    assert not broker.wants_bytes(client.connection_id)
    client.send_bytes(struct.pack(">i", 101))
    assert client.closed
    assert broker.connect(100)


def test_the_same_inputs_give_the_same_bytes() -> None:
    def run() -> list[bytes]:
        world = World(nodes=2, seed=5, replication_factor=2)
        world.cluster.faults.error(0, errors.NotEnoughReplicas, probability=0.5)
        client = world.connect()
        client.metadata("t")
        outputs = []
        for _ in range(50):
            client.send(produce_request("t", batch()), PRODUCE_VERSION)
            outputs.append(client.take_frame() or b"")
        client.send(MetadataRequest(topics=None), 12)
        return [*outputs, client.received]

    first = run()
    assert first == run()
    assert len(set(first)) > 10


def test_commands_name_what_is_wrong(world: World) -> None:
    with pytest.raises(ValueError, match="no node 7, only 1, 2, 3"):
        world.cluster.kill(7)
    with pytest.raises(errors.UnknownTopicOrPartition):
        world.cluster.move_leader("t", 9, 1)
