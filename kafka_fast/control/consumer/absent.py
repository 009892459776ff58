"""Partitions that the user assigned by hand and that the cluster does not have.

    metadata answers ─► denied for ABSENT_PATIENCE ─► a warning ─► CONFIRMATIONS more ─► error
                           │                                             │
                           └──── the partition is there: it is read ◄────┘

A topic may be created a moment later, or by the very request for its metadata, and partitions may
be added later. So the consumer waits for a while. A partition that does not exist after that is
most likely a mistake, and to read nothing without an error would hide that. Only answers count:
brokers that do not answer deny nothing. A group assigns only existing partitions, so partitions of
group members are not watched.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kafka_fast.control.consumer.consumer_messages import PartitionFailed, PartitionFound
from kafka_fast.control.consumer.partition import (
    Absence,
    AssignedPartition,
    AssignedPartitions,
    FetchState,
)
from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.errors import ErrorCode, broker_error
from kafka_fast.logs import LONG, count_of, get_logger, some_of
from kafka_fast.types import TopicPartition

logger = get_logger("kafka_fast.consumer")

ABSENT_PATIENCE = LONG
"""Seconds for which a partition may be denied before anything is said."""

CONFIRMATIONS = 2
"""How many answers after the warning must deny the partition as well."""


class AbsentPartitions:
    """One consumer's partitions that do not exist. Control thread only."""

    def __init__(
        self,
        cluster: Cluster,
        partitions: AssignedPartitions,
        *,
        on_news: Callable[[PartitionFailed | PartitionFound], None],
    ) -> None:
        """Watch no partition before `watch`.

        Args:
            cluster: knows which partitions exist.
            partitions: that are assigned.
            on_news: called with what the user's thread has to know.
        """
        self._cluster = cluster
        self._partitions = partitions
        self._on_news = on_news

    def watch(self, *, by_hand: bool) -> None:
        """Watch all assigned partitions if the user assigned them by hand; else watch none."""
        for assigned in self._partitions:
            assigned.is_by_hand = by_hand
            if not by_hand:
                assigned.absence = None

    def handle_answer(self, topics: Iterable[str], now: float) -> None:
        """Look for watched partitions that new metadata of these topics deny."""
        for topic in sorted(topics):
            due: dict[str, list[TopicPartition]] = {}
            for assigned in sorted(
                self._partitions.of_topic(topic), key=lambda entry: entry.partition
            ):
                why = self._look_at(assigned, now) if assigned.is_by_hand else None
                if why is not None:
                    due.setdefault(why, []).append(assigned.partition)
            for why, denied in due.items():
                _warn(denied, why)

    def _look_at(self, assigned: AssignedPartition, now: float) -> str | None:
        """Look at one partition; return why it is not there if a warning is due now."""
        partition = assigned.partition
        why = self._denial(partition)
        if why is None:
            absence, assigned.absence = assigned.absence, None
            if absence is not None and absence.told is not None:
                logger.info("%s is there now", partition)
                self._on_news(PartitionFound(partition, assigned.seeks))
            return None
        answers = self._cluster.answers(partition.topic)
        absence = assigned.absence = assigned.absence or Absence(now, answers)
        self._cluster.request_refresh("a partition is not there", partition.topic)
        is_due = not absence.is_warned and now - absence.since >= ABSENT_PATIENCE
        if not absence.is_warned:
            absence.is_warned = is_due
        elif answers > absence.answers:
            absence.confirmations += 1
        absence.answers = answers
        if absence.confirmations >= CONFIRMATIONS:
            self._tell(assigned, absence, f"there is no partition {partition}: {why}")
        return why if is_due else None

    def _denial(self, partition: TopicPartition) -> str | None:
        """Return how the brokers deny a partition, as text; None if they do not."""
        topic, number = partition
        code = self._cluster.error(topic)
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return f"the brokers know no topic {topic!r}"
        count = self._cluster.partition_count(topic)
        if code or count is None or number < count:
            return None
        return f"topic {topic!r} has {count_of(count, 'partition')}"

    def _tell(self, assigned: AssignedPartition, absence: Absence, text: str) -> None:
        """Let every poll raise this, unless it does already, or the partition has failed."""
        if absence.told != assigned.seeks and assigned.state is not FetchState.FAILED:
            absence.told = assigned.seeks
            error = broker_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
            self._on_news(PartitionFailed(assigned.partition, assigned.seeks, error, True))


def _warn(denied: list[TopicPartition], why: str) -> None:
    """Log that partitions of a topic are not there, in one line for all of them."""
    if len(denied) == 1:
        logger.warning("there is no partition %s: %s; waiting for it", denied[0], why)
    else:
        logger.warning("no partitions %s: %s; waiting for them", some_of(denied), why)
