"""Offsets that the user asks for: beginnings, ends, by time. One look-up at a time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from kafka_fast.config import ConsumerSettings
from kafka_fast.control.consumer.offsets import OffsetsByTime, TimeAnswer
from kafka_fast.control.context import Context
from kafka_fast.control.diagnosis.troubles import Reason
from kafka_fast.control.diagnosis.waiting_reasons import reasons_of_several
from kafka_fast.control.metadata.metadata import GETS_ROUND
from kafka_fast.errors import ErrorCode, KafkaError, broker_error
from kafka_fast.instants import NEVER
from kafka_fast.logs import some_of
from kafka_fast.types import TopicPartition

Found: TypeAlias = dict[TopicPartition, TimeAnswer]


class Lookup:
    """The user's look-up that is under way, if there is one. Control thread only."""

    def __init__(self, context: Context[ConsumerSettings]) -> None:
        self._cluster = context.cluster
        self._query = OffsetsByTime(
            context, on_result=self._handle_result, on_error=self._handle_error
        )
        self._wanted: list[TopicPartition] = []
        self._highest: dict[str, int] = {}  # the last partition that is asked about, by topic
        self._suspects: set[str] = set()  # topics that may lack something that is asked about
        self._seen = -1  # the generation of the cluster when these were found
        self._found: Found = {}
        self._absent_until: dict[str, float] = {}  # topics and partitions that brokers deny
        self._done: Callable[[Found | KafkaError], None] | None = None

    def look_up(
        self,
        wanted: Mapping[TopicPartition, int],
        done: Callable[[Found | KafkaError], None],
        now: float,
    ) -> None:
        """Look up an offset for each partition. A look-up that is under way is given up.

        Args:
            wanted: timestamps (Unix ms, or a special one) by partition.
            done: called with all answers, or with the first refusal.
            now: the time.
        """
        self.cancel()
        self._wanted = list(wanted)
        self._found = {}
        self._done = done
        for topic, number in wanted:
            self._highest[topic] = max(number, self._highest.get(topic, number))
        for topic in self._highest:
            self._cluster.forget_error(topic)
        self._look_for_suspects()
        for partition, timestamp in wanted.items():
            self._query.add_partition(partition, timestamp, now)
        self._finish_if_complete()

    def cancel(self) -> None:
        """Give the look-up up: nobody waits for it any more."""
        for partition in self._wanted:
            self._query.discard(partition)
        self._wanted = []
        self._highest.clear()
        self._suspects.clear()
        self._done = None
        self._absent_until.clear()

    def why_waiting(self) -> Reason:
        """Return which partitions have no answer yet, and why. Any thread."""
        asked = (
            (partition, self._query.why_waiting(partition)) for partition in list(self._wanted)
        )
        return reasons_of_several(
            (partition, reason) for partition, reason in asked if reason is not None
        )

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        if self._seen != self._cluster.update_count:
            self._look_for_suspects()
        if not self._suspects:
            self._absent_until.clear()
            return
        for topic in sorted(self._suspects):
            self._cluster.want_topic(topic, now)
        self._watch_absent(now)
        if (refusal := self._refusal(now)) is not None:
            self._end(refusal)

    def next_deadline(self) -> float:
        """Return when `tick` has something to do."""
        return min(self._absent_until.values(), default=NEVER)

    def _refusal(self, now: float) -> KafkaError | None:
        """Return why there will never be an answer; None if there may be one."""
        for topic in sorted(self._suspects & self._query.topics):
            settled = self._cluster.settled(topic)
            if settled is not None and settled.error is not None:
                return settled.error
        if min(self._absent_until.values(), default=NEVER) > now:
            return None
        text = f"there is no {some_of(sorted(self._absent_until))}"
        return broker_error(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)

    def _watch_absent(self, now: float) -> None:
        """Note until when brokers may deny the topics and partitions that are asked about."""
        asked = (partition for partition in self._wanted if partition.topic in self._suspects)
        open_ones = (partition for partition in asked if partition in self._query)
        absent = {what for partition in open_ones if (what := self._absent(partition)) is not None}
        self._absent_until = {
            what: self._absent_until.get(what, now + GETS_ROUND) for what in absent
        }

    def _look_for_suspects(self) -> None:
        """Find the topics that may not exist, or lack a partition that is asked about."""
        cluster = self._cluster
        self._seen = cluster.update_count
        self._suspects = {
            topic
            for topic, highest in self._highest.items()
            if cluster.error(topic) or (cluster.partition_count(topic) or 0) <= highest
        }

    def _absent(self, partition: TopicPartition) -> str | None:
        """Return what does not exist, as text: the partition, or its topic; None: both exist."""
        code = self._cluster.error(partition.topic)
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return f"topic {partition.topic!r}"
        count = self._cluster.partition_count(partition.topic)
        if code or count is None or partition.partition < count:
            return None
        return f"partition {partition} (its topic has {count})"

    def _handle_result(
        self, partition: TopicPartition, timestamp: int, answer: TimeAnswer, now: float
    ) -> None:
        self._found[partition] = answer
        self._finish_if_complete()

    def _handle_error(
        self, partition: TopicPartition, timestamp: int, error: KafkaError, now: float
    ) -> None:
        self._end(error)

    def _end(self, error: KafkaError) -> None:
        done = self._done
        self.cancel()
        if done is not None:
            done(error)

    def _finish_if_complete(self) -> None:
        if self._done is not None and len(self._found) == len(self._wanted):
            done, answers = self._done, self._found
            self.cancel()
            done(answers)
