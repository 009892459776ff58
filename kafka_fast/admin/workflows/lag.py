"""How far groups are behind: a few round trips, for any number of groups and partitions.

ListGroups, if all are meant ─► descriptions, committed offsets ─► metadata ─► both ends of logs
(at the same time)                (three look-ups at a time)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kafka_fast.admin.admin_steps import AdminSteps
from kafka_fast.admin.result import AdminResult
from kafka_fast.admin.workflows.groups import AnyDescription, describe_groups
from kafka_fast.admin.workflows.log_ends import BOTH_ENDS, known_topics, look_up
from kafka_fast.admin.workflows.together import run_together, with_values
from kafka_fast.control.admin.operation import OperationResults
from kafka_fast.control.admin.operations.groups.committed import (
    CommittedByGroup,
    ListGroupOffsets,
)
from kafka_fast.control.admin.operations.groups.descriptions import (
    CLASSIC_CONSUMERS,
    DescribeClassicGroups,
    DescribeConsumerGroups,
)
from kafka_fast.control.admin.operations.groups.listings import ListGroups
from kafka_fast.control.admin.types.groups.descriptions import (
    ConsumerGroupDescription,
    MemberDescription,
)
from kafka_fast.control.admin.types.groups.lag import GroupLag, PartitionLag
from kafka_fast.control.admin.types.groups.listings import GroupListing, GroupState, GroupType
from kafka_fast.control.admin.types.offsets import IsolationLevel, ListedOffset, OffsetSpec
from kafka_fast.control.arguments import names_of
from kafka_fast.errors import BrokerError, ErrorCode, KafkaError, fresh_copy
from kafka_fast.net.waiting.steps import Steps
from kafka_fast.types import TopicPartition

NAME = "consumer_group_lag"

PLACES = (*BOTH_ENDS, (OffsetSpec.LATEST, IsolationLevel.READ_COMMITTED))
"""The first offset, the high watermark, and the last stable offset."""

OF_CONSUMERS = frozenset({CLASSIC_CONSUMERS, ""})
"""Protocol types of groups that commit offsets; "": of those that only have offsets."""


def consumer_group_lag(
    steps: AdminSteps,
    groups: Iterable[str] | None,
    topics: Iterable[str] | None,
    deadline: float,
) -> Steps[AdminResult[str, GroupLag]]:
    """Return how far groups are behind.

    Args:
        steps: of the client.
        groups: their ids; None: all groups of consumers.
        topics: only these, and all of their partitions; None: those of each group.
        deadline: when what has no answer fails.

    Raises:
        KafkaError: a node has not listed its groups, and all are meant.
    """
    only = None if topics is None else frozenset(names_of(topics, "the names of topics"))
    if groups is None:
        listings = yield from _listed(steps, deadline)
        ids = list(listings)
        descriptions = _described_as_listed(steps, listings, deadline)
    else:
        ids = names_of(groups)
        descriptions = describe_groups(
            steps, ids, include_authorized_operations=False, deadline=deadline
        )
    offsets = ListGroupOffsets(dict.fromkeys(ids), require_stable=False)
    described: OperationResults[str, AnyDescription]
    committed: OperationResults[str, CommittedByGroup]
    described, committed = yield from run_together(descriptions, steps.results(offsets, deadline))
    absent = _absent(described, committed) if only is None else {}
    places = {
        group_id: _Places(described.values.get(group_id), committed.values[group_id], only)
        for group_id in ids
        if group_id in committed.values and group_id not in absent
    }
    named = {topic for place in places.values() for topic in place.topics} | (only or frozenset())
    known = yield from known_topics(steps, named, deadline)
    partitions = {
        group_id: sorted(
            {one for topic in place.topics for one in known.partitions_of(topic)} | place.partitions
        )
        for group_id, place in places.items()
    }
    union = sorted({one for ones in partitions.values() for one in ones})
    absences = known.absences(union)
    there = [one for one in union if one not in absences]
    starts, ends, stable = yield from look_up(steps, there, PLACES, deadline)
    logs = Logs(absences, starts, ends, stable)
    if groups is None:  # they were there when they were listed
        committed.keys[:] = [group_id for group_id in committed.keys if group_id not in absent]
        absent = {}
    results = with_values(committed, dict[str, GroupLag](), {**committed.errors, **absent})
    for group_id, place in places.items():
        lags = tuple(place.lags(partitions[group_id], logs))
        results.values[group_id] = GroupLag(
            group_id,
            *place.type_and_state,
            lags,
            {topic: known.errors[topic] for topic in sorted(place.topics & known.errors.keys())},
            described.errors.get(group_id),
        )
    return AdminResult(NAME, results)


def _listed(steps: AdminSteps, deadline: float) -> Steps[dict[str, GroupListing]]:
    """Return all groups of consumers. Were a node left out, so would be its groups, in silence."""
    results = yield from steps.results(ListGroups(), deadline)
    for error in results.errors.values():
        raise fresh_copy(error)
    return {
        one.group_id: one
        for one in sorted(
            (one for listings in results.values.values() for one in listings),
            key=lambda one: one.group_id,
        )
        if one.protocol_type in OF_CONSUMERS
    }


def _described_as_listed(
    steps: AdminSteps, listings: Mapping[str, GroupListing], deadline: float
) -> Steps[OperationResults[str, AnyDescription]]:
    """Describe groups by the API of the type that was listed: both are asked at a time."""
    newer = [one.group_id for one in listings.values() if one.type is GroupType.CONSUMER]
    older = [one.group_id for one in listings.values() if one.type is GroupType.CLASSIC]
    told = {*newer, *older}
    others = [one for one in listings if one not in told]
    answers: list[OperationResults[str, AnyDescription]] = yield from run_together(
        steps.results(DescribeConsumerGroups(newer, include_authorized_operations=False), deadline),
        steps.results(DescribeClassicGroups(older, include_authorized_operations=False), deadline),
        describe_groups(steps, others, include_authorized_operations=False, deadline=deadline),
    )
    results: OperationResults[str, AnyDescription] = OperationResults(list(listings))
    for answer in answers:
        results.values.update(answer.values)
        results.errors.update(answer.errors)
    return results


def _absent(
    described: OperationResults[str, AnyDescription],
    committed: OperationResults[str, CommittedByGroup],
) -> dict[str, KafkaError]:
    """Return the groups that do not exist: the coordinator only says that they have no offsets."""
    return {
        group_id: error
        for group_id, error in described.errors.items()
        if isinstance(error, BrokerError)
        and error.code == ErrorCode.GROUP_ID_NOT_FOUND
        and group_id in committed.values
        and not committed.values[group_id].keys
    }


class Logs:
    """What is known of the logs of partitions."""

    def __init__(
        self,
        absences: Mapping[TopicPartition, KafkaError],
        starts: OperationResults[TopicPartition, ListedOffset],
        ends: OperationResults[TopicPartition, ListedOffset],
        stable: OperationResults[TopicPartition, ListedOffset],
    ) -> None:
        """Take what was looked up.

        Args:
            absences: why some partitions were not looked up.
            starts: the first offsets.
            ends: the high watermarks.
            stable: the last stable offsets.
        """
        self._parts = (starts, ends, stable)
        self._errors = {**stable.errors, **ends.errors, **starts.errors, **absences}

    def why_unknown(self, partition: TopicPartition) -> KafkaError | None:
        """Return why something is not known of a partition; None: all is known."""
        return self._errors.get(partition)

    def places_of(self, partition: TopicPartition) -> tuple[int | None, int | None, int | None]:
        """Return the first offset, the high watermark, and the last stable offset."""
        start, end, stable = (_offset(part.values.get(partition)) for part in self._parts)
        return start, end, stable


def _offset(listed: ListedOffset | None) -> int | None:
    return None if listed is None else listed.offset


class _Places:
    """One group: what it has committed, and who reads what."""

    def __init__(
        self,
        description: AnyDescription | None,
        committed: CommittedByGroup,
        only: frozenset[str] | None,
    ) -> None:
        self._description = description
        self._committed = committed
        self._readers: dict[TopicPartition, MemberDescription] = {}
        members = () if description is None else description.members
        for member in members:
            self._readers.update(dict.fromkeys(member.assignment or (), member))
        subscribed = {topic for member in members for topic in member.subscribed_topics}
        self.partitions = {
            one for one in (*committed.keys, *self._readers) if only is None or one.topic in only
        }
        """Those that it has committed offsets of, or whose topics its members were assigned."""
        if only is None:
            self.topics = subscribed | {one.topic for one in self.partitions}
        else:
            self.topics = {*only}

    @property
    def type_and_state(self) -> tuple[GroupType, GroupState]:
        """What the group is, and does; UNKNOWN if it has no description."""
        if self._description is None:
            return GroupType.UNKNOWN, GroupState.UNKNOWN
        is_newer = isinstance(self._description, ConsumerGroupDescription)
        return GroupType.CONSUMER if is_newer else GroupType.CLASSIC, self._description.state

    def lags(self, partitions: Iterable[TopicPartition], logs: Logs) -> Iterator[PartitionLag]:
        """Yield how far the group is behind in these partitions."""
        for partition in partitions:
            log_start, end, last_stable = logs.places_of(partition)
            yield PartitionLag(
                partition,
                self._committed.values.get(partition),
                log_start,
                end,
                last_stable,
                self._readers.get(partition),
                self._committed.errors.get(partition) or logs.why_unknown(partition),
            )
