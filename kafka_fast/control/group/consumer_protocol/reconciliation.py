"""How a KIP-848 member gets from what it owns to what it shall own.

    target ──► revoke what is not in it ──► assign what is ──► owned == target
               (the user's thread does both, in its own time)

A partition is *held* from the moment at which the user's thread was asked to read it, not from when
it has answered: until it has given the partition up again, nobody else may be told that it is free.
Partitions go by topic id here: a topic that was made anew is another one, under the same name.

Thread: control.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TypeAlias

from kafka_fast.control.group.consumer_protocol.topic_names import TopicNames
from kafka_fast.control.group.member import AssignWanted, RevokeWanted
from kafka_fast.types import TopicPartition

Ids: TypeAlias = frozenset[tuple[bytes, int]]
"""Partitions by topic id."""

NOTHING: Ids = frozenset()


class Reconciliation:
    """What one member owns, and what it shall own. Control thread only."""

    def __init__(self, names: TopicNames) -> None:
        """Begin with nothing.

        Args:
            names: of the topics.
        """
        self._names = names
        self._target: Ids | None = None  # None: nothing was assigned in this membership yet
        self._owned = NOTHING
        self._is_announced = True  # the user has heard of an assignment in this membership
        self._wanted: deque[tuple[bool, Ids]] = deque()  # unanswered: whether assigned, and what

    # Getters

    @property
    def owned(self) -> Ids:
        """What the user's thread has."""
        return self._owned

    @property
    def held(self) -> Ids:
        """What the user's thread has or was asked to take."""
        promised = (ids for is_assigned, ids in self._wanted if is_assigned)
        return self._owned.union(*promised)

    @property
    def is_busy(self) -> bool:
        """Whether the user's thread has something to do."""
        return bool(self._wanted)

    @property
    def lacks_names(self) -> bool:
        """Whether all that was assigned is of topics whose names are not known. Any thread."""
        target = self._target or NOTHING
        return bool(target) and not any(self._names.is_known(topic_id) for topic_id, _ in target)

    # What the coordinator says

    def begin(self) -> None:
        """The member has joined: it owns nothing, and waits for a target."""
        self._target = None
        self._is_announced = False

    def aim(self, target: Ids) -> None:
        """Take what the member shall own."""
        self._target = target

    def lose(self, reason: str) -> RevokeWanted | None:
        """Others own everything by now; return what the user's thread is to hear, if anything."""
        lost = self.held
        self._target = None
        self._is_announced = True
        self._names.want(())
        if not lost:
            return None
        self._wanted.append((False, lost))
        return RevokeWanted(self._partitions(lost), True, reason)

    def clear(self) -> None:
        """Own nothing; the user's thread knows already."""
        self._target = None
        self._is_announced = True
        self._owned = NOTHING
        self._wanted.clear()
        self._names.want(())

    # What the user's thread does

    def step(self, epoch: int) -> list[RevokeWanted | AssignWanted]:
        """Return what is to be done now; nothing while the last step is not done.

        A topic whose name is not known yet comes in a later step.
        """
        target = self._target
        if target is None or self._wanted:
            return []
        known = frozenset(it for it in target if self._names.name(it[0]) is not None)
        self._names.want(topic_id for topic_id, _ in target - known)
        is_told = self._is_announced or known != target  # what is not known yet will be told
        if known == self._owned and is_told:
            return []
        self._is_announced = True
        reason = f"epoch {epoch}"
        steps: list[RevokeWanted | AssignWanted] = []
        moved = self._owned - known
        if moved:
            self._wanted.append((False, moved))
            steps.append(RevokeWanted(self._partitions(moved), False, reason))
        self._wanted.append((True, known))
        steps.append(AssignWanted(self._partitions(known), epoch, reason))
        return steps

    def handle_revoked(self) -> None:
        """The user's thread has given up what it was asked to."""
        if self._wanted and not self._wanted[0][0]:
            self._owned -= self._wanted.popleft()[1]
            self._forget_names()

    def handle_assigned(self) -> None:
        """The user's thread has taken what it was asked to."""
        if self._wanted and self._wanted[0][0]:
            self._owned = self._wanted.popleft()[1]

    def _partitions(self, ids: Iterable[tuple[bytes, int]]) -> frozenset[TopicPartition]:
        return frozenset(
            TopicPartition(self._names.name(topic_id) or "", partition)
            for topic_id, partition in ids
        )

    def _forget_names(self) -> None:
        needed = self.held | (self._target or NOTHING)
        self._names.keep(topic_id for topic_id, _ in needed)
