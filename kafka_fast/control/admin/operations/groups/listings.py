"""Operations on whole groups: list and delete them, and remove members."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from kafka_fast.control.admin.operation import Operation
from kafka_fast.control.admin.types.groups.listings import GroupListing, GroupState, GroupType
from kafka_fast.control.arguments import checked_choice, checked_name, names_of, several
from kafka_fast.control.requests.call import AnswerSource
from kafka_fast.control.requests.meanings import Done, Meaning
from kafka_fast.control.requests.targets import (
    AllNodes,
    Coordinator,
    CoordinatorKind,
    CoordinatorOfEach,
)
from kafka_fast.errors import ErrorCode, KafkaError, UnsupportedVersionError, UsageError
from kafka_fast.protocol.apis.groups.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kafka_fast.protocol.apis.groups.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from kafka_fast.protocol.apis.groups.list_groups import ListGroupsRequest, ListGroupsResponse

FIRST_LIST_WITH_STATES = 4
FIRST_LIST_WITH_TYPES = 5
FIRST_LEAVE_WITH_MEMBERS = 3

LONGEST_REASON = 255
"""Characters of a reason that brokers take."""


class ListGroups(Operation[int, list[GroupListing]]):
    """ListGroups: each broker lists the groups that it coordinates."""

    name = "list_groups"
    noun = "node"
    permission = "DESCRIBE on the group, or on the cluster"
    request_class = ListGroupsRequest
    response_class = ListGroupsResponse

    def __init__(
        self,
        *,
        states: Iterable[GroupState] = (),
        types: Iterable[GroupType] = (),
        protocol_types: Iterable[str] = (),
    ) -> None:
        """Take which groups are listed; nothing of a kind means all of it.

        Args:
            states: what they are doing.
            types: which protocol their members speak.
            protocol_types: what their members are. Brokers do not filter by that.

        Raises:
            UsageError: a state or a type is none.
        """
        super().__init__(AllNodes(), None)
        self._states = [
            checked_choice(GroupState, state, "a state of groups")
            for state in several(states, "states")
        ]
        self._types = [
            checked_choice(GroupType, kind, "a type of groups") for kind in several(types, "types")
        ]
        self._protocol_types = frozenset(names_of(protocol_types, "protocol_types"))

    def unsupported(self, item: int, version: int) -> KafkaError | None:
        """Refuse filters that a broker is too old for."""
        if self._states and version < FIRST_LIST_WITH_STATES:
            return UnsupportedVersionError(
                f"{self.describe(item)}: groups are listed by their states since Kafka 2.6"
            )
        if self._types and version < FIRST_LIST_WITH_TYPES:
            return UnsupportedVersionError(
                f"{self.describe(item)}: groups are listed by their types since Kafka 3.8"
            )
        return None

    def build(self, items: Sequence[int], version: int) -> ListGroupsRequest:
        """Ask for the groups."""
        return ListGroupsRequest(
            states_filter=[state.value for state in self._states],
            types_filter=[kind.value for kind in self._types],
        )

    def outcomes(
        self, answer: ListGroupsResponse, items: Sequence[int], source: AnswerSource
    ) -> Iterator[tuple[int, Meaning[list[GroupListing]]]]:
        """Return the groups of the node."""
        listings = [
            GroupListing(
                group.group_id,
                GroupType(group.group_type),
                GroupState(group.group_state),
                group.protocol_type,
            )
            for group in answer.groups
            if not self._protocol_types or group.protocol_type in self._protocol_types
        ]
        for item in items:
            if answer.error_code:
                yield item, self.refusal(item, answer.error_code)
            else:
                yield item, Done(listings)


class DeleteGroups(Operation[str, None]):
    """DeleteGroups, of any type."""

    name = "delete_groups"
    noun = "group"
    permission = "DELETE on the group"
    explained: ClassVar = {
        ErrorCode.GROUP_ID_NOT_FOUND: "an earlier try, of which no answer came, may have deleted it"
    }
    request_class = DeleteGroupsRequest
    response_class = DeleteGroupsResponse

    def __init__(self, groups: Iterable[str]) -> None:
        """Take the ids of the groups."""
        super().__init__(CoordinatorOfEach(CoordinatorKind.GROUP), names_of(groups))

    def build(self, items: Sequence[str], version: int) -> DeleteGroupsRequest:
        """Ask for the end of the groups."""
        return DeleteGroupsRequest(groups_names=list(items))

    def outcomes(
        self, answer: DeleteGroupsResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[None]]]:
        """Return which groups were deleted."""
        for group in answer.results:
            group_id, code = group.group_id, group.error_code
            yield group_id, self.done_or_refusal(group_id, code, group.error_message)


class RemoveMembers(Operation[str, None]):
    """LeaveGroup, for members that do not leave by themselves. The items are their ids."""

    name = "remove_members_from_consumer_group"
    permission = "READ on the group"
    since = "2.4"
    words: ClassVar = {
        ErrorCode.UNKNOWN_MEMBER_ID: "the group has no such member, or the broker is too "
        "old to remove one that speaks the consumer protocol (KIP-848)"
    }
    explained: ClassVar = {
        ErrorCode.UNKNOWN_MEMBER_ID: "an earlier try, of which no answer came, may have removed it"
    }
    request_class = LeaveGroupRequest
    response_class = LeaveGroupResponse

    def __init__(
        self,
        group_id: str,
        *,
        member_ids: Iterable[str] = (),
        instance_ids: Iterable[str] = (),
        reason: str | None = None,
    ) -> None:
        """Take the members.

        Args:
            group_id: their group.
            member_ids: members by the id that the coordinator gave to each.
            instance_ids: static members by their group.instance.id.
            reason: for the broker's log; None: that an administrator has removed them.

        Raises:
            UsageError: an id is of both kinds.
        """
        dynamic = names_of(member_ids, "member_ids")
        static = names_of(instance_ids, "instance_ids")
        self._instance_ids = frozenset(static)
        for member_id in dynamic:
            if member_id in self._instance_ids:
                raise UsageError(f"{member_id!r} is one of member_ids, and one of instance_ids")
        items = [*dynamic, *static]
        super().__init__(Coordinator(CoordinatorKind.GROUP, group_id), items)
        self.group_id = group_id
        """Their group."""
        self.reason = None if reason is None else checked_name(reason, "the reason")
        """Why they are removed; None: no more is said than that an administrator has done it."""

    def describe(self, item: str) -> str:
        """Return the request, the member and its group."""
        return f"{self.api} of member {item!r} of group {self.group_id!r}"

    def unsupported(self, item: str, version: int) -> KafkaError | None:
        """Refuse brokers that let a member go only if it says so itself."""
        if version >= FIRST_LEAVE_WITH_MEMBERS:
            return None
        return UnsupportedVersionError(
            f"{self.describe(item)}: members can be removed since Kafka 2.4 (KIP-345)"
        )

    def build(self, items: Sequence[str], version: int) -> LeaveGroupRequest:
        """Ask for the members' leaving."""
        removed = "removed by an administrator"
        reason = removed if self.reason is None else f"{removed}: {self.reason}"[:LONGEST_REASON]
        members = [
            MemberIdentity(member_id="", group_instance_id=item, reason=reason)
            if item in self._instance_ids
            else MemberIdentity(member_id=item, reason=reason)
            for item in items
        ]
        return LeaveGroupRequest(group_id=self.group_id, members=members)

    def outcomes(
        self, answer: LeaveGroupResponse, items: Sequence[str], source: AnswerSource
    ) -> Iterator[tuple[str, Meaning[None]]]:
        """Return which members have left."""
        if answer.error_code:
            yield from self.all_refused(items, answer.error_code)
            return
        for member in answer.members:
            instance_id = member.group_instance_id
            is_static = instance_id is not None and instance_id in self._instance_ids
            item = instance_id if is_static and instance_id is not None else member.member_id
            yield item, self.done_or_refusal(item, member.error_code)
