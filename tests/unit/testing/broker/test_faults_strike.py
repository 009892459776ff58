"""What each fault does to a client, in virtual time."""

from __future__ import annotations

import struct

import pytest

from kafka_fast import errors
from kafka_fast.protocol import frame as framing
from kafka_fast.protocol.apis.cluster.api_versions import ApiVersionsRequest
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest, MetadataResponse
from kafka_fast.protocol.apis.records.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafka_fast.protocol.apis.topics.create_topics import CreatableTopic, CreateTopicsRequest
from kafka_fast.protocol.apis.topics.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafka_fast.protocol.apis.transactions.init_producer_id import InitProducerIdRequest
from kafka_fast.testing.broker import versions
from kafka_fast.testing.broker.faults import Faults
from kafka_fast.testing.broker.handlers import OFFERED
from kafka_fast.testing.broker.versions import (
    API_VERSIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    FETCH,
    INIT_PRODUCER_ID,
    LIST_OFFSETS,
    METADATA,
    PRODUCE,
)
from tests.unit.testing.broker.memory import (
    PRODUCE_VERSION,
    Client,
    World,
    batch,
    produce_request,
)

IDENTIFIED = ApiVersionsRequest(client_software_name="a", client_software_version="1")


@pytest.fixture
def world() -> World:
    world = World(nodes=2, partitions=2, replication_factor=2)
    world.cluster.create_topic("t")
    return world


@pytest.fixture
def client(world: World) -> Client:
    return world.connect()


@pytest.fixture
def faults(world: World) -> Faults:
    return world.cluster.faults


def end_offset(world: World, partition: int = 0) -> int:
    return world.cluster.state.partition("t", partition).log.end_offset


# ---- errors ----


def test_a_refused_batch_is_not_written(world: World, client: Client, faults: Faults) -> None:
    faults.error(PRODUCE, errors.NotEnoughReplicas, topic="t", partition=0, count=2)
    codes = [client.produce("t", batch()).error_code for _ in range(3)]
    assert codes == [errors.NotEnoughReplicas.code] * 2 + [0]
    assert end_offset(world) == 1


def test_an_applied_error_is_a_lie(world: World, client: Client, faults: Faults) -> None:
    faults.error(PRODUCE, errors.RequestTimedOut, applied=True, count=1)
    records = batch(producer=(5, 0, 0))
    refused = client.produce("t", records)
    assert (refused.error_code, refused.base_offset) == (errors.RequestTimedOut.code, -1)
    assert client.produce("t", records).base_offset == 0
    assert end_offset(world) == 1


def test_a_code_that_kafka_does_not_have(client: Client, faults: Faults) -> None:
    faults.error(PRODUCE, 999)
    assert client.produce("t", batch()).error_code == 999


def test_every_api_can_be_made_to_fail(world: World, client: Client, faults: Faults) -> None:
    wrong = errors.UnknownServerError
    for api in OFFERED:
        faults.error(api, wrong, count=1)
    code = wrong.code
    assert client.ask(IDENTIFIED, 3).error_code == code
    assert client.metadata("t").topics[0].error_code == code
    assert client.produce("t", batch()).error_code == code
    assert client.fetch("t", 0).error_code == code
    asked = ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(timestamp=-1)])
    listed = client.ask(ListOffsetsRequest(topics=[asked]), 7).topics[0].partitions[0]
    assert listed.error_code == code
    assert client.ask(InitProducerIdRequest(transactional_id=None), 4).error_code == code
    topic = CreatableTopic(name="new", num_partitions=1, replication_factor=1)
    assert client.ask(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == code
    state = DeleteTopicState(name="t", topic_id=bytes(16))
    deleted = client.ask(DeleteTopicsRequest(topics=[state]), 6).responses[0]
    assert deleted.error_code == code
    assert list(world.cluster.state.topics) == ["t"]


def test_applied_errors_of_topics(world: World, client: Client, faults: Faults) -> None:
    faults.error(CREATE_TOPICS, errors.RequestTimedOut, applied=True, count=1)
    faults.error(DELETE_TOPICS, errors.RequestTimedOut, applied=True, count=1)
    topic = CreatableTopic(name="new", num_partitions=1, replication_factor=1)
    assert client.ask(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == 7
    state = DeleteTopicState(name="t", topic_id=bytes(16))
    assert client.ask(DeleteTopicsRequest(topics=[state]), 6).responses[0].error_code == 7
    assert list(world.cluster.state.topics) == ["new"]


def test_an_error_of_one_partition_in_metadata(client: Client, faults: Faults) -> None:
    faults.error(METADATA, errors.LeaderNotAvailable, topic="t", partition=1, count=1)
    topic = client.metadata("t").topics[0]
    assert topic.error_code == 0
    assert [(p.error_code, p.leader_id) for p in topic.partitions] == [(0, 1), (5, -1)]
    assert [p.error_code for p in client.metadata("t").topics[0].partitions] == [0, 0]


# ---- time ----


def test_a_delayed_answer_holds_up_its_connection(
    world: World, client: Client, faults: Faults
) -> None:
    faults.delay(0.5, api=PRODUCE, count=1)
    other = world.connect()
    request = produce_request("t", batch())
    client.send(request, PRODUCE_VERSION)
    client.send(request, PRODUCE_VERSION)
    assert other.produce("t", batch()).error_code == 0
    world.run_until(0.499)
    assert client.received == b""
    world.run_until(0.5)
    answers = [client.take(request, PRODUCE_VERSION) for _ in range(2)]
    assert [one.responses[0].partition_responses[0].base_offset for one in answers] == [0, 2]


def test_throttling_answers_first_and_mutes_then(
    world: World, client: Client, faults: Faults
) -> None:
    faults.throttle(300, api=PRODUCE, count=1)
    request = produce_request("t", batch())
    assert client.ask(request, PRODUCE_VERSION).throttle_time_ms == 300
    client.send(request, PRODUCE_VERSION)
    world.run_until(0.299)
    assert client.received == b""
    world.run_until(0.3)
    assert client.take(request, PRODUCE_VERSION).throttle_time_ms == 0


# ---- answers that do not come ----


@pytest.mark.parametrize("applied", [True, False])
def test_a_dropped_answer_leaves_the_connection_silent(
    world: World, client: Client, faults: Faults, applied: bool
) -> None:
    faults.drop(api=PRODUCE, count=1, applied=applied)
    client.send(produce_request("t", batch()), PRODUCE_VERSION)
    client.send(MetadataRequest(topics=[]), 12)
    world.run_until(100.0)
    assert (client.received, client.closed) == (b"", False)
    assert end_offset(world) == int(applied)
    assert world.connect().produce("t", batch()).base_offset == int(applied)


@pytest.mark.parametrize("applied", [True, False])
def test_a_dropped_answer_may_close(
    world: World, client: Client, faults: Faults, applied: bool
) -> None:
    faults.drop(api=PRODUCE, applied=applied, close=True)
    client.send(produce_request("t", batch()), PRODUCE_VERSION)
    assert (client.received, client.closed) == (b"", True)
    assert end_offset(world) == int(applied)


@pytest.mark.parametrize("after", [0, 1, 4, 20])
def test_a_cut_answer(world: World, client: Client, faults: Faults, after: int) -> None:
    whole = framing.encode_response(MetadataResponse(), 12, 1)
    faults.cut(after, api=METADATA, count=1)
    client.send(MetadataRequest(topics=[]), 12)
    assert (len(client.received), client.closed) == (after, True)
    assert len(whole) > after
    assert world.connect().metadata().brokers


def test_a_delayed_cut_comes_late(world: World, client: Client, faults: Faults) -> None:
    faults.cut(3, api=METADATA)
    faults.delay(1.0, api=METADATA)
    client.send(MetadataRequest(topics=[]), 12)
    world.run_until(0.9)
    assert not client.closed
    world.run_until(1.0)
    assert (len(client.received), client.closed) == (3, True)


def test_a_rule_for_one_node(world: World, client: Client, faults: Faults) -> None:
    faults.drop(node=2, close=True)
    assert client.metadata().brokers
    other = world.connect(2)
    other.send(MetadataRequest(topics=[]), 12)
    assert other.closed


# ---- lies about the cluster ----


def test_a_metadata_script(client: Client, faults: Faults) -> None:
    seen = []

    def vanish(response: MetadataResponse, node_id: int) -> None:
        seen.append(node_id)
        response.topics = [topic for topic in response.topics if topic.name != "t"]

    faults.script_metadata(vanish)
    assert client.metadata("t").topics == []
    faults.clear()
    assert client.metadata("t").topics[0].error_code == 0
    assert seen == [1]


@pytest.mark.parametrize("preset", [versions.KAFKA_2_1, versions.KAFKA_2_8, versions.KAFKA_3_9])
def test_older_brokers(world: World, faults: Faults, preset: dict[int, tuple[int, int]]) -> None:
    faults.limit_versions(preset)
    client = world.connect()
    client.send(IDENTIFIED, 5)
    _, refused = framing.decode_api_versions_response(client.take_frame() or b"", 5)
    assert refused.error_code == errors.UnsupportedVersion.code
    highest = preset[API_VERSIONS][1]
    assert refused.api_keys[0].max_version == highest
    offered = client.ask(IDENTIFIED, highest).api_keys
    assert {one.api_key: one.max_version for one in offered} == {
        api: high for api, (_, high) in preset.items()
    }
    assert client.produce("t", batch(), version=preset[PRODUCE][1]).error_code == 0
    client.send(produce_request("t", batch()), preset[PRODUCE][1] + 1)
    assert client.closed
    assert end_offset(world) == 1


def test_an_api_that_is_not_offered(world: World, client: Client, faults: Faults) -> None:
    faults.limit_versions({API_VERSIONS: (0, 3), METADATA: (0, 8), FETCH: (4, 4)})
    offered = client.ask(ApiVersionsRequest(), 0).api_keys
    assert [one.api_key for one in offered] == [FETCH, METADATA, API_VERSIONS]
    for api in (INIT_PRODUCER_ID, LIST_OFFSETS):
        other = world.connect()
        body = struct.pack(">hhih", api, 1, 1, -1)
        other.send_bytes(struct.pack(">i", len(body)) + body)
        assert other.closed
