"""How a member of a KIP-848 group gets from what it has to what it shall have.

    stable ──target──► unrevoked partitions ──given up──► unreleased partitions ──free──► stable
                       (the member owns what             (others own what the
                        it shall not have)                member shall have)

A member stays in its epoch until it has revoked what it must; only then it enters the epoch of the
target and gets what nobody else owns any more.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from kafka_fast.testing.broker.groups.assignors import TopicPartition

Epochs = Mapping[TopicPartition, int]  # partition -> epoch in which the member got it
Owned = Collection[TopicPartition] | None  # that a member says it owns; None: it does not say


class MemberState(enum.Enum):
    """What a member has to wait for."""

    STABLE = "stable"
    UNREVOKED = "unrevoked partitions"
    UNRELEASED = "unreleased partitions"


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    """One member of a group; a change makes a new one."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    topic_names: frozenset[str] = frozenset()
    topic_regex: str = ""
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Epochs = field(default_factory=dict)
    revoking: Epochs = field(default_factory=dict)
    """That it still has to give up."""

    def is_reconciled_to(self, epoch: int) -> bool:
        """Tell whether the member has all that it shall have in an epoch."""
        return self.state == MemberState.STABLE and self.epoch == epoch

    def got_in(self, one: TopicPartition) -> int | None:
        """Return the epoch in which the member got a partition, None: it is not the member's."""
        return self.assigned.get(one, self.revoking.get(one))


@dataclass(frozen=True, slots=True)
class Goal:
    """What a member shall have."""

    epoch: int
    """Of the target."""
    target: Collection[TopicPartition]
    topics: Collection[bytes]
    """Ids of those to which the member is subscribed now."""
    held: Collection[TopicPartition]
    """By any member."""
    owned: Owned
    """As the member says."""
    subscription_changed: bool


def reconcile(member: ConsumerMember, goal: Goal) -> ConsumerMember:
    """Return the member one step closer to its goal."""
    if member.state == MemberState.STABLE:
        if member.epoch != goal.epoch:
            return _next(member, goal)
        return _unsubscribed(member, goal) if goal.subscription_changed else member
    if member.state == MemberState.UNREVOKED and _owns(goal.owned, member.revoking):
        return _unsubscribed(member, goal) if goal.subscription_changed else member
    return _next(member, goal)


def _owns(owned: Owned, revoking: Epochs) -> bool:
    return owned is None or any(one in revoking for one in owned)


def _unsubscribed(member: ConsumerMember, goal: Goal) -> ConsumerMember:
    """Take away at once what belongs to topics that the member does not want any more."""
    dropped = {one: at for one, at in member.assigned.items() if one[0] not in goal.topics}
    if not dropped:
        return member
    assigned = {one: at for one, at in member.assigned.items() if one not in dropped}
    revoking = {**member.revoking, **dropped}
    changed = replace(member, previous_epoch=member.epoch, assigned=assigned)
    if not _owns(goal.owned, revoking):
        return changed
    return replace(changed, state=MemberState.UNREVOKED, revoking=revoking)


def _next(member: ConsumerMember, goal: Goal) -> ConsumerMember:
    target = {one for one in goal.target if one[0] in goal.topics}
    kept = {one: at for one, at in member.assigned.items() if one in target}
    revoking = {one: at for one, at in member.assigned.items() if one not in target}
    if revoking and _owns(goal.owned, revoking):
        return replace(
            member,
            state=MemberState.UNREVOKED,
            previous_epoch=member.epoch,
            assigned=kept,
            revoking=revoking,
        )
    missing = target - kept.keys()
    unreleased = {one for one in missing if one in goal.held and one not in member.revoking}
    return replace(
        member,
        state=MemberState.UNRELEASED if unreleased else MemberState.STABLE,
        epoch=goal.epoch,
        previous_epoch=member.epoch,
        assigned={**kept, **dict.fromkeys(sorted(missing - unreleased), goal.epoch)},
        revoking={},
    )
