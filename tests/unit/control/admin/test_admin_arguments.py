"""Arguments that would end a client whose control thread got them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka_fast.admin.workflows.resets import ResetScope
from kafka_fast.control.admin.operation import Operation
from kafka_fast.control.admin.operations.cluster import UpdateFeatures
from kafka_fast.control.admin.operations.configs import (
    DescribeConfigs,
    IncrementalAlterConfigs,
    ListConfigResources,
)
from kafka_fast.control.admin.operations.groups.committed import (
    AlterGroupOffsets,
    DeleteGroupOffsets,
    ListGroupOffsets,
)
from kafka_fast.control.admin.operations.groups.descriptions import DescribeConsumerGroups
from kafka_fast.control.admin.operations.groups.listings import (
    DeleteGroups,
    ListGroups,
    RemoveMembers,
)
from kafka_fast.control.admin.operations.groups.shared import (
    AlterShareGroupOffsets,
    DeleteShareGroupOffsets,
    ListShareGroupOffsets,
)
from kafka_fast.control.admin.operations.log_dirs import (
    AlterReplicaLogDirs,
    DescribeLogDirs,
    DescribeReplicaLogDirs,
)
from kafka_fast.control.admin.operations.offsets import ListOffsets
from kafka_fast.control.admin.operations.partitions import (
    AlterPartitionReassignments,
    ElectLeaders,
    ListPartitionReassignments,
)
from kafka_fast.control.admin.operations.topics import (
    CreatePartitions,
    CreateTopics,
    DeleteRecords,
    DeleteTopics,
    DescribeTopics,
)
from kafka_fast.control.admin.operations.transactions import (
    AbortTransaction,
    DescribeProducers,
    DescribeTransactions,
    FenceProducers,
    ListTransactions,
)
from kafka_fast.control.admin.operations.users import DescribeUserScramCredentials
from kafka_fast.control.admin.types.cluster import FeatureUpdate
from kafka_fast.control.admin.types.configs import (
    AlterConfigOp,
    ConfigResource,
    ConfigResourceType,
)
from kafka_fast.control.admin.types.log_dirs import TopicPartitionReplica
from kafka_fast.control.admin.types.offsets import OffsetSpec
from kafka_fast.control.admin.types.partitions import ElectionType
from kafka_fast.control.admin.types.topics import NewPartitions, NewTopic
from kafka_fast.errors import UsageError
from kafka_fast.types import TopicPartition

Maker = Callable[[Any], Operation[Any, Any]]

T0 = TopicPartition("t", 0)
LONG = "x" * 2**15
UNWRITABLE = "\udcff"
"""What the shell's \\xff becomes in sys.argv."""


def describe_consumer_groups(given: Any) -> DescribeConsumerGroups:
    return DescribeConsumerGroups(given, include_authorized_operations=False)


def describe_topics(given: Any) -> DescribeTopics:
    return DescribeTopics(given, by_id=False, include_authorized_operations=False)


def delete_topics(given: Any) -> DeleteTopics:
    return DeleteTopics(given, by_id=False, retry_on_quota=True)


def list_transactions(given: Any) -> ListTransactions:
    return ListTransactions(states=given, producer_ids=(), min_duration_ms=None, pattern=None)


def create_topics(given: Any) -> CreateTopics:
    return CreateTopics(given, validate_only=False, retry_on_quota=True)


def create_partitions(given: Any) -> CreatePartitions:
    return CreatePartitions(given, validate_only=False, retry_on_quota=True)


def reassign(given: Any) -> AlterPartitionReassignments:
    return AlterPartitionReassignments(given, allow_replication_factor_change=True)


OF_NAMES: list[Maker] = [
    describe_consumer_groups,
    DeleteGroups,
    describe_topics,
    delete_topics,
    DescribeTransactions,
    FenceProducers,
    DescribeUserScramCredentials,
    lambda given: DeleteShareGroupOffsets("g", given),
    lambda given: RemoveMembers("g", member_ids=given),
]

OF_ONE_GROUP: list[Maker] = [
    lambda given: AlterGroupOffsets(given, {T0: 1}),
    lambda given: DeleteGroupOffsets(given, [T0]),
    lambda given: AlterShareGroupOffsets(given, {T0: 1}),
    lambda given: DeleteShareGroupOffsets(given, ["t"]),
    lambda given: RemoveMembers(given, member_ids=["m"]),
    lambda given: ListGroupOffsets({given: None}, require_stable=False),
    lambda given: ListShareGroupOffsets({given: None}),
]

OF_PARTITIONS: list[Maker] = [
    DescribeProducers,
    lambda given: DescribeProducers(given, broker_id=1),
    lambda given: DeleteGroupOffsets("g", given),
    lambda given: ElectLeaders(ElectionType.PREFERRED, given),
    ListPartitionReassignments,
    lambda given: ListGroupOffsets({"g": given}, require_stable=False),
    lambda given: ListShareGroupOffsets({"g": given}),
    lambda given: DeleteRecords(dict.fromkeys(given, 1)),
    lambda given: ListOffsets(dict.fromkeys(given, OffsetSpec.LATEST)),
    lambda given: AlterGroupOffsets("g", dict.fromkeys(given, 1)),
    lambda given: AlterShareGroupOffsets("g", dict.fromkeys(given, 1)),
    lambda given: reassign({key: [1] for key in given}),
]

OF_MAPPINGS: list[Maker] = [
    lambda given: ListGroupOffsets(given, require_stable=False),
    ListShareGroupOffsets,
    DeleteRecords,
    ListOffsets,
    lambda given: AlterGroupOffsets("g", given),
    lambda given: AlterShareGroupOffsets("g", given),
    reassign,
    create_partitions,
    AlterReplicaLogDirs,
    lambda given: UpdateFeatures(given, validate_only=False),
]


@pytest.mark.parametrize("make", OF_NAMES)
def test_one_name_is_not_taken_for_its_letters(make: Maker) -> None:
    with pytest.raises(TypeError, match="not the string 'abc'"):
        make("abc")


@pytest.mark.parametrize("make", [*OF_NAMES, DescribeProducers, DescribeReplicaLogDirs])
def test_nothing_is_not_all(make: Maker) -> None:
    """It would wait for items that never come."""
    with pytest.raises(TypeError, match="not None"):
        make(None)


@pytest.mark.parametrize("make", OF_NAMES)
@pytest.mark.parametrize("name", [None, 5, b"abc", ("t", 0)])
def test_a_name_is_a_text(make: Maker, name: object) -> None:
    with pytest.raises(TypeError, match="is no text"):
        make([name])


@pytest.mark.parametrize("make", OF_NAMES)
def test_a_name_can_be_sent(make: Maker) -> None:
    with pytest.raises(UsageError, match="cannot be written in UTF-8"):
        make([UNWRITABLE])
    with pytest.raises(UsageError, match="has 32768 bytes, and may have 32767"):
        make([LONG])


@pytest.mark.parametrize("make", OF_ONE_GROUP)
def test_the_id_of_a_group_can_be_sent(make: Maker) -> None:
    for no_text in (None, 5, b"g"):
        with pytest.raises(TypeError, match="is no text"):
            make(no_text)
    for name in (UNWRITABLE, LONG):
        with pytest.raises(UsageError):
            make(name)


@pytest.mark.parametrize("make", OF_PARTITIONS)
@pytest.mark.parametrize("given", ["t", 5, ("t",), ("t", 0, 1), ("t", "0"), ("t", None), (5, 0)])
def test_a_partition_is_a_topic_with_a_number(make: Maker, given: object) -> None:
    with pytest.raises(TypeError):
        make([given])


@pytest.mark.parametrize("make", OF_PARTITIONS)
@pytest.mark.parametrize("given", [("t", -1), ("t", 2**31), (UNWRITABLE, 0), (LONG, 0)])
def test_there_can_be_such_a_partition(make: Maker, given: tuple[str, int]) -> None:
    with pytest.raises(UsageError):
        make([TopicPartition(*given)])


@pytest.mark.parametrize("make", OF_PARTITIONS)
def test_a_plain_tuple_is_a_partition(make: Maker) -> None:
    operation = make([("t", 0)])
    assert all(type(item) is TopicPartition for item in operation.items or () if item == T0)


def test_one_partition_is_told_from_several() -> None:
    with pytest.raises(TypeError, match=r"a list or a set: \[TopicPartition"):
        DescribeProducers(T0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="are a list or a set"):
        ResetScope.of((), T0)  # type: ignore[arg-type]


@pytest.mark.parametrize("make", OF_MAPPINGS)
@pytest.mark.parametrize("given", [None, "abc", [T0], [("a", 1)]])
def test_a_mapping_is_a_mapping(make: Maker, given: object) -> None:
    with pytest.raises(TypeError, match="come in a mapping, not in a"):
        make(given)


@pytest.mark.parametrize("node_id", [-1, 2**31])
def test_there_can_be_such_a_node(node_id: int) -> None:
    for make in (
        lambda: DescribeLogDirs([node_id]),
        lambda: DescribeProducers([T0], broker_id=node_id),
        lambda: DescribeReplicaLogDirs([TopicPartitionReplica("t", 0, node_id)]),
        lambda: AlterReplicaLogDirs({TopicPartitionReplica("t", 0, node_id): "/data"}),
        lambda: DescribeConfigs(
            [ConfigResource(ConfigResourceType.BROKER, str(node_id))],
            include_synonyms=False,
            include_documentation=False,
        ),
    ):
        with pytest.raises(UsageError):
            make()


def test_a_number_with_thousands_of_digits_is_no_node() -> None:
    resource = ConfigResource(ConfigResourceType.BROKER, "9" * 5000)
    with pytest.raises(UsageError, match="no such id"):
        DescribeConfigs([resource], include_synonyms=False, include_documentation=False)


@pytest.mark.parametrize("replica", [None, "t", ("t", 0, 1), TopicPartitionReplica("t", 0, None)])  # type: ignore[arg-type]
def test_a_replica_is_one(replica: Any) -> None:
    with pytest.raises(TypeError):
        DescribeReplicaLogDirs([replica])
    with pytest.raises(TypeError):
        AlterReplicaLogDirs({replica: "/data"})


def test_what_is_new_is_described_by_its_own_type() -> None:
    with pytest.raises(TypeError, match="a NewTopic says"):
        create_topics(["t"])
    with pytest.raises(TypeError, match="is no text"):
        create_topics([NewTopic(None)])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a FeatureUpdate says"):
        UpdateFeatures({"metadata.version": 5}, validate_only=False)  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="is no text"):
        create_partitions({5: NewPartitions(3)})


def test_one_state_is_not_taken_for_its_letters() -> None:
    with pytest.raises(TypeError, match="not the string 'Ongoing'"):
        list_transactions("Ongoing")
    with pytest.raises(TypeError, match="not the string 'Stable'"):
        ListGroups(states="Stable")  # type: ignore[arg-type]


def test_the_partition_of_a_marker_is_one() -> None:
    with pytest.raises(TypeError):
        AbortTransaction("t", producer_id=1, producer_epoch=1, coordinator_epoch=1)  # type: ignore[arg-type]


def test_what_becomes_of_a_setting_is_one_of_four_things() -> None:
    resource = ConfigResource(ConfigResourceType.TOPIC, "t")
    for op in (9, "SET", None):
        change = AlterConfigOp("a", None, op)  # type: ignore[arg-type]
        with pytest.raises(UsageError, match="what becomes of 'a' cannot be"):
            IncrementalAlterConfigs({resource: [change]}, validate_only=False)


@pytest.mark.parametrize(
    "text",
    [
        "VZSqazQvXQo6XkhC-rQo9w==",
        "VZSqazQvXQo6XkhC-rQo9x",
        "VZSqazQvXQo6XkhC+rQo9w",
        "VZSqazQvXQ!o6XkhC-rQo9w",
        "A" * 22,
        "VZSqazQv",
        "",
    ],
    ids=["padded", "more bits", "another alphabet", "another letter", "no id", "short", "empty"],
)
def test_an_id_is_written_in_one_way(text: str) -> None:
    """Regression: the topic was deleted, and the call did not know it again in the answer."""
    with pytest.raises(UsageError, match="is no topic id"):
        DeleteTopics([text], by_id=True, retry_on_quota=True)


def test_an_id_is_taken_as_other_calls_return_it() -> None:
    assert DeleteTopics(["VZSqazQvXQo6XkhC-rQo9w"], by_id=True, retry_on_quota=True).items


CHOICES: dict[str, Maker] = {
    "isolation level": lambda one: ListOffsets({T0: OffsetSpec.LATEST}, isolation_level=one),
    "election": lambda one: ElectLeaders(one, [T0]),
    "state of groups": lambda one: ListGroups(states=[one]),
    "type of groups": lambda one: ListGroups(types=[one]),
    "type of resources": lambda one: ListConfigResources([one]),
    "resource": lambda one: DescribeConfigs(
        [ConfigResource(one, "t")], include_synonyms=False, include_documentation=False
    ),
    "change of a setting": lambda one: IncrementalAlterConfigs(
        {ConfigResource(ConfigResourceType.TOPIC, "t"): [AlterConfigOp("a", "b", one)]},
        validate_only=False,
    ),
    "upgrade": lambda one: UpdateFeatures({"f": FeatureUpdate(1, one)}, validate_only=False),
}


@pytest.mark.parametrize("value", [9, -9, "nine", None, True, 0.5, object()])
@pytest.mark.parametrize("make", CHOICES.values(), ids=CHOICES)
def test_a_choice_is_one_that_brokers_know(make: Maker, value: object) -> None:
    """Regression: some were sent, and the brokers answered what they liked."""
    with pytest.raises(UsageError):
        make(value)


def test_a_wrong_choice_is_told_the_right_ones() -> None:
    with pytest.raises(UsageError, match="cannot be 9: IsolationLevel has READ_UNCOMMITTED, "):
        ListOffsets({T0: OffsetSpec.LATEST}, isolation_level=9)  # type: ignore[arg-type]
