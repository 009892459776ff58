"""Share groups whose members are librdkafka's, and classic groups of librdkafka's consumers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import confluent_kafka
import pytest

from kafka_fast import Admin, TopicPartition
from kafka_fast.admin import GroupState, GroupType, ResetTo
from kafka_fast.errors import GroupIdNotFound, NonEmptyGroup
from tests.integration.admin.calls.stage import RECORDS, Stage
from tests.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.broker]


@contextmanager
def their_consumer(stage: Stage, group: str, topic: str, protocol: str) -> Iterator[None]:
    """Have librdkafka's consumer in a group, of either protocol, once it has partitions."""
    consumer = confluent_kafka.Consumer(
        {
            **stage.peer_properties,
            "group.id": group,
            "group.protocol": protocol,
            "client.id": "theirs",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])

    def has_partitions() -> bool:
        consumer.poll(0.1)
        return bool(consumer.assignment())

    try:
        eventually(has_partitions, "partitions for librdkafka's consumer")
        yield
    finally:
        consumer.close()


def test_a_share_group_with_two_members(stage: Stage, admin: Admin) -> None:
    topic, group = stage.topic_with_records(), stage.new_name("share")
    here = TopicPartition(topic, 0)
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(stage.share_member(group, topic))

        def members() -> int:
            return len(admin.describe_share_groups([group])[group].members)

        eventually(lambda: members() == 2, "both members")
        told = admin.describe_share_groups([group])[group]
        assert told.state is GroupState.STABLE
        assert admin.list_groups(types=[GroupType.SHARE])[group].type is GroupType.SHARE
        for member in told.members:
            assert member.subscribed_topics == {topic}
        refused = admin.alter_share_group_offsets(group, {here: 0})
        assert isinstance(refused.errors[here], NonEmptyGroup)
        assert isinstance(admin.delete_groups([group]).errors[group], NonEmptyGroup)
    eventually(lambda: members() == 0, "the members to leave")
    admin.alter_share_group_offsets(group, {here: 3}).raise_first()
    start = admin.list_share_group_offsets({group: None})[group][here]
    assert start is not None
    assert start.offset == 3
    admin.delete_groups([group]).raise_first()
    error = admin.describe_share_groups([group]).errors[group]
    assert isinstance(error, GroupIdNotFound)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_of_their_consumers(stage: Stage, admin: Admin, protocol: str) -> None:
    topic, group = stage.topic_with_records(), stage.new_name("theirs")
    here, there = TopicPartition(topic, 0), TopicPartition(topic, 1)
    with their_consumer(stage, group, topic, protocol):
        told = admin.describe_consumer_groups([group])[group]
        (member,) = told.members
        assert (member.client_id, member.assignment) == ("theirs", {here, there})
        assert told.type.name == protocol.upper()
        with pytest.raises(NonEmptyGroup, match="theirs"):
            admin.reset_consumer_group_offsets(group, ResetTo.latest(), topics=[topic])
        lag = admin.consumer_group_lag([group], topics=[topic])[group]
        owners = {one.partition: one.member for one in lag.partitions}
        assert owners[here] is not None
        admin.remove_members_from_consumer_group(group, all_members=True).raise_first()
    plan = admin.reset_consumer_group_offsets(group, ResetTo.latest(), topics=[topic])
    targets = plan.raise_first().targets
    assert targets == {here: RECORDS, there: 0}
    admin.delete_groups([group]).raise_first()
