"""The interface of a group member, whichever protocol it uses.

    user's thread ── subscribe, handle_revoked, handle_assigned, leave ──► Member
    user's thread ◄── RevokeWanted, AssignWanted, MemberFailed ──────────── Member

A member finds its assignment in the background. But partitions are revoked and assigned in the
user's thread, in `poll`, which runs the listener. So a member asks (`RevokeWanted`), and goes on
when the user's thread has answered (`handle_revoked`). Until then it keeps sending heartbeats.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol, TypeAlias

from kafka_fast.errors import BrokerError, KafkaError
from kafka_fast.logs import Waiting
from kafka_fast.types import TopicPartition
from kafka_fast.values import Value

NO_GENERATION = -1


class GroupIdentity(NamedTuple):
    """A member's identity in its group, by which the coordinator accepts its requests."""

    generation: int = NO_GENERATION
    """Generation, or member epoch with KIP-848; -1: this client is no member."""
    member_id: str = ""
    instance_id: str | None = None
    number: int = 0
    """Counts the memberships. One ends when the member leaves or loses all its partitions."""


class RevokeWanted(Value):
    """Give these partitions up at the next poll; answered by `handle_revoked`."""

    partitions: frozenset[TopicPartition]
    """The partitions to give up."""
    lost: bool
    """Other members may own them already, so their offsets cannot be committed any more."""
    reason: str
    """For the listener's event and the log."""
    membership: int
    """`GroupIdentity.number`. The news may wait for a poll for long. If the membership has ended
    meanwhile, the partitions are lost.
    """


class AssignWanted(Value):
    """Read these partitions and no others from the next poll on; `handle_assigned` answers."""

    partitions: frozenset[TopicPartition]
    """All partitions of this member."""
    generation: int
    """Of the group."""
    reason: str
    """For the listener's event and the log."""
    membership: int
    """`GroupIdentity.number`. If that membership has ended meanwhile, there is nothing to read."""


class MemberFailed(Value):
    """Raise this at the next poll: the member left its group and will not join by itself."""

    error: KafkaError


class TopicFailed(Value):
    """Raise this at the next poll: one topic of the subscription cannot be used.

    Nothing is raised if the brokers say something else of the topic by then.
    """

    error: BrokerError
    topic: str


GroupNews: TypeAlias = RevokeWanted | AssignWanted | MemberFailed | TopicFailed


class Subscription(NamedTuple):
    """What a member wants to read."""

    topics: frozenset[str] = frozenset()
    """Names of topics."""
    pattern: re.Pattern[str] | None = None
    """The client matches whole names of topics with this."""
    regex: str | None = None
    """The coordinator matches whole names of topics with this, in RE2's syntax (KIP-848)."""


class Member(Protocol):
    """A member of a group, by either protocol. Control thread only."""

    @property
    def identity(self) -> GroupIdentity:
        """The present identity."""

    @property
    def is_paused(self) -> bool:
        """Whether the member stays out until the user polls. Any thread."""

    @property
    def is_between_generations(self) -> bool:
        """Whether commits must wait: the coordinator would refuse them in this rebalance."""

    def why_waiting(self) -> Waiting | None:
        """Return what a member without partitions waits for; None: nothing. Any thread."""

    def subscribe(self, subscription: Subscription, now: float) -> None:
        """Join the group with this subscription, which replaces the last one."""

    def leave(self, now: float, done: Callable[[], None]) -> None:
        """Leave the group; `done` is called when the coordinator knows, or cannot be told in time.

        The partitions were given up before. Those of a static member wait for its return, up to
        the session timeout (KIP-345).
        """

    def handle_polled(self, now: float) -> None:
        """Join again if the member is paused. A fenced member waits for `subscribe` instead."""

    def handle_overstayed(self, now: float) -> None:
        """Leave the group: the user has not polled for max.poll.interval.ms."""

    def handle_revoked(self, partitions: Iterable[TopicPartition], now: float) -> None:
        """Own these partitions no more: the user's thread has given them up."""

    def handle_assigned(self, now: float) -> None:
        """Own the partitions that were assigned: the user's thread reads them."""

    def rejoin(self, reason: str, now: float) -> None:
        """Make the group rebalance, as `Consumer.enforce_rebalance` asks."""

    def handle_stale(self, code: int, now: float) -> None:
        """Bring an outdated identity up to date, or fail: a commit was refused with this code."""

    def handle_metadata(self, now: float) -> None:
        """Match the pattern again, and do what waited for new metadata."""

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""

    def poll_news(self) -> GroupNews | None:
        """Return the next thing for the user's thread; None if there is nothing."""
