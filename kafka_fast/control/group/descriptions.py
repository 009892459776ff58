"""The description of a group by its coordinator: its state and what its members subscribe to.

    ConsumerGroupDescribe ──GROUP_ID_NOT_FOUND, or not offered──► DescribeGroups

Only the coordinator knows which protocol a group uses. Members of a classic group tell each other
their subscriptions as bytes that the coordinator does not read. It passes these bytes on while the
group is stable. Of a regular expression (KIP-848), only the topics that were assigned for it are
known.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from kafka_fast.config import ConsumerSettings
from kafka_fast.control.context import Context
from kafka_fast.control.diagnosis.permissions import described
from kafka_fast.control.diagnosis.troubles import About
from kafka_fast.control.group.group_coordinator import GroupCoordinator
from kafka_fast.control.requests.call import ONLY, AnswerSource, CollectingCall, Results
from kafka_fast.control.requests.meanings import Done, Meaning, NotDone, Refused, meaning_of
from kafka_fast.control.requests.open_call import OpenCall
from kafka_fast.errors import (
    BrokerError,
    ErrorCode,
    KafkaError,
    UnsupportedVersionError,
    broker_error,
)
from kafka_fast.protocol.apis.groups import consumer_group_describe as newer
from kafka_fast.protocol.apis.groups import describe_groups as classic
from kafka_fast.protocol.consumer import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from kafka_fast.protocol.schema import decode_versioned
from kafka_fast.values import Value

CLASSIC_CONSUMERS = "consumer"
"""The protocol type of classic groups of consumers. Other types have other bytes."""

# Kafka 3.7 to 3.9 offer the API even if the new groups are switched off, and then refuse it.
_ANOTHER_PROTOCOL = frozenset({ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION})

DEAD = "Dead"
REBALANCING = frozenset({"PreparingRebalance", "CompletingRebalance"})


class GroupDescription(Value):
    """A group as its coordinator describes it."""

    state: str = DEAD
    """Kafka's name of the state; Dead: there is no such group."""
    topics: frozenset[str] = frozenset()
    """Topics that members subscribe to or were assigned, whether they exist or not."""
    member_count: int = 0
    """The number of members."""

    @property
    def exists(self) -> bool:
        """Whether the coordinator knows the group, by its members or its offsets."""
        return self.state != DEAD

    @property
    def is_rebalancing(self) -> bool:
        """Whether the group rebalances, and its subscriptions are not told meanwhile."""
        return self.state in REBALANCING


class Descriptions:
    """Asks for the description of one group. Control thread only."""

    def __init__(self, context: Context[ConsumerSettings], coordinator: GroupCoordinator) -> None:
        """Keep the arguments; each `describe_group` makes its request.

        Args:
            context: the consumer's.
            coordinator: of the group.
        """
        self._coordinator = coordinator
        self._requester = context.requester
        self._timeout = context.settings.request_timeout

    def describe_group(
        self, done: Callable[[GroupDescription | KafkaError], None]
    ) -> Callable[[], None]:
        """Ask until there is an answer; return a function that cancels.

        Args:
            done: called with the description, or with the error.
        """
        asked: list[OpenCall[str, GroupDescription]] = []

        def begin(
            kind: type[_Describe], on_ended: Callable[[Results[str, GroupDescription], float], None]
        ) -> None:
            call = kind(self._coordinator, timeout=self._timeout, on_ended=on_ended)
            asked.append(self._requester.open_call(call, [ONLY]))

        def handle_newer(results: Results[str, GroupDescription], now: float) -> None:
            if _needs_classic(results.only()):
                begin(_DescribeClassic, lambda results, now: done(results.only()))
            else:
                done(results.only())

        begin(_DescribeNewer, handle_newer)

        def cancel() -> None:
            asked[-1].cancel()

        return cancel


def _needs_classic(outcome: GroupDescription | KafkaError) -> bool:
    """Tell whether the group or its broker needs the API of classic groups."""
    is_another = isinstance(outcome, BrokerError) and outcome.code in _ANOTHER_PROTOCOL
    return is_another or isinstance(outcome, UnsupportedVersionError)


class _Describe(CollectingCall[str, GroupDescription]):
    """A request for a group's description; each subclass uses the API of one protocol."""

    def __init__(
        self,
        coordinator: GroupCoordinator,
        *,
        timeout: float,
        on_ended: Callable[[Results[str, GroupDescription], float], None],
    ) -> None:
        super().__init__(coordinator.target, timeout=timeout, on_ended=on_ended)
        self._group_id = coordinator.group_id

    def describe(self, item: str) -> str:
        """Return the name of the request in errors."""
        return f"describing group {self._group_id!r}"

    def subject(self, item: str) -> About:
        """Keep troubles under `About.GROUP`."""
        return About.GROUP


class _DescribeNewer(_Describe):
    """ConsumerGroupDescribe (KIP-848)."""

    request_class = newer.ConsumerGroupDescribeRequest
    response_class = newer.ConsumerGroupDescribeResponse

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
        for group in answer.groups[:1]:
            if group.error_code:
                text = group.error_message
                yield (
                    ONLY,
                    _meaning_of(group.error_code, "ConsumerGroupDescribe", self._group_id, text),
                )
            else:
                topics = frozenset(_newer_topics(group.members))
                yield ONLY, Done(GroupDescription(group.group_state, topics, len(group.members)))


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
        """Return the group, as Dead if the coordinator does not know it."""
        for group in answer.groups[:1]:
            if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
                yield ONLY, Done(GroupDescription())
            elif group.error_code:
                yield ONLY, _meaning_of(group.error_code, "DescribeGroups", self._group_id, None)
            else:
                try:
                    topics = frozenset(_classic_topics(group))
                except KafkaError as error:  # bytes of another client
                    yield ONLY, Refused(error)
                else:
                    count = len(group.members)
                    yield ONLY, Done(GroupDescription(group.group_state, topics, count))


def _meaning_of(code: int, api: str, group_id: str, message: str | None) -> NotDone:
    """Return what an error code means. A refusal has the broker's message, if there is one."""
    meaning = meaning_of(code, api, f" of group {group_id!r}")
    if not isinstance(meaning, Refused):
        return meaning
    return Refused(
        broker_error(code, f"describing group {group_id!r}: {described(code, api, message)}")
    )


def _newer_topics(members: Iterable[newer.Member]) -> Iterator[str]:
    for member in members:
        yield from member.subscribed_topic_names
        for assignment in (member.assignment, member.target_assignment):
            yield from (topic.topic_name for topic in assignment.topic_partitions)


def _classic_topics(group: classic.DescribedGroup) -> Iterator[str]:
    """Yield the topics that members' bytes name. There are none while the group rebalances.

    Raises:
        MalformedError: a member's bytes do not fit the protocol type.
    """
    if group.protocol_type != CLASSIC_CONSUMERS:
        return
    for member in group.members:
        if member.member_metadata:
            yield from decode_versioned(ConsumerProtocolSubscription, member.member_metadata).topics
        if member.member_assignment:
            assigned = decode_versioned(ConsumerProtocolAssignment, member.member_assignment)
            yield from (topic.topic for topic in assigned.assigned_partitions)
