"""What a group's coordinator tells of the group to those outside of it: state and subscriptions.

    ConsumerGroupDescribe ──GROUP_ID_NOT_FOUND, or not offered──► DescribeGroups

Only the coordinator knows which protocol a group uses. Members of a classic group tell each other
their subscriptions as bytes that the coordinator does not read; it passes them on here while the
group is stable. A regular expression of KIP-848 is known only by what the coordinator has assigned
for it.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from kafka_fast.config import ConsumerSettings
from kafka_fast.control.context import Context
from kafka_fast.control.group.coordinator import GroupCoordinator
from kafka_fast.control.requests.call import ONLY, AnswerSource, Call
from kafka_fast.control.requests.meanings import Done, Meaning, NotDone, Refused, meaning_of
from kafka_fast.control.requests.open_call import OpenCall
from kafka_fast.control.troubles import About
from kafka_fast.errors import (
    BrokerError,
    ErrorCode,
    KafkaError,
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
_ANOTHER_PROTOCOL = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})

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


class Descriptions:
    """Asks about one group. Control thread only."""

    def __init__(self, context: Context[ConsumerSettings], coordinator: GroupCoordinator) -> None:
        """Begin with nothing to ask.

        Args:
            context: the consumer's.
            coordinator: of the group.
        """
        self._coordinator = coordinator
        self._requester = context.requester
        self._timeout = context.settings.request_timeout

    def ask(self, done: Callable[[GroupDescription | KafkaError], None]) -> Callable[[], None]:
        """Ask until there is an answer; returns what gives it up.

        Args:
            done: called with the description, or with why there is none.
        """
        asked: list[OpenCall[str, GroupDescription]] = []

        def ask_classic() -> None:
            call = _DescribeClassic(self._coordinator, done, timeout=self._timeout)
            asked.append(self._requester.begin(call, [ONLY]))

        newer_call = _DescribeNewer(self._coordinator, done, ask_classic, timeout=self._timeout)
        asked.append(self._requester.begin(newer_call, [ONLY]))

        def cancel() -> None:
            asked[-1].cancel()

        return cancel


class _Describe(Call[str, GroupDescription]):
    """A question about a group; subclasses ask it in the words of one protocol."""

    def __init__(
        self,
        coordinator: GroupCoordinator,
        done: Callable[[GroupDescription | KafkaError], None],
        *,
        timeout: float,
    ) -> None:
        super().__init__(coordinator.target, timeout=timeout)
        self._group_id = coordinator.group_id
        self._done = done

    def describe(self, item: str) -> str:
        """Return what is asked."""
        return f"describing group {self._group_id!r}"

    def subject(self, item: str) -> About:
        """Keep troubles as the group's."""
        return About.GROUP

    def handle_done(self, item: str, value: GroupDescription, now: float) -> None:
        """Hand the description on."""
        self._done(value)

    def handle_failed(self, item: str, error: KafkaError, now: float) -> None:
        """Tell why there is none."""
        self._done(error)


class _DescribeNewer(_Describe):
    """ConsumerGroupDescribe (KIP-848)."""

    request_class = newer.ConsumerGroupDescribeRequest
    response_class = newer.ConsumerGroupDescribeResponse

    def __init__(
        self,
        coordinator: GroupCoordinator,
        done: Callable[[GroupDescription | KafkaError], None],
        ask_classic: Callable[[], None],
        *,
        timeout: float,
    ) -> None:
        super().__init__(coordinator, done, timeout=timeout)
        self._ask_classic = ask_classic

    def build(self, items: Sequence[str], version: int) -> newer.ConsumerGroupDescribeRequest:
        """Ask for the group."""
        return newer.ConsumerGroupDescribeRequest(group_ids=[self._group_id])

    def read(
        self,
        answer: newer.ConsumerGroupDescribeResponse,
        items: Sequence[str],
        source: AnswerSource,
    ) -> Iterator[tuple[str, Meaning[GroupDescription]]]:
        """Return the group, unless it is of the other protocol."""
        for found in answer.groups[:1]:
            if found.error_code:
                text = found.error_message
                yield ONLY, _meaning_of(found.error_code, self.describe(ONLY), text)
            else:
                topics = frozenset(_newer_topics(found.members))
                yield ONLY, Done(GroupDescription(found.group_state, topics, len(found.members)))

    def handle_failed(self, item: str, error: KafkaError, now: float) -> None:
        """Ask in the words of the other protocol if the group, or the broker, wants that."""
        is_another = isinstance(error, BrokerError) and error.code in _ANOTHER_PROTOCOL
        if is_another or isinstance(error, UnsupportedVersionError):
            self._ask_classic()
        else:
            super().handle_failed(item, error, now)


class _DescribeClassic(_Describe):
    """DescribeGroups."""

    request_class = classic.DescribeGroupsRequest
    response_class = classic.DescribeGroupsResponse

    def build(self, items: Sequence[str], version: int) -> classic.DescribeGroupsRequest:
        """Ask for the group."""
        return classic.DescribeGroupsRequest(groups=[self._group_id])

    def read(
        self,
        answer: classic.DescribeGroupsResponse,
        items: Sequence[str],
        source: AnswerSource,
    ) -> Iterator[tuple[str, Meaning[GroupDescription]]]:
        """Return the group; one that nobody knows is dead."""
        for found in answer.groups[:1]:
            if found.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
                yield ONLY, Done(GroupDescription())
            elif found.error_code:
                yield ONLY, _meaning_of(found.error_code, self.describe(ONLY), None)
            else:
                try:
                    topics = frozenset(_classic_topics(found))
                except KafkaError as error:  # a blob of another client
                    yield ONLY, Refused(error)
                else:
                    count = len(found.members)
                    yield ONLY, Done(GroupDescription(found.group_state, topics, count))


def _meaning_of(code: int, what: str, message: str | None) -> NotDone:
    """Return what an error means; a refusal has the broker's own words, if there are any."""
    meaning = meaning_of(code, what)
    return Refused(broker_error(code, message or what)) if isinstance(meaning, Refused) else meaning


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
