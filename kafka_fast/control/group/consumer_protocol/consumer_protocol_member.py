"""A member by the consumer protocol (KIP-848): what it tells, and what answers mean.

    OUT ──► JOINING ──epoch──► MEMBER ──► reconciles, tells what it owns ──► …
     ▲         ▲                 │
     │         └── fenced, lost ─┤
     └─ left, overstayed, fatal ─┘

Everything is told in heartbeats (`conversation`), which the data plane keeps sending.

Thread: control. Partitions change hands in the user's thread, see `group.member` and
`reconciliation`.
"""

from __future__ import annotations

import enum
import logging
from collections import deque
from collections.abc import Callable, Iterable

from kafka_fast.config import ConsumerSettings
from kafka_fast.control.connections.links import Link
from kafka_fast.control.context import Context
from kafka_fast.control.diagnosis.permissions import described
from kafka_fast.control.group.consumer_protocol import heartbeat_builder
from kafka_fast.control.group.consumer_protocol.conversation import NOT_SUPPORTED, Conversation
from kafka_fast.control.group.consumer_protocol.heartbeat_builder import new_member_id
from kafka_fast.control.group.consumer_protocol.reconciliation import Reconciliation
from kafka_fast.control.group.consumer_protocol.topic_names import TopicNames
from kafka_fast.control.group.group_coordinator import GroupCoordinator
from kafka_fast.control.group.member import GroupIdentity, GroupNews, MemberFailed, Subscription
from kafka_fast.control.group.readiness import OVERSTAYED, Readiness, warn_of_overstaying
from kafka_fast.control.group.slowness import Slowness
from kafka_fast.control.group.subscription import SubscribedTopics
from kafka_fast.errors import (
    ERRORS,
    ErrorCode,
    KafkaError,
    ProtocolError,
    UnsupportedVersionError,
    broker_error,
    error_name,
)
from kafka_fast.instants import NEVER
from kafka_fast.logs import Waiting, get_logger
from kafka_fast.protocol.apis.groups.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatResponse,
)
from kafka_fast.types import TopicPartition

logger = get_logger("kafka_fast.group")


NOT_A_MEMBER = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})


class ConsumerProtocolMemberState(enum.Enum):
    """How far the membership has come."""

    OUT = "not a member"
    JOINING = "joins"
    MEMBER = "member"


class ConsumerProtocolMember:
    """A `Member` by the consumer protocol. Control thread only."""

    def __init__(self, context: Context[ConsumerSettings], coordinator: GroupCoordinator) -> None:
        """Start outside the group; `subscribe` makes the member join.

        Args:
            context: the consumer's.
            coordinator: the way to the group's coordinator.
        """
        self._settings = context.settings
        self._coordinator = coordinator
        self._readiness = Readiness(context.backoff)
        self._topics = SubscribedTopics(context.cluster, context.settings)
        self._names = TopicNames(context, on_found=self.tick)
        self._reconciliation = Reconciliation(self._names, lambda: self._memberships)
        self._slowness = Slowness(coordinator.group_id, logger)
        self._conversation = Conversation(
            context,
            coordinator,
            new_member_id(context.random),
            handle=self._handle_answer,
            handle_lost=self.tick,
        )
        self._state = ConsumerProtocolMemberState.OUT
        self._epoch = heartbeat_builder.JOIN
        self._memberships = 0
        self._news: deque[GroupNews] = deque()

    # ---- getters ----

    @property
    def identity(self) -> GroupIdentity:
        """The present identity."""
        instance_id = self._settings.group_instance_id
        if self._state is not ConsumerProtocolMemberState.MEMBER:
            return GroupIdentity(instance_id=instance_id, number=self._memberships)
        return GroupIdentity(
            self._epoch, self._conversation.member_id, instance_id, self._memberships
        )

    @property
    def is_paused(self) -> bool:
        """Whether the member stays out until the user polls. Any thread."""
        return self._readiness.is_paused

    @property
    def is_between_generations(self) -> bool:
        """False: a commit under an outdated epoch is sent again under the new one."""
        return False

    def why_waiting(self) -> Waiting | None:
        """Return what a member without partitions waits for; None: nothing. Any thread."""
        if self._state is not ConsumerProtocolMemberState.MEMBER:
            node = self._coordinator.node
            text = f"its coordinator, {node}, has yet to answer the heartbeat by which it joins"
            return self._topics.why_waiting() or Waiting(text, logging.INFO, self._state)
        if self._reconciliation.lacks_names:
            return Waiting("the name of a topic that was assigned is looked up", key="name")
        if (nothing := self._topics.why_waiting()) is not None:
            return nothing
        text = f"epoch {self._epoch} has no partition for this member (yet)"
        return Waiting(
            f"{text}: others have them all, or have yet to give some up", logging.INFO, "spare"
        )

    @property
    def state(self) -> ConsumerProtocolMemberState:
        """Where the member stands."""
        return self._state

    @property
    def member_id(self) -> str:
        """The member's own id, in and out of the group."""
        return self._conversation.member_id

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""
        if self._state is ConsumerProtocolMemberState.OUT:
            return NEVER
        if self._coordinator.link is not None and self._has_to_speak():
            return min(self._readiness.try_at, self._slowness.deadline)
        return self._slowness.deadline

    def poll_news(self) -> GroupNews | None:
        """Return the next thing for the user's thread; None if there is nothing."""
        return self._news.popleft() if self._news else None

    # ---- commands of the user's thread ----

    def subscribe(self, subscription: Subscription, now: float) -> None:
        """Join the group with this subscription, which replaces the last one."""
        self._topics.replace(subscription, now)
        self._readiness.resume()
        if self._state is ConsumerProtocolMemberState.OUT:
            self._state = ConsumerProtocolMemberState.JOINING
        self.tick(now)

    def leave(self, now: float, done: Callable[[], None]) -> None:
        """Leave the group. A static member's partitions wait for its return."""
        self._say_goodbye(done)
        self._readiness.resume()
        self._reconciliation.forget_all()
        self._news.clear()

    def handle_polled(self, now: float) -> None:
        """Join again if the member is paused. A fenced member waits for `subscribe` instead."""
        if self._readiness.handle_polled():
            self._state = ConsumerProtocolMemberState.JOINING
            self.tick(now)

    def handle_overstayed(self, now: float) -> None:
        """Leave the group: the user has not polled for max.poll.interval.ms."""
        if self._state is ConsumerProtocolMemberState.OUT:
            return
        warn_of_overstaying(self._coordinator.group_id, self._settings.max_poll_interval_ms)
        self._say_goodbye(lambda: None)
        self._readiness.pause()
        self._lose(OVERSTAYED)

    def handle_revoked(self, partitions: Iterable[TopicPartition], now: float) -> None:
        """Own the revoked partitions no more, and tell the coordinator when that is possible."""
        self._reconciliation.handle_revoked()
        self.tick(now)

    def handle_assigned(self, now: float) -> None:
        """Own the partitions that were assigned, and tell the coordinator when that is possible."""
        self._reconciliation.handle_assigned()
        self.tick(now)

    def rejoin(self, reason: str, now: float) -> None:
        """Warn only: the coordinator assigns, and no member can ask for a rebalance."""
        logger.warning(
            "group %s: with group.protocol=consumer no member can ask for a rebalance (%s)",
            self._coordinator.group_id,
            reason,
        )

    def handle_stale(self, code: int, now: float) -> None:
        """Tell everything again to learn the present epoch, or fail if the member was fenced."""
        if self._state is not ConsumerProtocolMemberState.MEMBER:
            return
        if code == ErrorCode.FENCED_INSTANCE_ID:
            self._handle_error(code, None, now)
        else:
            self._conversation.forget_told()  # the answer to everything brings the new epoch
            self.tick(now)

    def handle_metadata(self, now: float) -> None:
        """Match the pattern again, and do what new matches and names of topics make possible."""
        self._topics.refresh(now)
        self.tick(now)

    # ---- time ----

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        self._slowness.note_state(
            now, is_rebalancing=self._is_rebalancing, why_waiting=self._why_rebalancing
        )
        if self._state is ConsumerProtocolMemberState.OUT:
            return
        if self._state is ConsumerProtocolMemberState.MEMBER:
            self._news.extend(self._reconciliation.step(self._epoch))
        if not self._has_to_speak() or now < self._readiness.try_at:
            return
        link = self._coordinator.want_link(now)
        if link is None:
            return
        try:
            self._tell(link)
        except UnsupportedVersionError as error:
            self._fail(error, now)

    @property
    def _is_rebalancing(self) -> bool:
        if self._state is ConsumerProtocolMemberState.JOINING:
            return self._topics.subscription is not None
        is_member = self._state is ConsumerProtocolMemberState.MEMBER
        return is_member and not self._reconciliation.is_settled

    def _why_rebalancing(self) -> str:
        """Return what a rebalance waits for that takes long."""
        if self._reconciliation.is_busy:
            return (
                "this consumer has to give up partitions, or to take some over, which the next "
                "poll() does; work on fewer records between two polls, or lower max.poll.records"
            )
        reason = self._coordinator.why_waiting()
        if reason is not None:
            return reason.text
        waiting = self.why_waiting()
        return "this member has yet to join" if waiting is None else waiting.text

    # ---- what is to be told ----

    def _has_to_speak(self) -> bool:
        """Whether there is something that the coordinator was not told yet."""
        if self._conversation.is_asking:
            return False
        subscription = self._topics.subscription
        if self._state is ConsumerProtocolMemberState.JOINING:
            return subscription is not None and not self._reconciliation.is_busy
        if subscription is None:
            return False
        return self._conversation.is_news(subscription, self._reconciliation.owned)

    def _tell(self, link: Link) -> None:
        """Tell the coordinator what has changed."""
        subscription = self._topics.subscription
        if subscription is None:
            return
        if self._state is ConsumerProtocolMemberState.JOINING:
            self._epoch = heartbeat_builder.JOIN
        mine = self._reconciliation
        self._conversation.tell(link, self._epoch, subscription, mine.owned, mine.held)

    def _say_goodbye(self, done: Callable[[], None]) -> None:
        """End the membership, and tell the coordinator."""
        self._state = ConsumerProtocolMemberState.OUT
        self._memberships += 1
        self._conversation.say_goodbye(done)

    # ---- answers ----

    def _handle_answer(self, response: ConsumerGroupHeartbeatResponse, now: float) -> None:
        """Take an answer to news, or an unexpected answer."""
        if response.error_code:
            self._handle_error(response.error_code, response.error_message, now)
            return
        if response.member_epoch <= heartbeat_builder.JOIN or response.heartbeat_interval_ms <= 0:
            self._fail(
                ProtocolError(
                    f"answer to ConsumerGroupHeartbeat: epoch {response.member_epoch}, interval "
                    f"{response.heartbeat_interval_ms} ms"
                ),
                now,
            )
            return
        self._readiness.succeed()
        self._coordinator.note_success(now)
        if self._state is ConsumerProtocolMemberState.JOINING:
            self._state = ConsumerProtocolMemberState.MEMBER
            self._reconciliation.reset_target()
        if response.member_epoch != self._epoch:
            logger.info(
                "group %s: epoch %d%s",
                self._coordinator.group_id,
                response.member_epoch,
                self._slowness.took(now),
            )
            self._epoch = response.member_epoch
        if response.assignment is not None:
            self._reconciliation.aim(
                frozenset(
                    (topic.topic_id, partition)
                    for topic in response.assignment.topic_partitions
                    for partition in topic.partitions
                )
            )
        self.tick(now)

    # ---- errors ----

    def _handle_error(self, code: int, message: str | None, now: float) -> None:
        """Take an error in the answer to a heartbeat."""
        known = ERRORS.get(code)
        if self._coordinator.handle_error(code, now, "ConsumerGroupHeartbeat"):
            self.tick(now)  # the membership goes on with the next coordinator
        elif code in NOT_A_MEMBER:
            self._lose(error_name(code))
            self._join_again(now, at_once=self._state is ConsumerProtocolMemberState.MEMBER)
        elif (
            code == ErrorCode.UNRELEASED_INSTANCE_ID
            and self._state is ConsumerProtocolMemberState.JOINING
        ):
            self._wait_for_release(message, now)
        elif known is not None and known.retriable:
            logger.info("group %s: heartbeat: %s", self._coordinator.group_id, error_name(code))
            self._readiness.put_off(now)
        else:
            words = described(code, "ConsumerGroupHeartbeat", message)
            text = f"group {self._coordinator.group_id!r}: {words}"
            if code == ErrorCode.UNSUPPORTED_VERSION:
                text = f"{text}; {NOT_SUPPORTED}"
            self._fail(broker_error(code, text), now, fenced=code == ErrorCode.FENCED_INSTANCE_ID)

    def _join_again(self, now: float, *, at_once: bool) -> None:
        self._state = ConsumerProtocolMemberState.JOINING
        if not at_once:
            self._readiness.put_off(now)
        self.tick(now)

    def _wait_for_release(self, message: str | None, now: float) -> None:
        """Try until the session of another member with the same instance id has ended.

        That member may be this one, after a lost answer to its join or after it was fenced. So
        this member leaves first.
        """
        if self._readiness.is_first_try:
            logger.warning(
                "group %s: group.instance.id %r is still another member's (%s): waiting until "
                "it leaves, or its session ends",
                self._coordinator.group_id,
                self._settings.group_instance_id,
                message,
            )
        self._say_goodbye(lambda: None)
        self._state = ConsumerProtocolMemberState.JOINING
        self._readiness.put_off(now)

    def _lose(self, reason: str) -> None:
        """Lose all partitions: other members may own them by now."""
        self._conversation.fall_silent()
        self._memberships += 1
        lost = self._reconciliation.lose(reason)
        if lost is not None:
            self._news.append(lost)

    def _fail(self, error: KafkaError, now: float, *, fenced: bool = False) -> None:
        """Stay out of the group until the user polls, or if fenced subscribes again."""
        logger.error("group %s: %s", self._coordinator.group_id, error)
        if fenced:
            self._conversation.forget_coordinator()  # another member has the instance id
        self._say_goodbye(lambda: None)
        self._readiness.pause(fenced=fenced)
        self._readiness.put_off(now)
        self._lose(str(error))
        self._news.append(MemberFailed(error))
