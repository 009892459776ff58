"""Where the logs of partitions begin and end, without waiting for partitions that are not there.

A look-up of an offset waits for the partition's leader. Of a topic that was deleted, or a partition
that has no leader now, a call about many groups must not wait. So the metadata are asked first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from kafka_fast.admin.admin_steps import AdminSteps
from kafka_fast.admin.workflows.together import run_together
from kafka_fast.control.admin.operation import OperationResults
from kafka_fast.control.admin.operations.offsets import ListOffsets
from kafka_fast.control.admin.operations.topics import DescribeTopics
from kafka_fast.control.admin.types.offsets import IsolationLevel, ListedOffset, OffsetSpec
from kafka_fast.control.admin.types.topics import TopicDescription
from kafka_fast.errors import ErrorCode, KafkaError, broker_error
from kafka_fast.net.waiting.steps import Steps
from kafka_fast.types import TopicPartition
from kafka_fast.values import Value

BOTH_ENDS = (
    (OffsetSpec.EARLIEST, IsolationLevel.READ_UNCOMMITTED),
    (OffsetSpec.LATEST, IsolationLevel.READ_UNCOMMITTED),
)
"""The first offset of a log, and its high watermark."""


class KnownTopics(Value):
    """What the metadata say of topics."""

    topics: Mapping[str, TopicDescription]
    errors: Mapping[str, KafkaError]
    """The topics that are not there, or may not be seen."""

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        """Return all partitions of a topic; none if it is not there."""
        description = self.topics.get(topic)
        infos = () if description is None else description.partitions
        return [TopicPartition(topic, info.partition) for info in infos]

    def absences(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, KafkaError]:
        """Return why some of these partitions have no offsets: not there, or without a leader."""
        leaders = {
            TopicPartition(name, info.partition): info.leader
            for name, description in self.topics.items()
            for info in description.partitions
        }
        absences: dict[TopicPartition, KafkaError] = {}
        for partition in partitions:
            error = self.errors.get(partition.topic)
            if error is not None:
                absences[partition] = error
            elif partition not in leaders:
                text = f"there is no partition {partition}"
                absences[partition] = broker_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
            elif leaders[partition] is None:
                text = f"{partition} has no leader now"
                absences[partition] = broker_error(ErrorCode.LEADER_NOT_AVAILABLE, text)
        return absences


def known_topics(steps: AdminSteps, topics: Iterable[str], deadline: float) -> Steps[KnownTopics]:
    """Return what the metadata say of topics.

    Args:
        steps: of the client.
        topics: their names.
        deadline: when topics without an answer fail.
    """
    operation = DescribeTopics(sorted(topics), by_id=False, include_authorized_operations=False)
    results = yield from steps.results(operation, deadline)
    return KnownTopics(results.values, results.errors)


def look_up(
    steps: AdminSteps,
    partitions: Iterable[TopicPartition],
    places: Sequence[tuple[OffsetSpec | int, IsolationLevel]],
    deadline: float,
) -> Steps[list[OperationResults[TopicPartition, ListedOffset]]]:
    """Look several places of each partition up at a time, and return the results of each place.

    Args:
        steps: of the client.
        partitions: those that are there.
        places: what is looked up.
        deadline: when partitions without an answer fail.
    """
    lookups = [
        ListOffsets(dict.fromkeys(partitions, spec), isolation_level=isolation_level)
        for spec, isolation_level in places
    ]
    return (yield from run_together(*(steps.results(lookup, deadline) for lookup in lookups)))
