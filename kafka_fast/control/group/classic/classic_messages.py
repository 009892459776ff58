"""The messages of the classic protocol: requests are built, and answers read.

A request whose form depends on the version is built for the coordinator's link. Another member's
metadata are bytes of another client. If they cannot be read, the error names that member, and there
is no assignment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kafka_fast.config import ConsumerSettings
from kafka_fast.control.connections.links import Link
from kafka_fast.control.group.assignors import (
    Assignor,
    GroupMember,
)
from kafka_fast.control.group.assignors.guard import calling
from kafka_fast.control.group.member import GroupIdentity
from kafka_fast.control.metadata.metadata import by_topic
from kafka_fast.errors import MalformedError
from kafka_fast.protocol.apis.groups.heartbeat import HeartbeatRequest
from kafka_fast.protocol.apis.groups.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kafka_fast.protocol.apis.groups.leave_group import LeaveGroupRequest, MemberIdentity
from kafka_fast.protocol.apis.groups.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kafka_fast.protocol.consumer import (
    ConsumerProtocolAssignment,
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from kafka_fast.protocol.schema import decode_versioned, encode_versioned
from kafka_fast.types import TopicPartition
from kafka_fast.values import Value

PROTOCOL_TYPE = "consumer"
SUBSCRIPTION_VERSION = 3
ASSIGNMENT_VERSION = 3
FIRST_LEAVE_WITH_MEMBERS = 3


# ---- requests ----


class MemberState(Value):
    """What a member tells its assignors, and the group, when it joins."""

    topics: frozenset[str]
    """What it subscribes to."""
    owned: frozenset[TopicPartition]
    """What it keeps over the rebalance."""
    generation: int
    """Its last one."""


def describe_member(
    state: MemberState, rack_id: str | None, assignors: Iterable[Assignor]
) -> list[JoinGroupRequestProtocol]:
    """Return this member's metadata for each assignor. Any thread.

    Raises:
        AssignorError: a user's assignor has failed.
    """
    subscription = ConsumerProtocolSubscription(
        topics=sorted(state.topics),
        owned_partitions=[
            ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in by_topic(sorted(state.owned)).items()
        ],
        generation_id=state.generation,
        rack_id=rack_id,
    )
    protocols = []
    for assignor in assignors:
        with calling(assignor.name):
            subscription.user_data = assignor.user_data(state.topics)
            metadata = encode_versioned(subscription, SUBSCRIPTION_VERSION)
        protocols.append(JoinGroupRequestProtocol(name=assignor.name, metadata=metadata))
    return protocols


def join_request(
    group_id: str,
    settings: ConsumerSettings,
    identity: GroupIdentity,
    protocols: list[JoinGroupRequestProtocol],
    reason: str,
) -> JoinGroupRequest:
    """Return the request to join, with this member's metadata for each assignor."""
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=settings.session_timeout_ms,
        rebalance_timeout_ms=settings.max_poll_interval_ms,
        member_id=identity.member_id,
        group_instance_id=identity.instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=protocols,
        reason=reason,
    )


def encode_assignments(
    assignments: Mapping[str, Sequence[TopicPartition]],
) -> list[SyncGroupRequestAssignment]:
    """Return what each member gets, by member id, as the leader's SyncGroup has it."""
    return [
        SyncGroupRequestAssignment(
            member_id=member_id,
            assignment=encode_versioned(_assignment(partitions), ASSIGNMENT_VERSION),
        )
        for member_id, partitions in assignments.items()
    ]


def sync_request(
    group_id: str,
    identity: GroupIdentity,
    protocol_name: str,
    assignments: Sequence[SyncGroupRequestAssignment],
) -> SyncGroupRequest:
    """Return the request for this member's assignment. The leader's has all assignments."""
    return SyncGroupRequest(
        group_id=group_id,
        generation_id=identity.generation,
        member_id=identity.member_id,
        group_instance_id=identity.instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocol_name=protocol_name,
        assignments=list(assignments),
    )


def _assignment(partitions: Iterable[TopicPartition]) -> ConsumerProtocolAssignment:
    return ConsumerProtocolAssignment(
        assigned_partitions=[
            ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=numbers)
            for topic, numbers in by_topic(sorted(partitions)).items()
        ]
    )


def heartbeat_request(group_id: str, identity: GroupIdentity) -> HeartbeatRequest:
    """Return a heartbeat of a member in its generation."""
    return HeartbeatRequest(
        group_id=group_id,
        generation_id=identity.generation,
        member_id=identity.member_id,
        group_instance_id=identity.instance_id,
    )


def leave_request(group_id: str, member_id: str, reason: str, link: Link) -> LeaveGroupRequest:
    """Return the request of a dynamic member to leave, for the version of the link."""
    if link.versions.pick(LeaveGroupRequest) < FIRST_LEAVE_WITH_MEMBERS:
        return LeaveGroupRequest(group_id=group_id, member_id=member_id)
    member = MemberIdentity(member_id=member_id, reason=reason)
    return LeaveGroupRequest(group_id=group_id, members=[member])


# ---- answers ----


def read_members(response: JoinGroupResponse) -> list[GroupMember]:
    """Return the members that a JoinGroup answer to the leader names, ordered by id.

    Raises:
        MalformedError: a member's metadata do not follow the consumer protocol.
    """
    members = []
    for joined in response.members:
        try:
            subscription = decode_versioned(ConsumerProtocolSubscription, joined.metadata)
        except MalformedError as error:
            raise MalformedError(f"metadata of member {joined.member_id!r}: {error}") from error
        members.append(
            GroupMember(
                joined.member_id,
                frozenset(subscription.topics),
                joined.group_instance_id,
                frozenset(
                    TopicPartition(owned.topic, partition)
                    for owned in subscription.owned_partitions
                    for partition in owned.partitions
                ),
                subscription.generation_id,
                subscription.rack_id,
                subscription.user_data,
            )
        )
    return sorted(members, key=lambda member: member.member_id)


def read_assignment(data: bytes) -> tuple[frozenset[TopicPartition], bytes | None]:
    """Return the partitions, and the user data of the leader's assignor.

    An answer without any bytes is an empty assignment. A member that the leader left out gets it.

    Raises:
        MalformedError: the bytes are not an assignment.
    """
    if not data:
        return frozenset(), None
    assignment = decode_versioned(ConsumerProtocolAssignment, data)
    return (
        frozenset(
            TopicPartition(assigned.topic, partition)
            for assigned in assignment.assigned_partitions
            for partition in assigned.partitions
        ),
        assignment.user_data,
    )
