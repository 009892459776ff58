"""Every request in every version, sent to a real broker: it reads ours and we read its answer.

A request that the broker cannot parse makes it close the connection, so an answer at all shows
that it understood. What the answer says is checked where a request without members, transactions
or credentials can succeed; elsewhere an error code of the right kind is the proof.
"""

from __future__ import annotations

import socket
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from kafka_fast.errors import error_name
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis import api_keys, api_name, request_class, response_class
from kafka_fast.protocol.apis.client_quotas import alter_client_quotas, describe_client_quotas
from kafka_fast.protocol.apis.cluster import (
    api_versions,
    describe_cluster,
    describe_quorum,
    find_coordinator,
    metadata,
)
from kafka_fast.protocol.apis.configs import incremental_alter_configs
from kafka_fast.protocol.apis.groups import join_group, offset_commit, offset_fetch
from kafka_fast.protocol.apis.log_dirs import describe_log_dirs
from kafka_fast.protocol.apis.records import fetch, list_offsets, offset_for_leader_epoch, produce
from kafka_fast.protocol.apis.security import describe_acls
from kafka_fast.protocol.apis.topics import (
    create_partitions,
    create_topics,
    delete_topics,
    describe_topic_partitions,
)
from kafka_fast.protocol.apis.transactions import describe_producers, init_producer_id
from kafka_fast.protocol.schema import Message, Request, Struct
from kafka_fast.protocol.versions import ApiVersions, retry_version
from tests.waiting import eventually


class Link:
    """A blocking connection that asks one thing at a time."""

    def __init__(self, address: str) -> None:
        host, port = address.split(",", maxsplit=1)[0].rsplit(":", 1)
        self.sock = socket.create_connection((host, int(port)), timeout=10)
        self.asked = 0

    def exchange(self, request: Request, version: int) -> bytes:
        """Send a request and return the answer's frame without its length."""
        self.asked += 1
        self.sock.sendall(frame.encode_request(request, version, self.asked, "kafka-fast"))
        return self.take(int.from_bytes(self.take(4), "big"))

    def take(self, size: int) -> bytes:
        """Read exactly `size` bytes."""
        data = b""
        while len(data) < size:
            part = self.sock.recv(size - len(data))
            assert part, "the broker closed the connection"
            data += part
        return data

    def ask(self, request: Request, version: int) -> Any:
        """Send a request and return the decoded answer."""
        answer = self.exchange(request, version)
        asked, body = frame.decode_response(response_class(request.api_key), answer, version)
        assert asked == self.asked
        return body


@dataclass(frozen=True)
class Topic:
    """A topic with one partition."""

    name: str
    id: bytes

    def refer(self, version: int, first_with_id: int) -> dict[str, Any]:
        """Return the fields that name the topic in a request."""
        return {"topic_id": self.id} if version >= first_with_id else {}


@pytest.fixture
def link(real_kafka) -> Iterator[Link]:
    made = Link(real_kafka.bootstrap)
    yield made
    made.sock.close()


def offered_by(link: Link) -> ApiVersions:
    """Ask the broker what it speaks, in a version that every broker since 2.1 knows."""
    asked = api_versions.ApiVersionsRequest(
        client_software_name="kafka-fast", client_software_version="1"
    )
    return ApiVersions.from_response(link.ask(asked, 2))


@pytest.fixture
def offered(link) -> ApiVersions:
    return offered_by(link)


@pytest.fixture(scope="module")
def topic(real_kafka) -> Topic:
    name = f"protocol-{uuid.uuid4().hex[:8]}"
    real_kafka.create_topic(name, 1)
    asked = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name=name)])
    link = Link(real_kafka.bootstrap)
    try:
        version = offered_by(link).version(metadata.MetadataRequest)
        made = Topic(name, link.ask(asked, version).topics[0].topic_id)
        # Metadata names the leader a moment before the leader knows of it.
        eventually(lambda: not any(error_codes(link.ask(REQUESTS["list_offsets"](1, made), 1))))
        return made
    finally:
        link.sock.close()


def groups(version: int, topic: Topic) -> Request:
    """Return OffsetFetch for one group: alone until version 7, in a list since."""
    if version < 8:
        partitions = offset_fetch.OffsetFetchRequestTopic(name=topic.name, partition_indexes=[0])
        return offset_fetch.OffsetFetchRequest(group_id="g", topics=[partitions])
    one = offset_fetch.OffsetFetchRequestTopics(
        name="" if version >= 10 else topic.name, partition_indexes=[0], **topic.refer(version, 10)
    )
    group = offset_fetch.OffsetFetchRequestGroup(group_id="g", topics=[one])
    return offset_fetch.OffsetFetchRequest(groups=[group])


TOPIC = 2  # a type of resource

#: API module -> request for (version, topic); the others are sent with every field at its default
REQUESTS: dict[str, Callable[[int, Topic], Request]] = {
    "describe_acls": lambda version, topic: describe_acls.DescribeAclsRequest(
        resource_type_filter=1, operation=1, permission_type=1
    ),
    "api_versions": lambda version, topic: api_versions.ApiVersionsRequest(
        client_software_name="kafka-fast", client_software_version="1"
    ),
    "metadata": lambda version, topic: metadata.MetadataRequest(
        topics=[metadata.MetadataRequestTopic(name=topic.name)]
    ),
    "create_topics": lambda version, topic: create_topics.CreateTopicsRequest(
        topics=[
            create_topics.CreatableTopic(
                name=f"{topic.name}-{version}", num_partitions=1, replication_factor=1
            )
        ],
        timeout_ms=10_000,
    ),
    "delete_topics": lambda version, topic: delete_topics.DeleteTopicsRequest(
        timeout_ms=10_000,
        **(
            {"topics": [delete_topics.DeleteTopicState(name=f"{topic.name}-absent")]}
            if version >= 6
            else {"topic_names": [f"{topic.name}-absent"]}
        ),
    ),
    "produce": lambda version, topic: produce.ProduceRequest(acks=-1, timeout_ms=1000),
    "fetch": lambda version, topic: fetch.FetchRequest(
        max_bytes=1000,
        topics=[
            fetch.FetchTopic(
                topic=topic.name,
                topic_id=topic.id,
                partitions=[fetch.FetchPartition(partition_max_bytes=1000)],
            )
        ],
    ),
    "list_offsets": lambda version, topic: list_offsets.ListOffsetsRequest(
        topics=[
            list_offsets.ListOffsetsTopic(
                name=topic.name, partitions=[list_offsets.ListOffsetsPartition(timestamp=-1)]
            )
        ]
    ),
    "find_coordinator": lambda version, topic: find_coordinator.FindCoordinatorRequest(
        **({"coordinator_keys": ["g"]} if version >= 4 else {"key": "g"})
    ),
    "init_producer_id": lambda version, topic: init_producer_id.InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=1000
    ),
    "offset_for_leader_epoch": lambda version, topic: (
        offset_for_leader_epoch.OffsetForLeaderEpochRequest(
            topics=[
                offset_for_leader_epoch.OffsetForLeaderTopic(
                    topic=topic.name,
                    partitions=[offset_for_leader_epoch.OffsetForLeaderPartition(leader_epoch=0)],
                )
            ]
        )
    ),
    "offset_commit": lambda version, topic: offset_commit.OffsetCommitRequest(
        group_id="g",
        topics=[
            offset_commit.OffsetCommitRequestTopic(
                name="" if version >= 10 else topic.name,
                partitions=[offset_commit.OffsetCommitRequestPartition(committed_offset=0)],
                **topic.refer(version, 10),
            )
        ],
    ),
    "offset_fetch": groups,
    "join_group": lambda version, topic: join_group.JoinGroupRequest(
        group_id="g", session_timeout_ms=10_000, protocol_type="consumer"
    ),
    "describe_cluster": lambda version, topic: describe_cluster.DescribeClusterRequest(),
    "describe_quorum": lambda version, topic: describe_quorum.DescribeQuorumRequest(
        topics=[
            describe_quorum.DescribeQuorumRequestTopicData(
                topic_name="__cluster_metadata",
                partitions=[describe_quorum.DescribeQuorumRequestPartitionData()],
            )
        ]
    ),
    "describe_log_dirs": lambda version, topic: describe_log_dirs.DescribeLogDirsRequest(
        topics=[describe_log_dirs.DescribableLogDirTopic(topic=topic.name, partitions=[0])]
    ),
    "describe_producers": lambda version, topic: describe_producers.DescribeProducersRequest(
        topics=[describe_producers.TopicRequest(name=topic.name, partition_indexes=[0])]
    ),
    "describe_topic_partitions": lambda version, topic: (
        describe_topic_partitions.DescribeTopicPartitionsRequest(
            topics=[describe_topic_partitions.TopicRequest(name=topic.name)]
        )
    ),
    "create_partitions": lambda version, topic: create_partitions.CreatePartitionsRequest(
        topics=[
            create_partitions.CreatePartitionsTopic(name=topic.name, count=2, assignments=None)
        ],
        timeout_ms=10_000,
        validate_only=True,
    ),
    "incremental_alter_configs": lambda version, topic: (
        incremental_alter_configs.IncrementalAlterConfigsRequest(
            resources=[
                incremental_alter_configs.AlterConfigsResource(
                    resource_type=TOPIC,
                    resource_name=topic.name,
                    configs=[
                        incremental_alter_configs.AlterableConfig(name="retention.ms", value="1")
                    ],
                )
            ],
            validate_only=True,
        )
    ),
    "describe_client_quotas": lambda version, topic: (
        describe_client_quotas.DescribeClientQuotasRequest(
            components=[
                describe_client_quotas.ComponentData(entity_type="client-id", match="quoted")
            ]
        )
    ),
    "alter_client_quotas": lambda version, topic: alter_client_quotas.AlterClientQuotasRequest(
        entries=[
            alter_client_quotas.AlterClientQuotasRequestEntryData(
                entity=[
                    alter_client_quotas.AlterClientQuotasRequestEntityData(
                        entity_type="client-id", entity_name="quoted"
                    )
                ],
                ops=[alter_client_quotas.OpData(key="producer_byte_rate", value=1.5e9)],
            )
        ],
        validate_only=True,
    ),
}

NEED_A_REPORTER = ("get_telemetry_subscriptions", "push_telemetry")

#: the highest version that is meant for clients, where later ones are for brokers
CLIENTS = {"fetch": 16, "add_partitions_to_txn": 3}

#: what an answer to the requests above may hold besides success; the group has no coordinator yet
NO_COORDINATOR = {"NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"}
EXPECTED = {
    "describe_acls": {"SECURITY_DISABLED"},  # without an authorizer
    "delete_topics": {"UNKNOWN_TOPIC_OR_PARTITION"},
    "find_coordinator": NO_COORDINATOR,
    "init_producer_id": NO_COORDINATOR,
    "join_group": {*NO_COORDINATOR, "INCONSISTENT_GROUP_PROTOCOL"},
    "offset_commit": {*NO_COORDINATOR, "UNKNOWN_MEMBER_ID"},
    "offset_fetch": NO_COORDINATOR,
}


def error_codes(message: Struct) -> Iterator[int]:
    """Yield every error code in a message."""
    for field in message._fields:
        value = getattr(message, field.name)
        if field.name.endswith("error_code"):
            yield value
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, Struct):
                yield from error_codes(item)


@pytest.mark.parametrize("api_key", api_keys(), ids=api_name)
def test_every_version_is_understood(api_key, link, offered, topic):
    request = request_class(api_key)
    name = request.__module__.rsplit(".", maxsplit=1)[1]
    highest = offered.highest(request)
    if highest is None:
        older = offered.version(metadata.MetadataRequest) < metadata.MetadataRequest.stable
        assert older or name in NEED_A_REPORTER, "a current broker offers all others"
        return
    build = REQUESTS.get(name, lambda version, topic: request())
    for version in range(request.versions.low, min(highest, CLIENTS.get(name, highest)) + 1):
        answer = link.ask(build(version, topic), version)
        assert isinstance(answer, Message)
        seen = {error_name(code) for code in error_codes(answer)} - {"NONE"}
        if name in REQUESTS:
            assert seen <= EXPECTED.get(name, set()), f"v{version}: {answer}"
        else:
            assert not any(error.startswith("UNKNOWN_SERVER") for error in seen), f"v{version}"


def test_metadata_says_the_same_in_every_version(link, offered, topic):
    for version in range(offered.version(metadata.MetadataRequest) + 1):
        answer = link.ask(REQUESTS["metadata"](version, topic), version)
        (told,) = answer.topics
        assert told.name == topic.name
        assert [part.partition_index for part in told.partitions] == [0]
        assert told.partitions[0].leader_id == answer.brokers[0].node_id
        assert told.topic_id == (topic.id if version >= 10 else bytes(16))


def test_the_real_refusal_of_an_api_versions_request(link):
    """A header of version 99: the answer comes in the shape of version 0."""
    request = api_versions.ApiVersionsRequest(
        client_software_name="kafka-fast", client_software_version="1"
    )
    sent = bytearray(frame.encode_request(request, 5, 77, "kafka-fast"))
    sent[6:8] = (99).to_bytes(2, "big")
    link.sock.sendall(sent)
    answer = link.take(int.from_bytes(link.take(4), "big"))
    correlation_id, body = frame.decode_api_versions_response(answer, 5)
    assert (correlation_id, body.error_code) == (77, 35)
    assert retry_version(body, 99) in api_versions.ApiVersionsRequest.versions
