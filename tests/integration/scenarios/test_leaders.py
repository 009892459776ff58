"""Three brokers: who leads, what the others say, and what a new leader knows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Protocol

import pytest

from kafka_fast import errors
from kafka_fast.protocol.apis.cluster.metadata import MetadataResponseTopic
from kafka_fast.protocol.apis.records.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka_fast.protocol.apis.records.produce import PartitionProduceResponse
from kafka_fast.protocol.apis.topics.create_topics import CreatableTopic, CreatableTopicConfig
from kafka_fast.record import read_batches
from kafka_fast.testing._kafka.real_kafka import RealKafka
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from tests.integration.scenarios.groups import (
    Member,
    commit,
    fetch_offsets,
    find_coordinator,
    stable,
    until,
)
from tests.integration.scenarios.steps import (
    LATEST,
    create,
    list_offset,
    log_of,
    new_producer,
    unique_name,
)
from tests.integration.scenarios.wire import WireClient, batch, connected, produce_request
from tests.waiting import eventually

NODES = (1, 2, 3)
TIMEOUT = 30.0


class Cluster(Protocol):
    """What scenarios do to a cluster."""

    def address(self, node_id: int) -> str: ...
    def kill(self, node_id: int) -> None: ...
    def restart(self, node_id: int) -> None: ...


class Real:
    """Three real brokers."""

    def __init__(self, kafka: RealKafka) -> None:
        self._kafka = kafka

    def address(self, node_id: int) -> str:
        return self._kafka.node(node_id).address

    def kill(self, node_id: int) -> None:
        self._kafka.node(node_id).kill()

    def restart(self, node_id: int) -> None:
        self._kafka.node(node_id).start()


class Embedded:
    """Three embedded brokers."""

    def __init__(self, kafka: EmbeddedKafka) -> None:
        self._kafka = kafka

    def address(self, node_id: int) -> str:
        return self._kafka.bootstrap.split(",")[node_id - 1]

    def kill(self, node_id: int) -> None:
        self._kafka.kill(node_id)

    def restart(self, node_id: int) -> None:
        self._kafka.restart(node_id)


@pytest.fixture(params=[pytest.param("real", marks=pytest.mark.broker), "embedded"])
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """The cluster under test: real Kafka first, then ours."""
    if request.param == "real":
        yield Real(request.getfixturevalue("real_kafka_cluster"))
    else:
        racks = ["rack1", "rack2", "rack3"]
        with EmbeddedKafka(brokers=3, auto_create=False, racks=racks) as kafka:
            yield Embedded(kafka)


@pytest.fixture
def clients(cluster: Cluster) -> Iterator[dict[int, WireClient]]:
    """A connection to each broker."""
    with ExitStack() as stack:
        yield {
            node_id: stack.enter_context(connected(cluster.address(node_id))) for node_id in NODES
        }


def new_topic(clients: dict[int, WireClient], replicas: int = 3, **config: str) -> str:
    """Create a topic with one partition and wait until all know of it."""
    configs = [
        CreatableTopicConfig(name=key.replace("_", "."), value=value)
        for key, value in config.items()
    ]
    creatable = CreatableTopic(
        name=unique_name(), num_partitions=1, replication_factor=replicas, configs=configs
    )
    assert create(clients[1], creatable)[0].error_code == 0
    leader = wait_for_leader(clients, creatable.name, ())
    clients[leader].wait_for_topic(creatable.name)
    return creatable.name


def wait_for_leader(clients: dict[int, WireClient], topic: str, excluded: tuple[int, ...]) -> int:
    """Return the leader of a topic's only partition that all of the brokers name."""

    def probe() -> int:
        leaders = {leader_of(client.metadata(topic).topics[0]) for client in clients.values()}
        agreed = len(leaders) == 1 and -1 not in leaders and not leaders & set(excluded)
        return leaders.pop() if agreed else 0

    return eventually(probe, f"one leader of {topic!r}")


def leader_of(topic: MetadataResponseTopic) -> int:
    """Return the leader of the only partition, -1 if there is none."""
    return -1 if topic.error_code else topic.partitions[0].leader_id


def produce_once_led(client: WireClient, topic: str, records: bytes) -> PartitionProduceResponse:
    """Produce; a broker may call itself no leader for a moment after it was elected."""

    def probe() -> PartitionProduceResponse | None:
        answer = client.produce(topic, records)
        return None if answer.error_code == errors.NotLeaderOrFollower.code else answer

    return eventually(probe, f"the leader of {topic!r} to take records")


def test_metadata_is_the_same_everywhere(clients: dict[int, WireClient]) -> None:
    topic = new_topic(clients)
    described = [client.metadata(topic) for client in clients.values()]
    for one in described:
        assert sorted(node.node_id for node in one.brokers) == [1, 2, 3]
        assert one.topics == described[0].topics
        assert one.cluster_id == described[0].cluster_id
    partition = described[0].topics[0].partitions[0]
    assert sorted(partition.replica_nodes) == sorted(partition.isr_nodes) == [1, 2, 3]


@pytest.mark.parametrize("replicas", [1, 3])
def test_who_does_not_lead_takes_no_records(clients: dict[int, WireClient], replicas: int) -> None:
    topic = new_topic(clients, replicas)
    leader = wait_for_leader(clients, topic, ())
    other = clients[leader % 3 + 1]
    code = errors.NotLeaderOrFollower.code
    old = other.ask(produce_request(topic, [(0, batch())]), 9).responses[0].partition_responses[0]
    assert old.error_code == code
    response = other.ask(produce_request(topic, [(0, batch())]), 12)
    refused = response.responses[0].partition_responses[0]
    assert refused.error_code == code
    assert refused.current_leader.leader_id == leader
    assert refused.current_leader.leader_epoch == 0
    brokers = {node.node_id: (node.host, node.port) for node in other.metadata().brokers}
    named = [(one.node_id, (one.host, one.port)) for one in response.node_endpoints]
    assert named == [(leader, brokers[leader])]
    assert list_offset(other, topic, LATEST).error_code == code


def test_a_replica_serves_fetches_since_version_11(clients: dict[int, WireClient]) -> None:
    topic = new_topic(clients)
    leader = wait_for_leader(clients, topic, ())
    assert clients[leader].produce(topic, batch(3)).error_code == 0
    follower = clients[leader % 3 + 1]
    refused = follower.fetch(topic, 0, version=10)
    assert refused.error_code == errors.NotLeaderOrFollower.code
    for version in (11, 12):
        data = follower.fetch(topic, 0, max_wait_ms=2000, version=version)
        assert data.error_code == 0
        assert len(read_batches(data.records or b"")) == 1


def test_a_reader_is_sent_to_the_replica_in_its_rack(clients: dict[int, WireClient]) -> None:
    topic = new_topic(clients)
    leader = wait_for_leader(clients, topic, ())
    assert produce_once_led(clients[leader], topic, batch(3)).error_code == 0
    near = leader % 3 + 1

    def fetch(node_id: int, rack: str, offset: int = 0, version: int = 12) -> tuple[int, int, int]:
        asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_bytes=1 << 20,
            rack_id=rack,
            topics=[FetchTopic(topic=topic, partitions=[asked])],
        )
        data = clients[node_id].ask(request, version).responses[0].partitions[0]
        return data.error_code, data.preferred_read_replica, len(data.records)

    size = len(batch(3))
    # The leader hears of the replica's end.
    eventually(lambda: fetch(leader, f"rack{near}") == (0, near, 0))
    assert fetch(leader, f"rack{leader}") == (0, -1, size)
    assert fetch(leader, "elsewhere") == fetch(leader, "") == (0, -1, size)
    assert fetch(near, f"rack{near}")[1] == -1
    assert fetch(leader, f"rack{near}", offset=9) == (errors.OffsetOutOfRange.code, -1, 0)


def test_who_holds_nothing_serves_no_fetch(clients: dict[int, WireClient]) -> None:
    topic = new_topic(clients, 1)
    leader = wait_for_leader(clients, topic, ())
    other = clients[leader % 3 + 1]
    refused = other.fetch(topic, 0, version=12)
    assert refused.error_code == errors.NotLeaderOrFollower.code
    assert refused.current_leader.leader_id == -1
    topic_id = other.metadata(topic).topics[0].topic_id
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topics = [FetchTopic(topic_id=topic_id, partitions=[asked])]
    response = other.ask(FetchRequest(max_bytes=1 << 20, topics=topics), 16)
    refused = response.responses[0].partitions[0]
    assert refused.error_code == errors.NotLeaderOrFollower.code
    assert (refused.current_leader.leader_id, refused.current_leader.leader_epoch) == (leader, 0)
    assert [one.node_id for one in response.node_endpoints] == [leader]


def test_a_new_leader_knows_the_log_and_the_producers(
    cluster: Cluster, clients: dict[int, WireClient]
) -> None:
    topic = new_topic(clients)
    strict = new_topic(clients, min_insync_replicas="3")
    leader = wait_for_leader(clients, topic, ())
    producer = new_producer(clients[leader])
    first = batch(3, producer=(producer, 0, 0))
    assert produce_once_led(clients[leader], topic, first).base_offset == 0
    cluster.kill(leader)
    left = {node_id: client for node_id, client in clients.items() if node_id != leader}
    heir = wait_for_leader(left, topic, (leader,))
    client = left[heir]
    client.wait_for_topic(topic)
    described = client.metadata(topic)
    assert leader not in [node.node_id for node in described.brokers]
    partition = described.topics[0].partitions[0]
    assert partition.leader_epoch >= 1
    assert sorted(partition.isr_nodes) == sorted(left)
    assert partition.offline_replicas == [leader]
    assert produce_once_led(client, topic, first).base_offset == 0
    assert client.produce(topic, batch(producer=(producer, 0, 3))).base_offset == 3
    gap = client.produce(topic, batch(producer=(producer, 0, 9)))
    assert gap.error_code == errors.OutOfOrderSequenceNumber.code
    assert len(log_of(client, topic)) == 4
    stale = client.fetch(topic, 0, leader_epoch=0)
    assert stale.error_code == errors.FencedLeaderEpoch.code
    strict_leader = left[wait_for_leader(left, strict, (leader,))]
    strict_leader.wait_for_topic(strict)
    too_few = strict_leader.produce(strict, batch())
    assert too_few.error_code == errors.NotEnoughReplicas.code
    assert strict_leader.produce(strict, batch(), acks=1).error_code == 0
    cluster.restart(leader)
    eventually(lambda: len(client.metadata(topic).topics[0].partitions[0].isr_nodes) == 3)


def test_a_group_goes_on_with_another_coordinator(
    cluster: Cluster, clients: dict[int, WireClient]
) -> None:
    topic = new_topic(clients)
    group = unique_name()
    first = find_coordinator(clients[1], group)
    until(lambda: fetch_offsets(clients[first], group, None)[0], lambda code: code == 0)
    not_here = errors.NotCoordinator.code
    other = clients[first % 3 + 1]
    member = Member(clients[first], group)
    stable(member)
    assert member.commit(topic, 5) == 0
    stranger = Member(other, group)
    assert other.ask(stranger.join_request(), 9).error_code == not_here
    assert stranger.heartbeat() == stranger.sync().error_code == not_here
    assert commit(other, group, topic, 6) == not_here
    assert fetch_offsets(other, group, None) == (not_here, {})
    cluster.kill(first)
    left = {node_id: client for node_id, client in clients.items() if node_id != first}
    asked = next(iter(left.values()))
    second = until(lambda: find_coordinator(asked, group), lambda node: node != first, TIMEOUT)
    member.client = left[second]
    # While a coordinator loads its groups, it answers heartbeats blindly.
    assert until(member.sync, lambda answer: answer.error_code == 0, TIMEOUT).assignment == b"0"
    assert member.heartbeat() == 0
    assert member.commit(topic, 7) == 0
    assert fetch_offsets(left[second], group, None) == (0, {(topic, 0): (7, -1, "", 0)})
