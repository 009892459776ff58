"""How a KIP-848 member gets from its present partitions to its target assignment.

    target ──► revoke what is not in it ──► assign what is ──► owned == target
               (the user's thread does both, when it polls)

A partition is *held* as soon as the user's thread was asked to read it, even before the answer.
Until the user's thread has given the partition up again, the coordinator must not take it for free.
Partitions are named by topic id here, so a recreated topic is another one under the same name.

Thread: control.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeAlias

from kafka_fast.control.group.consumer_protocol.topic_names import TopicNames
from kafka_fast.control.group.member import AssignWanted, RevokeWanted
from kafka_fast.types import TopicPartition

Ids: TypeAlias = frozenset[tuple[bytes, int]]
"""Partitions by topic id."""

NOTHING: Ids = frozenset()


class Reconciliation:
    """One member's partitions and its target assignment. Control thread only."""

    def __init__(self, names: TopicNames, membership: Callable[[], int]) -> None:
        """Start without partitions; `aim` sets the target.

        Args:
            names: knows the names of topics.
            membership: returns the number of the present membership.
        """
        self._membership = membership
        self._names = names
        self._target: Ids | None = None  # None: nothing was assigned in this membership yet
        self._owned = NOTHING
        self._is_announced = True  # the user's thread was told an assignment in this membership
        self._wanted: deque[tuple[bool, Ids]] = deque()  # unanswered: (is assigned, partitions)
        # What the last step saw: the target, its topics with a name, and what is owned. If nothing
        # of that has changed, there is nothing to do; each turn asks.
        self._seen: tuple[Ids, frozenset[bytes], Ids] | None = None
        self._topic_ids: frozenset[bytes] = frozenset()  # of the target

    # ---- getters ----

    @property
    def owned(self) -> Ids:
        """The partitions that the user's thread has."""
        return self._owned

    @property
    def held(self) -> Ids:
        """The partitions that the user's thread has, or was asked to read."""
        promised = (ids for is_assigned, ids in self._wanted if is_assigned)
        return self._owned.union(*promised)

    @property
    def is_busy(self) -> bool:
        """Whether the user's thread has not answered everything yet."""
        return bool(self._wanted)

    @property
    def is_settled(self) -> bool:
        """Whether the user's thread has what the coordinator wants it to have."""
        return not self._wanted and self._target == self._owned

    @property
    def lacks_names(self) -> bool:
        """Whether no name of an assigned topic is known. Any thread."""
        target = self._target or NOTHING
        return bool(target) and not any(map(self._names.is_known, self._topic_ids))

    # ---- what the coordinator decides ----

    def reset_target(self) -> None:
        """Reset the target for a new membership, whose first assignment is told even if empty."""
        self._target = None
        self._is_announced = False

    def aim(self, target: Ids) -> None:
        """Take the target assignment."""
        self._target = target
        self._topic_ids = frozenset(topic_id for topic_id, _ in target)

    def lose(self, reason: str) -> RevokeWanted | None:
        """Lose all partitions; return the news for the user's thread, if there is any."""
        lost = self.held
        self._target = None
        self._is_announced = True
        self._names.want_names(())
        if not lost:
            return None
        self._wanted.append((False, lost))
        return RevokeWanted(self._partitions(lost), True, reason, self._membership())

    def forget_all(self) -> None:
        """Forget all partitions. The user's thread knows already."""
        self._target = None
        self._is_announced = True
        self._owned = NOTHING
        self._wanted.clear()
        self._names.want_names(())

    # ---- what the user's thread does ----

    def step(self, epoch: int) -> list[RevokeWanted | AssignWanted]:
        """Return news for the user's thread; none while it has not answered the last news.

        A topic whose name is not known yet comes in a later step.
        """
        target = self._target
        if target is None or self._wanted:
            return []
        named = frozenset(
            topic_id for topic_id in self._topic_ids if self._names.name(topic_id) is not None
        )
        if self._seen == (target, named, self._owned) and self._is_announced:
            return []
        self._seen = target, named, self._owned
        self._names.want_names(self._topic_ids - named)
        known = frozenset(partition for partition in target if partition[0] in named)
        is_told = self._is_announced or known != target  # the rest is told when its names are known
        if known == self._owned and is_told:
            return []
        self._is_announced = True
        reason = f"epoch {epoch}"
        steps: list[RevokeWanted | AssignWanted] = []
        moved = self._owned - known
        if moved:
            self._wanted.append((False, moved))
            steps.append(RevokeWanted(self._partitions(moved), False, reason, self._membership()))
        self._wanted.append((True, known))
        steps.append(AssignWanted(self._partitions(known), epoch, reason, self._membership()))
        return steps

    def handle_revoked(self) -> None:
        """Own the partitions of the oldest unanswered news no more, if it is a revocation."""
        if self._wanted and not self._wanted[0][0]:
            self._owned -= self._wanted.popleft()[1]
            self._forget_names()

    def handle_assigned(self) -> None:
        """Own the partitions of the oldest unanswered news, if it is an assignment."""
        if self._wanted and self._wanted[0][0]:
            self._owned = self._wanted.popleft()[1]

    def _partitions(self, ids: Iterable[tuple[bytes, int]]) -> frozenset[TopicPartition]:
        return frozenset(
            TopicPartition(self._names.name(topic_id) or "", partition)
            for topic_id, partition in ids
        )

    def _forget_names(self) -> None:
        needed = self.held | (self._target or NOTHING)
        self._names.forget_others(topic_id for topic_id, _ in needed)
