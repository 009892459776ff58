"""A member by the classic protocol: JoinGroup, SyncGroup, heartbeats.

    OUT ──► PREPARING ──► JOINING ──► ASSIGNING ──► SYNCING ──► STABLE
     ▲      (revoke)                  (leader)                    │ rebalance, metadata,
     │          ▲─────────────────────────────────────────────────┘ subscription
     └─ left, overstayed, fatal

With an eager assignor everything is revoked before the member joins. With a cooperative one
(KIP-429) it joins with what it owns, gives up only what moves, and joins once more so that the
others can have it. A member whose identity the coordinator does not accept any more has *lost* its
partitions: others may read them already.

Thread: control. Partitions change hands in the user's thread, see `member`.
"""

from __future__ import annotations

import enum
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence

from kafka_fast.config import ConsumerSettings
from kafka_fast.control.backoff import Backoff
from kafka_fast.control.cluster import Cluster
from kafka_fast.control.group import protocol
from kafka_fast.control.group.assignors import Assignor, GroupMember
from kafka_fast.control.group.coordinator import Coordinator
from kafka_fast.control.group.heartbeats import Heartbeats
from kafka_fast.control.group.member import (
    NO_GENERATION,
    AssignWanted,
    GroupNews,
    Identity,
    MemberFailed,
    RevokeWanted,
    Subscription,
)
from kafka_fast.control.group.subscription import SubscribedTopics
from kafka_fast.control.instants import LONG_AGO, NEVER
from kafka_fast.control.links import Links
from kafka_fast.errors import ERRORS, KafkaError, broker_error, error_name
from kafka_fast.protocol.apis.heartbeat import HeartbeatResponse
from kafka_fast.protocol.apis.join_group import JoinGroupResponse
from kafka_fast.protocol.apis.leave_group import LeaveGroupResponse
from kafka_fast.protocol.apis.sync_group import SyncGroupResponse
from kafka_fast.types import TopicPartition

logger = logging.getLogger("kafka_fast.group")

JOIN_GRACE = 5.0
"""Seconds that an answer to JoinGroup may take beyond the rebalance timeout."""

ILLEGAL_GENERATION = 22
UNKNOWN_MEMBER_ID = 25
REBALANCE_IN_PROGRESS = 27
MEMBER_ID_REQUIRED = 79
FENCED_INSTANCE_ID = 82

NOT_A_MEMBER = frozenset({ILLEGAL_GENERATION, UNKNOWN_MEMBER_ID})


class State(enum.Enum):
    """How far a member is on its way into a generation."""

    OUT = "not a member"
    PREPARING = "gives up partitions before it joins"
    JOINING = "joins"
    ASSIGNING = "leads, and waits for metadata to assign by"
    SYNCING = "waits for its assignment"
    STABLE = "member"


class ClassicMember:
    """See `Member`. Control thread only."""

    def __init__(
        self,
        settings: ConsumerSettings,
        assignors: Sequence[Assignor],
        coordinator: Coordinator,
        cluster: Cluster,
        links: Links,
        backoff: Backoff,
    ) -> None:
        """Begin outside the group.

        Args:
            settings: the consumer's configuration.
            assignors: that this member understands, the preferred one first.
            coordinator: the way to the group's coordinator.
            cluster: knows the topics.
            links: repeat the heartbeats.
            backoff: between two tries.
        """
        self._settings = settings
        self._assignors = {assignor.name: assignor for assignor in assignors}
        # One eager assignor among them, and the whole group may be made eager.
        self._is_cooperative = all(assignor.is_cooperative for assignor in assignors)
        self._coordinator = coordinator
        self._cluster = cluster
        self._links = links
        self._backoff = backoff
        self._subscription = SubscribedTopics(cluster, settings)
        self._identity = Identity(instance_id=settings.group_instance_id)
        self._state = State.OUT
        self._rejoin_reason: str | None = None  # to join (again) as soon as that is possible
        self._is_paused = False  # overstayed or failed: joins when the user polls
        self._is_fenced = False  # another member has our instance id: joins no more
        self._owned: frozenset[TopicPartition] = frozenset()  # by the user's thread
        self._target: frozenset[TopicPartition] = frozenset()  # of the last assignment
        self._events = 0  # that the user's thread has not answered yet
        self._heartbeats: Heartbeats[HeartbeatResponse] = Heartbeats(
            links, self._handle_heartbeat, self._handle_lost, timeout=settings.request_timeout
        )
        self._assignment_basis: protocol.Basis | None = None  # as leader: what it was made from
        self._to_assign: JoinGroupResponse | None = None
        self._failures = 0
        self._try_at = LONG_AGO
        self._news: deque[GroupNews] = deque()

    # Getters

    @property
    def identity(self) -> Identity:
        """Who commits."""
        return self._identity

    @property
    def is_paused(self) -> bool:
        """Whether the member stays out until the user polls. Any thread."""
        return self._is_paused

    @property
    def state(self) -> State:
        """Where the member stands."""
        return self._state

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""
        if self._rejoin_reason is None or self._events or self._is_paused:
            return NEVER
        if self._subscription.topics is None:
            return NEVER  # metadata will tell what the pattern matches
        if self._state in (State.OUT, State.STABLE, State.PREPARING):
            return self._try_at if self._coordinator.link is not None else NEVER
        return NEVER

    def poll_news(self) -> GroupNews | None:
        """Return the next thing for the user's thread; None if there is nothing."""
        return self._news.popleft() if self._news else None

    # Commands of the user's thread

    def subscribe(self, subscription: Subscription, now: float) -> None:
        """Belong to the group with this subscription; replaces the last one."""
        self._subscription.replace(subscription, now)
        self._is_paused = False
        self._want_join("the subscription changed", now)

    def leave(self, now: float, done: Callable[[], None]) -> None:
        """Leave the group; a static member only stops (KIP-345)."""
        self._go("the consumer left", done)
        self._is_paused = False
        self._events = 0  # nobody answers what was asked of the user's thread
        self._news.clear()

    def _go(self, reason: str, done: Callable[[], None]) -> None:
        is_waiting = self._state in (State.JOINING, State.SYNCING)
        self._heartbeats.stop()
        self._rejoin_reason = None
        self._state = State.OUT
        self._owned = self._target = frozenset()
        who = self._identity
        self._forget_identity()
        link = self._coordinator.link
        if is_waiting and self._coordinator.node is not None:
            # Behind a JoinGroup that waits for the others it would be read too late.
            link = self._links.link_to(self._coordinator.node.id)
        if not who.member_id or who.instance_id is not None or link is None:
            done()
            return
        self._coordinator.ask(
            link,
            protocol.leave_request(self._coordinator.group_id, who, reason, link),
            LeaveGroupResponse,
            lambda response, then: done(),
            lambda error, then: done(),
        )

    def handle_polled(self, now: float) -> None:
        """The user polls: a member that had overstayed max.poll.interval.ms may join again."""
        if self._is_paused and not self._is_fenced:
            self._is_paused = False
            self._want_join("the user polls again", now)

    def handle_overstayed(self, now: float) -> None:
        """The user has not polled for max.poll.interval.ms: leave, so that others may go on."""
        if self._state is State.OUT:
            return
        logger.warning(
            "group %s: poll() was not called for max.poll.interval.ms (%d): leaving the group; "
            "poll more often, raise it, or lower max.poll.records",
            self._coordinator.group_id,
            self._settings.max_poll_interval_ms,
        )
        lost = self._owned | self._target
        self._go("max.poll.interval.ms passed without a poll", lambda: None)
        self._is_paused = True
        self._tell_lost(lost, "max.poll.interval.ms passed without a poll")

    def handle_revoked(self, partitions: Iterable[TopicPartition], now: float) -> None:
        """The user's thread has given these partitions up."""
        self._events -= 1
        self._owned -= frozenset(partitions)
        self.tick(now)

    def handle_assigned(self, now: float) -> None:
        """The user's thread reads what was assigned."""
        self._events -= 1
        self._owned = self._target
        self.tick(now)

    def rejoin(self, reason: str, now: float) -> None:
        """Have the group rebalanced."""
        if self._state is not State.OUT:
            self._want_join(reason, now)

    def handle_metadata(self, now: float) -> None:
        """Topics or partitions have changed."""
        if self._subscription.refresh(now):
            self._want_join("the topics that the pattern matches have changed", now)
        if self._state is State.ASSIGNING:
            self._assign(now)
        basis = self._assignment_basis
        if self._state is State.STABLE and basis is not None and basis.is_outdated(self._cluster):
            self._assignment_basis = None
            self._want_join("partitions were added, or topics made or deleted", now)

    # Time

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        if self._rejoin_reason is not None and not self._events and not self._is_paused:
            if self._state in (State.OUT, State.STABLE):
                self._prepare()
            if self._state is State.PREPARING and not self._events and now >= self._try_at:
                self._join(now)
        if self._state is not State.OUT and self._state is not State.JOINING:
            self._keep_alive(now)

    def _want_join(self, reason: str, now: float) -> None:
        if self._rejoin_reason is None:
            logger.info("group %s: joining: %s", self._coordinator.group_id, reason)
        self._rejoin_reason = reason
        self.tick(now)

    # Joining

    def _prepare(self) -> None:
        """Give up what cannot be kept over a rebalance."""
        self._state = State.PREPARING
        if self._owned and not self._is_cooperative:
            self._tell(RevokeWanted(self._owned, False, self._rejoin_reason or ""))

    def _join(self, now: float) -> None:
        link = self._coordinator.want(now)
        topics = self._subscription.topics
        if link is None or topics is None:
            return
        reason, self._rejoin_reason = self._rejoin_reason, None
        self._heartbeats.stop()
        self._state = State.JOINING
        request = protocol.join_request(
            self._coordinator.group_id,
            self._settings,
            self._identity,
            topics,
            self._owned if self._is_cooperative else frozenset(),
            self._assignors.values(),
            reason or "",
        )
        try:
            self._coordinator.ask(
                link,
                request,
                JoinGroupResponse,
                self._handle_joined,
                lambda error, then: self._retry(str(error), then),
                timeout=self._settings.max_poll_interval + JOIN_GRACE,
            )
        except KafkaError as error:
            self._fail(error)

    def _handle_joined(self, response: JoinGroupResponse, now: float) -> None:
        if self._state is not State.JOINING:
            return  # left meanwhile; the coordinator will notice
        code = response.error_code
        if code == MEMBER_ID_REQUIRED:
            self._identity = self._identity._replace(member_id=response.member_id)
            self._retry("the coordinator gave us an id", now, at_once=True)
            return
        if code:
            self._handle_error(code, "JoinGroup", now)
            return
        self._failures = 0
        self._identity = self._identity._replace(
            generation=response.generation_id, member_id=response.member_id
        )
        self._assignment_basis = None
        if response.leader == response.member_id:
            self._state = State.ASSIGNING
            self._to_assign = response
            self._assign(now)
        else:
            self._sync({}, response, now)

    def _assign(self, now: float) -> None:
        """As leader: work out the assignment, once everything about the topics is known."""
        joined = self._to_assign
        if joined is None:
            return
        try:
            members = protocol.read_members(joined)
        except KafkaError as error:
            self._fail(error)
            return
        wanted = frozenset(topic for member in members for topic in member.topics)
        if not self._subscription.follow(wanted, now):
            return
        self._assignment_basis = protocol.Basis.of(wanted, self._cluster)
        self._to_assign = None
        if joined.skip_assignment:
            self._sync({}, joined, now)
            return
        try:
            assignments = self._run_assignor(joined.protocol_name or "", members)
        except Exception as error:  # a user's assignor may raise anything
            logger.exception("the assignor %r has failed", joined.protocol_name)
            failure = KafkaError(f"the assignor {joined.protocol_name!r} has failed: {error!r}")
            failure.__cause__ = error
            self._fail(failure)
            return
        self._sync(assignments, joined, now)

    def _run_assignor(
        self, name: str, members: Sequence[GroupMember]
    ) -> Mapping[str, Sequence[TopicPartition]]:
        assignor = self._assignors[name]
        topics = protocol.describe_topics(members, self._cluster)
        assignments = assignor.assign(topics, members)
        if assignor.is_cooperative:
            # What moves must be given up by its owner first: nobody gets it in this round.
            assignments = protocol.without_moving(assignments, members)
        return assignments

    def _sync(
        self,
        assignments: Mapping[str, Sequence[TopicPartition]],
        joined: JoinGroupResponse,
        now: float,
    ) -> None:
        link = self._coordinator.want(now)
        if link is None:
            self._retry("the coordinator is gone", now)
            return
        self._state = State.SYNCING
        name = joined.protocol_name or ""
        self._keep_alive(now)
        self._coordinator.ask(
            link,
            protocol.sync_request(self._coordinator.group_id, self._identity, name, assignments),
            SyncGroupResponse,
            lambda response, then: self._handle_synced(name, response, then),
            lambda error, then: self._retry(str(error), then),
            timeout=self._settings.max_poll_interval + JOIN_GRACE,
        )

    def _handle_synced(self, name: str, response: SyncGroupResponse, now: float) -> None:
        if self._state is not State.SYNCING:
            return
        if response.error_code:
            self._handle_error(response.error_code, "SyncGroup", now)
            return
        try:
            assigned, user_data = protocol.read_assignment(response.assignment)
        except KafkaError as error:
            self._fail(error)
            return
        self._failures = 0
        self._state = State.STABLE
        self._target = assigned
        generation = self._identity.generation
        logger.info(
            "group %s: generation %d: %d partitions",
            self._coordinator.group_id,
            generation,
            len(assigned),
        )
        self._assignors[name].handle_assignment(assigned, generation, user_data)
        reason = f"generation {generation}"
        moved = self._owned - assigned
        if moved:
            self._tell(RevokeWanted(moved, False, reason))
        self._tell(AssignWanted(assigned, generation, reason))
        if moved and self._is_cooperative:
            self._rejoin_reason = "partitions were given up, so that others can have them"
        self._keep_alive(now)

    # Heartbeats

    def _keep_alive(self, now: float, *, delay: float = 0.0) -> None:
        """Have heartbeats sent, if that is not done already."""
        identity = self._identity
        if self._heartbeats.is_running or identity.generation == NO_GENERATION:
            return
        link = self._coordinator.want(now)
        if link is None:
            return
        # Between two generations the coordinator answers every heartbeat with the request to join,
        # which this member means to follow as soon as its user lets it.
        knows = self._state is State.PREPARING or self._rejoin_reason is not None
        code = REBALANCE_IN_PROGRESS if knows else 0
        self._heartbeats.keep(
            link,
            protocol.heartbeat_request(self._coordinator.group_id, identity),
            HeartbeatResponse(error_code=code),
            period=self._settings.heartbeat_interval,
            delay=delay,
        )

    def _handle_heartbeat(self, response: HeartbeatResponse, now: float) -> None:
        """Take an answer that the data plane was not told to expect."""
        code = response.error_code
        is_news = self._state is State.STABLE and self._rejoin_reason is None
        if code == REBALANCE_IN_PROGRESS and is_news:
            self._want_join("the group rebalances", now)
        elif code in (0, REBALANCE_IN_PROGRESS):
            # As expected by now, or throttled. Asked again at once, a coordinator that is further
            # than this member, or not as far, would say the same as fast as it can.
            self._keep_alive(now, delay=self._settings.heartbeat_interval)
        elif self._state in (State.STABLE, State.PREPARING):
            self._handle_error(code, "Heartbeat", now)

    def _handle_lost(self, error: KafkaError, now: float) -> None:
        self._coordinator.handle_moved(str(error), now)
        self.tick(now)

    # Errors

    def _handle_error(self, code: int, what: str, now: float) -> None:
        """Take an error of JoinGroup, SyncGroup or Heartbeat."""
        name = error_name(code)
        known = ERRORS.get(code)
        if self._coordinator.handle_error(code, now):
            if what == "Heartbeat":
                self.tick(now)  # still a member; the next coordinator knows
            else:
                self._retry(f"{what}: {name}", now)
        elif code in NOT_A_MEMBER:
            self._lose_identity(code, f"{what}: {name}")
            self._retry(f"{what}: {name}", now, at_once=True)
        elif code == REBALANCE_IN_PROGRESS or (known is not None and known.retriable):
            self._retry(f"{what}: {name}", now, at_once=code == REBALANCE_IN_PROGRESS)
        else:
            self._is_fenced = code == FENCED_INSTANCE_ID
            self._fail(broker_error(code, f"{what} in group {self._coordinator.group_id!r}"))

    def handle_stale(self, code: int, now: float) -> None:
        """A commit was refused because this member is not what it was."""
        is_over = code in NOT_A_MEMBER and self._state is State.STABLE
        if is_over or code == FENCED_INSTANCE_ID:
            self._handle_error(code, "OffsetCommit", now)
        elif code == REBALANCE_IN_PROGRESS and self._state is State.STABLE:
            self._want_join("the group rebalances", now)

    def _lose_identity(self, code: int, reason: str) -> None:
        """The coordinator does not know this member any more, or not in this generation."""
        self._heartbeats.stop()
        if code == UNKNOWN_MEMBER_ID:
            self._forget_identity()
        else:
            life = self._identity.life + 1
            self._identity = self._identity._replace(generation=NO_GENERATION, life=life)
        lost = self._owned | self._target
        self._target = frozenset()
        self._tell_lost(lost, reason)

    def _forget_identity(self) -> None:
        before = self._identity
        self._identity = Identity(instance_id=before.instance_id, life=before.life + 1)

    def _tell_lost(self, partitions: frozenset[TopicPartition], reason: str) -> None:
        if partitions:
            self._tell(RevokeWanted(partitions, True, reason))

    def _retry(self, reason: str, now: float, *, at_once: bool = False) -> None:
        """Join again, after a backoff unless there is nothing to wait for."""
        if self._state is State.OUT:
            return
        self._to_assign = None
        self._state = State.PREPARING
        if self._owned and not self._is_cooperative and not self._events:
            self._state = State.STABLE  # `tick` prepares: what is owned is given up first
        if not at_once:
            self._try_at = now + self._backoff.delay(self._failures)
            self._failures += 1
        self._want_join(reason, now)

    def _fail(self, error: KafkaError) -> None:
        """Out of the group until the user does something."""
        logger.error("group %s: %s", self._coordinator.group_id, error)
        self._heartbeats.stop()
        self._state = State.OUT
        self._rejoin_reason = None
        self._is_paused = True
        lost = self._owned | self._target
        self._target = frozenset()
        self._tell_lost(lost, str(error))
        self._news.append(MemberFailed(error))

    def _tell(self, event: RevokeWanted | AssignWanted) -> None:
        self._events += 1
        self._news.append(event)
