"""Ends what an operation asks of partitions that do not exist.

    a call to leaders waits ─► the metadata say: no such topic, or fewer partitions
                                   │ for `GETS_ROUND`: news of a new topic takes a moment
                                   ▼ to reach all brokers
                               the items fail

Without this the items would wait for their leaders until the operation's deadline.

Thread: control.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kafka_fast.control.metadata.cluster import Cluster
from kafka_fast.control.metadata.metadata import GETS_ROUND
from kafka_fast.control.requests.open_call import OpenCall
from kafka_fast.control.requests.requester import Requester
from kafka_fast.errors import ErrorCode, KafkaError, broker_error, reworded
from kafka_fast.instants import NEVER
from kafka_fast.types import TopicPartition


class AbsentTopics:
    """The topics and partitions that open operations wait for in vain. Control thread only."""

    def __init__(self, cluster: Cluster, requester: Requester) -> None:
        """Watch nothing yet; `watch_operation` adds the operations.

        Args:
            cluster: knows which topics there are.
            requester: fails the items.
        """
        self._cluster = cluster
        self._requester = requester
        self._open: list[OpenCall[TopicPartition, Any]] = []
        self._seen = -1  # the state of the cluster that was looked at
        self._absent_until: dict[TopicPartition, float] = {}

    def watch_operation(self, opened: OpenCall[TopicPartition, Any], now: float) -> None:
        """Watch the partitions of an operation whose target are the leaders."""
        self._open.append(opened)
        for topic in {partition.topic for partition in opened}:
            self._cluster.forget_error(topic)
            self._cluster.want_topic(topic, now)
        self._seen = -1

    def touch_topics(self, now: float) -> None:
        """Keep the metadata of the topics that are waited for."""
        for opened in self._open:
            for topic in {partition.topic for partition in opened.unsent}:
                self._cluster.touch(topic, now)

    def next_deadline(self) -> float:
        """Return when `tick` has something to do that no event announces."""
        return min(self._absent_until.values(), default=NEVER)

    def tick(self, now: float) -> None:
        """Fail the items whose partitions have not been there for long enough."""
        self._open = [opened for opened in self._open if opened.is_open]
        if self._seen != self._cluster.update_count:
            self._seen = self._cluster.update_count
            self._look(now)
        if not self._absent_until or min(self._absent_until.values()) > now:
            return
        for partition in [one for one, until in self._absent_until.items() if until <= now]:
            del self._absent_until[partition]
            self._fail(partition, self._absence(partition), now)

    def _look(self, now: float) -> None:
        """Find the partitions that are denied, and fail those that are refused for good."""
        absent: dict[TopicPartition, float] = {}
        for partition in self._open_partitions():
            code = self._cluster.error(partition.topic)
            if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or self._is_beyond(partition):
                absent[partition] = self._absent_until.get(partition, now + GETS_ROUND)
                continue
            is_unknown = not code and self._cluster.topic(partition.topic) is None
            if is_unknown and partition in self._absent_until:
                # Another operation has just asked anew about this topic. The wait goes on.
                absent[partition] = self._absent_until[partition]
            settled = self._cluster.settled(partition.topic)
            if settled is not None and settled.error is not None:
                self._fail(partition, settled.error, now)
        self._absent_until = absent

    def _open_partitions(self) -> Iterator[TopicPartition]:
        """Yield all partitions that are not answered yet.

        Also those in flight: a former leader, which older metadata name, only answers that it does
        not have the partition. The next try would go there again.
        """
        for opened in self._open:
            yield from list(opened)

    def _is_beyond(self, partition: TopicPartition) -> bool:
        """Tell whether a topic has fewer partitions than that."""
        count = self._cluster.partition_count(partition.topic)
        return count is not None and partition.partition >= count

    def _absence(self, partition: TopicPartition) -> KafkaError:
        count = self._cluster.partition_count(partition.topic)
        if count is None or self._cluster.error(partition.topic):
            text = f"there is no topic {partition.topic!r}"
        else:
            text = f"there is no partition {partition}: its topic has {count}"
        return broker_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)

    def _fail(self, partition: TopicPartition, error: KafkaError, now: float) -> None:
        """Fail a partition in all operations, each with an error that names its API and the item.

        Args:
            partition: one without a leader to ask.
            error: what the metadata say.
            now: the time.
        """
        for opened in self._open:
            if partition in opened:
                own = reworded(error, f"{opened.call.describe(partition)}: {error.args[0]}")
                self._requester.fail_item(opened, partition, own, now)
