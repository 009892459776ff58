"""A classic group: what its members ask of it.

The rules and their order are those of Kafka's GroupMetadataManager; what follows from them is in
generations.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from kafka_fast.errors import (
    BrokerError,
    FencedInstanceId,
    GroupMaxSizeReached,
    IllegalGeneration,
    InconsistentGroupProtocol,
    MemberIdRequired,
    RebalanceInProgress,
    UnknownMemberId,
)
from kafka_fast.protocol.apis.groups.join_group import JoinGroupResponse
from kafka_fast.protocol.apis.groups.sync_group import SyncGroupResponse
from kafka_fast.testing.broker.groups.generations import Generations, State
from kafka_fast.testing.broker.groups.host import Reply
from kafka_fast.testing.broker.groups.members import Member, Protocols


@dataclass(frozen=True, slots=True)
class Join:
    """What a member asks for when it joins."""

    member_id: str
    """Empty: it has none yet."""
    instance_id: str | None
    client_id: str | None
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    needs_known_id: bool
    """A new member is given an id first, to join with it (KIP-394)."""
    may_skip_assignment: bool
    """A leader that came back need not assign (KIP-814)."""


class ClassicGroup(Generations):
    """One group as its coordinator sees it."""

    # ---- requests ----

    def join(self, join: Join, now: float) -> Reply[JoinGroupResponse]:
        """Take a member in, or in again; the answer comes when the rebalance is over.

        Raises:
            BrokerError: the answer that the member gets instead.
        """
        if not self._has_room(join.member_id):
            self.members.remove(join.member_id)
            raise GroupMaxSizeReached(f"{len(self.members)} members are in {self.group_id!r}")
        self._check_protocols(join)
        if join.member_id:
            return self._join_known(join, now)
        new_id = f"{join.instance_id or join.client_id or ''}-{self._host.new_uuid()}"
        if join.instance_id is not None:
            former = self.members.static(join.instance_id)
            if former is not None:
                return self._replace_static(join, former, new_id, now)
        elif join.needs_known_id:
            self.members.pending[new_id] = None
            self._expire_later(new_id, join.session_timeout_ms, now)
            return Reply(JoinGroupResponse(member_id=new_id, error_code=MemberIdRequired.code))
        return self._add(join, new_id, now)

    def sync(
        self,
        generation: int,
        member_id: str,
        instance_id: str | None,
        protocol: tuple[str | None, str | None],
        assignments: Mapping[str, bytes],
        now: float,
    ) -> Reply[SyncGroupResponse]:
        """Return a member's assignment when the leader has sent it.

        Args:
            generation: that the member is in.
            member_id: of the member.
            instance_id: of a static one.
            protocol: type and name, as far as the member says.
            assignments: member id -> assignment, of the leader.
            now: the time.

        Raises:
            BrokerError: the answer that the member gets instead.
        """
        if self.state == State.EMPTY:
            raise UnknownMemberId(f"{self.group_id!r} is empty")
        self.members.check(member_id, instance_id)
        self._check_generation(generation)
        ours = (self.protocol_type, self.protocol)
        if any(
            None not in pair and pair[0] != pair[1] for pair in zip(protocol, ours, strict=True)
        ):
            raise InconsistentGroupProtocol(f"{protocol} is not {ours}")
        if self.state == State.PREPARING:
            raise RebalanceInProgress(f"{self.group_id!r} waits for joins")
        member = self.members[member_id]
        self._has_synced(member_id)
        if self.state == State.STABLE:
            return Reply(self._assignment(member))
        reply = member.syncing = Reply[SyncGroupResponse]()
        if member_id == self.members.leader:
            for one in self.members:
                one.assignment = assignments.get(one.member_id, b"")
            self._enter(State.STABLE)
            self._write()
            for one in self.members:
                if one.syncing is not None:
                    self._expect_heartbeat(one, now)
                self._answer_sync(one)
        return reply

    def heartbeat(
        self, generation: int, member_id: str, instance_id: str | None, now: float
    ) -> None:
        """Take a sign of life.

        Raises:
            BrokerError: the answer that the member gets.
        """
        self.members.check(member_id, instance_id)
        self._check_generation(generation)
        self._expect_heartbeat(self.members[member_id], now)
        if self.state == State.PREPARING:
            raise RebalanceInProgress(f"{self.group_id!r} rebalances")

    def remove_members(self, leaving: list[tuple[str, str | None]], now: float) -> list[int]:
        """Let members go, given as member id and instance id; return an error code for each."""
        codes = [self._leave(member_id, instance_id) for member_id, instance_id in leaving]
        if 0 in codes:
            if self.state in (State.COMPLETING, State.STABLE):
                self._rebalance(now)
            elif self.state == State.PREPARING:
                self._maybe_complete_join(now)
        return codes

    def check_commit(
        self, generation: int, member_id: str, instance_id: str | None, now: float
    ) -> None:
        """Refuse a commit of who is not a member of this generation; a commit is a sign of life.

        Raises:
            BrokerError: the answer.
        """
        if generation < 0 and self.state == State.EMPTY:
            return
        if generation < 0 and not member_id and instance_id is None:
            raise UnknownMemberId(f"{self.group_id!r} has members, only they may commit")
        self.check_member(generation, member_id, instance_id)
        if self.state == State.COMPLETING:
            raise RebalanceInProgress(f"{self.group_id!r} waits for its leader's assignment")
        self._expect_heartbeat(self.members[member_id], now)

    def check_member(self, generation: int, member_id: str, instance_id: str | None) -> None:
        """Refuse who is not a member of this generation.

        Raises:
            BrokerError: the answer.
        """
        self.members.check(member_id, instance_id)
        self._check_generation(generation)

    # ---- joining ----

    def _has_room(self, member_id: str) -> bool:
        most = self._host.settings.max_size
        if self.state == State.EMPTY:
            return True
        if self.state == State.PREPARING:
            joined = [member for member in self.members if member.joining is not None]
            return any(m.member_id == member_id for m in joined) or len(joined) < most
        return member_id in self.members or len(self.members) < most

    def _check_protocols(self, join: Join) -> None:
        names = [name for name, _ in join.protocols]
        if self.state == State.EMPTY:
            fits = bool(join.protocol_type and names)
        else:
            same_type = bool(names) and join.protocol_type == self.protocol_type
            fits = same_type and self.members.speak_one_of(names)
        if not fits:
            raise InconsistentGroupProtocol(f"{join.protocol_type!r} {names} does not fit")

    def _join_known(self, join: Join, now: float) -> Reply[JoinGroupResponse]:
        if join.member_id in self.members.pending:
            return self._add(join, join.member_id, now)
        self.members.check(join.member_id, join.instance_id)
        member = self.members[join.member_id]
        same = list(member.protocols) == list(join.protocols)
        leads = self.members.leader == member.member_id
        if (self.state == State.COMPLETING and same) or (
            self.state == State.STABLE and same and not leads
        ):
            return Reply(self._joined(member, with_members=leads))
        if self.state == State.EMPTY:
            raise UnknownMemberId(f"{self.group_id!r} is empty")
        reply = self._update(member, join)
        self._rebalance(now)
        return reply

    def _add(self, join: Join, member_id: str, now: float) -> Reply[JoinGroupResponse]:
        member = Member(
            member_id,
            join.instance_id,
            join.rebalance_timeout_ms,
            join.session_timeout_ms,
            join.protocol_type,
            join.protocols,
            join.client_id or "",
            is_new=True,
        )
        if not len(self.members):
            self.protocol_type = join.protocol_type
        if self.state == State.PREPARING and self._previous == State.EMPTY:
            self._new_member_added = True
        reply = member.joining = Reply[JoinGroupResponse]()
        self.members.add(member)
        self._expire_later(member_id, self._host.settings.new_member_timeout_ms, now)
        self._rebalance(now)
        return reply

    def _replace_static(
        self, join: Join, former: Member, new_id: str, now: float
    ) -> Reply[JoinGroupResponse]:
        """Let a static member that lost its id go on; its former self is fenced (KIP-345)."""
        self._answer_join(former, FencedInstanceId.code)
        self._answer_sync(former, FencedInstanceId.code)
        former_leader = self.members.leader
        member = replace(former, member_id=new_id, is_new=False)
        self.members.replace(former, member)
        self._expect_heartbeat(member, now)
        reply = self._update(member, join)
        if self.state == State.STABLE:
            if self.members.chosen_protocol() != self.protocol:
                self._rebalance(now)
                return reply
            self._write()
            leads = self.members.leader == new_id
            response = self._joined(member, with_members=leads and join.may_skip_assignment)
            if join.may_skip_assignment:
                response.skip_assignment = leads
            else:
                response.leader = former_leader or ""  # an old client would assign anew
            member.joining = None
            return Reply(response)
        if self.state == State.COMPLETING:
            self._rebalance(now)
        else:
            self._maybe_complete_join(now)
        return reply

    def _update(self, member: Member, join: Join) -> Reply[JoinGroupResponse]:
        member.protocols = join.protocols
        member.client_id = join.client_id or ""
        member.rebalance_timeout_ms = join.rebalance_timeout_ms
        member.session_timeout_ms = join.session_timeout_ms
        reply = member.joining = Reply[JoinGroupResponse]()
        return reply

    # ---- leaving ----

    def _leave(self, member_id: str, instance_id: str | None) -> int:
        if not member_id:
            member = None if instance_id is None else self.members.static(instance_id)
            if member is None:
                return UnknownMemberId.code
            member_id = member.member_id
        elif member_id not in self.members.pending:
            try:
                self.members.check(member_id, instance_id)
            except BrokerError as error:
                return error.code
        if member_id in self.members:
            self._answer_join(self.members[member_id], UnknownMemberId.code)
        self._forget(member_id)
        return 0

    # ---- helpers ----

    def _check_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise IllegalGeneration(f"generation {generation}, it is {self.generation} now")
