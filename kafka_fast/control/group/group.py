"""A consumer's place in its group: coordinator, offsets and member, as one thing.

Thread: control.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from functools import partial

from kafka_fast.config import CONSUMER_PROTOCOL, ConsumerSettings
from kafka_fast.control.context import Context
from kafka_fast.control.diagnosis.troubles import Reason
from kafka_fast.control.group.assignors.builtin import make_assignors
from kafka_fast.control.group.classic.classic_member import ClassicMember
from kafka_fast.control.group.commits import Commits
from kafka_fast.control.group.committed import CommittedOffsets
from kafka_fast.control.group.consumer_protocol.consumer_protocol_member import (
    ConsumerProtocolMember,
)
from kafka_fast.control.group.group_coordinator import GroupCoordinator
from kafka_fast.control.group.member import (
    AssignWanted,
    GroupNews,
    Member,
    MemberFailed,
    RevokeWanted,
)
from kafka_fast.logs import Waiting
from kafka_fast.types import TopicPartition


class Group:
    """Everything about one consumer's group. Control thread only."""

    def __init__(self, group_id: str, context: Context[ConsumerSettings]) -> None:
        """Make the group's coordinator, member and offsets. The member does not join yet.

        Args:
            group_id: the group.
            context: the consumer's.
        """
        settings = context.settings
        self._news: deque[GroupNews] = deque()
        # Answers of the user's thread, in their order. The first one waits for commits.
        self._answers: deque[tuple[frozenset[TopicPartition], Callable[[float], None]]] = deque()
        self._answered: RevokeWanted | AssignWanted | None = None  # the last one answered
        self.coordinator = GroupCoordinator(
            group_id, context, on_fatal=lambda error: self._news.append(MemberFailed(error))
        )
        self.member: Member
        if settings.group_protocol == CONSUMER_PROTOCOL:
            self.member = ConsumerProtocolMember(context, self.coordinator)
        else:
            assignors = make_assignors(settings.partition_assignment_strategy)
            self.member = ClassicMember(context, self.coordinator, assignors)
        self.commits = Commits(
            context,
            self.coordinator,
            lambda: self.member.identity,
            is_held=lambda: self.member.is_between_generations,
            on_stale=self.member.handle_stale,
        )
        self.committed = CommittedOffsets(context, self.coordinator, lambda: self.member.identity)

    def why_waiting_for_coordinator(self) -> Reason | None:
        """Return why the group's coordinator has not answered; None if that is not known.

        Any thread.
        """
        return self.coordinator.why_waiting()

    def why_waiting(self) -> Waiting | None:
        """Return what a member without partitions waits for; None: nothing. Any thread."""
        group = f"group {self.coordinator.group_id!r}"
        why = self.coordinator.why_waiting()
        if why is not None:
            text = f"waiting for {group}: {why.text}"
            if why.is_expected:
                return Waiting(text, logging.INFO, "a new coordinator")
            return Waiting(text, key="coordinator")
        waiting = self.member.why_waiting()
        if waiting is None:
            return None
        return waiting._replace(text=f"waiting for {group}: {waiting.text}")

    def is_over(self, membership: int) -> bool:
        """Tell whether a membership has ended: others may own its partitions. Any thread."""
        return self.member.identity.number != membership

    def handle_revoked(self, wanted: RevokeWanted, now: float) -> None:
        """Tell the member that partitions were given up, once all their commits have ended.

        A later commit could overwrite the offsets that the next owner commits. Partitions that were
        lost may have another owner already, so commits of these are not waited for.
        """
        is_lost = wanted.lost or self.is_over(wanted.membership)
        awaited = frozenset() if is_lost else wanted.partitions
        tell = partial(self.member.handle_revoked, wanted.partitions)
        self._answer(wanted, awaited, tell, now)

    def handle_assigned(self, wanted: AssignWanted, now: float) -> None:
        """Tell the member that its assignment is read, after earlier revocations were told."""
        self._answer(wanted, frozenset(), self.member.handle_assigned, now)

    def _answer(
        self,
        news: RevokeWanted | AssignWanted,
        awaited: frozenset[TopicPartition],
        tell: Callable[[float], None],
        now: float,
    ) -> None:
        if news is self._answered:
            return  # the same answer again, after a Ctrl-C
        self._answered = news
        self._answers.append((awaited, tell))
        if len(self._answers) == 1:
            self._await_answer(now)

    def _await_answer(self, now: float) -> None:
        """Tell the member the first answer once the commits of its partitions have ended."""
        first = self._answers[0]

        def tell(then: float) -> None:
            if self._answers and self._answers[0] is first:  # else the member has left
                first[1](then)
                self._answers.popleft()
                if self._answers:
                    self._await_answer(then)

        self.commits.settle(first[0], tell, now)

    def leave(self, now: float, done: Callable[[], None]) -> None:
        """Leave the group. Open answers of the user's thread are void."""
        self._answers.clear()
        self.member.leave(now, done)

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        self.member.tick(now)

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""
        return self.member.next_deadline()

    def poll_news(self) -> GroupNews | None:
        """Return the next thing for the user's thread; None if there is nothing."""
        return self._news.popleft() if self._news else self.member.poll_news()
