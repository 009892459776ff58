"""Groups by the admin client, on real Kafka."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from kafka_fast import Admin, OffsetAndMetadata, TopicPartition
from kafka_fast.admin import AclOperation, GroupState, GroupType, NewTopic, StreamsTopologyStatus
from kafka_fast.errors import (
    GroupIdNotFound,
    GroupSubscribedToTopic,
    NonEmptyGroup,
    UnknownMemberId,
)
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.integration.admin.admin_clients import admin
from tests.integration.admin.groups.group_members import (
    ShareHeartbeat,
    StreamsHeartbeat,
    in_group,
    joined,
    needs_kafka,
)
from tests.waiting import eventually

__all__ = ["admin"]

pytestmark = pytest.mark.broker


@pytest.fixture(scope="module")
def topic(admin: Admin) -> Iterator[str]:
    """A topic of two partitions, for the module."""
    name = f"admin-groups-{uuid.uuid4().hex}"
    admin.create_topics([NewTopic(name, 2, 1)]).raise_first()
    yield name
    admin.delete_topics([name])


@pytest.fixture
def group() -> str:
    return f"admin-{uuid.uuid4().hex}"


def test_a_classic_group_lives_and_dies(
    admin: Admin, topic: str, group: str, real_kafka: RealKafka
) -> None:
    needs_kafka(real_kafka, "3.9")
    both = {TopicPartition(topic, 0), TopicPartition(topic, 1)}
    with joined(real_kafka.bootstrap, group, topic, client_id="reader", group_instance_id="static"):
        eventually(lambda: admin.list_groups()[group].state is GroupState.STABLE)
        listed = admin.list_groups(
            states=[GroupState.STABLE], types=[GroupType.CLASSIC], protocol_types=["consumer"]
        )
        assert listed[group].protocol_type == "consumer"
        assert not listed[group].is_simple
        assert group not in admin.list_groups(types=[GroupType.SHARE])
        described = admin.describe_consumer_groups([group], include_authorized_operations=True)
        told = described[group]
        assert (told.type, told.state) == (GroupType.CLASSIC, GroupState.STABLE)
        assert told.coordinator == 1
        assert told.authorized_operations is not None
        assert AclOperation.READ in told.authorized_operations
        (member,) = told.members
        assert (member.client_id, member.instance_id) == ("reader", "static")
        assert (member.assignment, member.subscribed_topics) == (both, {topic})
        classic = admin.describe_classic_groups([group])[group]
        assert (classic.protocol, classic.members) == (told.assignor, told.members)
        assert isinstance(admin.delete_groups([group]).errors[group], NonEmptyGroup)
        removed = admin.remove_members_from_consumer_group(
            group, instance_ids=["static"], member_ids=["nobody"], reason="a test"
        )
        assert removed["static"] is None
        assert isinstance(removed.errors["nobody"], UnknownMemberId)
        members = admin.describe_consumer_groups([group])[group].members
        assert member.member_id not in {one.member_id for one in members}
    admin.delete_groups([group]).raise_first()
    assert isinstance(admin.delete_groups([group]).errors[group], GroupIdNotFound)


def test_all_members_are_removed(
    admin: Admin, topic: str, group: str, real_kafka: RealKafka
) -> None:
    needs_kafka(real_kafka, "2.4")
    with joined(real_kafka.bootstrap, group, topic):
        (member,) = admin.describe_consumer_groups([group])[group].members
        assert list(admin.remove_members_from_consumer_group(group, all_members=True)) == [
            member.member_id
        ]
    with pytest.raises(GroupIdNotFound):
        admin.remove_members_from_consumer_group(f"{group}-absent", all_members=True)


def test_a_consumer_group_is_described(
    admin: Admin, topic: str, group: str, real_kafka: RealKafka
) -> None:
    needs_kafka(real_kafka, "4.4")
    both = {TopicPartition(topic, 0), TopicPartition(topic, 1)}
    with joined(real_kafka.bootstrap, group, topic, group_protocol="consumer", client_rack="r"):
        eventually(lambda: admin.list_groups()[group].state is GroupState.STABLE)
        assert admin.list_groups(types=[GroupType.CONSUMER])[group].type is GroupType.CONSUMER
        absent = f"{group}-absent"
        described = admin.describe_consumer_groups([group, absent])
        told = described[group]
        assert (told.type, told.state) == (GroupType.CONSUMER, GroupState.STABLE)
        assert told.group_epoch == told.assignment_epoch
        assert told.authorized_operations is None
        (member,) = told.members
        assert (member.assignment, member.target_assignment) == (both, both)
        assert (member.rack_id, member.upgraded) == ("r", True)
        assert member.subscribed_topics == {topic}
        assert isinstance(described.errors[absent], GroupIdNotFound)
        other = admin.describe_classic_groups([group]).errors[group]
        assert isinstance(other, GroupIdNotFound)
        removed = admin.remove_members_from_consumer_group(group, all_members=True)
        assert dict(removed) == {member.member_id: None}
        assert admin.describe_consumer_groups([group])[group].members == ()
    admin.delete_groups([group]).raise_first()


def test_a_share_group_is_described(
    admin: Admin, topic: str, group: str, real_kafka: RealKafka
) -> None:
    needs_kafka(real_kafka, "4.2")
    with in_group(admin, ShareHeartbeat, group, topic) as member_id:
        assert admin.list_groups(types=[GroupType.SHARE])[group].type is GroupType.SHARE
        told = admin.describe_share_groups([group], include_authorized_operations=True)[group]
        (member,) = told.members
        assert (member.member_id, member.subscribed_topics) == (member_id, {topic})
        assert told.authorized_operations is not None
        errors = admin.describe_share_groups([f"{group}-absent"]).errors
        assert isinstance(errors[f"{group}-absent"], GroupIdNotFound)
    admin.delete_groups([group]).raise_first()


def test_a_streams_group_is_described(
    admin: Admin, topic: str, group: str, real_kafka: RealKafka
) -> None:
    needs_kafka(real_kafka, "4.2")
    with in_group(admin, StreamsHeartbeat, group, topic) as member_id:
        assert admin.list_groups(types=[GroupType.STREAMS])[group].type is GroupType.STREAMS
        told = admin.describe_streams_groups([group])[group]
        (member,) = told.members
        assert (member.member_id, member.process_id) == (member_id, "process")
        assert told.subtopologies is not None
        assert told.subtopologies[0].source_topics == (topic,)
        assert told.coordinator == 1
        assert told.topology_description_status is StreamsTopologyStatus.NOT_REQUESTED
    admin.delete_groups([group]).raise_first()


def test_topologies_are_asked_for_in_full(
    admin: Admin, topic: str, group: str, real_kafka: RealKafka
) -> None:
    """Brokers keep none without a plugin of their own."""
    needs_kafka(real_kafka, "4.4")
    with in_group(admin, StreamsHeartbeat, group, topic):
        told = admin.describe_streams_groups([group], include_topology_description=True)[group]
        assert told.topology_description_status is StreamsTopologyStatus.NOT_STORED
        assert told.topology_description is None
    admin.delete_groups([group]).raise_first()


def test_offsets_of_a_streams_group(
    admin: Admin, topic: str, group: str, real_kafka: RealKafka
) -> None:
    needs_kafka(real_kafka, "4.2")
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with in_group(admin, StreamsHeartbeat, group, topic):
        errors = admin.alter_streams_group_offsets(group, {first: 3}).errors
        assert isinstance(errors[first], UnknownMemberId)
        errors = admin.delete_streams_group_offsets(group, [first]).errors
        assert isinstance(errors[first], GroupSubscribedToTopic)
    offsets = {first: 3, second: OffsetAndMetadata(4, -1, "note")}
    admin.alter_streams_group_offsets(group, offsets).raise_first()
    assert dict(admin.list_streams_group_offsets({group: None})[group]) == {
        first: OffsetAndMetadata(3),
        second: OffsetAndMetadata(4, -1, "note"),
    }
    admin.delete_streams_group_offsets(group, [first]).raise_first()
    listed = admin.list_streams_group_offsets({group: [first, second]}, require_stable=True)
    assert listed[group][first] is None
    assert listed[group][second] == OffsetAndMetadata(4, -1, "note")
    admin.delete_groups([group]).raise_first()
