"""What calls say of topics, settings, groups and offsets that cannot be had, on both brokers."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_fast import TopicPartition
from kafka_fast.admin import (
    CLUSTER_NAME,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AlterConfigOp,
    AlterConfigOpType,
    ConfigResource,
    ConfigResourceType,
    GroupState,
    GroupType,
    NewPartitions,
    NewTopic,
    PatternType,
    ResourceType,
)
from kafka_fast.errors import (
    GroupIdNotFound,
    GroupSubscribedToTopic,
    InvalidConfig,
    InvalidPartitions,
    InvalidReplicaAssignment,
    InvalidRequest,
    InvalidTopicException,
    NonEmptyGroup,
    TopicAlreadyExists,
    UnknownMemberId,
    UnknownTopicOrPartition,
)
from tests.integration.admin.calls.stage import Stage
from tests.waiting import eventually

pytestmark = pytest.mark.needs_kafka("4.0", "the embedded broker speaks as a current one")

APPEND, SUBTRACT = AlterConfigOpType.APPEND, AlterConfigOpType.SUBTRACT
DELETE = AlterConfigOpType.DELETE


def value(stage: Stage, topic: ConfigResource, name: str) -> str | None:
    return stage.admin.describe_configs([topic])[topic][name].value


def test_topics_that_cannot_be_created(stage: Stage) -> None:
    name = stage.new_topic()
    result = stage.admin.create_topics(
        [
            NewTopic(name, 1, 1),
            NewTopic("no/name", 1, 1),
            NewTopic(f"{name}-odd", 1, 1, configs={"no.such.setting": "1"}),
            NewTopic(f"{name}-nowhere", assignments={0: [99]}),
            NewTopic(f"{name}-none", 0, 1),
            NewTopic(f"{name}-good", 1, 1),
        ]
    )
    assert list(result.succeeded) == [f"{name}-good"]
    assert [type(error) for error in result.errors.values()] == [
        TopicAlreadyExists,
        InvalidTopicException,
        InvalidConfig,
        InvalidReplicaAssignment,
        InvalidPartitions,
    ]


def test_partitions_that_cannot_be_added(stage: Stage) -> None:
    name, other, absent = stage.new_topic(), stage.new_topic(), stage.new_name("absent")
    stage.admin.create_partitions({name: NewPartitions(5)}, validate_only=True).raise_first()
    result = stage.admin.create_partitions(
        {
            name: NewPartitions(2),
            other: NewPartitions(3, assignments=[[1], [1]]),
            absent: NewPartitions(3),
        }
    )
    assert [type(error) for error in result.errors.values()] == [
        InvalidPartitions,
        InvalidReplicaAssignment,
        UnknownTopicOrPartition,
    ]
    stage.admin.create_partitions({other: NewPartitions(3, assignments=[[1]])}).raise_first()
    eventually(lambda: len(stage.admin.describe_topics([other])[other].partitions) == 3)
    assert len(stage.admin.describe_topics([name])[name].partitions) == 2


def test_settings_change_one_by_one(stage: Stage) -> None:
    topic = ConfigResource(ConfigResourceType.TOPIC, stage.new_topic())
    ops = [
        AlterConfigOp("cleanup.policy", "compact", APPEND),
        AlterConfigOp("segment.ms", "7000"),
    ]
    stage.admin.incremental_alter_configs({topic: ops}, validate_only=True).raise_first()
    assert value(stage, topic, "cleanup.policy") == "delete"
    stage.admin.incremental_alter_configs({topic: ops}).raise_first()
    eventually(lambda: value(stage, topic, "segment.ms") == "7000", "the change")
    policy = value(stage, topic, "cleanup.policy")
    assert policy is not None
    assert set(policy.split(",")) == {"delete", "compact"}
    ops = [
        AlterConfigOp("cleanup.policy", "delete", SUBTRACT),
        AlterConfigOp("segment.ms", op=DELETE),
    ]
    stage.admin.incremental_alter_configs({topic: ops}).raise_first()
    eventually(lambda: value(stage, topic, "cleanup.policy") == "compact", "the next change")
    assert value(stage, topic, "segment.ms") == "604800000"


@pytest.mark.parametrize(
    "op",
    [
        AlterConfigOp("no.such.setting", "1"),
        AlterConfigOp("segment.ms", "x"),
        AlterConfigOp("segment.ms", "1", APPEND),
        AlterConfigOp("cleanup.policy", "burn"),
    ],
    ids=["unknown", "no number", "no list", "no policy"],
)
def test_settings_that_are_refused(stage: Stage, op: AlterConfigOp) -> None:
    """Nothing of that topic changes; other topics do."""
    bad, good = (ConfigResource(ConfigResourceType.TOPIC, stage.new_topic()) for _ in range(2))
    absent = ConfigResource(ConfigResourceType.TOPIC, stage.new_name("absent"))
    before = value(stage, bad, "retention.ms")
    fine = AlterConfigOp("retention.ms", "8000")
    result = stage.admin.incremental_alter_configs({bad: [fine, op], good: [fine], absent: [fine]})
    assert list(result.succeeded) == [good]
    assert isinstance(result.errors[bad], InvalidConfig)
    assert isinstance(result.errors[absent], UnknownTopicOrPartition)
    eventually(lambda: value(stage, good, "retention.ms") == "8000", "the change of the other")
    assert value(stage, bad, "retention.ms") == before


def test_groups_are_listed_by_state_and_type(stage: Stage) -> None:
    topic, joined = stage.new_topic(), stage.new_name("group")
    empty = stage.new_group(topic, 0)
    with stage.member(joined, topic):

        def listed(**filters: object) -> set[str]:
            names = stage.admin.list_groups(**filters).raise_first()  # type: ignore[arg-type]
            return {empty, joined} & set(names)

        assert listed() == {empty, joined}
        assert listed(states=[GroupState.EMPTY]) == {empty}
        assert listed(states=[GroupState.STABLE]) == {joined}
        assert listed(types=[GroupType.CLASSIC]) == {empty, joined}
        assert listed(types=[GroupType.CONSUMER]) == set()
        told = stage.admin.list_groups()[joined]
        assert (told.protocol_type, told.type) == ("consumer", GroupType.CLASSIC)
        assert stage.admin.list_groups()[empty].is_simple


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_what_a_group_with_members_refuses(stage: Stage, protocol: str) -> None:
    topic, other, group = stage.new_topic(), stage.new_topic(), stage.new_name("group")
    here, there = TopicPartition(topic, 0), TopicPartition(other, 0)
    stage.admin.alter_consumer_group_offsets(group, {here: 1, there: 1}).raise_first()
    stage.properties["group.protocol"] = protocol
    try:
        with stage.member(group, topic):
            assert stage.admin.list_groups()[group].type.name == protocol.upper()
            assert isinstance(stage.admin.delete_groups([group]).errors[group], NonEmptyGroup)
            altered = stage.admin.alter_consumer_group_offsets(group, {here: 2})
            assert isinstance(altered.errors[here], UnknownMemberId)
            deleted = stage.admin.delete_consumer_group_offsets(group, [here, there])
            assert isinstance(deleted.errors[here], GroupSubscribedToTopic)
            assert list(deleted.succeeded) == [there]
    finally:
        del stage.properties["group.protocol"]
    stage.admin.remove_members_from_consumer_group(group, all_members=True)
    stage.admin.delete_groups([group]).raise_first()
    assert isinstance(stage.admin.delete_groups([group]).errors[group], GroupIdNotFound)
    deleted = stage.admin.delete_consumer_group_offsets(group, [here])
    assert isinstance(deleted.errors[here], GroupIdNotFound)


def test_offsets_of_topics_that_are_not_there(stage: Stage) -> None:
    topic = stage.new_topic()
    group, absent = stage.new_group(topic, 3), TopicPartition(stage.new_name("absent"), 0)
    never = TopicPartition(topic, 1)
    altered = stage.admin.alter_consumer_group_offsets(group, {absent: 1, never: 2})
    assert isinstance(altered.errors[absent], UnknownTopicOrPartition)
    assert list(altered.succeeded) == [never]
    deleted = stage.admin.delete_consumer_group_offsets(group, [absent, never, never])
    assert isinstance(deleted.errors[absent], UnknownTopicOrPartition)
    told = stage.admin.list_consumer_group_offsets({group: None})[group]
    assert list(told) == [TopicPartition(topic, 0)]


# ---- rules ----


def new_rules(stage: Stage) -> tuple[str, list[AclBinding]]:
    """Create rules of every kind about one user."""
    name, principal = stage.new_name("rules"), f"User:{stage.new_name('user')}"
    rules = [
        AclBinding(ResourceType.TOPIC, name, principal, AclOperation.READ),
        AclBinding(
            ResourceType.TOPIC,
            name[:-2],
            principal,
            AclOperation.WRITE,
            AclPermissionType.DENY,
            "10.0.0.1",
            PatternType.PREFIXED,
        ),
        AclBinding(ResourceType.GROUP, "*", principal, AclOperation.ALL),
        AclBinding(ResourceType.CLUSTER, CLUSTER_NAME, principal, AclOperation.ALTER),
    ]
    for _ in range(2):  # a rule that is there already is no error
        stage.admin.create_acls(rules).raise_first()
    of_user = AclBindingFilter(principal=principal)
    eventually(lambda: set(stage.admin.describe_acls(of_user)) == {*rules}, "the rules")
    return name, rules


def test_filters_of_rules(stage: Stage) -> None:
    name, (reads, writes, everything, alters) = new_rules(stage)
    principal = reads.principal

    def matching(**filters: Any) -> set[AclBinding]:
        return set(stage.admin.describe_acls(AclBindingFilter(principal=principal, **filters)))

    assert matching(resource_type=ResourceType.TOPIC) == {reads, writes}
    assert matching(name=name) == {reads}
    assert matching(name=name, pattern_type=PatternType.MATCH) == {reads, writes, everything}
    assert matching(pattern_type=PatternType.PREFIXED) == {writes}
    assert matching(host="10.0.0.1") == {writes}
    assert matching(operation=AclOperation.ALTER) == {alters}
    assert matching(permission=AclPermissionType.DENY) == {writes}
    nothing = AclBindingFilter(principal=f"{principal}-nobody")
    own = AclBindingFilter(principal=principal, resource_type=ResourceType.TOPIC)
    deleted = stage.admin.delete_acls([own, nothing])
    assert {one.binding for one in deleted[own]} == {reads, writes}
    assert deleted[nothing] == []
    eventually(lambda: matching() == {everything, alters}, "the rest")


def test_rules_that_are_none(stage: Stage) -> None:
    name, principal = stage.new_name("rules"), "User:somebody"
    good = AclBinding(ResourceType.TOPIC, name, principal, AclOperation.READ)
    bad = [
        AclBinding(ResourceType.TOPIC, name, "somebody", AclOperation.READ),
        AclBinding(ResourceType.CLUSTER, name, principal, AclOperation.ALTER),
        AclBinding(ResourceType.TOPIC, "", principal, AclOperation.READ),
    ]
    result = stage.admin.create_acls([good, *bad])
    assert list(result.succeeded) == [good]
    assert {type(error) for error in result.errors.values()} == {InvalidRequest}
    stage.admin.delete_acls([AclBindingFilter(name=name)]).raise_first()
