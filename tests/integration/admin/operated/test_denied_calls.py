"""What each call tells somebody who may do nothing: the permission, and what it is needed for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

import pytest

from kafka_fast import Admin, TopicPartition
from kafka_fast.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AlterConfigOp,
    ClientQuotaEntity,
    ConfigResource,
    ConfigResourceType,
    ElectionType,
    FeatureUpdate,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    RaftVoterEndpoint,
    ResetTo,
    ResourceType,
    TopicPartitionReplica,
    UserScramCredentialUpsertion,
    UserScramMechanism,
)
from kafka_fast.control.admin.operation import Operation
from kafka_fast.errors import KafkaError
from tests.documentation.admin_table import operation_classes
from tests.documentation.admin_versions import admin_calls
from tests.integration.admin.calls.stage import Stage
from tests.waiting import eventually

pytestmark = [pytest.mark.long, pytest.mark.broker]

NO_DIRECTORY = "AAECAwQFBgcICQoLDA0ODw"
BROKER = ConfigResource(ConfigResourceType.BROKER, "1")


class Hidden(NamedTuple):
    """What bob must not touch."""

    topic: str
    group: str
    share_group: str
    streams_group: str
    transactional_id: str

    @property
    def partition(self) -> TopicPartition:
        return TopicPartition(self.topic, 0)

    @property
    def replica(self) -> TopicPartitionReplica:
        return TopicPartitionReplica(self.topic, 0, 1)

    @property
    def settings(self) -> ConfigResource:
        return ConfigResource(ConfigResourceType.TOPIC, self.topic)

    @property
    def rule(self) -> AclBinding:
        return AclBinding(ResourceType.TOPIC, self.topic, "User:bob", AclOperation.READ)


Attempt = Callable[[Admin, Hidden], Any]
RESOURCES = ("topic", "group", "share_group", "streams_group", "transactional_id")

DENIED: dict[str, tuple[str, Attempt]] = {
    # ---- topics ----
    "create_topics": (
        "topic",
        lambda bob, on: bob.create_topics([NewTopic(f"{on.topic}-2", 1, 1)]),
    ),
    "describe_topics": ("topic", lambda bob, on: bob.describe_topics([on.topic])),
    "wait_until_topics_visible": (
        "topic",
        lambda bob, on: bob.wait_until_topics_visible([on.topic]),
    ),
    "delete_topics": ("topic", lambda bob, on: bob.delete_topics([on.topic])),
    "create_partitions": (
        "topic",
        lambda bob, on: bob.create_partitions({on.topic: NewPartitions(9)}),
    ),
    "delete_records": ("topic", lambda bob, on: bob.delete_records({on.partition: -1})),
    "list_offsets": ("topic", lambda bob, on: bob.list_offsets({on.partition: OffsetSpec.LATEST})),
    "describe_producers": (
        "topic",
        lambda bob, on: bob.describe_producers([on.partition], broker_id=1),
    ),
    "describe_configs": ("topic", lambda bob, on: bob.describe_configs([on.settings])),
    "incremental_alter_configs": (
        "topic",
        lambda bob, on: bob.incremental_alter_configs(
            {on.settings: [AlterConfigOp("retention.ms", "1")]}
        ),
    ),
    "alter_configs": (
        "topic",
        lambda bob, on: bob.alter_configs({on.settings: {"retention.ms": "1"}}),
    ),
    # ---- groups ----
    "describe_consumer_groups": (
        "group",
        lambda bob, on: bob.describe_consumer_groups([on.group]),
    ),
    "describe_classic_groups": ("group", lambda bob, on: bob.describe_classic_groups([on.group])),
    "describe_share_groups": (
        "share_group",
        lambda bob, on: bob.describe_share_groups([on.share_group]),
    ),
    "describe_streams_groups": (
        "streams_group",
        lambda bob, on: bob.describe_streams_groups([on.streams_group]),
    ),
    "delete_groups": ("group", lambda bob, on: bob.delete_groups([on.group])),
    "remove_members_from_consumer_group": (
        "group",
        lambda bob, on: bob.remove_members_from_consumer_group(on.group, member_ids=["x"]),
    ),
    "list_consumer_group_offsets": (
        "group",
        lambda bob, on: bob.list_consumer_group_offsets({on.group: None}),
    ),
    "alter_consumer_group_offsets": (
        "group",
        lambda bob, on: bob.alter_consumer_group_offsets(on.group, {on.partition: 1}),
    ),
    "delete_consumer_group_offsets": (
        "group",
        lambda bob, on: bob.delete_consumer_group_offsets(on.group, [on.partition]),
    ),
    "consumer_group_lag": ("group", lambda bob, on: bob.consumer_group_lag([on.group])),
    "reset_consumer_group_offsets": (
        "group",
        lambda bob, on: bob.reset_consumer_group_offsets(on.group, ResetTo.earliest()),
    ),
    "list_share_group_offsets": (
        "share_group",
        lambda bob, on: bob.list_share_group_offsets({on.share_group: None}),
    ),
    "alter_share_group_offsets": (
        "share_group",
        lambda bob, on: bob.alter_share_group_offsets(on.share_group, {on.partition: 1}),
    ),
    "delete_share_group_offsets": (
        "share_group",
        lambda bob, on: bob.delete_share_group_offsets(on.share_group, [on.topic]),
    ),
    # ---- transactions ----
    "describe_transactions": (
        "transactional_id",
        lambda bob, on: bob.describe_transactions([on.transactional_id]),
    ),
    "fence_producers": (
        "transactional_id",
        lambda bob, on: bob.fence_producers([on.transactional_id]),
    ),
    "force_terminate_transaction": (
        "transactional_id",
        lambda bob, on: bob.force_terminate_transaction(on.transactional_id),
    ),
    "find_hanging_transactions": (
        "topic",
        lambda bob, on: bob.find_hanging_transactions(topic=on.topic),
    ),
    # ---- the cluster ----
    "create_acls": ("", lambda bob, on: bob.create_acls([on.rule])),
    "describe_acls": ("", lambda bob, on: bob.describe_acls()),
    "delete_acls": ("", lambda bob, on: bob.delete_acls([AclBindingFilter(name=on.topic)])),
    "alter_user_scram_credentials": (
        "",
        lambda bob, on: bob.alter_user_scram_credentials(
            [UserScramCredentialUpsertion("bob", UserScramMechanism.SCRAM_SHA_256, "x")]
        ),
    ),
    "describe_user_scram_credentials": (
        "",
        lambda bob, on: bob.describe_user_scram_credentials(),
    ),
    "alter_client_quotas": (
        "",
        lambda bob, on: bob.alter_client_quotas(
            {ClientQuotaEntity("bob"): {"producer_byte_rate": 1.0}}
        ),
    ),
    "describe_client_quotas": ("", lambda bob, on: bob.describe_client_quotas()),
    "list_config_resources": ("", lambda bob, on: bob.list_config_resources()),
    "describe_metadata_quorum": ("", lambda bob, on: bob.describe_metadata_quorum()),
    "add_raft_voter": (
        "",
        lambda bob, on: bob.add_raft_voter(
            7, directory_id=NO_DIRECTORY, endpoints=[RaftVoterEndpoint("CONTROLLER", "h", 1)]
        ),
    ),
    "remove_raft_voter": ("", lambda bob, on: bob.remove_raft_voter(7, directory_id=NO_DIRECTORY)),
    "unregister_broker": ("", lambda bob, on: bob.unregister_broker(99)),
    "unregister_controller": ("", lambda bob, on: bob.unregister_controller(99)),
    "update_features": (
        "",
        lambda bob, on: bob.update_features({"metadata.version": FeatureUpdate(1)}),
    ),
    "describe_log_dirs": ("", lambda bob, on: bob.describe_log_dirs()),
    "describe_replica_log_dirs": ("", lambda bob, on: bob.describe_replica_log_dirs([on.replica])),
    "alter_replica_log_dirs": (
        "",
        lambda bob, on: bob.alter_replica_log_dirs({on.replica: "/nowhere"}),
    ),
    "elect_leaders": (
        "",
        lambda bob, on: bob.elect_leaders(ElectionType.PREFERRED, partitions=[on.partition]),
    ),
    "alter_partition_reassignments": (
        "",
        lambda bob, on: bob.alter_partition_reassignments({on.partition: [1]}),
    ),
    "list_partition_reassignments": ("", lambda bob, on: bob.list_partition_reassignments()),
    # ---- users ----
    "create_delegation_token": (
        "",
        lambda bob, on: bob.create_delegation_token(owner="User:alice"),
    ),
}
"""Call -> which of the hidden resources its error names, and the attempt; "": the cluster."""

FREE = {
    "describe_cluster": "anybody may",
    "describe_features": "anybody may",
    "list_topics": "leaves out what one may not see",
    "list_groups": "leaves out what one may not see",
    "list_transactions": "leaves out what one may not see",
    "describe_delegation_token": "leaves out what one may not see",
    "renew_delegation_token": "is for owners and renewers, whatever they may do",
    "expire_delegation_token": "is for owners and renewers, whatever they may do",
    "abort_transaction": "does not find the leader of a topic that one may not see",
}
"""Calls that are never refused for a permission, and why."""


@pytest.fixture(scope="module")
def hidden(shared_stage: Stage) -> Iterator[Hidden]:
    """One of each, which exist."""
    stage = shared_stage
    topic = stage.new_topic()
    share = stage.new_name("share")
    with ExitStack() as stack:
        stack.enter_context(stage.share_member(share, topic))
        yield Hidden(
            topic,
            stage.new_group(topic, 0),
            share,
            stage.new_name("streams"),
            stage.new_name("txn"),
        )


def errors_of(attempt: Attempt, bob: Admin, hidden: Hidden) -> Iterable[KafkaError]:
    """Return what the items of a call have failed with, or the call."""
    try:
        result = attempt(bob, hidden)
    except KafkaError as error:
        return [error]
    errors: dict[object, KafkaError] = result.errors
    assert errors, result
    assert not getattr(result, "succeeded", {})
    return errors.values()


def permissions_of(call: str) -> set[str]:
    own: list[type[Operation[Any, Any]]] = [k for k in operation_classes() if k.name == call]
    return {kind.permission for kind in own or operation_classes()}


def test_every_call_is_refused_or_free() -> None:
    assert sorted({*DENIED, *FREE}) == admin_calls()


@pytest.mark.parametrize("call", DENIED)
def test_what_is_missing_is_named(stage: Stage, bob: Admin, hidden: Hidden, call: str) -> None:
    resource, attempt = DENIED[call]
    for error in errors_of(attempt, bob, hidden):
        text = str(error)
        assert type(error).__name__.endswith("AuthorizationFailed"), repr(error)
        assert any(f"needs {one}" in text for one in permissions_of(call)), text
        if resource:
            assert getattr(hidden, resource) in text
        else:
            assert re.search(r"on the (cluster|user)", text)


def test_bob_may_do_what_nobody_has_to_allow(stage: Stage, bob: Admin, hidden: Hidden) -> None:
    assert len(bob.describe_cluster().nodes) == 3
    assert bob.describe_features().finalized
    assert hidden.topic not in bob.list_topics()
    assert hidden.group not in bob.list_groups().raise_first()
    assert hidden.transactional_id not in bob.list_transactions().raise_first()
    tokens = bob.describe_delegation_token(["User:alice"])
    assert all("User:bob" in token.renewers for token in tokens)


def test_one_item_that_is_allowed_is_done_and_the_others_are_named(
    stage: Stage, bob: Admin, hidden: Hidden
) -> None:
    mine = stage.new_topic()
    rules = [
        AclBinding(ResourceType.TOPIC, mine, "User:bob", operation)
        for operation in (AclOperation.DESCRIBE, AclOperation.DELETE, AclOperation.ALTER_CONFIGS)
    ]
    stage.admin.create_acls(rules).raise_first()

    def is_known() -> bool:
        return all({*rules} <= set(stage.admin.describe_acls()) for _ in range(5))

    eventually(is_known)
    both = {
        ConfigResource(ConfigResourceType.TOPIC, name): [AlterConfigOp("retention.ms", "1000")]
        for name in (mine, hidden.topic)
    }
    for result, done, refused in (
        (bob.describe_topics([hidden.topic, mine]), mine, hidden.topic),
        (bob.incremental_alter_configs(both), *both),
        (bob.delete_topics([hidden.topic, mine]), mine, hidden.topic),
    ):
        assert list(result.succeeded) == [done], result.errors
        assert list(result.errors) == [refused]
        assert re.search(r"needs \w+ on the topic", str(result.errors[refused]))
