"""The admin client while the controller, a coordinator or a leader does not do what it should."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_fast import Admin, TopicPartition
from kafka_fast.admin import NewTopic, OffsetSpec
from kafka_fast.errors import (
    BrokerError,
    CoordinatorLoadInProgress,
    KafkaTimeoutError,
    NotController,
    RequestTimedOut,
    TopicAlreadyExists,
)
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import (
    CREATE_TOPICS,
    DELETE_TOPICS,
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_FETCH,
)
from tests.embedded.consuming import fill

EARLIER_TRY = "an earlier try, of which no answer came, may have created it"
SILENT = 2
"""A node of three."""


@pytest.fixture(name="kafka")
def embedded_kafka() -> Iterator[EmbeddedKafka]:
    """Three brokers, and a topic with a partition on each."""
    with EmbeddedKafka(brokers=3) as kafka:
        kafka.create_topic("t", partitions=3)
        yield kafka


@pytest.fixture
def admin(kafka: EmbeddedKafka) -> Iterator[Admin]:
    with Admin(bootstrap_servers=kafka.bootstrap, retry_backoff_ms=10) as made:
        yield made


# ---- the controller ----


@pytest.mark.parametrize("api", [CREATE_TOPICS, DELETE_TOPICS])
def test_a_controller_that_has_moved_is_found(admin: Admin, kafka: EmbeddedKafka, api: int) -> None:
    rule = kafka.faults.error(api, NotController, count=2)
    admin.create_topics([NewTopic("a", 1)]).raise_first()
    admin.delete_topics(["a"]).raise_first()
    assert rule.strikes == 2


def test_without_a_controller_a_change_ends_with_what_the_brokers_said(
    admin: Admin, kafka: EmbeddedKafka
) -> None:
    kafka.faults.error(CREATE_TOPICS, NotController)
    kafka.faults.error(DELETE_TOPICS, NotController)
    for result in (
        admin.create_topics([NewTopic("a", 1)], timeout=0.5),
        admin.delete_topics(["t"], timeout=0.5),
    ):
        (error,) = result.errors.values()
        assert isinstance(error, KafkaTimeoutError)
        assert "NOT_CONTROLLER" in str(error)
    assert set(admin.list_topics()) == {"t"}


def test_a_creation_whose_answer_was_lost_explains_that_the_topic_exists(
    admin: Admin, kafka: EmbeddedKafka
) -> None:
    kafka.faults.drop(api=CREATE_TOPICS, applied=True, close=True, count=1)
    error = admin.create_topics([NewTopic("a", 1)]).errors["a"]
    assert isinstance(error, TopicAlreadyExists)
    assert EARLIER_TRY in str(error)
    assert "a" in admin.list_topics()


@pytest.mark.parametrize("was_created", [True, False])
def test_a_creation_that_timed_out_at_the_broker(
    admin: Admin, kafka: EmbeddedKafka, was_created: bool
) -> None:
    kafka.faults.error(CREATE_TOPICS, RequestTimedOut, applied=was_created, count=1)
    result = admin.create_topics([NewTopic("a", 1)])
    if was_created:
        assert isinstance(result.errors["a"], TopicAlreadyExists)
        assert EARLIER_TRY in str(result.errors["a"])
    else:
        assert result.errors == {}
    assert "a" in admin.list_topics()


# ---- coordinators ----


def test_a_coordinator_that_loads_its_groups_is_asked_again(
    admin: Admin, kafka: EmbeddedKafka
) -> None:
    here = TopicPartition("t", 0)
    rules = [
        kafka.faults.error(api, CoordinatorLoadInProgress, count=2)
        for api in (OFFSET_COMMIT, OFFSET_FETCH)
    ]
    admin.alter_consumer_group_offsets("g", {here: 7}).raise_first()
    committed = admin.list_consumer_group_offsets({"g": [here]})["g"][here]
    assert committed is not None
    assert committed.offset == 7
    assert [rule.strikes for rule in rules] == [2, 2]


def test_a_coordinator_that_never_ends_loading_is_the_error(
    admin: Admin, kafka: EmbeddedKafka
) -> None:
    kafka.faults.error(OFFSET_FETCH, CoordinatorLoadInProgress)
    error = admin.list_consumer_group_offsets({"g": None}, timeout=0.5).errors["g"]
    assert isinstance(error, KafkaTimeoutError)
    assert "group 'g'" in str(error)
    assert "COORDINATOR_LOAD_IN_PROGRESS" in str(error)


# ---- a node of several ----


def led_by_silent(kafka: EmbeddedKafka, partitions: list[TopicPartition]) -> TopicPartition:
    (one,) = (one for one in partitions if kafka.leader(one.topic, one.partition) == SILENT)
    return one


def test_a_leader_that_is_silent_keeps_no_other_partition_away(
    admin: Admin, kafka: EmbeddedKafka
) -> None:
    partitions = [TopicPartition("t", number) for number in range(3)]
    theirs = led_by_silent(kafka, partitions)
    kafka.faults.drop(api=LIST_OFFSETS, node=SILENT, applied=False, close=False)
    result = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST), timeout=0.5)
    assert set(result.succeeded) == {*partitions} - {theirs}
    (error,) = result.errors.values()
    assert isinstance(error, KafkaTimeoutError)
    assert f"node {SILENT}" in str(error)


def test_the_lag_of_the_others_is_known_while_a_leader_is_silent(
    admin: Admin, kafka: EmbeddedKafka
) -> None:
    partitions = [TopicPartition("t", number) for number in range(3)]
    theirs = led_by_silent(kafka, partitions)
    fill(kafka, "t", 9)
    admin.alter_consumer_group_offsets("g", dict.fromkeys(partitions, 0)).raise_first()
    kafka.faults.drop(api=LIST_OFFSETS, node=SILENT, applied=False, close=False)
    lag = admin.consumer_group_lag(["g"], timeout=0.5)["g"]
    assert set(lag.errors) == {theirs}
    assert {one.partition for one in lag.partitions if one.lag is not None} == {*partitions} - {
        theirs
    }


def test_a_node_that_does_not_show_a_topic_is_named(admin: Admin, kafka: EmbeddedKafka) -> None:
    admin.wait_until_topics_visible(["t"])
    kafka.faults.drop(api=METADATA, node=SILENT, applied=False, close=False)
    with pytest.raises((KafkaTimeoutError, BrokerError), match=f"node {SILENT}"):
        admin.wait_until_topics_visible(["t"], timeout=0.5)
