"""With many partitions: a producer's work grows as they do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafka_fast.config import producer_settings
from kafka_fast.control.producer.producer_control import ProducerControl
from kafka_fast.control.producer.producer_messages import BatchRow, ProducePunt, RouteWanted
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.records.produce import (
    LeaderIdAndEpoch,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from tests.unit.control.fake_machine import FakeMachine
from tests.unit.control.metadata.large_cluster import NOT_LEADER, LargeCluster
from tests.work import growth_of


def make(cluster: LargeCluster) -> FakeMachine:
    settings = producer_settings({"bootstrap.servers": "kafka:9001", "enable.idempotence": False})
    control = ProducerControl(settings, "test", lambda: 0.5, lambda: 0)
    return FakeMachine(control, cluster.handlers)


def producing(cluster: LargeCluster) -> FakeMachine:
    """Return a producer that knows all topics, with records for all partitions."""
    machine = make(cluster)
    ask_for_topics(cluster, machine)
    machine.event(RouteWanted(tuple(machine.control.routes.queue_ids)))
    machine.run(1.0)
    return machine


def ask_for_topics(cluster: LargeCluster, machine: FakeMachine) -> None:
    """Callers wait for all topics."""
    for topic in cluster.topics:
        machine.control.want_topic(topic, machine.now)
    machine.run(1.0)
    assert not machine.control.awaited


def name_new_leaders(cluster: LargeCluster, machine: FakeMachine) -> None:
    """An answer names other leaders for all partitions of a topic (KIP-951)."""
    cluster.turn += 1
    topic = cluster.topics[0]
    partitions = [
        PartitionProduceResponse(
            index=number,
            error_code=NOT_LEADER,
            current_leader=LeaderIdAndEpoch(
                leader_id=cluster.leader(number), leader_epoch=cluster.epoch
            ),
        )
        for number in range(cluster.count)
    ]
    body = ProduceResponse(
        responses=[
            TopicProduceResponse(topic_id=cluster.topic_id(topic), partition_responses=partitions)
        ]
    )
    data = frame.encode_response(body, 13, 0)[4:]
    refused = [
        BatchRow(queue.id, 0, queue.id, 0, NOT_LEADER, -1, 0, 1, 100, 100, 1, False)
        for queue in machine.control.routes.queues_of(topic)
    ]
    machine.event(ProducePunt(machine.link_to(1), 13, data, tuple(refused)))
    leader = machine.control.cluster.leader(topic, 0)
    assert leader is not None
    assert leader.id == cluster.leader(0)


def recreate(cluster: LargeCluster, machine: FakeMachine) -> None:
    """All topics are deleted and created again."""
    cluster.incarnation += 1
    machine.control.cluster.request_refresh("the test")
    machine.run(3.0)
    last = cluster.topics[-1]
    assert machine.control.cluster.topic_id(last) == cluster.topic_id(last)


@pytest.mark.parametrize("happen", [name_new_leaders, recreate])
def test_twice_the_partitions_are_twice_the_work(
    happen: Callable[[LargeCluster, FakeMachine], None],
) -> None:
    def happening(partitions: int) -> Callable[[], object]:
        cluster = LargeCluster(1, partitions)
        machine = producing(cluster)
        return lambda: happen(cluster, machine)

    assert growth_of(happening, 100) < 2.4


@pytest.mark.parametrize("happen", [ask_for_topics, recreate])
def test_twice_the_topics_are_twice_the_work(
    happen: Callable[[LargeCluster, FakeMachine], None],
) -> None:
    def happening(topics: int) -> Callable[[], object]:
        cluster = LargeCluster(topics, 2)
        machine = make(cluster) if happen is ask_for_topics else producing(cluster)
        return lambda: happen(cluster, machine)

    assert growth_of(happening, 300) < 2.4
