"""The members of one classic group: who they are, what protocols they speak, who leads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kafka_fast.errors import FencedInstanceId, UnknownMemberId
from kafka_fast.protocol.apis.groups.join_group import JoinGroupResponse
from kafka_fast.protocol.apis.groups.sync_group import SyncGroupResponse
from kafka_fast.testing.broker.groups.host import Reply

Protocols = Sequence[tuple[str, bytes]]  # (name, metadata), the favourite first


@dataclass(slots=True)
class Member:
    """One member of a classic group."""

    member_id: str
    instance_id: str | None
    """Of a static member (KIP-345)."""
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocol_type: str
    protocols: Protocols
    client_id: str = ""
    assignment: bytes = b""
    joining: Reply[JoinGroupResponse] | None = None
    """Where its join is to be answered."""
    syncing: Reply[SyncGroupResponse] | None = None
    is_new: bool = False
    """Its first join was not answered yet."""

    @property
    def is_waiting(self) -> bool:
        """Tell whether the group lets it wait, and so does not expect a heartbeat."""
        return not self.is_new and (self.joining is not None or self.syncing is not None)

    def metadata(self, protocol: str) -> bytes:
        """Return what the member says under a protocol that it speaks."""
        return next(metadata for name, metadata in self.protocols if name == protocol)


class Members:
    """The members of a group, in the order in which they came."""

    def __init__(self) -> None:
        self.leader: str | None = None  # a member id
        self.pending: dict[str, None] = {}  # ids that were given out and have not joined yet
        self._members: dict[str, Member] = {}
        self._static: dict[str, str] = {}  # instance id -> member id

    def __len__(self) -> int:
        """Return the number of members."""
        return len(self._members)

    def __iter__(self) -> Iterator[Member]:
        """Iterate over the members."""
        return iter(list(self._members.values()))

    def __contains__(self, member_id: str) -> bool:
        """Tell whether there is such a member."""
        return member_id in self._members

    def __getitem__(self, member_id: str) -> Member:
        """Return a member."""
        return self._members[member_id]

    # ---- coming and going ----

    def add(self, member: Member) -> None:
        """Take a member in; the first one leads."""
        self._members[member.member_id] = member
        if member.instance_id is not None:
            self._static[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self.pending.pop(member.member_id, None)

    def remove(self, member_id: str) -> None:
        """Let a member go, or an id that never joined; another one leads if it led."""
        member = self._members.pop(member_id, None)
        if member is not None and member.instance_id is not None:
            self._static.pop(member.instance_id, None)
        if self.leader == member_id:
            self.leader = next(iter(self._members), None)
        self.pending.pop(member_id, None)

    def replace(self, old: Member, new: Member) -> None:
        """Put a static member that came back in the place of its former self."""
        self._members = {
            (new.member_id if member is old else member_id): (new if member is old else member)
            for member_id, member in self._members.items()
        }
        if self.leader == old.member_id:
            self.leader = new.member_id
        if new.instance_id is not None:
            self._static[new.instance_id] = new.member_id

    def static(self, instance_id: str) -> Member | None:
        """Return the member with this instance id."""
        member_id = self._static.get(instance_id)
        return None if member_id is None else self._members[member_id]

    def check(self, member_id: str, instance_id: str | None) -> None:
        """Refuse who is not a member, or not any longer the one with its instance id.

        Raises:
            UnknownMemberId, FencedInstanceId
        """
        if instance_id is not None:
            known = self._static.get(instance_id)
            if known is None:
                raise UnknownMemberId(f"no member with the instance id {instance_id!r}")
            if known != member_id:
                raise FencedInstanceId(f"{instance_id!r} is {known!r} now, not {member_id!r}")
        if member_id not in self._members:
            raise UnknownMemberId(f"no member {member_id!r}")

    # ---- what they agree on ----

    @property
    def all_joined(self) -> bool:
        """Tell whether everybody waits for the answer to a join."""
        return not self.pending and all(m.joining is not None for m in self._members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """Return the longest that any member may take to join again."""
        return max((m.rebalance_timeout_ms for m in self._members.values()), default=0)

    def elect_joined_leader(self) -> bool:
        """See to it that a member leads that has joined; False: there is none."""
        if self.leader is None:
            return False
        if self._members[self.leader].joining is None:
            joined = [m.member_id for m in self._members.values() if m.joining is not None]
            if not joined:
                return False
            self.leader = joined[0]
        return True

    def speak_one_of(self, names: Iterable[str]) -> bool:
        """Tell whether all members speak one of these protocols; no members speak any."""
        return not self._members or not set(names).isdisjoint(self._common())

    def chosen_protocol(self) -> str:
        """Return the protocol that most members prefer among those that all speak."""
        common = self._common()
        votes = Counter(
            next(name for name, _ in member.protocols if name in common)
            for member in self._members.values()
        )
        return max(votes, key=lambda name: votes[name])

    def _common(self) -> set[str]:
        counts = Counter(
            name for member in self._members.values() for name in dict(member.protocols)
        )
        return {name for name, count in counts.items() if count == len(self._members)}
