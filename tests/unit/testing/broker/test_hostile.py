"""Bytes of a hostile client: the broker answers or closes, never breaks, and serves the others."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_fast.errors import UnsupportedVersionError
from kafka_fast.protocol import frame as framing
from kafka_fast.protocol.apis import request_class
from kafka_fast.protocol.apis.cluster.find_coordinator import FindCoordinatorRequest
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest, MetadataRequestTopic
from kafka_fast.protocol.apis.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafka_fast.protocol.apis.records.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafka_fast.protocol.apis.security.describe_acls import DescribeAclsRequest
from kafka_fast.protocol.apis.topics.create_topics import CreatableTopic, CreateTopicsRequest
from kafka_fast.protocol.apis.topics.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafka_fast.protocol.apis.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafka_fast.protocol.apis.transactions.describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from kafka_fast.protocol.apis.transactions.describe_transactions import (
    DescribeTransactionsRequest,
)
from kafka_fast.protocol.apis.transactions.end_txn import EndTxnRequest
from kafka_fast.protocol.apis.transactions.init_producer_id import InitProducerIdRequest
from kafka_fast.protocol.apis.transactions.list_transactions import ListTransactionsRequest
from kafka_fast.protocol.apis.transactions.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafka_fast.protocol.apis.transactions.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kafka_fast.protocol.schema import Request
from kafka_fast.testing.broker.handlers import OFFERED
from kafka_fast.testing.broker.versions import (
    ADD_PARTITIONS_TO_TXN,
    DELETE_TOPICS,
    LIST_TRANSACTIONS,
)
from tests.reference import protocol_codec as slow
from tests.unit.testing.broker.memory import World, batch, fetch_request, produce_request

ADDED = [AddPartitionsToTxnTopic(name="t", partitions=[0])]
FULL: dict[int, Request] = {
    0: produce_request("t", batch(3, producer=(1, 0, 0))),
    1: fetch_request("t", 0),
    2: ListOffsetsRequest(
        topics=[ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(timestamp=-1)])]
    ),
    3: MetadataRequest(topics=[MetadataRequestTopic(name="t")]),
    19: CreateTopicsRequest(
        topics=[CreatableTopic(name="new", num_partitions=1, replication_factor=1)]
    ),
    20: DeleteTopicsRequest(topics=[DeleteTopicState(name="gone", topic_id=bytes(16))]),
    22: InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=1000),
    24: AddPartitionsToTxnRequest(
        transactions=[AddPartitionsToTxnTransaction(transactional_id="x", topics=ADDED)]
    ),
    26: EndTxnRequest(transactional_id="x", producer_id=1000, committed=True),
    27: WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=1,
                topics=[WritableTxnMarkerTopic(name="t", partition_indexes=[0])],
            )
        ]
    ),
    28: TxnOffsetCommitRequest(
        transactional_id="x",
        group_id="g",
        topics=[
            TxnOffsetCommitRequestTopic(
                name="t", partitions=[TxnOffsetCommitRequestPartition(committed_metadata="")]
            )
        ],
    ),
    29: DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    ),
    61: DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])]),
    65: DescribeTransactionsRequest(transactional_ids=["x"]),
    66: ListTransactionsRequest(state_filters=["Ongoing"]),
}
REQUESTS = [
    (api, version) for api, (low, high) in OFFERED.items() for version in range(low, high + 1)
]


def encoded(api: int, version: int) -> bytes:
    """Return a frame of an API in a version."""
    body = FULL.get(api) or request_class(api)()
    if api == DELETE_TOPICS and version < 6:
        body = DeleteTopicsRequest(topic_names=["gone"])
    if api == ADD_PARTITIONS_TO_TXN and version < 4:
        body = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x", v3_and_below_topics=ADDED
        )
    if api == LIST_TRANSACTIONS and version == 2:
        body = ListTransactionsRequest(transactional_id_pattern="x.*")
    return framing.encode_request(body, version, 1, "hostile")


def hand_in(world: World, data: bytes) -> None:
    """Send bytes on a new connection; afterwards another one must be served."""
    client = world.connect()
    client.send_bytes(data)
    world.run_until(world.now + 1.0)
    if not client.closed:
        world.cluster.brokers[1].disconnect(client.connection_id)
    witness = world.connect()
    assert witness.metadata().brokers
    world.cluster.brokers[1].disconnect(witness.connection_id)


@pytest.fixture(scope="module")
def world() -> World:
    made = World(partitions=1)
    made.cluster.create_topic("t")
    find = FindCoordinatorRequest(key_type=1, coordinator_keys=["x"])
    made.connect().ask(find, 4)  # transactional ids have a coordinator from now on
    return made


@pytest.mark.parametrize(("api", "version"), REQUESTS)
def test_every_request_is_answered(world: World, api: int, version: int) -> None:
    client = world.connect()
    client.send_bytes(encoded(api, version))
    world.run_until(world.now + 1.0)
    assert not client.closed
    assert client.take_frame() is not None


@pytest.mark.parametrize("api", list(OFFERED))
def test_requests_cut_at_every_byte(world: World, api: int) -> None:
    whole = encoded(api, OFFERED[api][1])
    for end in range(4, len(whole)):
        hand_in(world, (end - 4).to_bytes(4, "big") + whole[4:end])


@pytest.mark.parametrize("api", list(OFFERED))
def test_requests_with_bits_flipped(world: World, api: int) -> None:
    source = random.Random(api)
    for version in range(OFFERED[api][0], OFFERED[api][1] + 1):
        whole = encoded(api, version)
        for _ in range(20):
            flipped = bytearray(whole)
            for _ in range(source.randint(1, 4)):
                flipped[source.randrange(4, len(whole))] ^= 1 << source.randrange(8)
            hand_in(world, bytes(flipped))


@given(st.binary(max_size=200), st.sampled_from(REQUESTS))
@settings(max_examples=300, deadline=None)
def test_headers_with_any_body(body: bytes, request: tuple[int, int]) -> None:
    world = World()
    head = encoded(*request)[4:12]
    frame = head + b"\xff\xff" + body
    hand_in(world, len(frame).to_bytes(4, "big") + frame)


@pytest.mark.parametrize("api", list(OFFERED))
def test_requests_that_are_well_formed_and_mad(api: int) -> None:
    """Every field may hold anything; some name what exists: a topic, a group, its member."""
    source = random.Random(api)
    world = World(partitions=1)
    world.cluster.create_topic("t")
    client = world.connect()
    for _ in range(2):
        client.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 6)
    joined = client.ask(join_request(), 3)
    known = {
        "group_id": ["g", ""],
        "member_id": [joined.member_id, "", "x"],
        "name": ["t", "unknown"],
        "topic": ["t", "unknown"],
        "topic_id": [world.cluster.state.topics["t"].topic_id, bytes(16)],
        "partition": [0, 1],
        "partition_index": [0, 1],
        "session_timeout_ms": [10_000],
        "generation_id": [1],
        "max_wait_ms": [0, 100],
        "subscribed_topic_regex": [".*", "(", None],
    }
    for version in range(OFFERED[api][0], OFFERED[api][1] + 1):
        for _ in range(20):
            values = slow.random_struct(request_class(api), version, source)
            steer(values, known, source)
            body = slow.from_dict(request_class(api), values)
            try:
                data = framing.encode_request(body, version, 1, "hostile")
            except UnsupportedVersionError:  # it cannot carry what was steered
                continue
            hand_in(world, data)


def join_request() -> JoinGroupRequest:
    """Return a request that makes a member at once, up to version 3."""
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


def steer(values: Any, known: dict[str, list[Any]], source: random.Random) -> None:
    """Put known values into half of the fields that may hold them."""
    if isinstance(values, list):
        for item in values:
            steer(item, known, source)
    elif isinstance(values, dict):
        for name, value in values.items():
            if name in known and source.random() < 0.5:
                values[name] = source.choice(known[name])
            else:
                steer(value, known, source)
