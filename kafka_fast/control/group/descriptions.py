"""What a group's coordinator tells of the group to those outside of it: state and subscriptions.

    ConsumerGroupDescribe ──GROUP_ID_NOT_FOUND, or not offered──► DescribeGroups

A group is of one protocol or the other, and only its coordinator knows of which. Members of a
classic group tell each other their subscriptions in blobs, which the coordinator hands on here
while the group is stable. A regular expression of KIP-848 is known by what it made the coordinator
assign.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from kafka_fast.control.backoff import Backoff
from kafka_fast.control.group.coordinator import Coordinator
from kafka_fast.control.instants import LONG_AGO, NEVER
from kafka_fast.control.link import Link
from kafka_fast.errors import (
    ERRORS,
    GroupIdNotFound,
    KafkaError,
    UnsupportedVersion,
    UnsupportedVersionError,
    broker_error,
)
from kafka_fast.protocol.apis import consumer_group_describe as newer
from kafka_fast.protocol.apis import describe_groups as classic
from kafka_fast.protocol.consumer import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from kafka_fast.protocol.schema import decode_versioned
from kafka_fast.values import Value

CLASSIC_CONSUMERS = "consumer"
"""The protocol type of classic groups of consumers; others have blobs of their own."""

# Kafka 3.7 to 3.9 offer the API also where the new groups are switched off, and then refuse it.
_ANOTHER_PROTOCOL = frozenset({GroupIdNotFound.code, UnsupportedVersion.code})

DEAD = "Dead"
REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance"})


class GroupDescription(Value):
    """A group as its coordinator has it.

    Attributes:
        state: Kafka's word for it; Dead: there is no such group.
        topics: that its members subscribe to or have been assigned, whether they exist or not.
        member_count: how many members it has.
    """

    state: str = DEAD
    topics: frozenset[str] = frozenset()
    member_count: int = 0

    @property
    def exists(self) -> bool:
        """Whether the coordinator knows the group: it has members, or committed something."""
        return self.state != DEAD

    @property
    def is_rebalancing(self) -> bool:
        """Whether what its members subscribe to is not told for the moment."""
        return self.state in REBALANCING


class _Inquiry(Value, frozen=False, eq=False):
    done: Callable[[GroupDescription | KafkaError], None]
    is_classic: bool = False  # whether DescribeGroups is to be asked
    failures: int = 0
    not_before: float = LONG_AGO
    in_flight: bool = False


class Descriptions:
    """Asks about one group. Control thread only."""

    def __init__(self, coordinator: Coordinator, backoff: Backoff) -> None:
        """Begin with nothing to ask.

        Args:
            coordinator: of the group.
            backoff: between two tries.
        """
        self._coordinator = coordinator
        self._backoff = backoff
        self._inquiries: list[_Inquiry] = []

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""
        if self._coordinator.link is None:
            return NEVER
        waiting = (it.not_before for it in self._inquiries if not it.in_flight)
        return min(waiting, default=NEVER)

    def ask(
        self, done: Callable[[GroupDescription | KafkaError], None], now: float
    ) -> Callable[[], None]:
        """Ask until there is an answer; returns what gives it up.

        Args:
            done: called with the description, or with why there is none.
            now: the time.
        """
        inquiry = _Inquiry(done)
        self._inquiries.append(inquiry)
        self.tick(now)

        def cancel() -> None:
            if inquiry in self._inquiries:
                self._inquiries.remove(inquiry)

        return cancel

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        waiting = [it for it in self._inquiries if not it.in_flight and it.not_before <= now]
        link = self._coordinator.want(now) if waiting else None
        if link is not None:
            for inquiry in waiting:
                self._send(inquiry, link)

    def fail_all(self, error: KafkaError) -> None:
        """There will never be a coordinator."""
        for inquiry in list(self._inquiries):
            self._end(inquiry, error)

    def _send(self, inquiry: _Inquiry, link: Link) -> None:
        inquiry.in_flight = True
        group_id = self._coordinator.group_id
        if not inquiry.is_classic:
            try:
                self._coordinator.ask(
                    link,
                    newer.ConsumerGroupDescribeRequest(group_ids=[group_id]),
                    newer.ConsumerGroupDescribeResponse,
                    lambda response, now: self._handle_newer(inquiry, response, now),
                    lambda error, now: self._retry(inquiry, now),
                )
                return
            except UnsupportedVersionError:  # a broker older than KIP-848
                inquiry.is_classic = True
        try:
            self._coordinator.ask(
                link,
                classic.DescribeGroupsRequest(groups=[group_id]),
                classic.DescribeGroupsResponse,
                lambda response, now: self._handle_classic(inquiry, response, now),
                lambda error, now: self._retry(inquiry, now),
            )
        except KafkaError as error:
            self._end(inquiry, error)

    def _handle_newer(
        self, inquiry: _Inquiry, response: newer.ConsumerGroupDescribeResponse, now: float
    ) -> None:
        if not response.groups:
            self._retry(inquiry, now)
            return
        found = response.groups[0]
        if found.error_code in _ANOTHER_PROTOCOL:
            inquiry.is_classic = True
            inquiry.in_flight = False
            self.tick(now)
        elif found.error_code:
            self._handle_error(inquiry, found.error_code, found.error_message, now)
        else:
            topics = frozenset(_newer_topics(found.members))
            self._end(inquiry, GroupDescription(found.group_state, topics, len(found.members)))

    def _handle_classic(
        self, inquiry: _Inquiry, response: classic.DescribeGroupsResponse, now: float
    ) -> None:
        if not response.groups:
            self._retry(inquiry, now)
            return
        found = response.groups[0]
        if found.error_code == GroupIdNotFound.code:
            self._end(inquiry, GroupDescription())
        elif found.error_code:
            self._handle_error(inquiry, found.error_code, found.error_message, now)
        else:
            try:
                topics = frozenset(_classic_topics(found))
            except KafkaError as error:  # a blob of another client
                self._end(inquiry, error)
            else:
                self._end(inquiry, GroupDescription(found.group_state, topics, len(found.members)))

    def _handle_error(self, inquiry: _Inquiry, code: int, message: str | None, now: float) -> None:
        known = ERRORS.get(code)
        if self._coordinator.handle_error(code, now) or (known is not None and known.retriable):
            self._retry(inquiry, now)
        else:
            what = message or f"describing group {self._coordinator.group_id!r}"
            self._end(inquiry, broker_error(code, what))

    def _retry(self, inquiry: _Inquiry, now: float) -> None:
        inquiry.in_flight = False
        inquiry.not_before = now + self._backoff.delay(inquiry.failures)
        inquiry.failures += 1

    def _end(self, inquiry: _Inquiry, result: GroupDescription | KafkaError) -> None:
        if inquiry in self._inquiries:
            self._inquiries.remove(inquiry)
            inquiry.done(result)


def _newer_topics(members: Iterable[newer.Member]) -> Iterator[str]:
    for member in members:
        yield from member.subscribed_topic_names
        for assignment in (member.assignment, member.target_assignment):
            yield from (topic.topic_name for topic in assignment.topic_partitions)


def _classic_topics(group: classic.DescribedGroup) -> Iterator[str]:
    """Yield the topics that the blobs name; there are none while the group rebalances.

    Raises:
        MalformedError: a blob is not what members of this protocol type have.
    """
    if group.protocol_type != CLASSIC_CONSUMERS:
        return
    for member in group.members:
        if member.member_metadata:
            yield from decode_versioned(ConsumerProtocolSubscription, member.member_metadata).topics
        if member.member_assignment:
            assigned = decode_versioned(ConsumerProtocolAssignment, member.member_assignment)
            yield from (topic.topic for topic in assigned.assigned_partitions)
