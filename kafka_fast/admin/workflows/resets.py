"""Where a group goes on: planned for each partition within its log, then committed.

    description, committed offsets ─► metadata ─► both ends, a time ─► plan ─► OffsetCommit
    (at the same time)                            (at the same time)

Nothing is committed if a partition cannot be planned, or if the group has members: they would go on
where they are, and commit that.
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from kafka_fast.admin.admin_steps import AdminSteps
from kafka_fast.admin.workflows.groups import AnyDescription, describe_groups
from kafka_fast.admin.workflows.log_ends import BOTH_ENDS, KnownTopics, known_topics, look_up
from kafka_fast.admin.workflows.together import run_together
from kafka_fast.control.admin.operation import OperationResults
from kafka_fast.control.admin.operations.groups.committed import (
    AlterGroupOffsets,
    CommittedByGroup,
    ListGroupOffsets,
)
from kafka_fast.control.admin.types.groups.resets import (
    PartitionReset,
    ResetKind,
    ResetPlan,
    ResetTo,
)
from kafka_fast.control.admin.types.offsets import IsolationLevel, ListedOffset, OffsetSpec
from kafka_fast.control.arguments import names_of, partitions_of
from kafka_fast.errors import (
    BrokerError,
    ErrorCode,
    KafkaError,
    UsageError,
    broker_error,
    fresh_copy,
)
from kafka_fast.logs import get_logger, some_of
from kafka_fast.net.waiting.steps import Steps
from kafka_fast.types import TopicPartition
from kafka_fast.values import Value, replace

NAME = "reset_consumer_group_offsets"

_log = get_logger("kafka_fast.admin")


class ResetScope(Value):
    """Of which partitions a group's offsets are reset; nothing: all that it has committed."""

    topics: frozenset[str] = frozenset()
    """All partitions of these."""
    partitions: frozenset[TopicPartition] = frozenset()

    @classmethod
    def of(cls, topics: Iterable[str], partitions: Iterable[TopicPartition]) -> ResetScope:
        """Return the scope that a user has given."""
        return cls(
            frozenset(names_of(topics, "the names of topics")), frozenset(partitions_of(partitions))
        )


def reset_offsets(
    steps: AdminSteps,
    group_id: str,
    to: ResetTo | ResetPlan,
    scope: ResetScope,
    *,
    dry_run: bool,
    deadline: float,
) -> Steps[ResetPlan]:
    """Return where the group goes on. With `dry_run` nothing is committed.

    Args:
        steps: of the client.
        group_id: the group.
        to: the place in each partition; or a plan.
        scope: which partitions; for a plan, nothing.
        dry_run: whether to plan only.
        deadline: when what has no answer fails.

    Raises:
        NonEmptyGroup: the group has members.
        UsageError: the plan is for another group, or for other partitions.
        KafkaError: a partition cannot be reset; then none is.
    """
    if not isinstance(to, (ResetTo, ResetPlan)):
        raise TypeError(f"{NAME}: a group goes on at a ResetTo or a ResetPlan, not {to!r}")
    if isinstance(to, ResetPlan):
        plan = _checked(to, group_id, scope)
        described = yield from _description(steps, group_id, deadline)
    else:
        offsets = ListGroupOffsets({group_id: None}, require_stable=False)
        committed: OperationResults[str, CommittedByGroup]
        described, committed = yield from run_together(
            _description(steps, group_id, deadline), steps.results(offsets, deadline)
        )
        for error in committed.errors.values():
            raise fresh_copy(error)
        plan = yield from _planned(steps, group_id, to, scope, committed.values[group_id], deadline)
    members = _members(described)
    if dry_run:
        return replace(plan, members=members)
    _refuse_members(group_id, members)
    plan.raise_first()
    operation = AlterGroupOffsets(group_id, plan.targets)
    results = yield from steps.results(operation, deadline)
    if results.errors:
        _log.error(
            "%s: %d of %d partitions of group %s were not reset: %s",
            NAME,
            len(results.errors),
            len(plan.resets),
            group_id,
            some_of(results.errors.values()),
        )
    return replace(plan, errors=results.errors, is_applied=True)


def _checked(plan: ResetPlan, group_id: str, scope: ResetScope) -> ResetPlan:
    if plan.group_id != group_id:
        raise UsageError(f"{NAME}: the plan is for group {plan.group_id!r}, not for {group_id!r}")
    if scope.topics or scope.partitions:
        raise UsageError(f"{NAME}: a plan names its partitions; none are given beside it")
    return replace(plan, is_applied=False)


# ---- members ----


def _description(steps: AdminSteps, group_id: str, deadline: float) -> Steps[AnyDescription | None]:
    """Return what the group is; None: there is none of consumers, or not yet."""
    results = yield from describe_groups(
        steps, [group_id], include_authorized_operations=False, deadline=deadline
    )
    error = results.errors.get(group_id)
    if error is None:
        return results.values[group_id]
    if isinstance(error, BrokerError) and error.code == ErrorCode.GROUP_ID_NOT_FOUND:
        return None
    raise fresh_copy(error)


def _members(description: AnyDescription | None) -> tuple[str, ...]:
    """Return who belongs to a group, in words for people."""
    return tuple(
        f"{one.client_id} ({one.instance_id or one.member_id}) at {one.host.lstrip('/')}"
        for one in (() if description is None else description.members)
    )


def _refuse_members(group_id: str, names: tuple[str, ...]) -> None:
    if not names:
        return
    raise broker_error(
        ErrorCode.NON_EMPTY_GROUP,
        f"{NAME}: group {group_id!r} has members, which would go on where they are: "
        f"{some_of(names)}; stop them first",
    )


# ---- plans ----


def _planned(
    steps: AdminSteps,
    group_id: str,
    to: ResetTo,
    scope: ResetScope,
    committed: CommittedByGroup,
    deadline: float,
) -> Steps[ResetPlan]:
    """Return the plan. Partitions that cannot be reset are among its errors."""
    is_all = not scope.topics and not scope.partitions
    chosen = set(committed.keys) if is_all else set(scope.partitions)
    named = scope.topics | {one.topic for one in chosen}
    known: KnownTopics = yield from known_topics(steps, named, deadline)
    for topic in sorted(scope.topics):
        if topic in known.errors:
            raise fresh_copy(known.errors[topic])
        chosen.update(known.partitions_of(topic))
    current = {
        partition: at.offset
        for partition, at in committed.values.items()
        if at is not None and partition in chosen
    }
    errors = {one: error for one, error in committed.errors.items() if one in chosen}
    errors.update(known.absences(chosen))
    there = sorted(chosen - errors.keys())
    places: list[tuple[OffsetSpec | int, IsolationLevel]] = [*BOTH_ENDS]
    if to.kind in (ResetKind.TIME, ResetKind.DURATION):
        now_ms = int(time.time() * 1000)
        since = to.amount if to.kind is ResetKind.TIME else max(0, now_ms - to.amount)
        places.append((since, IsolationLevel.READ_UNCOMMITTED))
    starts, ends, *times = yield from look_up(steps, there, places, deadline)
    resets: list[PartitionReset] = []
    for partition in there:
        error = _first_error(partition, (starts, ends, *times))
        if error is None:
            start, end = (one.values[partition].offset for one in (starts, ends))
            at = times[0].values[partition].offset if times else -1
            requested = _requested(to, current.get(partition), start, end, at)
            if requested is not None:
                target = min(max(requested, start), end)
                resets.append(
                    PartitionReset(partition, current.get(partition), target, requested, start, end)
                )
                continue
            error = UsageError(
                f"{NAME}: group {group_id!r} has committed nothing of {partition}, so there is "
                "nothing to shift"
            )
        errors[partition] = error
    return ResetPlan(group_id, tuple(resets), dict(sorted(errors.items())))


def _first_error(
    partition: TopicPartition,
    lookups: Iterable[OperationResults[TopicPartition, ListedOffset]],
) -> KafkaError | None:
    """Return why one of the look-ups has no offset of a partition; None: all have one."""
    return next((one.errors[partition] for one in lookups if partition in one.errors), None)


def _requested(to: ResetTo, current: int | None, start: int, end: int, at: int) -> int | None:
    """Return the offset that is asked for, which may be outside of the log.

    Args:
        to: the place.
        current: what is committed; None: nothing.
        start: the first offset of the log.
        end: the offset behind its last record.
        at: the offset that a time has; -1: no record is that new.
    """
    if to.kind is ResetKind.EARLIEST:
        return start
    if to.kind is ResetKind.OFFSET:
        return to.amount
    if to.kind is ResetKind.SHIFT:
        return None if current is None else current + to.amount
    if to.kind is ResetKind.CURRENT and current is not None:
        return current
    if to.kind in (ResetKind.TIME, ResetKind.DURATION) and at >= 0:
        return at
    return end
