"""What a user without rights is answered, and which right changes that."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from kafka_fast.protocol.apis.cluster.find_coordinator import FindCoordinatorRequest
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest
from kafka_fast.protocol.apis.cluster.update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
)
from kafka_fast.protocol.apis.configs.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kafka_fast.protocol.apis.groups.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafka_fast.protocol.apis.groups.describe_groups import DescribeGroupsRequest
from kafka_fast.protocol.apis.groups.heartbeat import HeartbeatRequest
from kafka_fast.protocol.apis.groups.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafka_fast.protocol.apis.groups.leave_group import LeaveGroupRequest, MemberIdentity
from kafka_fast.protocol.apis.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_fast.protocol.apis.groups.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kafka_fast.protocol.apis.groups.sync_group import SyncGroupRequest
from kafka_fast.protocol.apis.records.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka_fast.protocol.apis.records.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafka_fast.protocol.apis.records.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafka_fast.protocol.apis.records.produce import ProduceRequest
from kafka_fast.protocol.apis.topics.create_topics import CreatableTopic, CreateTopicsRequest
from kafka_fast.protocol.apis.topics.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kafka_fast.protocol.apis.topics.delete_topics import DeleteTopicsRequest
from kafka_fast.protocol.apis.transactions.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafka_fast.protocol.apis.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
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
from kafka_fast.testing._kafka.secure_kafka import SecureKafka
from kafka_fast.testing.broker.security import Security
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.secure_broker import SUPER_USERS, USERS
from tests.integration.scenarios.sasl import Door, log_in
from tests.integration.scenarios.steps import new_topic, unique_name
from tests.integration.scenarios.test_sasl import unsecured
from tests.integration.scenarios.wire import WireClient, batch, produce_request

NONE, TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID = 0, 29, 30, 31, 53
REFUSALS = {TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID}


@dataclass(frozen=True)
class Guarded:
    """A cluster whose users may do nothing until they are allowed to."""

    door: Door
    allow: Callable[..., None]
    deny: Callable[..., None]


@pytest.fixture(scope="module", params=[pytest.param("real", marks=pytest.mark.broker), "embedded"])
def guarded(request: pytest.FixtureRequest) -> Iterator[Guarded]:
    if request.param == "real":
        secure: SecureKafka = request.getfixturevalue("secure_kafka")
        door = Door(secure.bootstrap_of("SASL_PLAINTEXT"), secure.provider.token)
        yield Guarded(door, secure.allow, secure.deny)
    else:
        security = Security(users=USERS, super_users=SUPER_USERS)
        with EmbeddedKafka(security=security, auto_create=False) as kafka:
            yield Guarded(Door(kafka.bootstrap, unsecured), kafka.allow, kafka.deny)


@pytest.fixture
def user() -> str:
    return f"user-{os.urandom(6).hex()}"


@pytest.fixture
def client(guarded: Guarded, user: str) -> Iterator[WireClient]:
    """A connection of a user whom nobody knows yet."""
    with guarded.door.connected() as made:
        log_in(made, "OAUTHBEARER", user, "", guarded.door.token(user))
        yield made


@pytest.fixture
def alice(guarded: Guarded) -> Iterator[WireClient]:
    with guarded.door.connected() as made:
        log_in(made, "PLAIN", "alice", "alice-secret")
        yield made


@pytest.fixture
def topic(alice: WireClient) -> str:
    return new_topic(alice)


@dataclass(frozen=True)
class Case:
    """One API: how it is asked about a topic and a group, and which right it wants."""

    version: int
    ask: Callable[[str, str], Request]
    code: Callable[[Any], int]
    refusal: int
    operation: str
    resource: str


def first_partition(answer: Any) -> int:
    return int(answer.topics[0].partitions[0].error_code)


def fetch(topic: str, group: str) -> FetchRequest:
    one = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topics = [FetchTopic(topic=topic, partitions=[one])]
    return FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=1000, topics=topics)


def list_offsets(topic: str, group: str) -> ListOffsetsRequest:
    one = ListOffsetsPartition(partition_index=0, timestamp=-1)
    return ListOffsetsRequest(
        replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[one])]
    )


def epochs(topic: str, group: str) -> OffsetForLeaderEpochRequest:
    one = OffsetForLeaderPartition(partition=0, leader_epoch=0)
    return OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic=topic, partitions=[one])]
    )


def delete_records(topic: str, group: str) -> DeleteRecordsRequest:
    one = DeleteRecordsPartition(partition_index=0, offset=0)
    return DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[one])], timeout_ms=5000
    )


def configs(topic: str, group: str) -> DescribeConfigsRequest:
    asked = DescribeConfigsResource(resource_type=2, resource_name=topic, configuration_keys=None)
    return DescribeConfigsRequest(resources=[asked])


def commit(topic: str, group: str) -> OffsetCommitRequest:
    one = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    return OffsetCommitRequest(
        group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=[one])]
    )


def offsets(topic: str, group: str) -> OffsetFetchRequest:
    asked = [OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=asked)])


def join(topic: str, group: str) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )


def sync(topic: str, group: str) -> SyncGroupRequest:
    return SyncGroupRequest(group_id=group, generation_id=1, member_id="m", assignments=[])


def leave(topic: str, group: str) -> LeaveGroupRequest:
    return LeaveGroupRequest(group_id=group, members=[MemberIdentity(member_id="m")])


def new_heartbeat(topic: str, group: str) -> ConsumerGroupHeartbeatRequest:
    return ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=10_000,
        subscribed_topic_names=[],
        topic_partitions=[],
    )


def top(answer: Any) -> int:
    return int(answer.error_code)


ONE_RIGHT = {
    "Produce": Case(
        12,
        lambda topic, group: produce_request(topic, [(0, batch())]),
        lambda answer: answer.responses[0].partition_responses[0].error_code,
        TOPIC,
        "WRITE",
        "topic",
    ),
    "Fetch": Case(
        12,
        fetch,
        lambda answer: answer.responses[0].partitions[0].error_code,
        TOPIC,
        "READ",
        "topic",
    ),
    "ListOffsets": Case(7, list_offsets, first_partition, TOPIC, "DESCRIBE", "topic"),
    "OffsetForLeaderEpoch": Case(4, epochs, first_partition, TOPIC, "DESCRIBE", "topic"),
    "DeleteRecords": Case(2, delete_records, first_partition, TOPIC, "DELETE", "topic"),
    "DescribeConfigs": Case(
        4,
        configs,
        lambda answer: answer.results[0].error_code,
        TOPIC,
        "DESCRIBE_CONFIGS",
        "topic",
    ),
    "DeleteTopics": Case(
        5,
        lambda topic, group: DeleteTopicsRequest(topic_names=[topic], timeout_ms=5000),
        lambda answer: answer.responses[0].error_code,
        TOPIC,
        "DELETE",
        "topic",
    ),
    "FindCoordinator": Case(
        4,
        lambda topic, group: FindCoordinatorRequest(key_type=0, coordinator_keys=[group]),
        lambda answer: answer.coordinators[0].error_code,
        GROUP,
        "DESCRIBE",
        "group",
    ),
    "JoinGroup": Case(9, join, top, GROUP, "READ", "group"),
    "SyncGroup": Case(4, sync, top, GROUP, "READ", "group"),
    "Heartbeat": Case(
        4,
        lambda topic, group: HeartbeatRequest(group_id=group, generation_id=1, member_id="m"),
        top,
        GROUP,
        "READ",
        "group",
    ),
    "LeaveGroup": Case(4, leave, top, GROUP, "READ", "group"),
    "DescribeGroups": Case(
        5,
        lambda topic, group: DescribeGroupsRequest(groups=[group]),
        lambda answer: answer.groups[0].error_code,
        GROUP,
        "DESCRIBE",
        "group",
    ),
    "ConsumerGroupHeartbeat": Case(1, new_heartbeat, top, GROUP, "READ", "group"),
}


@pytest.mark.parametrize("name", ONE_RIGHT)
def test_one_right_opens_an_api(
    guarded: Guarded, client: WireClient, user: str, topic: str, name: str
) -> None:
    case, group = ONE_RIGHT[name], unique_name()
    named = {case.resource: topic if case.resource == "topic" else group}
    assert case.code(client.ask(case.ask(topic, group), case.version)) == case.refusal
    guarded.allow(user, case.operation, **named)
    assert case.code(client.ask(case.ask(topic, group), case.version)) not in REFUSALS
    guarded.deny(user, "ALL", **named)
    assert case.code(client.ask(case.ask(topic, group), case.version)) == case.refusal


def test_a_topic_that_does_not_exist_is_not_told_apart(client: WireClient) -> None:
    missing = unique_name()
    for name in ("Produce", "Fetch", "ListOffsets", "OffsetForLeaderEpoch", "DescribeConfigs"):
        case = ONE_RIGHT[name]
        assert case.code(client.ask(case.ask(missing, "g"), case.version)) == TOPIC
    assert client.metadata(missing, auto_create=True).topics[0].error_code == TOPIC


def test_metadata_has_what_may_be_described(
    guarded: Guarded, client: WireClient, user: str, topic: str
) -> None:
    def everything() -> list[str | None]:
        return [one.name for one in client.ask(MetadataRequest(topics=None), 12).topics]

    (refused,) = client.metadata(topic).topics
    assert (refused.name, refused.error_code, refused.partitions) == (topic, TOPIC, [])
    assert refused.topic_id == bytes(16)
    assert everything() == []
    guarded.allow(user, "READ", topic=topic[:-2], prefixed=True)
    (metadata,) = client.metadata(topic).topics
    assert (metadata.error_code, len(metadata.partitions)) == (NONE, 3)
    assert everything() == [topic]


def test_a_topic_may_be_created_by_name_or_on_the_cluster(
    guarded: Guarded, client: WireClient, user: str
) -> None:
    def create(name: str) -> Any:
        creatable = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        request = CreateTopicsRequest(topics=[creatable], timeout_ms=5000, validate_only=True)
        return client.ask(request, 7).topics[0]

    one, other = unique_name(), unique_name()
    answer = create(one)
    assert (answer.error_code, answer.error_message) == (TOPIC, "Authorization failed.")
    guarded.allow(user, "CREATE", topic=one)
    assert create(one).error_code == NONE
    assert create(one).topic_config_error_code == TOPIC
    assert create(other).error_code == TOPIC
    guarded.allow(user, "CREATE", cluster=True)
    guarded.allow(user, "DESCRIBE_CONFIGS", topic=other)
    answer = create(other)
    assert (answer.error_code, answer.topic_config_error_code) == (NONE, NONE)
    assert answer.configs


def test_a_commit_needs_the_group_and_the_topic(
    guarded: Guarded, client: WireClient, user: str, topic: str
) -> None:
    group = unique_name()
    assert first_partition(client.ask(commit(topic, group), 8)) == GROUP
    guarded.allow(user, "READ", group=group)
    assert first_partition(client.ask(commit(topic, group), 8)) == TOPIC
    guarded.allow(user, "READ", topic=topic)
    assert first_partition(client.ask(commit(topic, group), 8)) not in REFUSALS


def test_positions_need_the_group_and_the_topic(
    guarded: Guarded, client: WireClient, user: str, topic: str
) -> None:
    group = unique_name()
    assert client.ask(offsets(topic, group), 8).groups[0].error_code == GROUP
    guarded.allow(user, "DESCRIBE", group=group)
    answer = client.ask(offsets(topic, group), 8).groups[0]
    assert answer.error_code not in REFUSALS
    if not answer.error_code:  # the group's coordinator has been found before
        assert answer.topics[0].partitions[0].error_code == TOPIC
    guarded.allow(user, "DESCRIBE", topic=topic)
    answer = client.ask(offsets(topic, group), 8).groups[0]
    assert all(one.partitions[0].error_code not in REFUSALS for one in answer.topics)


def test_members_of_new_groups_may_describe_what_they_subscribe_to(
    guarded: Guarded, client: WireClient, user: str, topic: str
) -> None:
    def join_new(group: str) -> int:
        request = new_heartbeat(topic, group)
        request.subscribed_topic_names = [topic]
        return top(client.ask(request, 1))

    group = unique_name()
    guarded.allow(user, "READ", group=group)
    assert join_new(group) == TOPIC
    guarded.allow(user, "DESCRIBE", topic=topic)
    assert join_new(group) not in REFUSALS


@pytest.mark.parametrize("right", [{"cluster": True}, {"topic": "any-"}])
def test_idempotent_producers_need_any_right_to_write(
    guarded: Guarded, client: WireClient, user: str, right: dict[str, Any]
) -> None:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
    assert top(client.ask(request, 4)) == CLUSTER
    guarded.allow(user, "IDEMPOTENT_WRITE" if "cluster" in right else "WRITE", **right)
    assert top(client.ask(request, 4)) not in REFUSALS


def test_transactional_ids_are_guarded(guarded: Guarded, client: WireClient, user: str) -> None:
    name = unique_name()
    find = FindCoordinatorRequest(key_type=1, coordinator_keys=[name])
    begin = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
    assert client.ask(find, 4).coordinators[0].error_code == TRANSACTIONAL_ID
    assert top(client.ask(begin, 4)) == TRANSACTIONAL_ID
    guarded.allow(user, "WRITE", transactional_id=name)
    assert client.ask(find, 4).coordinators[0].error_code != TRANSACTIONAL_ID
    assert top(client.ask(begin, 4)) != TRANSACTIONAL_ID


def produce_in_transaction(topic: str, name: str) -> ProduceRequest:
    records = batch(producer=(7, 0, 0), is_transactional=True)
    return produce_request(topic, [(0, records)], transactional_id=name)


def add_partitions(topic: str, name: str) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=7,
        v3_and_below_producer_epoch=0,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=[0])],
    )


def commit_in_transaction(topic: str, name: str, group: str = "g") -> TxnOffsetCommitRequest:
    one = TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=1, committed_metadata=""
    )
    return TxnOffsetCommitRequest(
        transactional_id=name,
        group_id=group,
        producer_id=7,
        producer_epoch=0,
        topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[one])],
    )


def first_of_transaction(answer: Any) -> int:
    topic = answer.results_by_topic_v3_and_below[0]
    return int(topic.results_by_partition[0].partition_error_code)


TRANSACTIONAL = {
    "Produce": Case(
        11,
        produce_in_transaction,
        ONE_RIGHT["Produce"].code,
        TRANSACTIONAL_ID,
        "WRITE",
        "transactional_id",
    ),
    "AddPartitionsToTxn": Case(
        3, add_partitions, first_of_transaction, TRANSACTIONAL_ID, "WRITE", "transactional_id"
    ),
    "AddOffsetsToTxn": Case(
        3,
        lambda topic, name: AddOffsetsToTxnRequest(
            transactional_id=name, producer_id=7, producer_epoch=0, group_id=name
        ),
        top,
        TRANSACTIONAL_ID,
        "WRITE",
        "transactional_id",
    ),
    "TxnOffsetCommit": Case(
        4,
        commit_in_transaction,
        first_partition,
        TRANSACTIONAL_ID,
        "WRITE",
        "transactional_id",
    ),
    "EndTxn": Case(
        4,
        lambda topic, name: EndTxnRequest(
            transactional_id=name, producer_id=7, producer_epoch=0, committed=True
        ),
        top,
        TRANSACTIONAL_ID,
        "WRITE",
        "transactional_id",
    ),
    "DescribeTransactions": Case(
        0,
        lambda topic, name: DescribeTransactionsRequest(transactional_ids=[name]),
        lambda answer: answer.transaction_states[0].error_code,
        TRANSACTIONAL_ID,
        "DESCRIBE",
        "transactional_id",
    ),
    "DescribeProducers": Case(
        0,
        lambda topic, name: DescribeProducersRequest(
            topics=[TopicRequest(name=topic, partition_indexes=[0])]
        ),
        first_partition,
        TOPIC,
        "READ",
        "topic",
    ),
}


@pytest.mark.parametrize("name", TRANSACTIONAL)
def test_one_right_opens_an_api_of_transactions(
    guarded: Guarded, client: WireClient, user: str, topic: str, name: str
) -> None:
    case, transactional_id = TRANSACTIONAL[name], unique_name()
    named = {case.resource: topic if case.resource == "topic" else transactional_id}
    guarded.allow(user, "WRITE", topic=topic)
    request = case.ask(topic, transactional_id)
    assert case.code(client.ask(request, case.version)) == case.refusal
    guarded.allow(user, case.operation, **named)
    assert case.code(client.ask(request, case.version)) != case.refusal


def test_offsets_in_transactions_need_three_rights(
    guarded: Guarded, client: WireClient, user: str, topic: str
) -> None:
    name, group = unique_name(), unique_name()
    add = AddOffsetsToTxnRequest(
        transactional_id=name, producer_id=7, producer_epoch=0, group_id=group
    )
    request = commit_in_transaction(topic, name, group)
    guarded.allow(user, "WRITE", transactional_id=name)
    assert top(client.ask(add, 3)) == GROUP
    assert first_partition(client.ask(request, 4)) == GROUP
    guarded.allow(user, "READ", group=group)
    assert top(client.ask(add, 3)) not in REFUSALS
    assert first_partition(client.ask(request, 4)) == TOPIC
    guarded.allow(user, "READ", topic=topic)
    assert first_partition(client.ask(request, 4)) not in REFUSALS


def test_partitions_of_a_transaction_are_topics(
    guarded: Guarded, client: WireClient, user: str, topic: str
) -> None:
    name = unique_name()
    guarded.allow(user, "WRITE", transactional_id=name)
    assert first_of_transaction(client.ask(add_partitions(topic, name), 3)) == TOPIC
    guarded.allow(user, "WRITE", topic=topic)
    answer = client.ask(add_partitions(topic, name), 3)
    assert first_of_transaction(answer) not in REFUSALS


def test_markers_are_for_those_who_may_change_the_cluster(
    guarded: Guarded, client: WireClient, user: str, topic: str
) -> None:
    marker = WritableTxnMarker(
        producer_id=7,
        producer_epoch=0,
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[0])],
    )
    request = WriteTxnMarkersRequest(markers=[marker])

    def write() -> int:
        answer = client.ask(request, 1).markers[0].topics[0].partitions[0]
        return int(answer.error_code)

    assert write() == CLUSTER
    guarded.allow(user, "ALTER", cluster=True)
    assert write() == NONE


def test_features_are_for_those_who_may_change_the_cluster(
    guarded: Guarded, client: WireClient, user: str
) -> None:
    change = FeatureUpdateKey(feature="transaction.version", max_version_level=0, upgrade_type=2)
    request = UpdateFeaturesRequest(timeout_ms=5000, feature_updates=[change], validate_only=True)
    assert top(client.ask(request, 1)) == CLUSTER
    guarded.allow(user, "ALTER", cluster=True)
    assert top(client.ask(request, 1)) == NONE


def test_unknown_topic_ids_are_no_secret(client: WireClient) -> None:
    request = produce_request("", [(0, batch())], topic_id=os.urandom(16))
    answer = client.ask(request, 13).responses[0].partition_responses[0]
    assert answer.error_code == 100  # UNKNOWN_TOPIC_ID
