"""Why records are not delivered: for their errors, and for the log of long waits.

Thread: any. State is read without a lock: the text is a diagnosis for people, and may be out of
date by an event.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_fast.config import ProducerSettings
from kafka_fast.control.connections.connection_key import ConnectionKey, Role
from kafka_fast.control.context import Context
from kafka_fast.control.diagnosis.permissions import described
from kafka_fast.control.diagnosis.troubles import About, Reason, last_trouble
from kafka_fast.control.diagnosis.waiting_reasons import (
    around,
    why_leader_throttles,
    why_waiting_for_leader,
)
from kafka_fast.control.producer.identity import InitProducerIdCall
from kafka_fast.control.producer.limits import SETTINGS, TopicLimits
from kafka_fast.control.producer.refusals import ANY_RECORD, told
from kafka_fast.errors import BrokerError, ErrorCode, KafkaError, broker_error
from kafka_fast.logs import count_of
from kafka_fast.types import TopicPartition
from kafka_fast.values import Value

GRACE = 1.0
"""Seconds that the report of a failure may come after the failure."""


class FailedBatch(Value, kw_only=True):
    """A record batch that was not delivered, as the data plane knows it."""

    partition: TopicPartition
    """Where it was to go."""
    code: int
    """The error code that its leader answered last; 0: none."""
    records: int
    """How many records are in it."""
    size: int
    """Its bytes in a request."""
    began: float
    """When it was begun."""
    failed_at: float
    """When its outcome was known."""
    is_sent: bool
    """Whether it was in a request."""
    detail: bytes | None = None
    """What its leader said, see `refusals`; None: nothing is kept."""


class Causes:
    """The causes of one producer's failures. Any thread."""

    def __init__(
        self,
        context: Context[ProducerSettings],
        identity: InitProducerIdCall,
        limits: TopicLimits,
        fatal: Callable[[], KafkaError | None],
    ) -> None:
        """Take everything that knows a cause.

        Args:
            context: the producer's.
            identity: knows whether there is a producer id.
            limits: know how large a batch a topic takes.
            fatal: returns why the producer cannot go on; None: it can.
        """
        self._is_idempotent = context.settings.enable_idempotence
        self._delivery_timeout = context.settings.delivery_timeout
        self._cluster = context.cluster
        self._connections = context.connections
        self._links = context.links
        self._identity = identity
        self._limits = limits
        self._fatal = fatal

    def of_answer(self, batch: FailedBatch, index: int = ANY_RECORD) -> BrokerError:
        """Return the error behind an answer of the partition's leader.

        Args:
            batch: has the code of that answer.
            index: the record's place in the batch.
        """
        partition, code = batch.partition, batch.code
        if code in SETTINGS:
            return broker_error(code, self._too_large(batch))
        count = self._cluster.partition_count(partition.topic) or 0
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and 0 < count <= partition.partition:
            has = count_of(count, "partition")
            text = f"topic {partition.topic!r} has {has} now, and none for a record of {partition}"
            return broker_error(code, text)
        if batch.detail is not None:
            return told(code, partition, batch.detail, index, batch.records)
        trouble = self._connections.troubles.last_of(partition, batch.began)
        error = None
        if trouble is not None and trouble.began <= batch.failed_at + GRACE:
            error = trouble.error
        # A batch that comes too early in the sequence was refused because another one was.
        if isinstance(error, BrokerError) and code in (
            error.code,
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ):
            return error
        return broker_error(
            code, f"a record of {partition} was refused: {described(code, 'Produce')}"
        )

    def _too_large(self, batch: FailedBatch) -> str:
        """Return what to say of a batch that is larger than its topic takes."""
        partition, size = batch.partition, batch.size
        setting, limit = SETTINGS[batch.code], self._limits.limit(partition.topic, batch.code)
        # A limit that is not smaller was changed since, or the broker means another limit.
        allowed = "allows" if limit is None or limit >= size else f"({limit}) allows"
        than = f"more than the topic's {setting} {allowed}"
        if batch.records == 1:
            return f"a record of {partition} takes {size} bytes in a batch of its own: {than}"
        return (
            f"a batch of {batch.records} records of {partition} takes {size} bytes: {than}; it is "
            "not split, because an earlier try that was not answered may be in the log"
        )

    def why_not_acknowledged(
        self, partition: TopicPartition, since: float, until: float, *, is_sent: bool
    ) -> Reason:
        """Return why records of a partition are not acknowledged.

        Args:
            partition: the partition of the records.
            since: when their batch was begun.
            until: the end of their wait.
            is_sent: they are in a request that has not been answered.
        """
        leader = self._cluster.leader(*partition)
        key = None if leader is None else ConnectionKey(Role.DATA, leader.id)
        if leader is None or key is None or self._links.link_to(key) is None:
            return self._together(
                why_waiting_for_leader(self._cluster, self._connections, partition),
                *around(self._connections, until, since),
            )
        quota = why_leader_throttles(self._connections, leader, until, until)
        if quota is not None:
            return quota
        trouble = last_trouble(self._connections.troubles.last(since, [key]))
        if is_sent:
            return trouble or Reason(f"its leader, {leader}, has not answered")
        if self._is_idempotent and self._identity.identity is None:
            refused = self._connections.troubles.now(About.PRODUCER_ID, since)
            if refused is not None:
                return Reason(f"there is no producer id yet: {refused}", refused.error)
            return self._together(
                Reason("there is no producer id yet"), *around(self._connections, until, since)
            )
        return trouble or Reason(f"its leader, {leader}, takes no more for now")

    def of_topic(self, topic: str, now: float) -> Reason | None:
        """Return the last trouble that may concern pending records of a topic."""
        since = now - self._delivery_timeout
        troubles = self._connections.troubles
        partitions = range(self._cluster.partition_count(topic) or 0)
        answered = troubles.last(since, [TopicPartition(topic, number) for number in partitions])
        return last_trouble(answered or troubles.last(since))

    def why_waiting(self, partition: TopicPartition, since: float, now: float) -> Reason:
        """Return why records of a partition have not been acknowledged since a time."""
        answered = last_trouble(self._connections.troubles.now(partition, since))
        if answered is not None:
            return answered
        leader = self._cluster.leader(*partition)
        is_linked = (
            leader is not None
            and self._links.link_to(ConnectionKey(Role.DATA, leader.id)) is not None
        )
        lacks_id = self._is_idempotent and self._identity.identity is None
        return self.why_not_acknowledged(partition, since, now, is_sent=is_linked and not lacks_id)

    def _together(self, *reasons: Reason) -> Reason:
        """Return several reasons as one. Errors that the first one names are not repeated."""
        first, *others = reasons
        texts, cause = [first.text], first.cause
        for other in others:
            if other.cause is not None and str(other.cause) not in first.text:
                texts.append(other.text)
            cause = cause or other.cause
        return Reason("; ".join(texts), cause)

    def of_stop(self) -> KafkaError | None:
        """Return why the producer cannot go on; None: it can."""
        return self._fatal()

    def explain(self, batch: FailedBatch, index: int) -> Reason:
        """Return what is known of a failure, for the error of a record's future.

        Args:
            batch: the record's.
            index: the record's place in the batch, or ANY_RECORD.
        """
        if batch.code:
            error = self.of_answer(batch, index)
            return Reason(str(error), error)
        return self.why_not_acknowledged(
            batch.partition, batch.began, batch.failed_at, is_sent=batch.is_sent
        )
