"""Operations that describe groups: an API for each protocol that members speak.

Only the coordinator knows which protocol a group uses. To an API of another protocol there is no
such group. Members of a classic group tell each other their subscriptions and assignments as bytes
that the coordinator does not read.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

from kafka_fast.control.admin.operation import Operation
from kafka_fast.control.admin.types.acls import operations_of
from kafka_fast.control.admin.types.groups.descriptions import (
    ClassicGroupDescription,
    ConsumerGroupDescription,
    MemberDescription,
    ShareGroupDescription,
)
from kafka_fast.control.admin.types.groups.listings import GroupState, GroupType
from kafka_fast.control.arguments import names_of
from kafka_fast.control.requests.call import AnswerSource
from kafka_fast.control.requests.meanings import Done, Meaning
from kafka_fast.control.requests.targets import CoordinatorKind, CoordinatorOfEach
from kafka_fast.errors import ErrorCode, ProtocolError
from kafka_fast.protocol.apis.groups import consumer_group_describe as newer
from kafka_fast.protocol.apis.groups import describe_groups as classic
from kafka_fast.protocol.apis.share_groups import share_group_describe as share
from kafka_fast.protocol.consumer import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from kafka_fast.protocol.schema import Request, decode_versioned
from kafka_fast.types import TopicPartition

GROUPS_PER_REQUEST = 100
"""More would make an answer that keeps the control thread from other work."""

CLASSIC_CONSUMERS = "consumer"
"""The protocol type of classic groups of consumers. Other types have other bytes."""

FIRST_CLASSIC_WITH_OPERATIONS = 3

A_NEWER_MEMBER = 1
"""The type of a member that speaks the consumer protocol; 0: the classic one, -1: not told."""

D = TypeVar("D")


class DescribeByCoordinators(Operation[str, D]):
    """What the operations that describe groups have in common. The items are the groups' ids."""

    noun = "group"
    permission = "DESCRIBE on the group"
    words: ClassVar = {ErrorCode.GROUP_ID_NOT_FOUND: "there is no such group"}

    def __init__(self, groups: Iterable[str], *, include_authorized_operations: bool) -> None:
        """Take which groups are described.

        Args:
            groups: their ids.
            include_authorized_operations: whether to ask what this client may do with them.
        """
        super().__init__(CoordinatorOfEach(CoordinatorKind.GROUP), names_of(groups))
        self._include_operations = include_authorized_operations

    def max_items(self, version: int) -> int:
        """Return how many groups one answer may describe."""
        return GROUPS_PER_REQUEST

    def build(self, items: Sequence[str], version: int) -> Request:
        """Ask for the groups."""
        return self.request_class(
            group_ids=list(items), include_authorized_operations=self._include_operations
        )

    def outcomes(
        self, answer: Any, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[D]]]:
        """Return each group, or why it is not described."""
        for group in answer.groups:
            if group.error_code:
                refusal = self.refusal(group.group_id, group.error_code, group.error_message)
                yield group.group_id, refusal
            else:
                yield group.group_id, Done(self.description_of(group, source.node_id))

    @abstractmethod
    def description_of(self, group: Any, coordinator: int) -> D:
        """Return a group as it is described.

        Args:
            group: the entry of the answer.
            coordinator: the id of the broker that has answered.
        """


# ---- classic groups ----


class DescribeClassicGroups(DescribeByCoordinators[ClassicGroupDescription]):
    """DescribeGroups: classic groups, of consumers or of others."""

    name = "describe_classic_groups"
    request_class = classic.DescribeGroupsRequest
    response_class = classic.DescribeGroupsResponse

    def build(self, items: Sequence[str], version: int) -> Request:
        """Ask for the groups."""
        request = classic.DescribeGroupsRequest(groups=list(items))
        if version >= FIRST_CLASSIC_WITH_OPERATIONS:
            request.include_authorized_operations = self._include_operations
        return request

    def outcomes(
        self, answer: classic.DescribeGroupsResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[ClassicGroupDescription]]]:
        """Return each group. Before Kafka 4.0, one that does not exist is a dead one."""
        for group in answer.groups:
            if not group.error_code and GroupState(group.group_state) is GroupState.DEAD:
                group.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        yield from super().outcomes(answer, items, source)

    def description_of(
        self, group: classic.DescribedGroup, coordinator: int
    ) -> ClassicGroupDescription:
        """Return a classic group."""
        are_consumers = group.protocol_type == CLASSIC_CONSUMERS
        return ClassicGroupDescription(
            group.group_id,
            GroupState(group.group_state),
            group.protocol_type,
            group.protocol_data,
            tuple(_classic_member(member, are_consumers) for member in group.members),
            coordinator,
            operations_of(group.authorized_operations),
        )


def _classic_member(member: classic.DescribedGroupMember, is_consumer: bool) -> MemberDescription:
    topics: frozenset[str] = frozenset()
    assignment: frozenset[TopicPartition] | None = None
    if is_consumer:
        topics = _classic_topics(member.member_metadata)
        assignment = _classic_assignment(member.member_assignment)
    return MemberDescription(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=assignment,
        instance_id=member.group_instance_id,
        subscribed_topics=topics,
        protocol_metadata=bytes(member.member_metadata),
        protocol_assignment=bytes(member.member_assignment),
    )


def _classic_topics(metadata: bytes) -> frozenset[str]:
    """Return what a member subscribes to; nothing if the group rebalances, or cannot be read."""
    if not metadata:
        return frozenset()
    try:
        return frozenset(decode_versioned(ConsumerProtocolSubscription, metadata).topics)
    except ProtocolError:
        return frozenset()


def _classic_assignment(assignment: bytes) -> frozenset[TopicPartition] | None:
    """Return what a member reads; None if another client wrote bytes that cannot be read.

    That one member's bytes are odd must not hide what the others read.
    """
    if not assignment:
        return frozenset()
    try:
        decoded = decode_versioned(ConsumerProtocolAssignment, assignment)
    except ProtocolError:
        return None
    return frozenset(
        TopicPartition(topic.topic, partition)
        for topic in decoded.assigned_partitions
        for partition in topic.partitions
    )


# ---- groups of consumers, and of those that share ----


class AssignedTopic(Protocol):
    """Partitions of a topic, as a member has them."""

    topic_name: str
    partitions: list[int]


def assigned(topics: Iterable[AssignedTopic]) -> frozenset[TopicPartition]:
    """Return the partitions that a member has."""
    return frozenset(
        TopicPartition(topic.topic_name, partition)
        for topic in topics
        for partition in topic.partitions
    )


class DescribeConsumerGroups(DescribeByCoordinators[ConsumerGroupDescription]):
    """ConsumerGroupDescribe: groups of KIP-848."""

    name = "describe_consumer_groups"
    permission = "DESCRIBE on the group, and on the topics that its members read"
    since = "3.7"
    request_class = newer.ConsumerGroupDescribeRequest
    response_class = newer.ConsumerGroupDescribeResponse

    def description_of(
        self, group: newer.DescribedGroup, coordinator: int
    ) -> ConsumerGroupDescription:
        """Return a group of consumers."""
        return ConsumerGroupDescription(
            group_id=group.group_id,
            type=GroupType.CONSUMER,
            state=GroupState(group.group_state),
            assignor=group.assignor_name,
            members=tuple(_newer_member(member) for member in group.members),
            coordinator=coordinator,
            group_epoch=group.group_epoch,
            assignment_epoch=group.assignment_epoch,
            authorized_operations=operations_of(group.authorized_operations),
        )


def _newer_member(member: newer.Member) -> MemberDescription:
    return MemberDescription(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=assigned(member.assignment.topic_partitions),
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        subscribed_topics=frozenset(member.subscribed_topic_names),
        subscribed_regex=member.subscribed_topic_regex or None,
        target_assignment=assigned(member.target_assignment.topic_partitions),
        member_epoch=member.member_epoch,
        upgraded=None if member.member_type < 0 else member.member_type == A_NEWER_MEMBER,
    )


class DescribeShareGroups(DescribeByCoordinators[ShareGroupDescription]):
    """ShareGroupDescribe: groups of KIP-932."""

    name = "describe_share_groups"
    permission = "DESCRIBE on the group, and on the topics that its members read"
    since = "4.1"
    request_class = share.ShareGroupDescribeRequest
    response_class = share.ShareGroupDescribeResponse

    def description_of(
        self, group: share.DescribedGroup, coordinator: int
    ) -> ShareGroupDescription:
        """Return a share group."""
        return ShareGroupDescription(
            group_id=group.group_id,
            state=GroupState(group.group_state),
            assignor=group.assignor_name,
            members=tuple(_share_member(member) for member in group.members),
            coordinator=coordinator,
            group_epoch=group.group_epoch,
            assignment_epoch=group.assignment_epoch,
            authorized_operations=operations_of(group.authorized_operations),
        )


def _share_member(member: share.Member) -> MemberDescription:
    return MemberDescription(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=assigned(member.assignment.topic_partitions),
        rack_id=member.rack_id,
        subscribed_topics=frozenset(member.subscribed_topic_names),
        member_epoch=member.member_epoch,
    )
