"""The calls of `Admin` about groups and their members."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kafka_fast.admin.base import AdminCalls

if TYPE_CHECKING:
    from kafka_fast.admin.result import AdminResult, NodesResult
    from kafka_fast.control.admin.types.groups.descriptions import (
        ClassicGroupDescription,
        ConsumerGroupDescription,
        ShareGroupDescription,
    )
    from kafka_fast.control.admin.types.groups.listings import (
        GroupListing,
        GroupState,
        GroupType,
    )
    from kafka_fast.control.admin.types.groups.streams import StreamsGroupDescription


class GroupCalls(AdminCalls):
    """Groups of all types: list, describe and delete them; remove members."""

    def list_groups(
        self,
        *,
        states: Iterable[GroupState] = (),
        types: Iterable[GroupType] = (),
        protocol_types: Iterable[str] = (),
        timeout: float | None = None,
    ) -> NodesResult[str, GroupListing]:
        """Return the groups that this client may see, by id.

        ListGroups, of all brokers; needs DESCRIBE on the group or on the cluster. A filter by
        states needs Kafka 2.6, one by types 3.8: what an older broker would have listed is missing
        then, and `errors` has its id.

        Args:
            states: list only groups in these states; none: in any.
            types: list only groups of these types; none: of any.
            protocol_types: list only groups whose members are this: "consumer", "connect"; none:
                anything.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            UsageError: a state or a type is UNKNOWN.
        """
        from kafka_fast.admin.workflows import groups as workflows
        from kafka_fast.control.admin.operations.groups.listings import ListGroups

        operation = ListGroups(states=states, types=types, protocol_types=protocol_types)
        deadline = self._steps.begin_call(timeout)
        return self._core.driver.run(workflows.list_groups(self._steps, operation, deadline))

    def describe_consumer_groups(
        self,
        groups: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> AdminResult[str, ConsumerGroupDescription]:
        """Return groups of consumers, of either protocol, with their members.

        ConsumerGroupDescribe, and DescribeGroups for classic groups; needs DESCRIBE on the group,
        and on the topics that members read. A group that does not exist is a GroupIdNotFound, and
        one whose members are no consumers is a UsageError.

        Args:
            groups: their ids.
            include_authorized_operations: whether to ask what this client may do with them.
            timeout: seconds; None: default.api.timeout.ms.
        """
        from kafka_fast.admin.workflows import groups as workflows

        described = workflows.describe_consumer_groups(
            self._steps,
            groups,
            include_authorized_operations=include_authorized_operations,
            deadline=self._steps.begin_call(timeout),
        )
        return self._core.driver.run(described)

    def describe_classic_groups(
        self,
        groups: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> AdminResult[str, ClassicGroupDescription]:
        """Return classic groups, of consumers or of others, with their members.

        DescribeGroups; needs DESCRIBE on the group. A group that does not exist, or is of another
        type, is a GroupIdNotFound.

        Args:
            groups: their ids.
            include_authorized_operations: whether to ask what this client may do with them.
            timeout: seconds; None: default.api.timeout.ms.
        """
        from kafka_fast.control.admin.operations.groups.descriptions import DescribeClassicGroups

        operation = DescribeClassicGroups(
            groups, include_authorized_operations=include_authorized_operations
        )
        return self._core.driver.run(self._steps.run_items(operation, timeout))

    def describe_share_groups(
        self,
        groups: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> AdminResult[str, ShareGroupDescription]:
        """Return share groups with their members.

        ShareGroupDescribe; needs DESCRIBE on the group, and on the topics that members read. Since
        Kafka 4.1. A group that does not exist, or is of another type, is a GroupIdNotFound.

        Args:
            groups: their ids.
            include_authorized_operations: whether to ask what this client may do with them.
            timeout: seconds; None: default.api.timeout.ms.
        """
        from kafka_fast.control.admin.operations.groups.descriptions import DescribeShareGroups

        operation = DescribeShareGroups(
            groups, include_authorized_operations=include_authorized_operations
        )
        return self._core.driver.run(self._steps.run_items(operation, timeout))

    def describe_streams_groups(
        self,
        groups: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        include_topology_description: bool = False,
        timeout: float | None = None,
    ) -> AdminResult[str, StreamsGroupDescription]:
        """Return streams groups with their members and tasks.

        StreamsGroupDescribe; needs DESCRIBE on the group, and on the topics of its topology. Since
        Kafka 4.1; topologies in full need 4.4, and brokers that are configured to keep them. A
        group that does not exist, or is of another type, is a GroupIdNotFound.

        Args:
            groups: their ids.
            include_authorized_operations: whether to ask what this client may do with them.
            include_topology_description: whether to ask for each topology in full (KIP-1331): all
                sources, processors and sinks.
            timeout: seconds; None: default.api.timeout.ms.
        """
        from kafka_fast.control.admin.operations.groups.streams import DescribeStreamsGroups

        operation = DescribeStreamsGroups(
            groups,
            include_authorized_operations=include_authorized_operations,
            include_topology_description=include_topology_description,
        )
        return self._core.driver.run(self._steps.run_items(operation, timeout))

    def delete_groups(
        self, groups: Iterable[str], *, timeout: float | None = None
    ) -> AdminResult[str, None]:
        """Delete groups of any type, with their offsets.

        DeleteGroups; needs DELETE on the group. A group that has members is a NonEmptyGroup, one
        that does not exist a GroupIdNotFound.

        Args:
            groups: their ids.
            timeout: seconds; None: default.api.timeout.ms.
        """
        from kafka_fast.control.admin.operations.groups.listings import DeleteGroups

        return self._core.driver.run(self._steps.run_items(DeleteGroups(groups), timeout))

    def remove_members_from_consumer_group(
        self,
        group_id: str,
        *,
        member_ids: Iterable[str] = (),
        instance_ids: Iterable[str] = (),
        all_members: bool = False,
        reason: str | None = None,
        timeout: float | None = None,
    ) -> AdminResult[str, None]:
        """Remove members from a group, as if they had left; by the ids that were given.

        LeaveGroup; needs READ on the group, and DESCRIBE for `all_members`. Since Kafka 2.4. A
        member that still runs joins again. Older brokers do not remove members that speak the
        consumer protocol (KIP-848): each is an UnknownMemberId.

        Args:
            group_id: the group.
            member_ids: members by the id that the coordinator gave to each.
            instance_ids: static members by their group.instance.id.
            all_members: whether to remove all members that the group has now, static ones by their
                group.instance.id. No ids are given then.
            reason: for the broker's log, which also says that an administrator did it.
            timeout: seconds; None: default.api.timeout.ms.

        Raises:
            GroupIdNotFound: there is no such group, of which all members are to be removed.
            UsageError: an id is one of `member_ids` and one of `instance_ids`, or there are ids
                beside `all_members`.
        """
        from kafka_fast.admin.workflows import groups as workflows
        from kafka_fast.control.admin.operations.groups.listings import RemoveMembers

        operation = RemoveMembers(
            group_id, member_ids=member_ids, instance_ids=instance_ids, reason=reason
        )
        removed = workflows.remove_members(
            self._steps,
            operation,
            all_members=all_members,
            deadline=self._steps.begin_call(timeout),
        )
        return self._core.driver.run(removed)
