"""One member's way through a rebalance: JoinGroup, perhaps the assignment for all, SyncGroup.

    begin ──► JOINING ──► ASSIGNING ──────► SYNCING ──► TELLING ──► RebalanceDone
                 │        (leader) ▲ ▼         │           │
                 │         LEARNING            │           │
                 └──────────┬──────────────────┴───────────┴──────► RebalanceInterrupted,
              cancel ──► IDLE                                       -Refused, -Failed

The coordinator answers JoinGroup and SyncGroup when other members have acted, which may take up to
max.poll.interval.ms. A coordinator that died without a word would be waited for as long. So the
brokers are asked meanwhile who coordinates.

Each rebalance ends once. The member decides what its end means. The assignor is at work in
ASSIGNING and TELLING, in another thread. Thread: control.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import TypeAlias, TypeVar

from kafka_fast.config import ConsumerSettings
from kafka_fast.control.connections.links import Link
from kafka_fast.control.group.assignors.calls import AssignorCalls
from kafka_fast.control.group.assignors.guard import calling
from kafka_fast.control.group.classic import classic_messages
from kafka_fast.control.group.classic.leader import GroupLeader, LeaderPlan
from kafka_fast.control.group.classic.session import Session
from kafka_fast.control.group.group_coordinator import GroupCoordinator
from kafka_fast.control.metadata.metadata import Node
from kafka_fast.errors import ErrorCode, KafkaError, MalformedError
from kafka_fast.instants import NEVER
from kafka_fast.protocol.apis.groups.join_group import JoinGroupRequest, JoinGroupResponse
from kafka_fast.protocol.apis.groups.sync_group import SyncGroupRequestAssignment, SyncGroupResponse
from kafka_fast.protocol.schema import Response
from kafka_fast.types import TopicPartition
from kafka_fast.values import Value

R = TypeVar("R", bound=Response)
T = TypeVar("T")

JOIN_GRACE = 5.0
"""Seconds that an answer to JoinGroup may take beyond the rebalance timeout."""


class RebalancePhase(enum.Enum):
    """How far a rebalance has come."""

    IDLE = "nothing is under way"
    JOINING = "joins"
    ASSIGNING = "leads, and has its assignor at work"
    LEARNING = "leads, and waits for metadata to assign by"
    SYNCING = "waits for its assignment"
    TELLING = "tells its assignor what it got"


class RebalanceDone(Value):
    """The rebalance is complete: this is a member of the new generation."""

    partitions: frozenset[TopicPartition]
    """The partitions of this member. The assignor knows them."""


class RebalanceInterrupted(Value):
    """The rebalance has failed and is to be tried again; `at_once`: without a backoff."""

    reason: str
    at_once: bool = False


class RebalanceRefused(Value):
    """The coordinator has answered a request with an error."""

    code: int
    what: str


class RebalanceFailed(Value):
    """The rebalance has failed for good."""

    error: KafkaError


RebalanceEnd: TypeAlias = RebalanceDone | RebalanceInterrupted | RebalanceRefused | RebalanceFailed


class RebalanceAttempt(Value, frozen=False, eq=False):
    """One rebalance. Its answers are dropped once another one has begun."""

    on_named: Callable[[str, float], None] | None = None
    """Called with the member id in the answer to a JoinGroup that was cancelled."""


class Rebalance:
    """Joins and syncs, again and again. Control thread only."""

    def __init__(
        self,
        settings: ConsumerSettings,
        coordinator: GroupCoordinator,
        session: Session,
        leader: GroupLeader,
        calls: AssignorCalls,
        *,
        on_entered: Callable[[float], None],
        on_end: Callable[[RebalanceEnd, float], None],
    ) -> None:
        """Start IDLE; `send_join` starts a rebalance.

        Args:
            settings: the consumer's configuration.
            coordinator: the way to the group's coordinator.
            session: the member's; it enters each new generation.
            leader: computes the assignment if this member leads the group.
            calls: calls this member's assignors.
            on_entered: called when the session has entered a new generation.
            on_end: called when a rebalance has ended, and `phase` is IDLE again.
        """
        self._coordinator = coordinator
        self._session = session
        self._leader = leader
        self._calls = calls
        self._on_entered = on_entered
        self._on_end = on_end
        self._timeout = settings.max_poll_interval + JOIN_GRACE
        self._patience = settings.heartbeat_timeout
        self._look_at = NEVER  # when the brokers are asked who coordinates
        self._node: Node | None = None  # the coordinator that the last request went to
        self._phase = RebalancePhase.IDLE
        self._attempt: RebalanceAttempt | None = None  # the one under way
        self._joined = JoinGroupResponse()
        self._plan: LeaderPlan | None = None  # LEARNING: what it lacks

    @property
    def phase(self) -> RebalancePhase:
        """How far the rebalance has come."""
        return self._phase

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""
        return self._look_at if self.is_waiting else NEVER

    @property
    def is_waiting(self) -> bool:
        """Whether a request is in flight whose answer waits for other members."""
        return self._phase in (RebalancePhase.JOINING, RebalancePhase.SYNCING)

    def why_waiting(self) -> str:
        """Return what the rebalance waits for, as text. Any thread."""
        node, joined = self._coordinator.node, self._joined
        match self._phase:
            case RebalancePhase.JOINING:
                return (
                    f"its coordinator, {node}, answers JoinGroup once all members have joined (a "
                    "new group waits for group.initial.rebalance.delay.ms, one that rebalances at "
                    "most for the members' max.poll.interval.ms)"
                )
            case RebalancePhase.ASSIGNING:
                name = joined.protocol_name
                return f"this member leads it, and its assignor {name!r} has yet to return"
            case RebalancePhase.LEARNING:
                return "this member leads it, and waits for metadata to assign partitions by"
            case RebalancePhase.TELLING:
                return f"the assignor {joined.protocol_name!r} hears of the new assignment"
            case RebalancePhase.SYNCING if joined.leader != joined.member_id:
                return f"its leader, member {joined.leader!r}, has yet to assign the partitions"
            case _:
                return f"its coordinator, {node}, has yet to confirm what this member has assigned"

    # ---- commands ----

    def send_join(self, link: Link, request: JoinGroupRequest, now: float) -> None:
        """Send this JoinGroup as a new attempt. Answers to an earlier attempt are dropped."""
        self._attempt = RebalanceAttempt()
        self._phase = RebalancePhase.JOINING
        self._expect_answer(now)
        try:
            take, lose = self._hearing(self._handle_joined)
            self._session.join(link, request, take, lose, timeout=self._timeout)
        except KafkaError as error:
            self._end(RebalanceFailed(error), now)

    def cancel(self, on_named: Callable[[str, float], None] | None = None) -> None:
        """Drop all further answers.

        Args:
            on_named: called with the member id in the answer to JoinGroup, and the time. The id is
                empty if there is no answer.
        """
        if self._attempt is not None:
            self._attempt.on_named = on_named
        self._attempt = self._plan = None
        self._phase = RebalancePhase.IDLE

    def handle_metadata(self, now: float) -> None:
        """Assign, in LEARNING, if the metadata that the leader's plan lacked are known now."""
        plan = self._plan  # of LEARNING
        if plan is not None and self._leader.knows_topics_of(plan):
            self._assign()

    def tick(self, now: float) -> None:
        """Have a coordinator looked for that may be dead, and end what waits for one that is."""
        if not self.is_waiting:
            return
        node = self._coordinator.node
        if node is not None and node != self._node:
            self._session.fall_silent()
            self._end(RebalanceInterrupted(f"the coordinator is {node} now"), now)
        elif now >= self._look_at:
            self._look_at = now + self._patience
            self._coordinator.look_again()

    # ---- steps ----

    def _expect_answer(self, now: float) -> None:
        """Note that a request goes to the coordinator, which answers when others have acted."""
        self._look_at = now + self._patience
        self._node = self._coordinator.node

    def _handle_joined(self, response: JoinGroupResponse, now: float) -> None:
        code = response.error_code
        if code == ErrorCode.MEMBER_ID_REQUIRED:
            self._coordinator.note_success(now)
            self._session.take_id(response.member_id)
            self._end(RebalanceInterrupted("the coordinator gave us an id", at_once=True), now)
            return
        if code:
            self._end(RebalanceRefused(code, "JoinGroup"), now)
            return
        self._session.enter(response.generation_id, response.member_id)
        self._leader.forget_assignment()
        self._joined = response
        self._phase = RebalancePhase.ASSIGNING
        self._on_entered(now)
        if response.leader == response.member_id:
            self._assign()
        else:
            self._sync([], now)

    def _assign(self) -> None:
        self._phase, self._plan = RebalancePhase.ASSIGNING, None
        self._call(self._leader.planning(self._joined), self._handle_plan)

    def _handle_plan(self, plan: LeaderPlan, now: float) -> None:
        if self._leader.take_plan(plan, now):
            self._sync(plan.assignments or [], now)
        else:
            self._phase = RebalancePhase.LEARNING
            self._plan = plan
            self.handle_metadata(now)  # they may have come while the plan was made

    def _sync(self, assignments: Sequence[SyncGroupRequestAssignment], now: float) -> None:
        link = self._coordinator.want_link(now)
        if link is None:
            self._end(RebalanceInterrupted("the coordinator is gone"), now)
            return
        self._phase = RebalancePhase.SYNCING
        self._expect_answer(now)
        name = self._joined.protocol_name or ""
        group_id, identity = self._coordinator.group_id, self._session.identity
        request = classic_messages.sync_request(group_id, identity, name, assignments)
        take, lose = self._hearing(self._handle_synced)
        ask = self._coordinator.send_request
        ask(link, request, SyncGroupResponse, take, lose, timeout=self._timeout)

    def _handle_synced(self, response: SyncGroupResponse, now: float) -> None:
        if response.error_code:
            self._end(RebalanceRefused(response.error_code, "SyncGroup"), now)
            return
        try:
            partitions, user_data = classic_messages.read_assignment(response.assignment)
        except MalformedError as error:
            who = f"the leader of group {self._coordinator.group_id!r}, member"
            text = f"{who} {self._joined.leader!r}, has assigned what cannot be read: {error}"
            failed = MalformedError(text)
            failed.__cause__ = error
            self._end(RebalanceFailed(failed), now)
            return
        self._phase = RebalancePhase.TELLING
        name, generation = self._joined.protocol_name or "", self._session.identity.generation

        def tell() -> None:
            with calling(name):
                self._calls.assignors[name].handle_assignment(partitions, generation, user_data)

        self._call(tell, lambda _, then: self._end(RebalanceDone(partitions), then))

    def _call(self, function: Callable[[], T], done: Callable[[T, float], None]) -> None:
        """Call a function that uses an assignor; its result is dropped once this attempt is over.

        An error of the assignor ends the rebalance.
        """
        attempt = self._attempt

        def take(result: T, now: float) -> None:
            if attempt is self._attempt:
                done(result, now)

        def fail(error: KafkaError, now: float) -> None:
            if attempt is self._attempt:
                self._end(RebalanceFailed(error), now)

        self._calls.call(function, take, fail)

    def _hearing(
        self, handle: Callable[[R, float], None]
    ) -> tuple[Callable[[R, float], None], Callable[[KafkaError, float], None]]:
        """Return the handlers for an answer to this attempt, and for the loss of its link."""
        attempt = self._attempt
        assert attempt is not None

        def take(response: R, now: float) -> None:
            if attempt is self._attempt:
                handle(response, now)
            elif attempt.on_named is not None and isinstance(response, JoinGroupResponse):
                attempt.on_named(response.member_id, now)

        def lose(error: KafkaError, now: float) -> None:
            if attempt is self._attempt:
                self._end(RebalanceInterrupted(str(error)), now)
            elif attempt.on_named is not None:
                attempt.on_named("", now)

        return take, lose

    def _end(self, end: RebalanceEnd, now: float) -> None:
        self.cancel()
        self._on_end(end, now)
