"""Operations on groups: what is asked in each version, and what answers mean."""

from __future__ import annotations

import pytest

from kafka_fast.admin import (
    AclOperation,
    GroupListing,
    GroupState,
    GroupType,
    MemberDescription,
    StreamsTask,
    StreamsTasks,
    StreamsTopologyStatus,
)
from kafka_fast.control.admin.operations.groups.descriptions import (
    DescribeByCoordinators,
    DescribeClassicGroups,
    DescribeConsumerGroups,
    DescribeShareGroups,
)
from kafka_fast.control.admin.operations.groups.listings import (
    DeleteGroups,
    ListGroups,
    RemoveMembers,
)
from kafka_fast.control.admin.operations.groups.streams import DescribeStreamsGroups
from kafka_fast.control.requests.call import AnswerSource
from kafka_fast.control.requests.meanings import Done, FindAgain, Refused, Retry
from kafka_fast.errors import (
    ErrorCode,
    GroupAuthorizationFailed,
    GroupIdNotFound,
    NonEmptyGroup,
    UnknownMemberId,
    UnsupportedVersionError,
    UsageError,
)
from kafka_fast.protocol.apis.groups import consumer_group_describe as newer
from kafka_fast.protocol.apis.groups.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kafka_fast.protocol.apis.groups.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafka_fast.protocol.apis.groups.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberResponse,
)
from kafka_fast.protocol.apis.groups.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from kafka_fast.protocol.apis.share_groups import share_group_describe as share
from kafka_fast.protocol.apis.streams_groups import streams_group_describe as streams
from kafka_fast.protocol.consumer import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
)
from kafka_fast.protocol.schema import encode_versioned
from kafka_fast.types import TopicPartition

SOURCE = AnswerSource(6, "node 2", 0.0, node_id=2)
BITS = 1 << AclOperation.READ | 1 << AclOperation.DESCRIBE
OPERATIONS = frozenset({AclOperation.READ, AclOperation.DESCRIBE})


# ---- listings ----


@pytest.mark.parametrize("version", range(6))
def test_groups_are_listed_in_each_version(version: int) -> None:
    states = [GroupState.STABLE] if version >= 4 else []
    types = [GroupType.SHARE] if version >= 5 else []
    operation = ListGroups(states=states, types=types)
    assert operation.unsupported(1, version) is None
    sent = operation.build([1], version).encode(version)
    request = ListGroupsRequest.decode(sent, version)
    assert request.states_filter == (["Stable"] if version >= 4 else [])
    assert request.types_filter == (["Share"] if version >= 5 else [])


def test_old_brokers_cannot_filter() -> None:
    error = ListGroups(states=[GroupState.EMPTY]).unsupported(1, 3)
    assert isinstance(error, UnsupportedVersionError)
    assert str(error) == "ListGroups of node 1: groups are listed by their states since Kafka 2.6"
    error = ListGroups(types=[GroupType.CLASSIC]).unsupported(1, 4)
    assert isinstance(error, UnsupportedVersionError)
    assert "since Kafka 3.8" in str(error)


def test_nothing_unknown_is_asked_for() -> None:
    with pytest.raises(UsageError, match="a state of groups cannot be <GroupState"):
        ListGroups(states=[GroupState.UNKNOWN])
    with pytest.raises(UsageError, match="a type of groups cannot be <GroupType"):
        ListGroups(types=[GroupType.UNKNOWN])


def test_listings_are_read() -> None:
    answer = ListGroupsResponse(
        groups=[
            ListedGroup(
                group_id="a", protocol_type="consumer", group_state="Stable", group_type="classic"
            ),
            ListedGroup(group_id="b", protocol_type="consumer"),
            ListedGroup(
                group_id="c", protocol_type="x", group_state="Flying", group_type="Telepathic"
            ),
            ListedGroup(group_id="d", protocol_type="", group_state="Empty", group_type="Classic"),
        ]
    )
    ((node, meaning),) = ListGroups().outcomes(answer, [2], SOURCE)
    assert node == 2
    assert isinstance(meaning, Done)
    assert meaning.value == [
        GroupListing("a", GroupType.CLASSIC, GroupState.STABLE, "consumer"),
        GroupListing("b", GroupType.UNKNOWN, GroupState.UNKNOWN, "consumer"),
        GroupListing("c", GroupType.UNKNOWN, GroupState.UNKNOWN, "x"),
        GroupListing("d", GroupType.CLASSIC, GroupState.EMPTY, ""),
    ]
    assert [one.is_simple for one in meaning.value] == [False, False, False, True]
    ((_, meaning),) = ListGroups(protocol_types=["x"]).outcomes(answer, [2], SOURCE)
    assert isinstance(meaning, Done)
    assert [one.group_id for one in meaning.value] == ["c"]


def test_a_node_that_loads_is_asked_again() -> None:
    answer = ListGroupsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    ((_, meaning),) = ListGroups().outcomes(answer, [2], SOURCE)
    assert isinstance(meaning, Retry)


# ---- descriptions ----


@pytest.mark.parametrize(
    "kind", [DescribeConsumerGroups, DescribeShareGroups, DescribeStreamsGroups]
)
def test_groups_are_described_in_each_version(kind: type[DescribeByCoordinators[object]]) -> None:
    operation = kind(["a", "b", "a"], include_authorized_operations=True)
    assert operation.items == ["a", "b"]
    versions = kind.request_class.versions
    for version in range(versions.low, versions.high + 1):
        sent = operation.build(["a", "b"], version).encode(version)
        request = kind.request_class.decode(sent, version)
        assert request.group_ids == ["a", "b"]  # type: ignore[attr-defined]
        assert request.include_authorized_operations  # type: ignore[attr-defined]


@pytest.mark.parametrize("version", range(7))
def test_classic_groups_are_described_in_each_version(version: int) -> None:
    operation = DescribeClassicGroups(["a"], include_authorized_operations=True)
    sent = operation.build(["a"], version).encode(version)
    request = DescribeGroupsRequest.decode(sent, version)
    assert request.groups == ["a"]
    assert request.include_authorized_operations == (version >= 3)


def test_one_id_is_no_list_of_ids() -> None:
    with pytest.raises(TypeError, match="not the string 'orders'"):
        DescribeClassicGroups("orders", include_authorized_operations=False)
    with pytest.raises(TypeError, match="not the string 'orders'"):
        DeleteGroups("orders")


def test_a_classic_group_is_read() -> None:
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=[ConsumerProtocolAssignmentTopicPartition(topic="t", partitions=[0, 2])]
    )
    subscription = ConsumerProtocolSubscription(topics=["t", "u"])
    metadata = encode_versioned(subscription, 1)
    assigned = encode_versioned(assignment, 1)
    answer = DescribeGroupsResponse(
        groups=[
            DescribedGroup(
                group_id="a",
                group_state="Stable",
                protocol_type="consumer",
                protocol_data="range",
                authorized_operations=BITS,
                members=[
                    DescribedGroupMember(
                        member_id="m-1",
                        group_instance_id="i",
                        client_id="c",
                        client_host="/127.0.0.1",
                        member_metadata=metadata,
                        member_assignment=assigned,
                    ),
                    DescribedGroupMember(member_id="m-2", member_assignment=b"\xff"),
                    DescribedGroupMember(member_id="m-3"),
                ],
            )
        ]
    )
    operation = DescribeClassicGroups(["a"], include_authorized_operations=True)
    ((group_id, meaning),) = operation.outcomes(answer, ["a"], SOURCE)
    assert group_id == "a"
    assert isinstance(meaning, Done)
    group = meaning.value
    assert (group.state, group.protocol_type, group.protocol) == (
        GroupState.STABLE,
        "consumer",
        "range",
    )
    assert (group.coordinator, group.authorized_operations) == (2, OPERATIONS)
    assert not group.is_simple
    first, odd, new = group.members
    assert first == MemberDescription(
        "m-1",
        "c",
        "/127.0.0.1",
        frozenset({TopicPartition("t", 0), TopicPartition("t", 2)}),
        instance_id="i",
        subscribed_topics=frozenset({"t", "u"}),
        protocol_metadata=metadata,
        protocol_assignment=assigned,
    )
    assert (odd.assignment, odd.protocol_assignment) == (None, b"\xff")
    assert (new.assignment, new.subscribed_topics) == (frozenset(), frozenset())


def test_bytes_of_other_kinds_of_members_are_not_read() -> None:
    members = [DescribedGroupMember(member_id="w", member_assignment=b"\x00\x01\x00")]
    answer = DescribeGroupsResponse(
        groups=[DescribedGroup(group_id="a", protocol_type="connect", members=members)]
    )
    operation = DescribeClassicGroups(["a"], include_authorized_operations=False)
    ((_, meaning),) = operation.outcomes(answer, ["a"], SOURCE)
    assert isinstance(meaning, Done)
    assert meaning.value.authorized_operations is None
    (member,) = meaning.value.members
    assert (member.assignment, member.protocol_assignment) == (None, b"\x00\x01\x00")


def test_a_dead_classic_group_does_not_exist() -> None:
    answer = DescribeGroupsResponse(
        groups=[
            DescribedGroup(group_id="a", group_state="Dead"),
            DescribedGroup(group_id="b", error_code=ErrorCode.NOT_COORDINATOR),
            DescribedGroup(group_id="c", error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED),
        ]
    )
    operation = DescribeClassicGroups(["abc"], include_authorized_operations=False)
    outcomes = dict(operation.outcomes(answer, ["a", "b", "c"], SOURCE))
    dead, moved, denied = outcomes["a"], outcomes["b"], outcomes["c"]
    assert isinstance(dead, Refused)
    assert isinstance(dead.error, GroupIdNotFound)
    assert str(dead.error).endswith("DescribeGroups of group 'a': there is no such group")
    assert isinstance(moved, FindAgain)
    assert isinstance(denied, Refused)
    assert isinstance(denied.error, GroupAuthorizationFailed)
    assert "(needs DESCRIBE on the group)" in str(denied.error)


def test_a_consumer_group_is_read() -> None:
    def assignment(*partitions: int) -> newer.Assignment:
        return newer.Assignment(
            topic_partitions=[newer.TopicPartitions(topic_name="t", partitions=[*partitions])]
        )

    members = [
        newer.Member(
            member_id="m",
            rack_id="r",
            member_epoch=7,
            client_id="c",
            client_host="/h",
            subscribed_topic_names=["t"],
            subscribed_topic_regex="t.*",
            assignment=assignment(0),
            target_assignment=assignment(0, 1),
            member_type=member_type,
        )
        for member_type in (-1, 0, 1)
    ]
    answer = newer.ConsumerGroupDescribeResponse(
        groups=[
            newer.DescribedGroup(
                group_id="a",
                group_state="Reconciling",
                group_epoch=8,
                assignment_epoch=7,
                assignor_name="uniform",
                members=members,
                authorized_operations=BITS,
            ),
            newer.DescribedGroup(
                group_id="b", error_code=ErrorCode.GROUP_ID_NOT_FOUND, error_message="not found"
            ),
        ]
    )
    operation = DescribeConsumerGroups(["a", "b"], include_authorized_operations=True)
    outcomes = dict(operation.outcomes(answer, ["a", "b"], SOURCE))
    told, absent = outcomes["a"], outcomes["b"]
    assert isinstance(told, Done)
    group = told.value
    assert (group.type, group.state) == (GroupType.CONSUMER, GroupState.RECONCILING)
    assert (group.assignor, group.group_epoch, group.assignment_epoch) == ("uniform", 8, 7)
    assert (group.coordinator, group.is_simple) == (2, False)
    assert [one.upgraded for one in group.members] == [None, False, True]
    member = group.members[0]
    assert (member.assignment, member.member_epoch) == (frozenset({TopicPartition("t", 0)}), 7)
    assert member.target_assignment == {TopicPartition("t", 0), TopicPartition("t", 1)}
    assert (member.rack_id, member.subscribed_regex) == ("r", "t.*")
    assert isinstance(absent, Refused)
    assert str(absent.error).endswith("ConsumerGroupDescribe of group 'b': not found")


def test_a_share_group_is_read() -> None:
    assignment = share.Assignment(
        topic_partitions=[share.TopicPartitions(topic_name="t", partitions=[4])]
    )
    member = share.Member(
        member_id="m", member_epoch=3, subscribed_topic_names=["t"], assignment=assignment
    )
    answer = share.ShareGroupDescribeResponse(
        groups=[
            share.DescribedGroup(
                group_id="a",
                group_state="Stable",
                group_epoch=3,
                assignment_epoch=3,
                assignor_name="simple",
                members=[member],
            )
        ]
    )
    operation = DescribeShareGroups(["a"], include_authorized_operations=False)
    ((_, meaning),) = operation.outcomes(answer, ["a"], SOURCE)
    assert isinstance(meaning, Done)
    group = meaning.value
    assert (group.state, group.assignor, group.coordinator) == (GroupState.STABLE, "simple", 2)
    assert group.authorized_operations is None
    assert group.members[0].assignment == {TopicPartition("t", 4)}
    assert group.members[0].member_epoch == 3


def test_a_topology_is_read_in_full() -> None:
    """The answer has only successors; a node of a newer broker is of an unknown type."""
    nodes = [
        streams.TopologyDescriptionNode(
            name="source", node_type=1, source_topics=["in"], successors=["count"]
        ),
        streams.TopologyDescriptionNode(
            name="count", node_type=2, stores=["counts"], successors=["sink", "elsewhere"]
        ),
        streams.TopologyDescriptionNode(name="sink", node_type=3, sink_topic="out"),
        streams.TopologyDescriptionNode(name="new", node_type=9),
    ]
    source, processor = nodes[:2]
    told = streams.TopologyDescription(
        subtopologies=[streams.TopologyDescriptionSubtopology(subtopology_id="0", nodes=nodes)],
        global_stores=[streams.TopologyDescriptionGlobalStore(source=source, processor=processor)],
    )
    group = streams.DescribedGroup(
        group_id="g", group_state="Empty", topology_description=told, topology_description_status=3
    )
    operation = DescribeStreamsGroups(
        ["g"], include_authorized_operations=False, include_topology_description=True
    )
    described = operation.description_of(group, 1)
    assert described.topology_description_status is StreamsTopologyStatus.AVAILABLE
    assert described.topology_description is not None
    (part,) = described.topology_description.subtopologies
    assert [(one.name, one.type.name, one.predecessors) for one in part.nodes] == [
        ("source", "SOURCE", frozenset()),
        ("count", "PROCESSOR", {"source"}),
        ("sink", "SINK", {"count"}),
        ("new", "UNKNOWN", frozenset()),
    ]
    assert part.nodes[0].source_topics == {"in"}
    assert (part.nodes[1].stores, part.nodes[2].sink_topic) == ({"counts"}, "out")
    (store,) = described.topology_description.global_stores
    assert (store.source.successors, store.processor.predecessors) == ({"count"}, {"source"})


def test_topologies_need_brokers_that_keep_them() -> None:
    def operation(*, include_topology_description: bool) -> DescribeStreamsGroups:
        return DescribeStreamsGroups(
            ["g"],
            include_authorized_operations=False,
            include_topology_description=include_topology_description,
        )

    asking, plain = (operation(include_topology_description=one) for one in (True, False))
    error = asking.unsupported("g", 0)
    assert isinstance(error, UnsupportedVersionError)
    assert "since Kafka 4.4" in str(error)
    assert asking.unsupported("g", 1) is plain.unsupported("g", 0) is None
    request = asking.build(["g"], 1)
    assert isinstance(request, streams.StreamsGroupDescribeRequest)
    assert request.include_topology_description
    assert not plain.build(["g"], 1).include_topology_description  # type: ignore[attr-defined]


def test_a_streams_group_is_read() -> None:
    topic = streams.TopicInfo(
        name="log",
        partitions=2,
        replication_factor=1,
        topic_configs=[streams.KeyValue(key="cleanup.policy", value="compact")],
    )
    tasks = streams.Assignment(
        active_tasks=[streams.TaskIds(subtopology_id="0", partitions=[0, 1])],
        standby_tasks=[streams.TaskIds(subtopology_id="1", partitions=[3])],
    )
    member = streams.Member(
        member_id="m",
        member_epoch=5,
        user_endpoint=streams.Endpoint(host="h", port=8080),
        client_tags=[streams.KeyValue(key="zone", value="z")],
        task_offsets=[streams.TaskOffset(subtopology_id="0", partition=1, offset=9)],
        assignment=tasks,
    )
    part = streams.Subtopology(
        subtopology_id="0", source_topics=["in"], state_changelog_topics=[topic]
    )
    answer = streams.StreamsGroupDescribeResponse(
        groups=[
            streams.DescribedGroup(
                group_id="a",
                group_state="NotReady",
                topology=streams.Topology(epoch=1, subtopologies=[part]),
                members=[member],
            ),
            streams.DescribedGroup(group_id="b", group_state="Empty"),
        ]
    )
    operation = DescribeStreamsGroups(["a", "b"], include_authorized_operations=False)
    outcomes = dict(operation.outcomes(answer, ["a", "b"], SOURCE))
    told, bare = outcomes["a"], outcomes["b"]
    assert isinstance(told, Done)
    assert (told.value.state, told.value.topology_epoch) == (GroupState.NOT_READY, 1)
    assert told.value.subtopologies is not None
    assert told.value.subtopologies[0].state_changelog_topics[0].configs == {
        "cleanup.policy": "compact"
    }
    (described,) = told.value.members
    assert described.endpoint == ("h", 8080)
    assert described.client_tags == {"zone": "z"}
    assert described.task_offsets == {StreamsTask("0", 1): 9}
    assert described.assignment == StreamsTasks(
        frozenset({StreamsTask("0", 0), StreamsTask("0", 1)}),
        frozenset({StreamsTask("1", 3)}),
        frozenset(),
    )
    assert isinstance(bare, Done)
    assert (bare.value.topology_epoch, bare.value.subtopologies) == (None, None)


# ---- groups and members that go ----


@pytest.mark.parametrize("version", range(4))
def test_groups_are_deleted_in_each_version(version: int) -> None:
    sent = DeleteGroups(["a", "b"]).build(["a", "b"], version).encode(version)
    assert DeleteGroupsRequest.decode(sent, version).groups_names == ["a", "b"]


def test_what_is_deleted_is_told_apart() -> None:
    answer = DeleteGroupsResponse(
        results=[
            DeletableGroupResult(group_id="a"),
            DeletableGroupResult(group_id="b", error_code=ErrorCode.NON_EMPTY_GROUP),
        ]
    )
    outcomes = dict(DeleteGroups(["a", "b"]).outcomes(answer, ["a", "b"], SOURCE))
    assert outcomes["a"] == Done(None)
    refused = outcomes["b"]
    assert isinstance(refused, Refused)
    assert isinstance(refused.error, NonEmptyGroup)
    assert str(refused.error).endswith("DeleteGroups of group 'b': the group has members")


@pytest.mark.parametrize("version", range(3, 6))
def test_members_are_removed_in_each_version(version: int) -> None:
    operation = RemoveMembers("g", member_ids=["m"], instance_ids=["i"], reason="x" * 300)
    assert operation.items == ["m", "i"]
    assert operation.unsupported("m", version) is None
    sent = operation.build(["m", "i"], version).encode(version)
    request = LeaveGroupRequest.decode(sent, version)
    assert request.group_id == "g"
    assert [(one.member_id, one.group_instance_id) for one in request.members] == [
        ("m", None),
        ("", "i"),
    ]
    reason = request.members[0].reason
    if version >= 5:
        assert reason is not None
        assert reason.startswith("removed by an administrator: xxx")
        assert len(reason) == 255
    else:
        assert reason is None


def test_old_brokers_remove_no_members() -> None:
    error = RemoveMembers("g", member_ids=["m"]).unsupported("m", 2)
    assert isinstance(error, UnsupportedVersionError)
    assert "LeaveGroup of member 'm' of group 'g': " in str(error)


def test_an_id_is_of_one_kind() -> None:
    with pytest.raises(UsageError, match="one of member_ids, and one of instance_ids"):
        RemoveMembers("g", member_ids=["m"], instance_ids=["m"])


def test_removed_members_are_told_apart() -> None:
    operation = RemoveMembers("g", member_ids=["m", "n"], instance_ids=["i"])
    answer = LeaveGroupResponse(
        members=[
            MemberResponse(member_id="m", group_instance_id=None),
            MemberResponse(member_id="", group_instance_id="i"),
            MemberResponse(
                member_id="n", group_instance_id=None, error_code=ErrorCode.UNKNOWN_MEMBER_ID
            ),
        ]
    )
    outcomes = dict(operation.outcomes(answer, ["m", "n", "i"], SOURCE))
    assert (outcomes["m"], outcomes["i"]) == (Done(None), Done(None))
    refused = outcomes["n"]
    assert isinstance(refused, Refused)
    assert isinstance(refused.error, UnknownMemberId)
    answer = LeaveGroupResponse(error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    outcomes = dict(operation.outcomes(answer, ["m", "n"], SOURCE))
    assert list(outcomes) == ["m", "n"]
    assert all(isinstance(one, Refused) for one in outcomes.values())
