"""The generations of a classic group: its states, its rebalances, and who is expired from it.

    Empty ──join──► PreparingRebalance ──all joined, or time is up──► CompletingRebalance
      ▲                ▲    ▲                                              │ the leader's sync
      │                │    └──────────── join, leave, expiry ─────────────┤
      └──nobody left───┴──────────── join, leave, expiry ───────────── Stable

What Kafka writes to its offsets topic is kept in `_written`: a group that moves to another
coordinator goes on from there. The rules are those of Kafka's GroupMetadataManager; classic.py
takes the members' requests.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from kafka_fast.errors import (
    NonEmptyGroup,
    NotCoordinator,
    ProtocolError,
    RebalanceInProgress,
    UnknownMemberId,
)
from kafka_fast.protocol.apis.groups.join_group import JoinGroupResponse, JoinGroupResponseMember
from kafka_fast.protocol.apis.groups.sync_group import SyncGroupResponse
from kafka_fast.protocol.consumer import ConsumerProtocolSubscription
from kafka_fast.protocol.schema import decode_versioned
from kafka_fast.testing.broker.groups.host import Action, GroupHost
from kafka_fast.testing.broker.groups.members import Member, Members

CONSUMER_PROTOCOL = "consumer"
"""The protocol type of groups whose members say which topics they want."""


class State(enum.Enum):
    """Kafka's names of a group's states."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


@dataclass(frozen=True, slots=True)
class _Written:
    """What survives the coordinator."""

    generation: int
    protocol_type: str | None
    protocol: str | None
    leader: str | None
    members: tuple[Member, ...]


class Generations:
    """The life of one group from generation to generation."""

    def __init__(self, group_id: str, host: GroupHost) -> None:
        self.group_id = group_id
        self.state = State.EMPTY
        self.generation = 0
        self.members = Members()
        self.protocol_type: str | None = None
        self.protocol: str | None = None  # the assignor that all members speak
        self._host = host
        self._previous = State.EMPTY  # before the present state
        self._new_member_added = False  # while the first rebalance waits for more
        self._unsynced: set[str] = set()  # member ids
        self._write()

    # ---- moving to another coordinator ----

    @property
    def host(self) -> GroupHost:
        """Return the coordinator."""
        return self._host

    @property
    def is_empty(self) -> bool:
        """Tell whether the group has no members, nor expects any."""
        return self.state == State.EMPTY

    def subscribed_topics(self) -> frozenset[str]:
        """Return the names of the topics that members want.

        Raises:
            NonEmptyGroup: there are members, and what they want is not Kafka's to know.
        """
        if self.is_empty:
            return frozenset()
        if self.protocol_type != CONSUMER_PROTOCOL:
            raise NonEmptyGroup(f"Group {self.group_id} is not empty.")
        return frozenset(name for member in self.members for name in _subscribed_topics(member))

    def unload(self) -> None:
        """End what is under way, on the broker that was the coordinator."""
        for member in self.members:
            self._answer_join(member, NotCoordinator.code)
            self._answer_sync(member, NotCoordinator.code)

    def load(self, host: GroupHost, now: float) -> None:
        """Restore the group from what was written, on the broker that is the coordinator now."""
        self.unload()
        written = self._written
        self._host = host
        self.generation = written.generation
        self.protocol_type = written.protocol_type
        self.protocol = written.protocol
        self.members = Members()
        self.state = self._previous = State.STABLE if written.members else State.EMPTY
        self._unsynced.clear()
        self._new_member_added = False
        for member in written.members:
            self.members.add(replace(member))
            self._expect_heartbeat(self.members[member.member_id], now)
        self.members.leader = written.leader

    # ---- rebalancing ----

    def _rebalance(self, now: float) -> None:
        if self.state == State.PREPARING:
            self._maybe_complete_join(now)
            return
        if self.state == State.COMPLETING:
            for member in self.members:
                member.assignment = b""
                if member.syncing is not None:
                    self._expect_heartbeat(member, now)
                self._answer_sync(member, RebalanceInProgress.code)
        self._unsynced.clear()
        self._host.cancel((self.group_id, "sync"))
        first = self.state == State.EMPTY
        self._enter(State.PREPARING)
        if first:
            delay = self._host.settings.initial_rebalance_delay_ms
            left = max(self.members.rebalance_timeout_ms - delay, 0)
            self._later("join", delay, now, lambda now: self._end_first_wait(delay, left, now))
        elif self.members.all_joined:
            self._complete_join(now)
        else:
            self._later("join", self.members.rebalance_timeout_ms, now, self._complete_join)

    def _end_first_wait(self, delay_ms: int, left_ms: int, now: float) -> None:
        """End the wait of a first rebalance, unless somebody came in the meantime."""
        if not self._new_member_added or left_ms == 0:
            self._complete_join(now)
            return
        self._new_member_added = False
        delay = min(self._host.settings.initial_rebalance_delay_ms, left_ms)
        left = max(left_ms - delay_ms, 0)
        self._later("join", delay, now, lambda now: self._end_first_wait(delay, left, now))

    def _maybe_complete_join(self, now: float) -> None:
        first = self._previous == State.EMPTY
        if self.state == State.PREPARING and not first and self.members.all_joined:
            self._complete_join(now)

    def _complete_join(self, now: float) -> None:
        """Answer the joins with a new generation; forget other members, except static ones."""
        self._host.cancel((self.group_id, "join"))
        for member in self.members:
            if member.joining is None and member.instance_id is None:
                self._forget(member.member_id)
        if not self.members.elect_joined_leader() and len(self.members):
            self._later("join", self.members.rebalance_timeout_ms, now, self._complete_join)
            return
        self.generation += 1
        self._unsynced.clear()
        if not len(self.members):
            self.protocol = None
            self._enter(State.EMPTY)
            self._write()
            return
        self.protocol = self.members.chosen_protocol()
        self._enter(State.COMPLETING)
        for member in self.members:
            reply, member.joining = member.joining, None
            leads = member.member_id == self.members.leader
            self._host.answer(reply, self._joined(member, with_members=leads))
            self._expect_heartbeat(member, now)
            member.is_new = False
            self._unsynced.add(member.member_id)
        timeout = self.members.rebalance_timeout_ms
        self._later("sync", timeout, now, self._expire_syncs)

    def _has_synced(self, member_id: str) -> None:
        self._unsynced.discard(member_id)
        if not self._unsynced:
            self._host.cancel((self.group_id, "sync"))

    def _expire_syncs(self, now: float) -> None:
        """Remove members that joined and then never asked for their assignment."""
        for member in self.members:
            if member.member_id in self._unsynced:
                self._forget(member.member_id)
        self._rebalance(now)

    # ---- expiring ----

    def _forget(self, member_id: str) -> None:
        self._host.cancel((self.group_id, "heartbeat", member_id))
        self._unsynced.discard(member_id)
        self.members.remove(member_id)

    def _expect_heartbeat(self, member: Member, now: float) -> None:
        self._expire_later(member.member_id, member.session_timeout_ms, now)

    def _expire_later(self, member_id: str, timeout_ms: int, now: float) -> None:
        self._host.schedule(
            (self.group_id, "heartbeat", member_id),
            now + timeout_ms / 1000,
            lambda now: self._expire(member_id, now),
        )

    def _expire(self, member_id: str, now: float) -> None:
        if member_id in self.members.pending:
            self.members.remove(member_id)
            if self.state == State.PREPARING and self.members.all_joined:
                self._complete_join(now)
            return
        if member_id not in self.members or self.members[member_id].is_waiting:
            return
        self._answer_join(self.members[member_id], UnknownMemberId.code)
        self._forget(member_id)
        if self.state in (State.STABLE, State.COMPLETING):
            self._rebalance(now)
        elif self.state == State.PREPARING and self.members.all_joined:
            self._complete_join(now)

    # ---- helpers ----

    def _enter(self, state: State) -> None:
        self._previous, self.state = self.state, state

    def _later(self, what: str, delay_ms: int, now: float, action: Action) -> None:
        self._host.schedule((self.group_id, what), now + delay_ms / 1000, action)

    def _joined(self, member: Member, *, with_members: bool) -> JoinGroupResponse:
        protocol = self.protocol or ""
        return JoinGroupResponse(
            error_code=0,
            generation_id=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=protocol,
            leader=self.members.leader or "",
            member_id=member.member_id,
            members=[
                JoinGroupResponseMember(
                    member_id=one.member_id,
                    group_instance_id=one.instance_id,
                    metadata=one.metadata(protocol),
                )
                for one in (self.members if with_members else ())
            ],
        )

    def _assignment(self, member: Member) -> SyncGroupResponse:
        return SyncGroupResponse(
            error_code=0,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol,
            assignment=member.assignment,
        )

    def _answer_join(self, member: Member, code: int) -> None:
        reply, member.joining = member.joining, None
        self._host.answer(reply, JoinGroupResponse(member_id=member.member_id, error_code=code))

    def _answer_sync(self, member: Member, code: int = 0) -> None:
        reply, member.syncing = member.syncing, None
        response = SyncGroupResponse(error_code=code) if code else self._assignment(member)
        self._host.answer(reply, response)

    def _write(self) -> None:
        """Keep what Kafka would write: of the protocols only the chosen one."""
        kept = tuple(
            replace(
                member,
                protocols=[(self.protocol or "", member.metadata(self.protocol or ""))],
                joining=None,
                syncing=None,
                is_new=False,
            )
            for member in self.members
        )
        self._written = _Written(
            self.generation, self.protocol_type, self.protocol, self.members.leader, kept
        )


def _subscribed_topics(member: Member) -> list[str]:
    """Return the topics that a consumer says it wants; none if that cannot be read, as in Kafka."""
    _, metadata = member.protocols[0]
    try:
        return decode_versioned(ConsumerProtocolSubscription, metadata).topics
    except ProtocolError:
        return []
