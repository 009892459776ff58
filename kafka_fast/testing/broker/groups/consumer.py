"""A KIP-848 group: members tell what they want, the coordinator assigns, members reconcile.

    heartbeat ─► what changed? ─► new group epoch ─► new target ─► reconcile ─► epoch, assignment

The group epoch grows with every change of members, subscriptions and topics; a target belongs to
one epoch and is made at a heartbeat, at most once in an interval. The rules and their order are
those of Kafka's GroupMetadataManager. Everything is written as it changes, so that a group moves
to another coordinator as it is; only its timers begin again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from kafka_fast.errors import (
    FencedInstanceId,
    FencedMemberEpoch,
    GroupMaxSizeReached,
    StaleMemberEpoch,
    UnknownMemberId,
    UnreleasedInstanceId,
    UnsupportedVersion,
)
from kafka_fast.testing.broker.groups.assignors import DEFAULT_ASSIGNOR, TopicPartition
from kafka_fast.testing.broker.groups.beat import (
    JOINING,
    LEFT,
    LEFT_FOR_A_WHILE,
    Beat,
    BeatAnswer,
    updated,
)
from kafka_fast.testing.broker.groups.host import GroupHost
from kafka_fast.testing.broker.groups.reconciliation import (
    ConsumerMember,
    Goal,
    MemberState,
    Owned,
    reconcile,
)
from kafka_fast.testing.broker.groups.subscriptions import Subscriptions, TopicsMetadata
from kafka_fast.testing.broker.groups.targets import Targets

_COMMIT_FROM_VERSION = 9  # of OffsetCommit: since then it knows of member epochs


class ConsumerGroup:
    """One group and its coordinator's view of it."""

    def __init__(self, group_id: str, host: GroupHost) -> None:
        self.group_id = group_id
        self.epoch = 1  # as if its making had been a change
        self.members: dict[str, ConsumerMember] = {}
        self._targets = Targets()
        self._subscriptions = Subscriptions()
        self._metadata: TopicsMetadata = ()  # of the subscribed topics, at the last epoch
        self._host = host

    @property
    def host(self) -> GroupHost:
        """Return the coordinator."""
        return self._host

    @property
    def is_empty(self) -> bool:
        """Tell whether the group has no members."""
        return not self.members

    @property
    def state(self) -> str:
        """Return Kafka's name of the group's state."""
        if not self.members:
            return "Empty"
        if self.epoch > self._targets.epoch:
            return "Assigning"
        if all(one.is_reconciled_to(self._targets.epoch) for one in self.members.values()):
            return "Stable"
        return "Reconciling"

    @property
    def assignment_epoch(self) -> int:
        """Return the epoch of the group when the targets were made."""
        return self._targets.epoch

    @property
    def assignor(self) -> str:
        """Return the name of the assignor that makes the targets."""
        return self._assignor()

    def target(self, member_id: str) -> frozenset[TopicPartition]:
        """Return what a member shall have."""
        return self._targets.target_of(member_id)

    def subscribed_topics(self) -> frozenset[str]:
        """Return the names of the topics that members want."""
        names = (self._subscriptions.names(one) for one in self.members.values())
        return frozenset[str]().union(*names)

    # ---- moving to another coordinator ----

    def unload(self) -> None:
        """End what is under way: nobody waits here."""

    def load(self, host: GroupHost, now: float) -> None:
        """Restart the members' timers, on the broker that is the coordinator now."""
        self._host = host
        for member in self.members.values():
            self._expect_beat(member.member_id, now)
            if member.state == MemberState.UNREVOKED:
                self._expect_revocation(member, now)

    # ---- requests ----

    def beat(self, beat: Beat, now: float) -> BeatAnswer:
        """Take a heartbeat of a member, or of one that joins or leaves.

        Raises:
            BrokerError: the answer that the member gets instead.
        """
        if beat.epoch in (LEFT, LEFT_FOR_A_WHILE):
            return self._leave(beat, now)
        self._check_room(beat)
        member_id = beat.member_id or self._host.new_uuid()
        former, member = self._member(beat, member_id)
        changed = updated(member, beat)
        names_changed = changed.topic_names != member.topic_names
        topics = self._host.topics
        regex = self._subscriptions.change(self._others(member), member, changed, topics, now)
        assignor_changed = self._assignor() != self._assignor(changed)
        # From here on nothing is refused.
        if former is not None:
            self._replace(former, member_id)
        self.members[member_id] = changed
        metadata = self._subscriptions.metadata(self.members.values(), topics)
        if names_changed or regex.known or assignor_changed or metadata != self._metadata:
            self.epoch += 1
            self._metadata = metadata
        self._maybe_assign(now)
        subscription_changed = names_changed or regex.changed
        reconciled = self._reconcile(changed, beat.owned, subscription_changed, now)
        self._expect_beat(member_id, now)
        if regex.to_resolve and self._subscriptions.resolve(self.members.values(), topics, now):
            self.epoch += 1  # as in Kafka after the answer, which does not wait for the topics
            self._metadata = self._subscriptions.metadata(self.members.values(), topics)
        tell = beat.epoch == JOINING or beat.is_full or reconciled.assigned != member.assigned
        return BeatAnswer(member_id, reconciled.epoch, reconciled.assigned if tell else None)

    def check_commit(
        self,
        epoch: int,
        member_id: str,
        version: int,
        partitions: Iterable[TopicPartition],
    ) -> None:
        """Refuse a commit of who does not own the partitions in its epoch.

        Args:
            epoch: of the member, negative: it is none.
            member_id: of the member.
            version: of the OffsetCommit request.
            partitions: for which offsets are to be committed.

        Raises:
            BrokerError: the answer.
        """
        if epoch < 0 and not self.members:
            return
        self._known(member_id)
        if version < _COMMIT_FROM_VERSION:
            raise UnsupportedVersion("members of this group commit with version 9 or later")
        self.check_owner(epoch, member_id, partitions)

    def check_owner(self, epoch: int, member_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Refuse who did not own the partitions in an epoch.

        Raises:
            BrokerError: the answer.
        """
        member = self._known(member_id)
        if epoch == member.epoch:
            return
        if epoch > member.epoch:
            raise StaleMemberEpoch(f"epoch {epoch} of {member_id!r} is yet to come")
        for one in partitions:
            got_in = member.got_in(one)
            if got_in is None or epoch < got_in:
                raise StaleMemberEpoch(f"{member_id!r} did not own {one} in epoch {epoch}")

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Refuse a member of another epoch; who is no member may read.

        Raises:
            BrokerError: the answer.
        """
        if member_id is None and epoch < 0:
            return
        if self._known(member_id or "").epoch != epoch:
            raise StaleMemberEpoch(f"epoch {epoch} of {member_id!r} is not its present one")

    # ---- members ----

    def _known(self, member_id: str) -> ConsumerMember:
        if member_id not in self.members:
            raise UnknownMemberId(f"Member {member_id} is not a member of group {self.group_id}.")
        return self.members[member_id]

    def _static(self, instance_id: str) -> ConsumerMember | None:
        static_members = (one for one in self.members.values() if one.instance_id == instance_id)
        return next(static_members, None)

    def _others(self, member: ConsumerMember) -> list[ConsumerMember]:
        return [
            one
            for one in self.members.values()
            if one.member_id != member.member_id
            and (member.instance_id is None or one.instance_id != member.instance_id)
        ]

    def _check_room(self, beat: Beat) -> None:
        known = beat.member_id in self.members or (
            beat.instance_id is not None and self._static(beat.instance_id) is not None
        )
        if len(self.members) >= self._host.settings.max_size and not known:
            raise GroupMaxSizeReached(f"{self.group_id!r} has {len(self.members)} members")

    def _member(self, beat: Beat, member_id: str) -> tuple[ConsumerMember | None, ConsumerMember]:
        """Return the static member that is to be replaced, if one is, and the member as it is."""
        joins = beat.epoch == JOINING
        if beat.instance_id is None:
            member = self.members.get(member_id)
            if member is None:
                if not joins:
                    raise UnknownMemberId(f"no member {member_id!r} in {self.group_id!r}")
                member = ConsumerMember(member_id)
            self._check_epoch(member, beat)
            return None, member
        existing = self._static(beat.instance_id)
        if joins:
            if existing is None:
                return None, self.members.get(member_id) or ConsumerMember(member_id)
            if existing.epoch != LEFT_FOR_A_WHILE:
                raise UnreleasedInstanceId(f"{beat.instance_id!r} is {existing.member_id!r}")
            return existing, replace(existing, member_id=member_id, epoch=0, previous_epoch=0)
        member = self._own_instance(existing, beat)
        self._check_epoch(member, beat)
        return None, member

    def _own_instance(self, existing: ConsumerMember | None, beat: Beat) -> ConsumerMember:
        if existing is None:
            raise UnknownMemberId(f"instance id {beat.instance_id!r} is unknown")
        if existing.member_id != beat.member_id:
            raise FencedInstanceId(f"{beat.instance_id!r} is {existing.member_id!r} now")
        return existing

    def _check_epoch(self, member: ConsumerMember, beat: Beat) -> None:
        """Refuse another epoch, unless the member has only missed its last answer."""
        if beat.epoch in (JOINING, member.epoch):
            return
        missed = beat.epoch == member.previous_epoch and beat.owned is not None
        if beat.epoch > member.epoch or not (
            missed and all(one in member.assigned for one in beat.owned or ())
        ):
            raise FencedMemberEpoch(
                f"epoch {beat.epoch} of {member.member_id!r} is not {member.epoch}: it has to "
                "give up its partitions and join again"
            )

    def _replace(self, former: ConsumerMember, member_id: str) -> None:
        self._cancel_timers(former.member_id)
        del self.members[former.member_id]
        self._targets.hand_over(former.member_id, member_id)

    # ---- assigning ----

    def _assignor(self, changed: ConsumerMember | None = None) -> str:
        """Return the assignor that most members prefer, with a member as it will be."""
        members = {**self.members, **({changed.member_id: changed} if changed is not None else {})}
        votes = Counter(one.assignor for one in members.values() if one.assignor is not None)
        return max(votes, key=lambda name: votes[name]) if votes else DEFAULT_ASSIGNOR

    def _maybe_assign(self, now: float) -> None:
        """Make a new target, if the last one is old enough."""
        interval = self._host.settings.consumer_assignment_interval_ms / 1000
        if self._targets.epoch >= self.epoch or self._targets.is_younger(interval, now):
            return
        topics = self._host.topics
        subscriptions = [
            (member, self._subscriptions.topic_ids(member, topics))
            for member in self.members.values()
        ]
        self._targets.make(self._assignor(), subscriptions, topics, self.epoch, now)

    def _reconcile(
        self, member: ConsumerMember, owned: Owned, subscription_changed: bool, now: float
    ) -> ConsumerMember:
        if not subscription_changed and member.is_reconciled_to(self._targets.epoch):
            return member
        reconciled = reconcile(
            member,
            Goal(
                self._targets.epoch,
                self._targets.target_of(member.member_id),
                self._subscriptions.topic_ids(member, self._host.topics),
                {one for m in self.members.values() for one in (*m.assigned, *m.revoking)},
                owned,
                subscription_changed,
            ),
        )
        if reconciled != member:
            self.members[member.member_id] = reconciled
            if reconciled.state == MemberState.UNREVOKED:
                self._expect_revocation(reconciled, now)
            else:
                self._host.cancel((self.group_id, "rebalance", member.member_id))
        return reconciled

    # ---- leaving and expiring ----

    def _leave(self, beat: Beat, now: float) -> BeatAnswer:
        if beat.instance_id is None:
            member = self._known(beat.member_id)
        else:
            member = self._own_instance(self._static(beat.instance_id), beat)
            if beat.epoch == LEFT_FOR_A_WHILE:
                self.members[member.member_id] = replace(
                    member,
                    epoch=LEFT_FOR_A_WHILE,
                    revoking={},
                    assigned=dict.fromkeys(member.assigned, 0),
                )
                return BeatAnswer(member.member_id, LEFT_FOR_A_WHILE, None)
        self._remove(member.member_id)
        return BeatAnswer(beat.member_id, beat.epoch, None)

    def _remove(self, member_id: str) -> None:
        self._cancel_timers(member_id)
        del self.members[member_id]
        self._targets.forget_member(member_id)
        self._subscriptions.forget_unused(self.members.values())
        self._metadata = self._subscriptions.metadata(self.members.values(), self._host.topics)
        self.epoch += 1
        if not self.members:
            self._targets.restart(self.epoch)

    def _expect_beat(self, member_id: str, now: float) -> None:
        due = now + self._host.settings.consumer_session_timeout_ms / 1000
        self._host.schedule(
            (self.group_id, "session", member_id), due, lambda now: self._remove(member_id)
        )

    def _expect_revocation(self, member: ConsumerMember, now: float) -> None:
        """Remove the member if it does not give up in time what it has to."""
        member_id, epoch = member.member_id, member.epoch

        def give_up(now: float) -> None:
            if self.members[member_id].epoch == epoch:
                self._remove(member_id)

        due = now + member.rebalance_timeout_ms / 1000
        self._host.schedule((self.group_id, "rebalance", member_id), due, give_up)

    def _cancel_timers(self, member_id: str) -> None:
        for what in ("session", "rebalance"):
            self._host.cancel((self.group_id, what, member_id))
