"""Offsets of groups by the admin client, on real Kafka."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from kafka_fast import Admin, OffsetAndMetadata, TopicPartition
from kafka_fast.admin import NewTopic
from kafka_fast.errors import (
    GroupIdNotFound,
    GroupSubscribedToTopic,
    NonEmptyGroup,
    UnknownMemberId,
    UnknownTopicOrPartition,
)
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.integration.admin.admin_clients import admin
from tests.integration.admin.groups.group_members import (
    ShareHeartbeat,
    in_group,
    joined,
    needs_kafka,
)

__all__ = ["admin"]

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def topic(admin: Admin) -> Iterator[str]:
    """A topic of two partitions, for the module."""
    name = f"admin-group-offsets-{uuid.uuid4().hex}"
    admin.create_topics([NewTopic(name, 2, 1)]).raise_first()
    yield name
    admin.delete_topics([name])


@pytest.fixture
def group() -> str:
    return f"admin-{uuid.uuid4().hex}"


def test_offsets_are_committed_listed_and_deleted(
    admin: Admin, topic: str, group: str, real_kafka: RealKafka
) -> None:
    needs_kafka(real_kafka, "2.8")
    here, there, beyond = (TopicPartition(topic, number) for number in (0, 1, 7))
    altered = admin.alter_consumer_group_offsets(
        group, {here: OffsetAndMetadata(5, -1, "note"), there: 3, beyond: 1}
    )
    assert isinstance(altered.errors[beyond], UnknownTopicOrPartition)
    assert altered.succeeded == {here: None, there: None}
    other, absent = f"{group}-other", f"{group}-absent"
    admin.alter_consumer_group_offsets(other, {there: 9}).raise_first()
    told = admin.list_consumer_group_offsets(
        {group: None, other: [here, there], absent: [here], f"{absent}-too": None},
        require_stable=True,
    )
    assert told[group] == {here: OffsetAndMetadata(5, -1, "note"), there: OffsetAndMetadata(3)}
    assert told[other] == {here: None, there: OffsetAndMetadata(9)}
    assert told[absent] == {here: None}
    assert told[f"{absent}-too"] == {}
    assert admin.list_groups()[group].is_simple
    assert admin.describe_consumer_groups([group])[group].is_simple
    assert admin.delete_consumer_group_offsets(group, [here])[here] is None
    assert list(admin.list_consumer_group_offsets({group: None})[group]) == [there]
    error = admin.delete_consumer_group_offsets(absent, [here]).errors[here]
    assert isinstance(error, GroupIdNotFound)
    admin.delete_groups([group, other]).raise_first()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_members_commit_for_themselves(
    admin: Admin, topic: str, group: str, real_kafka: RealKafka, protocol: str
) -> None:
    needs_kafka(real_kafka, "4.0" if protocol == "consumer" else "2.8")
    here = TopicPartition(topic, 0)
    with joined(real_kafka.bootstrap, group, topic, group_protocol=protocol) as consumer:
        consumer.commit({here: OffsetAndMetadata(2)})
        assert admin.list_consumer_group_offsets({group: None})[group] == {
            here: OffsetAndMetadata(2)
        }
        refused = admin.alter_consumer_group_offsets(group, {here: 1}).errors[here]
        assert isinstance(refused, UnknownMemberId)
        refused = admin.delete_consumer_group_offsets(group, [here]).errors[here]
        assert isinstance(refused, GroupSubscribedToTopic)
    admin.alter_consumer_group_offsets(group, {here: 1}).raise_first()


def test_share_groups_go_on_where_they_are_told(
    admin: Admin, topic: str, group: str, real_kafka: RealKafka
) -> None:
    needs_kafka(real_kafka, "4.2")
    here, there = TopicPartition(topic, 0), TopicPartition(topic, 1)
    absent = f"{group}-absent"
    with in_group(admin, ShareHeartbeat, group, topic):
        refused = admin.alter_share_group_offsets(group, {here: 0}).errors[here]
        assert isinstance(refused, NonEmptyGroup)
    admin.alter_share_group_offsets(group, {here: 0}).raise_first()
    told = admin.list_share_group_offsets({group: None, absent: None})
    at = told[group][here]
    assert at is not None
    assert at.offset == 0
    assert told[absent] == {}
    some = admin.list_share_group_offsets({group: [here, there]})[group]
    assert list(some) == [here, there]
    assert admin.delete_share_group_offsets(group, [topic])[topic] is None
    assert here not in admin.list_share_group_offsets({group: None})[group]
