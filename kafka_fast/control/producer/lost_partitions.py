"""Partitions that their topic has lost: it was created again with fewer of them.

    metadata answers ─► denied for LOST_PATIENCE ─► CONFIRMATIONS more ─► its records fail
                           │                                 │
                           └─── the partition is there ◄─────┘

New records go to the partitions that there are. Records that wait for one of the others would wait
until delivery.timeout.ms. But metadata of a moment may be wrong: brokers hear of a new topic one
after the other. So the records fail after several answers that agree. Only answers count: brokers
that are silent deny nothing.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.control.producer.producer_messages import FailQueue
from kafka_fast.control.producer.routes import Queue, Routes
from kafka_fast.errors import ErrorCode
from kafka_fast.logs import LONG, count_of, get_logger, some_of
from kafka_fast.types import TopicPartition
from kafka_fast.values import Value

logger = get_logger("kafka_fast.producer")

LOST_PATIENCE = LONG
"""Seconds for which a partition may be denied before answers are counted."""

CONFIRMATIONS = 2
"""How many answers after that must deny the partition as well."""


class _Denial(Value, frozen=False):
    since: float
    answers: int
    """How many answers about the topic there were when the partition was last looked at."""
    confirmations: int = 0


class LostPartitions:
    """The lost partitions of one producer that have records. Control thread only."""

    def __init__(
        self, cluster: Cluster, routes: Routes, *, on_lost: Callable[[FailQueue], None]
    ) -> None:
        """Take what shows lost partitions, and who fails their records.

        Args:
            cluster: knows how many partitions topics have.
            routes: know which queues have records.
            on_lost: called with the command that fails the records of a queue.
        """
        self._cluster = cluster
        self._routes = routes
        self._on_lost = on_lost
        self._denials: dict[TopicPartition, _Denial] = {}

    def __contains__(self, partition: TopicPartition) -> bool:
        """Tell whether the metadata deny a partition that has records."""
        return partition in self._denials

    def handle_answer(self, now: float) -> None:
        """Look at the queues without a leader, after an answer about the metadata."""
        for partition in [key for key in self._denials if not self._is_denied(key)]:
            del self._denials[partition]
        lost: dict[str, list[TopicPartition]] = {}
        for queue in self._routes.without_leader():
            partition = TopicPartition(queue.topic, queue.partition)
            if self._is_denied(partition) and self._is_lost(partition, now):
                lost.setdefault(queue.topic, []).append(partition)
                self._fail(queue)
        for topic, partitions in lost.items():
            has = count_of(self._cluster.partition_count(topic) or 0, "partition")
            logger.warning(
                "topic %r has %s now: records of %s fail", topic, has, some_of(sorted(partitions))
            )

    def handle_records(self, queue: Queue) -> None:
        """Fail the records that a call under way still brings to a partition that is lost."""
        denial = self._denials.get(TopicPartition(queue.topic, queue.partition))
        if denial is not None and denial.confirmations >= CONFIRMATIONS:
            self._fail(queue)

    def _is_denied(self, partition: TopicPartition) -> bool:
        count = self._cluster.partition_count(partition.topic) or 0
        return 0 < count <= partition.partition and not self._cluster.error(partition.topic)

    def _is_lost(self, partition: TopicPartition, now: float) -> bool:
        """Count a new answer that denies a partition; tell whether that is enough, or ask again."""
        answers = self._cluster.answers(partition.topic)
        denial = self._denials.setdefault(partition, _Denial(now, answers))
        if answers > denial.answers and now - denial.since >= LOST_PATIENCE:
            denial.confirmations += 1
        denial.answers = answers
        if denial.confirmations >= CONFIRMATIONS:
            return True
        self._cluster.request_refresh("a partition with data is not there", partition.topic)
        return False

    def _fail(self, queue: Queue) -> None:
        self._on_lost(FailQueue(queue.id, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        self._routes.release(queue)
