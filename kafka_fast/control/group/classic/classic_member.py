"""A member by the classic protocol: when it joins, what it gives up before, how it ends.

    OUT ──► PREPARING ──► JOINING ──► STABLE
     ▲      (revoke)   (`rebalance`)    │ rebalance, metadata, subscription
     │          ▲───────────────────────┘
     └─ left, overstayed, fatal

With an eager assignor all partitions are revoked before the member joins. With a cooperative one
(KIP-429) the member keeps its partitions and joins. It gives up only those that move, and joins
again so that others can own them. A member whose identity the coordinator no longer accepts has
*lost* its partitions: others may read them already.

Thread: control. Partitions change hands in the user's thread, see `group.member`.
"""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from kafka_fast.config import ConsumerSettings
from kafka_fast.control.context import Context
from kafka_fast.control.diagnosis.permissions import described
from kafka_fast.control.group.assignors import Assignor
from kafka_fast.control.group.assignors.calls import AssignorCalls
from kafka_fast.control.group.classic import classic_messages
from kafka_fast.control.group.classic.goodbyes import Goodbyes
from kafka_fast.control.group.classic.leader import GroupLeader
from kafka_fast.control.group.classic.ownership import Ownership
from kafka_fast.control.group.classic.rebalance import (
    Rebalance,
    RebalanceDone,
    RebalanceEnd,
    RebalanceFailed,
    RebalanceInterrupted,
    RebalancePhase,
    RebalanceRefused,
)
from kafka_fast.control.group.classic.session import Session
from kafka_fast.control.group.group_coordinator import GroupCoordinator
from kafka_fast.control.group.member import NO_GENERATION, GroupIdentity, GroupNews, Subscription
from kafka_fast.control.group.readiness import OVERSTAYED, Readiness, warn_of_overstaying
from kafka_fast.control.group.slowness import Slowness
from kafka_fast.control.group.subscription import SubscribedTopics
from kafka_fast.errors import (
    ERRORS,
    ErrorCode,
    KafkaError,
    broker_error,
    error_name,
)
from kafka_fast.instants import NEVER
from kafka_fast.logs import Waiting, all_of, get_logger
from kafka_fast.protocol.apis.groups.join_group import JoinGroupRequestProtocol
from kafka_fast.types import TopicPartition

logger = get_logger("kafka_fast.group")


NOT_A_MEMBER = frozenset({ErrorCode.ILLEGAL_GENERATION, ErrorCode.UNKNOWN_MEMBER_ID})
HARMLESS = frozenset({0, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REBALANCE_IN_PROGRESS})
"""Codes in an answer to Heartbeat that leave the membership as it is."""


class ClassicMemberState(enum.Enum):
    """How far the membership has come."""

    OUT = "not a member"
    PREPARING = "gives up partitions before it joins"
    JOINING = "joins"
    STABLE = "member"


class ClassicMember:
    """A `Member` by the classic protocol. Control thread only."""

    def __init__(
        self,
        context: Context[ConsumerSettings],
        coordinator: GroupCoordinator,
        assignors: Sequence[Assignor],
    ) -> None:
        """Start outside the group; `subscribe` makes the member join.

        Args:
            context: the consumer's.
            coordinator: the way to the group's coordinator.
            assignors: this member's assignors, the preferred one first.
        """
        settings, cluster = context.settings, context.cluster
        self._settings = settings
        self._assignors = {assignor.name: assignor for assignor in assignors}
        # If one assignor is eager, the group may choose it.
        self._is_cooperative = all(assignor.is_cooperative for assignor in assignors)
        self._coordinator = coordinator
        self._readiness = Readiness(context.backoff)
        self._subscription = SubscribedTopics(cluster, settings)
        self._ownership = Ownership(lambda: self.identity.number)
        self._session = Session(
            context,
            coordinator,
            on_heartbeat=self._handle_heartbeat,
            on_moved=self.tick,
        )
        self._calls = AssignorCalls(self._assignors, context.call_in_thread)
        self._leader = GroupLeader(
            self._assignors, self._subscription, cluster, patience=settings.max_poll_interval
        )
        self._rebalance = Rebalance(
            settings,
            coordinator,
            self._session,
            self._leader,
            self._calls,
            on_entered=self._handle_entered,
            on_end=self._handle_end,
        )
        self._goodbyes = Goodbyes(coordinator)
        self._slowness = Slowness(coordinator.group_id, logger)
        self._state = ClassicMemberState.OUT
        self._rejoin_reason: str | None = None  # set: join (again) as soon as that is possible
        # What the assignors have been asked to say of this member, and what they have said of it.
        self._described: classic_messages.MemberState | None = None
        self._protocols: list[JoinGroupRequestProtocol] | None = None

    # ---- getters ----

    @property
    def identity(self) -> GroupIdentity:
        """The present identity."""
        return self._session.identity

    @property
    def is_paused(self) -> bool:
        """Whether the member stays out until the user polls. Any thread."""
        return self._readiness.is_paused

    @property
    def is_between_generations(self) -> bool:
        """Whether this member of a generation is joining the next one.

        The coordinator reads a commit from now behind the JoinGroup, or before the group has its
        assignments. It refuses the commit in both cases. With a cooperative assignor this member
        keeps its partitions meanwhile, so its commits wait.
        """
        return (
            self._state is ClassicMemberState.JOINING and self.identity.generation != NO_GENERATION
        )

    def why_waiting(self) -> Waiting | None:
        """Return what a member without partitions waits for; None: nothing. Any thread."""
        match self._state:
            case ClassicMemberState.JOINING:
                return Waiting(self._rebalance.why_waiting(), logging.INFO, self._rebalance.phase)
            case ClassicMemberState.STABLE if self._rejoin_reason is None:
                if (nothing := self._subscription.why_waiting()) is not None:
                    return nothing
                generation = self.identity.generation
                text = f"generation {generation} has no partition for this member"
                return Waiting(f"{text}: others have them all", logging.INFO, "spare")
            case ClassicMemberState.PREPARING if self._is_asking_assignors:
                names = " or ".join(map(repr, self._assignors))
                text = f"this member has yet to join: its assignor {names} has yet to return"
                return Waiting(text, logging.INFO, "assignor")
            case _:
                return self._subscription.why_waiting() or Waiting(
                    "this member has yet to join", logging.INFO, self._state
                )

    @property
    def state(self) -> ClassicMemberState:
        """Where the member stands."""
        return self._state

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""
        waits = self._goodbyes.next_deadline(), self._rebalance.next_deadline()
        return min(*waits, self._slowness.deadline, self._next_step())

    def _next_step(self) -> float:
        if self._rejoin_reason is None and self._state is ClassicMemberState.STABLE:
            return self._leader.settled_by
        if self._rejoin_reason is None or self._ownership.is_busy or self.is_paused:
            return NEVER
        if self._subscription.topics is None:
            return NEVER  # metadata will tell what the pattern matches
        if self._state is ClassicMemberState.JOINING or self._is_asking_assignors:
            return NEVER
        return self._readiness.try_at if self._coordinator.link is not None else NEVER

    @property
    def _is_asking_assignors(self) -> bool:
        return self._described is not None and self._protocols is None

    def poll_news(self) -> GroupNews | None:
        """Return the next thing for the user's thread; None if there is nothing."""
        return self._ownership.poll_news()

    # ---- commands of the user's thread ----

    def subscribe(self, subscription: Subscription, now: float) -> None:
        """Join the group with this subscription, which replaces the last one."""
        self._subscription.replace(subscription, now)
        self._readiness.resume()
        self._want_join("the subscription changed", now)

    def leave(self, now: float, done: Callable[[], None]) -> None:
        """Leave the group. A static member only stops (KIP-345)."""
        self._go("the consumer left", done, now)
        self._readiness.resume()
        self._ownership.forget_all()

    def _go(self, reason: str, done: Callable[[], None], now: float) -> None:
        """End the membership, and tell the coordinator unless this member is static (KIP-345)."""
        who = self.identity
        is_waiting, is_joining = (
            self._rebalance.is_waiting,
            self._rebalance.phase is RebalancePhase.JOINING,
        )
        on_named = None
        self._rejoin_reason = None
        self._state = ClassicMemberState.OUT
        self._session.forget_membership()
        self._drop_calls()
        if who.instance_id is not None:
            done()
        elif who.member_id:
            self._goodbyes.say(who.member_id, reason, done, now, beside=is_waiting)
        elif is_joining:
            on_named = self._goodbyes.await_name(reason, done, now)
        else:
            done()
        self._rebalance.cancel(on_named)

    def handle_polled(self, now: float) -> None:
        """Join again if the member is paused. A fenced member waits for `subscribe` instead."""
        if self._readiness.handle_polled():
            self._want_join("the user polls again", now)

    def handle_overstayed(self, now: float) -> None:
        """Leave the group: the user has not polled for max.poll.interval.ms."""
        if self._state is ClassicMemberState.OUT:
            return
        warn_of_overstaying(self._coordinator.group_id, self._settings.max_poll_interval_ms)
        self._go(OVERSTAYED, lambda: None, now)
        self._readiness.pause()
        self._ownership.lose(OVERSTAYED)

    def handle_revoked(self, partitions: Iterable[TopicPartition], now: float) -> None:
        """Own these partitions no more, and join if that is due."""
        self._ownership.handle_revoked(partitions)
        self.tick(now)

    def handle_assigned(self, now: float) -> None:
        """Own the partitions that were assigned, and join again if that is due."""
        self._ownership.handle_assigned()
        self.tick(now)

    def rejoin(self, reason: str, now: float) -> None:
        """Make the group rebalance."""
        if self._state is not ClassicMemberState.OUT:
            self._want_join(reason, now)

    def handle_metadata(self, now: float) -> None:
        """Join again if the pattern's matches or, on the leader, partitions or racks have changed.

        A leader that waited for metadata goes on to assign.
        """
        if self._subscription.refresh(now):
            self._want_join("the topics that the pattern matches have changed", now)
        self._rebalance.handle_metadata(now)
        if self._state is ClassicMemberState.STABLE and self._leader.is_outdated:
            self._leader.forget_assignment()
            self._want_join("partitions were added, or topics made or deleted", now)

    # ---- time ----

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        self._goodbyes.tick(now)
        self._rebalance.tick(now)
        self._slowness.note_state(
            now, is_rebalancing=self._is_rebalancing, why_waiting=self._why_rebalancing
        )
        if self._state is ClassicMemberState.STABLE and now >= self._leader.settled_by:
            self._leader.forget_assignment()
            self._want_join(
                "a static member may be gone without giving up partitions that others wait for", now
            )
        if self._rejoin_reason is not None and not self._ownership.is_busy and not self.is_paused:
            if self._state in (ClassicMemberState.OUT, ClassicMemberState.STABLE):
                self._prepare()
            is_ready = self._state is ClassicMemberState.PREPARING and not self._ownership.is_busy
            if is_ready and now >= self._readiness.try_at:
                self._join(now)
        if (
            self._state is not ClassicMemberState.OUT
            and self._rebalance.phase is not RebalancePhase.JOINING
        ):
            self._keep_alive(now)

    @property
    def _is_rebalancing(self) -> bool:
        between = (ClassicMemberState.PREPARING, ClassicMemberState.JOINING)
        return self._state in between and self._subscription.topics is not None

    def _why_rebalancing(self) -> str:
        """Return what a rebalance waits for that takes long."""
        if self._ownership.is_busy:
            return (
                "this consumer has to give up its partitions, which the next poll() does; work on "
                "fewer records between two polls, or lower max.poll.records"
            )
        if self._state is ClassicMemberState.JOINING:
            return self._rebalance.why_waiting()
        reason = self._coordinator.why_waiting()
        return "this member has yet to join" if reason is None else reason.text

    def _keep_alive(self, now: float, *, delay: float = 0.0) -> None:
        knows = self._state is ClassicMemberState.PREPARING or self._rejoin_reason is not None
        self._session.keep_alive(now, expect_rebalance=knows, delay=delay)

    def _want_join(self, reason: str, now: float) -> None:
        if self._rejoin_reason is None:
            logger.info("group %s: joining: %s", self._coordinator.group_id, reason)
        self._rejoin_reason = reason
        self.tick(now)

    # ---- joining ----

    def _prepare(self) -> None:
        """Give up the partitions that cannot be kept over a rebalance."""
        self._state = ClassicMemberState.PREPARING
        if not self._is_cooperative:
            self._ownership.give_up_all(self._rejoin_reason or "")

    def _join(self, now: float) -> None:
        link = self._coordinator.want_link(now)
        topics = self._subscription.topics
        if link is None or topics is None:
            return
        owned = self._ownership.owned if self._is_cooperative else frozenset()
        protocols = self._describe(
            classic_messages.MemberState(topics, owned, self._session.identity.generation)
        )
        if protocols is None:
            return
        reason, self._rejoin_reason = self._rejoin_reason, None
        self._session.fall_silent()
        request = classic_messages.join_request(
            self._coordinator.group_id,
            self._settings,
            self._session.identity,
            protocols,
            reason or "",
        )
        self._state = ClassicMemberState.JOINING
        self._rebalance.send_join(link, request, now)

    def _describe(
        self, state: classic_messages.MemberState
    ) -> list[JoinGroupRequestProtocol] | None:
        """Return what the assignors say of this member; None: they have been asked just now.

        What they say holds until the member has joined: the coordinator expects a member to whom
        it has given an id back within the session timeout.
        """
        if state == self._described:
            return self._protocols
        self._described, self._protocols = state, None
        rack_id = self._settings.client_rack or None

        def take(protocols: list[JoinGroupRequestProtocol], now: float) -> None:
            if self._described is state:
                self._protocols = protocols
                self.tick(now)

        def fail(error: KafkaError, now: float) -> None:
            if self._described is state:
                self._fail(error, now)

        describe = partial(
            classic_messages.describe_member, state, rack_id, self._assignors.values()
        )
        self._calls.call(describe, take, fail)
        return None

    def _forget_description(self) -> None:
        self._described = self._protocols = None

    def _drop_calls(self) -> None:
        self._calls.drop_waiting()
        self._forget_description()

    def _handle_entered(self, now: float) -> None:
        self._forget_description()
        self._readiness.succeed()
        self._coordinator.note_success(now)
        # The first heartbeat is not sent at once. If every answer to it said that the group
        # rebalances, this member would join again as fast as it can.
        self._keep_alive(now, delay=self._settings.heartbeat_interval)

    def _handle_end(self, end: RebalanceEnd, now: float) -> None:
        """Take the end of a rebalance."""
        match end:
            case RebalanceDone():
                self._handle_assigned(end, now)
            case RebalanceInterrupted(reason, at_once):
                self._retry(reason, now, at_once=at_once)
            case RebalanceRefused(code, what):
                self._handle_error(code, what, now)
            case RebalanceFailed(error):
                self._fail(error, now)

    def _handle_assigned(self, end: RebalanceDone, now: float) -> None:
        self._readiness.succeed()
        self._state = ClassicMemberState.STABLE
        generation, assigned = self._session.identity.generation, end.partitions
        logger.info(
            "group %s: generation %d: %s%s",
            self._coordinator.group_id,
            generation,
            all_of(assigned),
            self._slowness.took(now),
        )
        moved = self._ownership.assign(assigned, generation)
        if moved and self._is_cooperative:
            self._rejoin_reason = "partitions were given up, so that others can have them"
        self._keep_alive(now)

    # ---- errors ----

    def _handle_heartbeat(self, code: int, now: float) -> None:
        """Take an unexpected answer to a heartbeat."""
        is_news = self._state is ClassicMemberState.STABLE and self._rejoin_reason is None
        if code == ErrorCode.REBALANCE_IN_PROGRESS and is_news:
            self._want_join("the group rebalances", now)
        elif code not in HARMLESS and self._state in (
            ClassicMemberState.STABLE,
            ClassicMemberState.PREPARING,
        ):
            self._handle_error(code, "Heartbeat", now)
        else:
            # The answer is expected by now, or the answer to SyncGroup will tell more. The next
            # heartbeat is not sent at once: the coordinator would give the same answer again.
            self._keep_alive(now, delay=self._settings.heartbeat_interval)

    def handle_stale(self, code: int, now: float) -> None:
        """Join again if a STABLE member's commit was refused; fail if the member was fenced."""
        is_over = code in NOT_A_MEMBER and self._state is ClassicMemberState.STABLE
        if is_over or code == ErrorCode.FENCED_INSTANCE_ID:
            self._handle_error(code, "OffsetCommit", now)
        elif code == ErrorCode.REBALANCE_IN_PROGRESS and self._state is ClassicMemberState.STABLE:
            self._want_join("the group rebalances", now)

    def _handle_error(self, code: int, what: str, now: float) -> None:
        """Take an error of JoinGroup, SyncGroup or Heartbeat."""
        reason = f"{what}: {error_name(code)}"
        known = ERRORS.get(code)
        if self._coordinator.handle_error(code, now, what):
            if what == "Heartbeat":
                self.tick(now)  # the membership goes on with the next coordinator
            else:
                self._retry(reason, now)
        elif code in NOT_A_MEMBER:
            self._lose_place(code, reason)
            self._retry(reason, now, at_once=self._readiness.may_hurry(now))
        elif code == ErrorCode.REBALANCE_IN_PROGRESS or (known is not None and known.retriable):
            at_once = code == ErrorCode.REBALANCE_IN_PROGRESS and self._readiness.may_hurry(now)
            self._retry(reason, now, at_once=at_once)
        else:
            text = f"{what} in group {self._coordinator.group_id!r}: {self._say(code, what)}"
            self._fail(broker_error(code, text), now, fenced=code == ErrorCode.FENCED_INSTANCE_ID)

    def _say(self, code: int, api: str) -> str:
        """Return what an error means for this member, and what to do about it."""
        if code == ErrorCode.INVALID_SESSION_TIMEOUT:
            return (
                f"session.timeout.ms ({self._settings.session_timeout_ms}) is not within the "
                "brokers' group.min.session.timeout.ms and group.max.session.timeout.ms (by "
                "default 6000 and 1800000)"
            )
        return described(code, api)

    def _lose_place(self, code: int, reason: str) -> None:
        """End a membership that the coordinator does not know, at least in this generation."""
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._session.forget_membership()
        else:
            self._session.lose_generation()
        self._ownership.lose(reason)

    def _retry(self, reason: str, now: float, *, at_once: bool = False) -> None:
        """Join again; after a backoff, unless `at_once`."""
        if self._state is ClassicMemberState.OUT:
            return
        self._state = ClassicMemberState.PREPARING
        if self._ownership.owned and not self._is_cooperative and not self._ownership.is_busy:
            self._state = (
                ClassicMemberState.STABLE
            )  # `tick` prepares: what is owned is given up first
        if not at_once:
            self._readiness.put_off(now)
        self._want_join(reason, now)

    def _fail(self, error: KafkaError, now: float, *, fenced: bool = False) -> None:
        """Stay out of the group until the user polls, or if fenced subscribes again."""
        logger.error("group %s: %s", self._coordinator.group_id, error)
        self._session.lose_generation()
        self._rebalance.cancel()
        self._drop_calls()
        self._state = ClassicMemberState.OUT
        self._rejoin_reason = None
        self._readiness.pause(fenced=fenced)
        self._readiness.put_off(now)  # a user who polls all the time must not join at once
        self._ownership.lose_all(error)
