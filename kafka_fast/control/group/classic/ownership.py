"""The partitions of a classic member, and what its user's thread has to do about them.

    assigned ──► RevokeWanted (what moved) ──► AssignWanted ──► the user's thread ──► owned
    lost ──────► RevokeWanted (all of it)  ──────────────────────────┘

Thread: control. Partitions change hands in the user's thread, see `member`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from kafka_fast.control.group.member import AssignWanted, GroupNews, MemberFailed, RevokeWanted
from kafka_fast.errors import KafkaError
from kafka_fast.types import TopicPartition


class Ownership:
    """One member's partitions. Control thread only."""

    def __init__(self, membership: Callable[[], int]) -> None:
        """Own no partitions before the first `handle_assigned`.

        Args:
            membership: returns the number of the present membership.
        """
        self._membership = membership
        self._owned: frozenset[TopicPartition] = frozenset()
        self._target: frozenset[TopicPartition] = frozenset()  # of the last assignment
        self._unanswered = 0
        self._news: deque[GroupNews] = deque()

    # ---- getters ----

    @property
    def owned(self) -> frozenset[TopicPartition]:
        """The partitions that the user's thread has."""
        return self._owned

    @property
    def is_busy(self) -> bool:
        """Whether the user's thread has not answered everything yet."""
        return self._unanswered > 0

    def poll_news(self) -> GroupNews | None:
        """Return the next thing for the user's thread; None if there is nothing."""
        return self._news.popleft() if self._news else None

    # ---- what the group decides ----

    def assign(
        self, partitions: frozenset[TopicPartition], generation: int
    ) -> frozenset[TopicPartition]:
        """Take a new assignment; return the partitions that have to be given up for it."""
        self._target = partitions
        reason = f"generation {generation}"
        moved = self._owned - partitions
        if moved:
            self._tell(RevokeWanted(moved, False, reason, self._membership()))
        self._tell(AssignWanted(partitions, generation, reason, self._membership()))
        return moved

    def give_up_all(self, reason: str) -> None:
        """Have all partitions given up before the group rebalances."""
        if self._owned:
            self._tell(RevokeWanted(self._owned, False, reason, self._membership()))

    def lose(self, reason: str) -> None:
        """Lose all partitions: other members may own them by now."""
        lost = self._owned | self._target
        self._target = frozenset()
        if lost:
            self._tell(RevokeWanted(lost, True, reason, self._membership()))

    def lose_all(self, error: KafkaError) -> None:
        """Lose all partitions with an error: the member will not join again by itself."""
        self.lose(str(error))
        self._news.append(MemberFailed(error))

    def forget_all(self) -> None:
        """Forget all partitions and news. The user's thread knows, and will not answer."""
        self._owned = self._target = frozenset()
        self._unanswered = 0
        self._news.clear()

    # ---- what the user's thread does ----

    def handle_revoked(self, partitions: Iterable[TopicPartition]) -> None:
        """Own these partitions no more: the user's thread has given them up."""
        self._unanswered -= 1
        self._owned -= frozenset(partitions)

    def handle_assigned(self) -> None:
        """Own the target, which the user's thread reads now."""
        self._unanswered -= 1
        self._owned = self._target

    def _tell(self, event: RevokeWanted | AssignWanted) -> None:
        self._unanswered += 1
        self._news.append(event)
