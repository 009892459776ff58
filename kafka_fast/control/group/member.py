"""What every kind of group member is to the consumer around it.

    user's thread ── subscribe, handle_revoked, handle_assigned, leave ──► Member
    user's thread ◄── RevokeWanted, AssignWanted, MemberFailed ──────────── Member

A member finds its assignment in the background, but partitions change hands in the user's thread:
they are revoked and assigned in `poll`, which runs the listener. So a member asks (`RevokeWanted`)
and goes on when it hears that it was done (`handle_revoked`); until then it keeps sending
heartbeats.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol, TypeAlias

from kafka_fast.errors import KafkaError
from kafka_fast.logs import Waiting
from kafka_fast.types import TopicPartition
from kafka_fast.values import Value

NO_GENERATION = -1


class GroupIdentity(NamedTuple):
    """Who commits: what proves to the coordinator that this member is of the present group."""

    generation: int = NO_GENERATION
    """Generation, or member epoch with KIP-848; -1: not a member, commits are a stranger's."""
    member_id: str = ""
    instance_id: str | None = None
    number: int = 0
    """Counts the memberships: one ends, with all that the member owned, when it loses its place."""


class RevokeWanted(Value):
    """Give these partitions up at the next poll; answered by `handle_revoked`.

    Attributes:
        partitions: all that are to be given up.
        lost: they belong to others already: nothing of them can be committed any more.
        reason: for the listener's event and the log.
    """

    partitions: frozenset[TopicPartition]
    lost: bool
    reason: str


class AssignWanted(Value):
    """Read these partitions, and no others, from the next poll on; answered by `handle_assigned`.

    Attributes:
        partitions: all that this member owns now.
        generation: of the group.
        reason: for the listener's event and the log.
    """

    partitions: frozenset[TopicPartition]
    generation: int
    reason: str


class MemberFailed(Value):
    """Raise this at the next poll: the member is out of its group, and will not join by itself."""

    error: KafkaError


class TopicFailed(Value):
    """Raise this at the next poll: a topic of the subscription cannot be used; the others can."""

    error: KafkaError


GroupNews: TypeAlias = RevokeWanted | AssignWanted | MemberFailed | TopicFailed


class Subscription(NamedTuple):
    """What a member wants to read.

    Attributes:
        topics: by name.
        pattern: that names have to match as a whole; the client matches.
        regex: likewise, but RE2, and the coordinator matches (KIP-848).
    """

    topics: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None
    regex: str | None = None


class Member(Protocol):
    """Membership in a group, by either protocol. Control thread only."""

    @property
    def identity(self) -> GroupIdentity:
        """Who commits."""

    @property
    def is_paused(self) -> bool:
        """Whether the member stays out until the user polls. Any thread."""

    @property
    def is_between_generations(self) -> bool:
        """Whether nothing can be committed now: the coordinator would read it in the next one."""

    def waits_for(self) -> Waiting | None:
        """Return what the member waits for while it owns nothing; None: nothing. Any thread."""

    def subscribe(self, subscription: Subscription, now: float) -> None:
        """Belong to the group with this subscription; replaces the last one."""

    def leave(self, now: float, done: Callable[[], None]) -> None:
        """Leave the group, as far as that can be told in time; partitions were given up before.

        A static member's partitions wait for its return, up to the session timeout (KIP-345).
        """

    def handle_polled(self, now: float) -> None:
        """The user polls: a member that had overstayed max.poll.interval.ms may join again."""

    def handle_overstayed(self, now: float) -> None:
        """The user has not polled for max.poll.interval.ms: leave, so that others may go on."""

    def handle_revoked(self, partitions: Iterable[TopicPartition], now: float) -> None:
        """The user's thread has given these partitions up."""

    def handle_assigned(self, now: float) -> None:
        """The user's thread reads what was assigned."""

    def rejoin(self, reason: str, now: float) -> None:
        """Have the group rebalanced, as `Consumer.enforce_rebalance` asks."""

    def handle_stale(self, code: int, now: float) -> None:
        """A commit was refused because this member is not what it was."""

    def handle_metadata(self, now: float) -> None:
        """Topics or partitions have changed: what a pattern matches, what a leader assigns."""

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""

    def poll_news(self) -> GroupNews | None:
        """Return the next thing for the user's thread; None if there is nothing."""
