"""A member by the consumer protocol (KIP-848): heartbeats, and the coordinator assigns.

    OUT ──► JOINING ──epoch──► MEMBER ──► reconciles, tells what it owns ──► …
     ▲         ▲                 │
     │         └── fenced, lost ─┤
     └─ left, overstayed, fatal ─┘

All that is said goes in heartbeats, of which at most one is in flight: the coordinator takes each
by the epoch that the answer before it told. While there is nothing to tell, the data plane repeats
the same one; what is to be told waits until that is recalled.

Thread: control. Partitions change hands in the user's thread, see `member` and `reconciliation`.
"""

from __future__ import annotations

import base64
import enum
import logging
from collections import deque
from collections.abc import Callable, Iterable

from kafka_fast.config import ConsumerSettings
from kafka_fast.control.backoff import Backoff
from kafka_fast.control.cluster import Cluster
from kafka_fast.control.discovery import Discovery
from kafka_fast.control.group import beat
from kafka_fast.control.group.beat import Beat
from kafka_fast.control.group.coordinator import Coordinator
from kafka_fast.control.group.heartbeats import Heartbeats
from kafka_fast.control.group.member import GroupNews, Identity, MemberFailed, Subscription
from kafka_fast.control.group.reconciliation import Reconciliation
from kafka_fast.control.group.subscription import SubscribedTopics
from kafka_fast.control.group.topic_names import TopicNames
from kafka_fast.control.instants import LONG_AGO, NEVER
from kafka_fast.control.links import Link, Links
from kafka_fast.errors import (
    ERRORS,
    KafkaError,
    ProtocolError,
    UnsupportedVersionError,
    broker_error,
    error_name,
)
from kafka_fast.protocol.apis.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kafka_fast.types import TopicPartition

logger = logging.getLogger("kafka_fast.group")


UNKNOWN_MEMBER_ID = 25
UNSUPPORTED_VERSION = 35
FENCED_INSTANCE_ID = 82
FENCED_MEMBER_EPOCH = 110
UNRELEASED_INSTANCE_ID = 111

NOT_A_MEMBER = frozenset({FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID})

NOT_SUPPORTED = (
    "the brokers do not speak the consumer protocol (KIP-848, Kafka 4.0): set "
    "group.protocol=classic"
)
NO_REGEX = (
    "the coordinator matches no patterns (KIP-848 since Kafka 4.0): subscribe with re.compile(…), "
    "and the client matches"
)


class State(enum.Enum):
    """Whether a member is one."""

    OUT = "not a member"
    JOINING = "joins"
    MEMBER = "member"


class ConsumerProtocolMember:
    """See `Member`. Control thread only."""

    def __init__(
        self,
        settings: ConsumerSettings,
        coordinator: Coordinator,
        cluster: Cluster,
        links: Links,
        discovery: Discovery,
        backoff: Backoff,
        random: Callable[[], float],
    ) -> None:
        """Begin outside the group.

        Args:
            settings: the consumer's configuration.
            coordinator: the way to the group's coordinator.
            cluster: knows the topics.
            links: repeat the heartbeats.
            discovery: knows any link, to ask for topics' names.
            backoff: between two tries.
            random: returns a float in [0, 1), for the member's id.
        """
        self._settings = settings
        self._coordinator = coordinator
        self._links = links
        self._backoff = backoff
        self._wanted = Subscription()
        self._topics = SubscribedTopics(cluster, settings)
        self._names = TopicNames(
            settings, cluster, links, discovery, backoff, on_found=self._handle_names
        )
        self._reconciliation = Reconciliation(self._names)
        self._beat = Beat(settings, coordinator.group_id, _new_member_id(random))
        self._heartbeats: Heartbeats[ConsumerGroupHeartbeatResponse] = Heartbeats(
            links,
            self._handle_answer,
            self._handle_lost,
            timeout=settings.request_timeout,
        )
        self._state = State.OUT
        self._epoch = beat.JOIN
        self._life = 0
        self._period = 0.0  # seconds; the coordinator tells
        self._question: object | None = None  # the heartbeat in flight that is not a repeated one
        self._is_paused = False  # overstayed or failed: joins when the user polls
        self._is_fenced = False  # another member has our instance id: joins no more
        self._may_be_known = False  # the coordinator may have a member of our id
        self._failures = 0
        self._try_at = LONG_AGO
        self._news: deque[GroupNews] = deque()

    # Getters

    @property
    def identity(self) -> Identity:
        """Who commits."""
        instance_id = self._settings.group_instance_id
        if self._state is not State.MEMBER:
            return Identity(instance_id=instance_id, life=self._life)
        return Identity(self._epoch, self._beat.member_id, instance_id, self._life)

    @property
    def is_paused(self) -> bool:
        """Whether the member stays out until the user polls. Any thread."""
        return self._is_paused

    @property
    def state(self) -> State:
        """Where the member stands."""
        return self._state

    @property
    def member_id(self) -> str:
        """The member's own id, in and out of the group."""
        return self._beat.member_id

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""
        if self._state is State.OUT:
            return NEVER
        due = self._names.next_deadline()
        if self._coordinator.link is not None and self._has_to_speak():
            due = min(due, self._try_at)
        return due

    def poll_news(self) -> GroupNews | None:
        """Return the next thing for the user's thread; None if there is nothing."""
        return self._news.popleft() if self._news else None

    # Commands of the user's thread

    def subscribe(self, subscription: Subscription, now: float) -> None:
        """Belong to the group with this subscription; replaces the last one."""
        self._wanted = subscription
        self._topics.replace(subscription, now)
        self._is_paused = False
        if self._state is State.OUT:
            self._is_fenced = False
            self._state = State.JOINING
        self.tick(now)

    def leave(self, now: float, done: Callable[[], None]) -> None:
        """Leave the group; a static member's partitions wait for its return."""
        self._say_goodbye(done)
        self._is_paused = False
        self._reconciliation.clear()
        self._news.clear()

    def handle_polled(self, now: float) -> None:
        """The user polls: a member that had overstayed max.poll.interval.ms may join again."""
        if self._is_paused and not self._is_fenced:
            self._is_paused = False
            self._state = State.JOINING
            self.tick(now)

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
        self._say_goodbye(lambda: None)
        self._is_paused = True
        self._lose("max.poll.interval.ms passed without a poll")

    def handle_revoked(self, partitions: Iterable[TopicPartition], now: float) -> None:
        """The user's thread has given these partitions up."""
        self._reconciliation.handle_revoked()
        self.tick(now)

    def handle_assigned(self, now: float) -> None:
        """The user's thread reads what was assigned."""
        self._reconciliation.handle_assigned()
        self.tick(now)

    def rejoin(self, reason: str, now: float) -> None:
        """Do nothing: the coordinator assigns, and no member can ask for it."""
        logger.warning(
            "group %s: with group.protocol=consumer no member can ask for a rebalance (%s)",
            self._coordinator.group_id,
            reason,
        )

    def handle_stale(self, code: int, now: float) -> None:
        """A commit was refused because this member is not what it was."""
        if self._state is not State.MEMBER:
            return
        if code == FENCED_INSTANCE_ID:
            self._handle_error(code, None, now)
        else:
            self._heartbeats.recall()  # the next answer tells

    def handle_metadata(self, now: float) -> None:
        """Topics or partitions have changed."""
        self._topics.refresh(now)
        self.tick(now)

    # Time

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        if self._state is State.OUT:
            return
        if self._state is State.MEMBER:
            self._news.extend(self._reconciliation.step(self._epoch))
        self._names.tick(now)
        if not self._has_to_speak() or now < self._try_at:
            return
        if self._heartbeats.is_running:
            self._heartbeats.recall()
            return
        link = self._coordinator.want(now)
        if link is None:
            return
        try:
            if self._has_to_tell():
                self._tell(link)
            else:
                self._repeat(link)
        except UnsupportedVersionError as error:
            self._fail(error, now)

    # Heartbeats

    def _subscription(self) -> Subscription | None:
        """Return what is subscribed to; None while nobody knows what our pattern matches."""
        if self._wanted.broker_side:
            return self._wanted
        topics = self._topics.topics
        return None if topics is None else Subscription(topics)

    def _has_to_tell(self) -> bool:
        """Whether the coordinator does not know all yet."""
        subscription = self._subscription()
        if self._state is State.JOINING:
            return subscription is not None and not self._reconciliation.is_busy
        if subscription is None:
            return False
        return self._beat.is_news(subscription, self._reconciliation.owned)

    def _has_to_speak(self) -> bool:
        """Whether a heartbeat is to be sent, or to be repeated from now on."""
        if self._question is not None:
            return False
        if self._has_to_tell():
            return not self._heartbeats.is_recalled
        return self._state is State.MEMBER and not self._heartbeats.is_running

    def _tell(self, link: Link) -> None:
        """Send a heartbeat with everything that is new."""
        subscription = self._subscription()
        if subscription is None:
            return
        _check_version(link, subscription)
        if self._state is State.JOINING:
            self._beat.forget()
            self._epoch = beat.JOIN
        reconciliation = self._reconciliation
        body = self._beat.make(self._epoch, subscription, reconciliation.owned, reconciliation.held)
        question = self._question = object()

        def handle(response: ConsumerGroupHeartbeatResponse, now: float) -> None:
            if question is self._question:
                self._question = None
                self._handle_answer(response, now)

        def handle_failure(error: KafkaError, now: float) -> None:
            if question is self._question:
                self._question = None
                self._handle_lost(error, now)

        self._may_be_known = True
        self._coordinator.ask(link, body, ConsumerGroupHeartbeatResponse, handle, handle_failure)

    def _repeat(self, link: Link) -> None:
        """Have the coordinator told that nothing is new, again and again."""
        expected = ConsumerGroupHeartbeatResponse(
            member_id=self._beat.member_id,
            member_epoch=self._epoch,
            heartbeat_interval_ms=round(self._period * 1000),
        )
        self._heartbeats.keep(
            link, self._beat.alive(self._epoch), expected, period=self._period, delay=self._period
        )

    def _say_goodbye(self, done: Callable[[], None]) -> None:
        """Be no member any more, and tell the coordinator, as far as it can be told now."""
        self._heartbeats.stop()
        self._question = None
        self._state = State.OUT
        self._life += 1
        link = self._coordinator.link
        if not self._may_be_known or link is None:
            done()
            return
        self._may_be_known = False
        self._coordinator.ask(
            link,
            self._beat.leave(),
            ConsumerGroupHeartbeatResponse,
            lambda response, then: done(),
            lambda error, then: done(),
        )

    # Answers

    def _handle_answer(self, response: ConsumerGroupHeartbeatResponse, now: float) -> None:
        """Take the answer to a heartbeat, or to a repeated one that was not as expected."""
        if response.error_code:
            self._handle_error(response.error_code, response.error_message, now)
            return
        if response.member_epoch <= beat.JOIN or response.heartbeat_interval_ms <= 0:
            self._fail(
                ProtocolError(
                    f"answer to ConsumerGroupHeartbeat: epoch {response.member_epoch}, interval "
                    f"{response.heartbeat_interval_ms} ms"
                ),
                now,
            )
            return
        self._failures = 0
        self._period = response.heartbeat_interval_ms / 1000
        self._beat.member_id = response.member_id or self._beat.member_id
        if self._state is State.JOINING:
            self._state = State.MEMBER
            self._reconciliation.begin()
        if response.member_epoch != self._epoch:
            logger.info("group %s: epoch %d", self._coordinator.group_id, response.member_epoch)
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

    def _handle_lost(self, error: KafkaError, now: float) -> None:
        """The link is gone, and perhaps an answer with it."""
        self._coordinator.handle_moved(str(error), now)
        self._beat.forget()
        self.tick(now)

    def _handle_names(self, now: float) -> None:
        self.tick(now)

    # Errors

    def _handle_error(self, code: int, message: str | None, now: float) -> None:
        """Take an error that a heartbeat was answered with."""
        known = ERRORS.get(code)
        self._beat.forget()
        if self._coordinator.handle_error(code, now):
            self.tick(now)  # still a member; the next coordinator knows
        elif code in NOT_A_MEMBER:
            self._lose(error_name(code))
            self._join_again(now, at_once=self._state is State.MEMBER)
        elif code == UNRELEASED_INSTANCE_ID and self._state is State.JOINING:
            self._wait_for_release(message, now)
        elif known is not None and known.retriable:
            logger.info("group %s: heartbeat: %s", self._coordinator.group_id, error_name(code))
            self._pause(now)
        else:
            self._is_fenced = code == FENCED_INSTANCE_ID
            text = f"group {self._coordinator.group_id!r}: {message or error_name(code)}"
            if code == UNSUPPORTED_VERSION:
                text = f"{text}; {NOT_SUPPORTED}"
            self._fail(broker_error(code, text), now)

    def _join_again(self, now: float, *, at_once: bool) -> None:
        self._state = State.JOINING
        if not at_once:
            self._pause(now)
        self.tick(now)

    def _wait_for_release(self, message: str | None, now: float) -> None:
        """Our instance id is a member's that did not say goodbye: try until its session ends.

        That may be ourselves, if the answer to our join was lost, or we were fenced: then leave.
        """
        if not self._failures:
            logger.warning(
                "group %s: group.instance.id %r is still another member's (%s): waiting until "
                "it leaves, or its session ends",
                self._coordinator.group_id,
                self._settings.group_instance_id,
                message,
            )
        self._say_goodbye(lambda: None)
        self._state = State.JOINING
        self._pause(now)

    def _lose(self, reason: str) -> None:
        """Others may have everything that this member owned."""
        self._heartbeats.stop()
        self._life += 1
        lost = self._reconciliation.lose(reason)
        if lost is not None:
            self._news.append(lost)

    def _fail(self, error: KafkaError, now: float) -> None:
        """Out of the group until the user does something."""
        logger.error("group %s: %s", self._coordinator.group_id, error)
        if self._is_fenced:
            self._may_be_known = False  # the id is another's now
        self._say_goodbye(lambda: None)
        self._is_paused = True
        self._pause(now)
        self._lose(str(error))
        self._news.append(MemberFailed(error))

    def _pause(self, now: float) -> None:
        """Try again after a backoff."""
        self._try_at = now + self._backoff.delay(self._failures)
        self._failures += 1


def _check_version(link: Link, subscription: Subscription) -> None:
    """Refuse a coordinator that is too old.

    Raises:
        UnsupportedVersionError: it cannot do what this member needs.
    """
    try:
        version = link.versions.pick(ConsumerGroupHeartbeatRequest)
    except UnsupportedVersionError as error:
        raise UnsupportedVersionError(f"{NOT_SUPPORTED} ({error})") from error
    if subscription.broker_side and version < beat.FIRST_VERSION_WITH_REGEX:
        raise UnsupportedVersionError(NO_REGEX)


def _new_member_id(random: Callable[[], float]) -> str:
    """Return an id that no other member has: 128 random bits, as Kafka writes them."""
    bits = bytes(int(random() * 256) for _ in range(16))
    return base64.urlsafe_b64encode(bits).rstrip(b"=").decode()
