"""Calls that only a partition's leader can answer: ListOffsets, OffsetForLeaderEpoch.

A partition's item stays open until it is answered, refused for good, or discarded. After a moved
leader, a broken connection, or an error of a broker that is not ready, it is tried again.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from kafka_fast.config import CommonSettings
from kafka_fast.control.context import Context
from kafka_fast.control.diagnosis.troubles import Reason
from kafka_fast.control.requests.call import AnswerSource, Call
from kafka_fast.control.requests.meanings import Done, Meaning, Retry, meaning_of
from kafka_fast.control.requests.targets import Leaders
from kafka_fast.errors import ErrorCode, KafkaError, broker_error, error_description
from kafka_fast.protocol.schema import Request
from kafka_fast.types import TopicPartition

__all__ = ["LeaderCall"]

PARTITIONS_PER_REQUEST = 500

D = TypeVar("D")
R = TypeVar("R")


class LeaderCall(Call[TopicPartition, R], Generic[D, R]):
    """The requests of one kind. A detail says what is asked about each partition.

    Subclasses build the requests (`request`) and read the answers (`answers`).
    """

    def __init__(
        self,
        context: Context[CommonSettings],
        *,
        on_result: Callable[[TopicPartition, D, R, float], None],
        on_error: Callable[[TopicPartition, D, KafkaError, float], None],
    ) -> None:
        """Open a call without partitions; `add_partition` asks about them.

        Args:
            context: the client's.
            on_result: called with partition, detail, answer and time.
            on_error: called with partition, detail, error and time.
        """
        super().__init__(Leaders(), timeout=context.settings.request_timeout)
        self._cluster = context.cluster
        self._on_result = on_result
        self._on_error = on_error
        self._details: dict[TopicPartition, D] = {}
        self._counts: Counter[str] = Counter()  # partitions in `_details`, by topic
        self._open = context.requester.open_call(self)

    def __contains__(self, partition: TopicPartition) -> bool:
        """Tell whether this partition waits for an answer."""
        return partition in self._open

    @property
    def topics(self) -> set[str]:
        """The topics that are asked about."""
        return set(self._counts)

    def why_waiting(self, partition: TopicPartition) -> Reason | None:
        """Return why a partition still waits for an answer; None if it does not. Any thread."""
        return self._open.why_waiting(partition)

    def add_partition(self, partition: TopicPartition, detail: D, now: float) -> None:
        """Ask about a partition. An answer to an earlier request about it no longer counts."""
        if partition not in self._details:
            self._counts[partition.topic] += 1
        self._details[partition] = detail
        self._open.add_item(partition)
        self._cluster.want_topic(partition.topic, now)

    def discard(self, partition: TopicPartition) -> None:
        """Drop a partition: nobody wants the answer any more."""
        if partition in self._details:
            self._open.discard(partition)
            self._take_detail(partition)

    def _take_detail(self, partition: TopicPartition) -> D:
        self._counts[partition.topic] -= 1
        if not self._counts[partition.topic]:
            del self._counts[partition.topic]
        return self._details.pop(partition)

    # ---- the call ----

    @abstractmethod
    def request(
        self, wanted: Mapping[TopicPartition, D], epochs: Mapping[TopicPartition, int]
    ) -> Request:
        """Return the request for these partitions; `epochs` are their leaders', -1 if unknown."""

    @abstractmethod
    def answers(self, answer: Any) -> Iterable[tuple[TopicPartition, int, R]]:
        """Return partition, error code and answer for each partition of a response."""

    def max_items(self, version: int) -> int:
        """Return so few that an answer does not keep the control thread from other work."""
        return PARTITIONS_PER_REQUEST

    def subject(self, item: TopicPartition) -> TopicPartition:
        """Keep troubles under the partition."""
        return item

    def build(self, items: Sequence[TopicPartition], version: int) -> Request:
        """Return the request for these partitions, under the epochs that are known now."""
        epochs = {item: self._cluster.leader_epoch(*item) for item in items}
        return self.request({item: self._details[item] for item in items}, epochs)

    def read(
        self, answer: Any, items: Sequence[TopicPartition], source: AnswerSource
    ) -> Iterable[tuple[TopicPartition, Meaning[R]]]:
        """Return what the leader says of each partition."""
        for partition, code, result in self.answers(answer):
            what = f"{self.api} of {partition}"
            if not code:
                yield partition, Done(result)
            elif code == ErrorCode.UNKNOWN_SERVER_ERROR:  # as a rule this error passes
                yield partition, Retry(broker_error(code, f"{what}: {error_description(code)}"))
            else:
                yield (
                    partition,
                    meaning_of(code, self.api, f" of {partition}", topic=partition.topic),
                )

    def handle_done(self, item: TopicPartition, value: R, now: float) -> None:
        """Hand an answer on."""
        self._on_result(item, self._take_detail(item), value, now)

    def handle_failed(self, item: TopicPartition, error: KafkaError, now: float) -> None:
        """Hand a refusal on."""
        self._on_error(item, self._take_detail(item), error, now)
