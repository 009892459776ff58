"""Partitions by the admin client, on three nodes of real Kafka."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from kafka_fast import Admin, TopicPartition
from kafka_fast.admin import ElectionType, NewTopic
from kafka_fast.admin.workflows import topics
from kafka_fast.errors import (
    ElectionNotNeeded,
    InvalidReplicaAssignment,
    KafkaTimeoutError,
    NoReassignmentInProgress,
    UnknownTopicOrPartition,
)
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.waiting import eventually

pytestmark = pytest.mark.broker


@pytest.fixture
def kafka(real_kafka_cluster: RealKafka) -> RealKafka:
    return real_kafka_cluster


@pytest.fixture
def admin(kafka: RealKafka) -> Iterator[Admin]:
    with Admin(bootstrap_servers=kafka.bootstrap) as made:
        yield made


@pytest.fixture
def topic(admin: Admin) -> str:
    """A topic with two partitions on the nodes 1 and 2, and 2 and 3."""
    name = f"partitions-{uuid.uuid4().hex}"
    admin.create_topics([NewTopic(name, assignments={0: [1, 2], 1: [2, 3]})]).raise_first()
    admin.wait_until_topics_visible([name])
    return name


def replicas(admin: Admin, partition: TopicPartition) -> tuple[int, ...]:
    infos = admin.describe_topics([partition.topic])[partition.topic].partitions
    return infos[partition.partition].replicas


@pytest.mark.needs_kafka("2.4", "replicas are moved by this API")
def test_replicas_move(admin: Admin, topic: str) -> None:
    zero, one = TopicPartition(topic, 0), TopicPartition(topic, 1)
    result = admin.alter_partition_reassignments({zero: [3, 1], one: None})
    assert result[zero] is None
    assert isinstance(result.errors[one], NoReassignmentInProgress)
    eventually(lambda: replicas(admin, zero) == (3, 1), "the move")
    eventually(lambda: zero not in admin.list_partition_reassignments(), "the end of the move")
    assert admin.list_partition_reassignments([zero, one]) == {}
    result = admin.alter_partition_reassignments(
        {zero: [9], TopicPartition(topic, 9): [1], TopicPartition(f"{topic}-absent", 0): [1]}
    )
    assert isinstance(result.errors[zero], InvalidReplicaAssignment)
    kinds = [type(error) for key, error in result.errors.items() if key != zero]
    assert kinds == [UnknownTopicOrPartition, UnknownTopicOrPartition]


@pytest.mark.needs_kafka("4.1", "the number of replicas is kept")
def test_the_number_of_replicas_is_kept(admin: Admin, topic: str) -> None:
    zero = TopicPartition(topic, 0)
    more = admin.alter_partition_reassignments(
        {zero: [1, 2, 3]}, allow_replication_factor_change=False
    )
    assert "replication factor" in str(more.errors[zero])
    assert replicas(admin, zero) == (1, 2)


@pytest.mark.needs_kafka("2.4", "both types of elections")
def test_leaders_are_elected(admin: Admin, kafka: RealKafka, topic: str) -> None:
    zero, one = TopicPartition(topic, 0), TopicPartition(topic, 1)

    def leader() -> int | None:
        return admin.describe_topics([topic])[topic].partitions[0].leader

    first = admin.elect_leaders(ElectionType.PREFERRED, partitions=[zero, one])
    assert [type(error) for error in first.errors.values()] == [ElectionNotNeeded] * 2
    kafka.node(1).stop()
    eventually(lambda: leader() == 2, "another leader")
    kafka.heal()
    kafka.wait_isr(topic)
    result = admin.elect_leaders(ElectionType.PREFERRED)
    assert result[zero] is None
    assert one not in result
    eventually(lambda: leader() == 1, "the preferred leader")
    absent = TopicPartition(topic, 9)
    errors = admin.elect_leaders(ElectionType.UNCLEAN, partitions=[absent, one]).errors
    assert isinstance(errors[absent], UnknownTopicOrPartition)
    assert isinstance(errors[one], ElectionNotNeeded)


@pytest.mark.needs_kafka("3.8", "topics page by page")
def test_topics_are_described_page_by_page(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics, "PARTITIONS_PER_PAGE", 3)
    names = [f"pages-{uuid.uuid4().hex}" for _ in range(4)]
    counts = {name: count for count, name in enumerate(names, 1)}
    created = admin.create_topics([NewTopic(name, count, 3) for name, count in counts.items()])
    admin.wait_until_topics_visible(names)
    described = admin.describe_topics([*names, "no-topic", "no/name"])
    for name, count in counts.items():
        topic = described[name]
        assert [one.partition for one in topic.partitions] == list(range(count))
        assert topic.topic_id == created[name].topic_id
        assert topic.authorized_operations is None
        for one in topic.partitions:
            assert (one.elr, one.last_known_elr) == ((), ())
            assert len(one.replicas) == len(one.isr) == 3
        by_id = admin.describe_topics([topic.topic_id], by_id=True) if topic.topic_id else {}
        assert by_id == {topic.topic_id: topic}, "with eligible leader replicas, too"
    assert list(described) == [*names, "no-topic", "no/name"]
    assert list(described.errors) == ["no-topic", "no/name"]


def test_a_topic_does_not_become_visible(admin: Admin) -> None:
    with pytest.raises(KafkaTimeoutError, match=r"node [123] does not know .* 'no-topic'"):
        admin.wait_until_topics_visible(["no-topic"], timeout=0.5)


@pytest.fixture
def without_node_3(kafka: RealKafka) -> None:
    """Node 3 has died; whether the others have noticed is another question."""
    kafka.node(3).kill()


@pytest.mark.needs_kafka("3.0", "KRaft: a broker that is gone can be given a replica")
def test_a_node_that_has_gone(admin: Admin, topic: str, without_node_3: None) -> None:
    admin.create_topics([NewTopic(f"{topic}-more", assignments={0: [1, 2]})]).raise_first()
    admin.wait_until_topics_visible([f"{topic}-more"], timeout=30.0)
    zero = TopicPartition(topic, 0)
    admin.alter_partition_reassignments({zero: [1, 3]}).raise_first()  # it cannot copy
    moving = admin.list_partition_reassignments([zero])[zero]
    assert set(moving.replicas) == {1, 2, 3}
    assert (moving.adding_replicas, moving.removing_replicas) == ((3,), (2,))
    assert admin.list_partition_reassignments()[zero] == moving
    admin.alter_partition_reassignments({zero: None}).raise_first()
    assert admin.list_partition_reassignments([zero]) == {}
    eventually(lambda: replicas(admin, zero) == (1, 2), "the replicas from before")
