"""What the user hears of topics."""

from __future__ import annotations

from kafka_fast.control.consumer.consumer_messages import (
    PartitionFailed,
)
from kafka_fast.control.messages import TopicSettled
from kafka_fast.control.metadata.metadata import GETS_ROUND
from kafka_fast.errors import (
    ErrorCode,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
    UsageError,
)
from tests.unit.control.consumer.scripted import (
    T0,
    T1,
    Cluster,
    assigned,
    make,
)


def test_waiting_for_a_topic() -> None:
    cluster = Cluster()
    machine = make(cluster)
    machine.control.topics.want_topic("t", machine.now)
    machine.run(1.0)
    assert machine.take(TopicSettled) == [TopicSettled("t", None)]
    cluster.topic_error = 29
    machine = make(cluster)
    machine.control.topics.want_topic("t", machine.now)
    machine.run(1.0)
    (known,) = machine.take(TopicSettled)
    assert isinstance(known.error, TopicAuthorizationFailed)


def test_a_topic_that_is_denied_does_not_exist_after_a_while() -> None:
    cluster = Cluster()
    cluster.topic_error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    machine = make(cluster)
    began = machine.now
    machine.control.topics.want_topic("t", began)
    while not (settled := machine.take(TopicSettled)):
        machine.run(0.1)
    assert GETS_ROUND <= machine.now - began < GETS_ROUND + 1
    (denied,) = settled
    assert isinstance(denied.error, UnknownTopicOrPartition)
    assert "there is no topic 't'" in str(denied.error)


def test_a_topic_that_is_denied_at_first_exists() -> None:
    cluster = Cluster()
    cluster.topic_error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    machine = make(cluster)
    machine.control.topics.want_topic("t", machine.now)
    machine.run(GETS_ROUND - 1)
    assert not machine.take(TopicSettled)
    cluster.topic_error = 0
    machine.run(2.0)
    assert machine.take(TopicSettled) == [TopicSettled("t", None)]


def test_a_topic_that_cannot_be_read_fails_its_partitions() -> None:
    cluster = Cluster()
    machine = assigned(cluster)
    cluster.topic_error = 29
    machine.control.cluster.request_refresh("test")
    machine.run(1.0)
    failed = machine.take(PartitionFailed)
    assert {failure.partition for failure in failed} == {T0, T1}
    assert not any(failure.is_final for failure in failed)


def test_nobody_waits_in_vain_for_a_client_that_cannot_go_on() -> None:
    machine = make(Cluster())
    machine.control.topics.want_topic("other", machine.now)
    machine.control.topics.fail_all(UsageError("over"))
    machine.control.topics.want_topic("another", machine.now)
    machine.run()
    assert [settled.topic for settled in machine.take(TopicSettled) if settled.error] == [
        "other",
        "another",
    ]


def test_a_known_topic_is_asked_for_anew() -> None:
    cluster = Cluster()
    machine = assigned(cluster)
    machine.control.topics.want_topic("t", machine.now)
    machine.run()
    assert machine.take(TopicSettled) == [TopicSettled("t", None)], "it is known"
    cluster.leaders = [*cluster.leaders, (1, 0)]
    machine.control.topics.want_anew(["t"], machine.now)
    assert not machine.take(TopicSettled)
    machine.run(0.1)
    assert machine.take(TopicSettled) == [TopicSettled("t", None)]
    assert machine.control.cluster.partition_count("t") == 3


def test_a_known_topic_that_is_gone_is_denied() -> None:
    cluster = Cluster()
    machine = assigned(cluster)
    cluster.topic_error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    machine.control.topics.want_anew(["t"], machine.now)
    machine.run(GETS_ROUND - 1)
    assert not machine.take(TopicSettled)
    machine.run(2.0)
    (denied,) = machine.take(TopicSettled)
    assert isinstance(denied.error, UnknownTopicOrPartition)
