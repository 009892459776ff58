"""Plays of the calls about groups of all types, and their offsets."""

from __future__ import annotations

from kafka_fast import TopicPartition
from kafka_fast.admin import GroupState, ResetTo
from tests.integration.admin.calls.stage import RECORDS, Stage, play
from tests.integration.admin.groups.group_members import StreamsHeartbeat, in_group
from tests.waiting import eventually

SHARE_GROUPS = STREAMS_GROUPS = "4.1"
"""Since when brokers have the calls about them."""


@play
def list_groups(stage: Stage) -> None:
    group = stage.new_group(stage.new_topic(), 0)
    assert group in stage.admin.list_groups().raise_first()


@play
def describe_consumer_groups(stage: Stage) -> None:
    topic, group = stage.new_topic(), stage.new_name("group")
    with stage.member(group, topic):
        told = stage.admin.describe_consumer_groups([group])[group]
    assert told.state is GroupState.STABLE
    (member,) = told.members
    assert member.client_id == group
    assert member.assignment == {TopicPartition(topic, 0), TopicPartition(topic, 1)}


@play
def describe_classic_groups(stage: Stage) -> None:
    topic, group = stage.new_topic(), stage.new_name("group")
    with stage.member(group, topic):
        told = stage.admin.describe_classic_groups([group])[group]
    assert told.state is GroupState.STABLE
    assert [one.client_id for one in told.members] == [group]


@play
def remove_members_from_consumer_group(stage: Stage) -> None:
    topic, group = stage.new_topic(), stage.new_name("group")
    with stage.member(group, topic):
        (member,) = stage.admin.describe_consumer_groups([group])[group].members
        removed = stage.admin.remove_members_from_consumer_group(group, all_members=True)
        assert list(removed.raise_first()) == [member.member_id]


@play
def delete_groups(stage: Stage) -> None:
    group = stage.new_group(stage.new_topic(), 0)
    stage.admin.delete_groups([group]).raise_first()
    here = stage.admin.list_consumer_group_offsets({group: None})
    assert here[group] == {}


@play
def describe_share_groups(stage: Stage) -> None:
    topic, group = stage.new_topic(), stage.new_name("share")
    if not stage.has(SHARE_GROUPS):
        stage.admin.describe_share_groups([group]).raise_first()
        return
    with stage.share_member(group, topic):
        (member,) = stage.admin.describe_share_groups([group])[group].members
        assert member.subscribed_topics == {topic}


@play
def describe_streams_groups(stage: Stage) -> None:
    topic, group = stage.new_topic(), stage.new_name("streams")
    if not stage.has(STREAMS_GROUPS):
        stage.admin.describe_streams_groups([group]).raise_first()
        return
    with in_group(stage.admin, StreamsHeartbeat, group, topic) as member_id:
        (member,) = stage.admin.describe_streams_groups([group])[group].members
        assert member.member_id == member_id


# ---- offsets ----


@play
def list_consumer_group_offsets(stage: Stage) -> None:
    topic = stage.new_topic()
    group = stage.new_group(topic, 3)
    told = stage.admin.list_consumer_group_offsets({group: None})[group]
    assert {key: one and one.offset for key, one in told.items()} == {TopicPartition(topic, 0): 3}


@play
def alter_consumer_group_offsets(stage: Stage) -> None:
    topic, group = stage.new_topic(), stage.new_name("group")
    here = TopicPartition(topic, 1)
    stage.admin.alter_consumer_group_offsets(group, {here: 5}).raise_first()
    told = stage.admin.list_consumer_group_offsets({group: [here]})[group][here]
    assert told is not None
    assert told.offset == 5


@play
def delete_consumer_group_offsets(stage: Stage) -> None:
    topic = stage.new_topic()
    here, group = TopicPartition(topic, 0), stage.new_group(topic, 3)
    stage.admin.delete_consumer_group_offsets(group, [here]).raise_first()
    assert stage.admin.list_consumer_group_offsets({group: [here]})[group][here] is None


@play
def reset_consumer_group_offsets(stage: Stage) -> None:
    topic = stage.topic_with_records()
    group = stage.new_group(topic, 3)
    plan = stage.admin.reset_consumer_group_offsets(group, ResetTo.latest())
    assert [(one.current, one.target) for one in plan.raise_first().resets] == [(3, RECORDS)]


@play
def consumer_group_lag(stage: Stage) -> None:
    topic = stage.topic_with_records()
    group = stage.new_group(topic, 3)
    lag = stage.admin.consumer_group_lag([group])[group]
    assert lag.lag_by_topic == {topic: RECORDS - 3}


def _share_group(stage: Stage, topic: str) -> str:
    """Return a share group that has had a member, if the brokers know such groups."""
    group = stage.new_name("share")
    if stage.has(SHARE_GROUPS):
        with stage.share_member(group, topic):
            pass
        eventually(lambda: not stage.admin.describe_share_groups([group])[group].members)
    return group


@play
def alter_share_group_offsets(stage: Stage) -> None:
    topic = stage.topic_with_records()
    group, here = _share_group(stage, topic), TopicPartition(topic, 0)
    stage.admin.alter_share_group_offsets(group, {here: 4}).raise_first()
    told = stage.admin.list_share_group_offsets({group: None})[group][here]
    assert told is not None
    assert told.offset == 4


@play
def list_share_group_offsets(stage: Stage) -> None:
    topic = stage.topic_with_records()
    group, here = _share_group(stage, topic), TopicPartition(topic, 0)
    if stage.has(SHARE_GROUPS):
        stage.admin.alter_share_group_offsets(group, {here: 4}).raise_first()
    told = stage.admin.list_share_group_offsets({group: [here]})[group][here]
    assert told is not None
    assert told.offset == 4


@play
def delete_share_group_offsets(stage: Stage) -> None:
    topic = stage.topic_with_records()
    group, here = _share_group(stage, topic), TopicPartition(topic, 0)
    if stage.has(SHARE_GROUPS):
        stage.admin.alter_share_group_offsets(group, {here: 4}).raise_first()
    stage.admin.delete_share_group_offsets(group, [topic]).raise_first()
    assert here not in stage.admin.list_share_group_offsets({group: None})[group]


def _streams_group(stage: Stage, topic: str) -> str:
    """Return a streams group that has had a member; brokers without such groups refuse."""
    group = stage.new_name("streams")
    if not stage.has(STREAMS_GROUPS):
        stage.admin.describe_streams_groups([group]).raise_first()
    with in_group(stage.admin, StreamsHeartbeat, group, topic):
        pass
    eventually(lambda: not stage.admin.describe_streams_groups([group])[group].members)
    return group


@play
def alter_streams_group_offsets(stage: Stage) -> None:
    topic = stage.new_topic()
    group, here = _streams_group(stage, topic), TopicPartition(topic, 0)
    stage.admin.alter_streams_group_offsets(group, {here: 4}).raise_first()
    told = stage.admin.list_streams_group_offsets({group: None})[group][here]
    assert told is not None
    assert told.offset == 4


@play
def list_streams_group_offsets(stage: Stage) -> None:
    topic = stage.new_topic()
    group, here = _streams_group(stage, topic), TopicPartition(topic, 0)
    stage.admin.alter_streams_group_offsets(group, {here: 4}).raise_first()
    told = stage.admin.list_streams_group_offsets({group: [here]})[group][here]
    assert told is not None
    assert told.offset == 4


@play
def delete_streams_group_offsets(stage: Stage) -> None:
    topic = stage.new_topic()
    group, here = _streams_group(stage, topic), TopicPartition(topic, 0)
    stage.admin.alter_streams_group_offsets(group, {here: 4}).raise_first()
    stage.admin.delete_streams_group_offsets(group, [here]).raise_first()
    assert stage.admin.list_streams_group_offsets({group: [here]})[group][here] is None
