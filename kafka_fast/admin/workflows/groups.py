"""Groups: listed by all brokers, described by the API of their protocol, rid of their members.

ConsumerGroupDescribe ──GROUP_ID_NOT_FOUND, or not offered──► DescribeGroups
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from kafka_fast.admin.admin_steps import AdminSteps
from kafka_fast.admin.result import AdminResult, NodesResult
from kafka_fast.admin.workflows.together import with_values
from kafka_fast.control.admin.operation import OperationResults
from kafka_fast.control.admin.operations.groups.descriptions import (
    CLASSIC_CONSUMERS,
    DescribeClassicGroups,
    DescribeConsumerGroups,
)
from kafka_fast.control.admin.operations.groups.listings import ListGroups, RemoveMembers
from kafka_fast.control.admin.types.groups.descriptions import (
    ClassicGroupDescription,
    ConsumerGroupDescription,
)
from kafka_fast.control.admin.types.groups.listings import GroupListing, GroupType
from kafka_fast.errors import (
    BrokerError,
    ErrorCode,
    KafkaError,
    UnsupportedVersionError,
    UsageError,
    fresh_copy,
)
from kafka_fast.net.waiting.steps import Steps

AnyDescription: TypeAlias = ConsumerGroupDescription | ClassicGroupDescription

# Kafka 3.7 to 3.9 offer the API even if the new groups are switched off, and then refuse it.
_ANOTHER_PROTOCOL = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})


def list_groups(
    steps: AdminSteps, operation: ListGroups, deadline: float
) -> Steps[NodesResult[str, GroupListing]]:
    """Return the groups of all brokers, by their ids.

    A group whose coordinator moves meanwhile may be listed twice: the first entry counts.
    """
    results = yield from steps.results(operation, deadline)
    groups: dict[str, GroupListing] = {}
    for listings in results.values.values():
        for listing in listings:
            groups.setdefault(listing.group_id, listing)
    return NodesResult(operation.name, dict(sorted(groups.items())), results)


# ---- descriptions ----


def describe_consumer_groups(
    steps: AdminSteps,
    groups: Iterable[str],
    *,
    include_authorized_operations: bool,
    deadline: float,
) -> Steps[AdminResult[str, ConsumerGroupDescription]]:
    """Describe groups of consumers, of either protocol.

    Args:
        steps: of the client.
        groups: their ids.
        include_authorized_operations: whether to ask what this client may do with them.
        deadline: when groups without an answer fail.
    """
    any_kind = yield from describe_groups(
        steps,
        groups,
        include_authorized_operations=include_authorized_operations,
        deadline=deadline,
    )
    results = with_values(any_kind, dict[str, ConsumerGroupDescription]())
    for group_id, description in any_kind.values.items():
        if isinstance(description, ConsumerGroupDescription):
            results.values[group_id] = description
        elif description.protocol_type in (CLASSIC_CONSUMERS, ""):
            results.values[group_id] = _of_consumers(description)
        else:
            results.errors[group_id] = UsageError(
                f"group {group_id!r} is none of consumers, but of {description.protocol_type!r}: "
                "describe_classic_groups describes it"
            )
    return AdminResult(DescribeConsumerGroups.name, results)


def describe_groups(
    steps: AdminSteps,
    groups: Iterable[str],
    *,
    include_authorized_operations: bool,
    deadline: float,
) -> Steps[OperationResults[str, AnyDescription]]:
    """Describe consumer groups and classic ones; the arguments are as above."""
    first = DescribeConsumerGroups(
        groups, include_authorized_operations=include_authorized_operations
    )
    newer = yield from steps.results(first, deadline)
    results = with_values(newer, dict[str, AnyDescription](newer.values))
    others = [group_id for group_id in newer.keys if _is_another(newer.errors.get(group_id))]
    if others:
        second = DescribeClassicGroups(
            others, include_authorized_operations=include_authorized_operations
        )
        older = yield from steps.results(second, deadline)
        for group_id in others:
            del results.errors[group_id]
        results.values.update(older.values)
        results.errors.update(older.errors)
        results.throttle_time_ms = max(results.throttle_time_ms, older.throttle_time_ms)
    return results


def _is_another(error: KafkaError | None) -> bool:
    """Tell whether the group, or its broker, needs the API of classic groups."""
    is_another = isinstance(error, BrokerError) and error.code in _ANOTHER_PROTOCOL
    return is_another or isinstance(error, UnsupportedVersionError)


def _of_consumers(group: ClassicGroupDescription) -> ConsumerGroupDescription:
    return ConsumerGroupDescription(
        group_id=group.group_id,
        type=GroupType.CLASSIC,
        state=group.state,
        assignor=group.protocol,
        members=group.members,
        coordinator=group.coordinator,
        is_simple=group.is_simple,
        authorized_operations=group.authorized_operations,
    )


# ---- members ----


def remove_members(
    steps: AdminSteps, operation: RemoveMembers, *, all_members: bool, deadline: float
) -> Steps[AdminResult[str, None]]:
    """Remove members from a group.

    Args:
        steps: of the client.
        operation: names the members, or none of them.
        all_members: whether to remove the members that the group has now.
        deadline: when members without an answer fail.

    Raises:
        KafkaError: the group, all of whose members are to be removed, cannot be described.
        UsageError: there are names beside `all_members`.
    """
    if all_members:
        if operation.items:
            raise UsageError(f"{operation.name}: all members are meant, and some are named")
        group_id = operation.group_id
        described = yield from describe_groups(
            steps, [group_id], include_authorized_operations=False, deadline=deadline
        )
        if group_id in described.errors:
            raise fresh_copy(described.errors[group_id])
        members = described.values[group_id].members
        operation = RemoveMembers(
            group_id,
            member_ids=[one.member_id for one in members if one.instance_id is None],
            instance_ids=[one.instance_id for one in members if one.instance_id is not None],
            reason=operation.reason,
        )
    results = yield from steps.results(operation, deadline)
    return AdminResult(operation.name, results)
