"""What stands between a client and a partition: named in few words."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from kafka_fast.config import producer_settings
from kafka_fast.control.connections.connection_key import ConnectionKey, Role
from kafka_fast.control.connections.connections import Connections
from kafka_fast.control.diagnosis.troubles import About, Troubles
from kafka_fast.control.diagnosis.waiting_reasons import (
    around,
    describe_topic_wait,
    why_waiting_for_leader,
    why_waiting_for_topic,
)
from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.control.metadata.metadata import Node
from kafka_fast.errors import KafkaConnectionError, NotEnoughReplicas
from kafka_fast.protocol.apis.cluster.metadata import MetadataResponse
from kafka_fast.types import TopicPartition
from tests.unit.control.metadata.metadata_answers import answer, topic

NO_LEADER, UNKNOWN_TOPIC = -1, 3
NODE_1 = ConnectionKey(Role.DATA, 1)
REFUSED = KafkaConnectionError("node 1 at kafka:9092: Connection refused")


class LinklessCluster:
    """A cluster, and links to it, of which there are none."""

    def __init__(self) -> None:
        settings = producer_settings({"bootstrap.servers": "kafka:9092"})
        self.cluster = Cluster(settings, lambda: 0.5)
        self.troubles = Troubles(logging.getLogger("test"))

        def ignore(*event: Any) -> None:
            pass

        listener = SimpleNamespace(
            handle_ready=ignore, handle_lost=ignore, handle_connect_failed=ignore
        )
        self.connections = Connections(settings, "me", lambda: 0.5, self.troubles, listener)

    def learn(self, found: MetadataResponse) -> None:
        self.cluster.want_topic("t", 1.0)
        self.cluster.poll_request(1.0)
        self.cluster.handle_response(found, 1.0, 12)

    def reason(self, partition: int = 0) -> str:
        return why_waiting_for_leader(
            self.cluster, self.connections, TopicPartition("t", partition)
        ).text


@pytest.fixture
def rig() -> LinklessCluster:
    return LinklessCluster()


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (None, "nothing is known of its topic yet"),
        (answer(topic("t", error=UNKNOWN_TOPIC)), "the brokers answer UNKNOWN_TOPIC_OR_PARTITION"),
        (
            answer(topic("t", [])),
            "the brokers answer LEADER_NOT_AVAILABLE (5): the answer to Metadata names no part",
        ),
        (
            answer(),
            "the brokers answer UNKNOWN_TOPIC_OR_PARTITION (3): the answer to Metadata leaves top",
        ),
        (answer(topic("t", [(NO_LEADER, 0)])), "it has no leader"),
        (
            answer(topic("t", [(9, 0)])),
            "its leader, node 9, is not among the brokers that Metadata names (1, 2)",
        ),
        (answer(topic("t")), "no connection to its leader, node 1 at kafka:9092, yet"),
    ],
)
def test_how_far_the_way_to_the_leader_is_known(
    rig: LinklessCluster, found: MetadataResponse | None, text: str
) -> None:
    if found is not None:
        rig.learn(found)
    assert rig.reason().startswith(text)


def test_a_partition_that_its_topic_does_not_have(rig: LinklessCluster) -> None:
    rig.learn(answer(topic("t")))
    assert rig.reason(7) == "its topic has 1 partition"


def test_a_leader_that_cannot_be_reached(rig: LinklessCluster) -> None:
    rig.learn(answer(topic("t")))
    rig.troubles.note(NODE_1, REFUSED, 2.0)
    why = why_waiting_for_leader(rig.cluster, rig.connections, TopicPartition("t", 0))
    assert why.text == f"no connection to its leader: {REFUSED}"
    assert why.cause is REFUSED


def test_what_lies_around_a_wait_is_what_happened_since(rig: LinklessCluster) -> None:
    rig.troubles.note(NODE_1, REFUSED, 2.0)
    assert [event.text for event in around(rig.connections, 9.0, 1.0)] == [
        f"last trouble: {REFUSED}"
    ]
    assert around(rig.connections, 9.0, 3.0) == []
    rig.connections.want_link(Node(1, "10.0.0.1", 9092), Role.DATA, 3.0)
    (under_way,) = around(rig.connections, 9.0, 3.0)
    assert "node 1" in under_way.text


def test_a_topic_of_which_nothing_is_known(rig: LinklessCluster) -> None:
    error = NotEnoughReplicas("it says so")
    rig.troubles.note(About.METADATA, error, 2.0)
    (why,) = why_waiting_for_topic(rig.cluster, rig.connections, "t", 9.0, 1.0)
    assert why.cause is error
    said = describe_topic_wait(rig.cluster, rig.connections, "t", 9.0, 1.0)
    assert said == f"no metadata of topic 't' yet; last trouble: {error}"
    rig.learn(answer(topic("t", error=UNKNOWN_TOPIC)))
    assert (
        describe_topic_wait(rig.cluster, rig.connections, "t", 9.0, 1.0)
        == "there is no topic 't' (yet)"
    )


def test_an_answer_may_come_while_another_thread_asks_why(rig: LinklessCluster) -> None:
    """Regression: a KeyError in a user's call, in the moment in which the topic became known."""

    class Racing(dict[str, str]):
        def __contains__(self, key: object) -> bool:
            return True

    rig.learn(answer(topic("t", error=UNKNOWN_TOPIC)))
    rig.cluster._lacks = Racing()
    assert "there is no topic 't'" in str(rig.cluster.refusal("t"))
