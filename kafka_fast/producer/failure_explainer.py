"""Explains waits and failures of the data plane; only the control plane knows their causes.

    handles, flush, sends that wait for memory ─► FailureExplainer ─┬► Causes (control plane)
                                                                    └► the log, once a wait is long

Thread: any that uses a producer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from kafka_fast.control.diagnosis.troubles import Reason, timeout_error
from kafka_fast.control.producer.causes import Causes, FailedBatch
from kafka_fast.control.producer.refusals import is_collateral, wrong_records
from kafka_fast.dataplane.produce._queues import Queues
from kafka_fast.errors import KafkaTimeoutError
from kafka_fast.logs import LONG, ClientLog, LongWait, Waiting, count_of, tell
from kafka_fast.types import TopicPartition


class FailureExplainer:
    """Explains one producer's failures and waits. The data plane calls it with plain values."""

    def __init__(self, client_id: str, causes: Causes, is_told: Callable[[], bool]) -> None:
        """Make the explainer of one producer.

        Args:
            client_id: of the producer.
            causes: know why records are not delivered.
            is_told: returns whether the log already says why nothing can be sent.
        """
        self._log = ClientLog("kafka_fast.producer", client_id)
        self._causes = causes
        self._is_told = is_told
        self.stop_reason = causes.of_stop
        self.is_collateral = is_collateral
        self.wrong_records = wrong_records

    def explain(self, topic: str, partition: int, index: int, **facts: Any) -> Reason:
        """Return what is known of a failure, for the error of a record's future.

        Args:
            topic: of the record.
            partition: of the record.
            index: the record's place in its batch, or ANY_RECORD.
            **facts: the other fields of `FailedBatch`.
        """
        batch = FailedBatch(partition=TopicPartition(topic, partition), **facts)
        return self._causes.explain(batch, index)

    def log_if_long(
        self,
        wait: LongWait | None,
        queues: Queues,
        what: str,
        queue_id: int,
        created: float,
        now: float,
    ) -> LongWait:
        """Log the reason of a wait, once the wait is long.

        Args:
            wait: the result of the last call for this wait; None at first.
            queues: the producer's queues.
            what: the awaited thing.
            queue_id: queue of the batch that has waited longest; -1: there is none.
            created: when that batch was begun.
            now: the time.
        """
        wait = LongWait(self._log) if wait is None else wait
        wait.log_if_long(now, lambda at: self._describe(queues, what, queue_id, created, at))
        return wait

    def say(self, queues: Queues, what: str, queue_id: int, created: float, now: float) -> None:
        """Log the reason of a wait that is known to be long; arguments as for `log_if_long`."""
        waiting = self._describe(queues, what, queue_id, created, now)
        if waiting is not None:
            tell(self._log, waiting)

    def timeout_error(
        self, queues: Queues, what: str, queue_id: int, since: float, now: float
    ) -> KafkaTimeoutError:
        """Return the error of a wait that has timed out.

        `since` is the time at which the wait, or the batch, was begun.
        """
        if queue_id < 0:
            return timeout_error(what)
        return timeout_error(what, self._why(queues, queue_id, since, now))

    def _why(self, queues: Queues, queue_id: int, since: float, now: float) -> Reason:
        partition = TopicPartition(*queues.queue_of(queue_id))
        why = self._causes.why_waiting(partition, since, now)
        return Reason(f"{partition}: {why.text}", why.cause)

    def _describe(
        self, queues: Queues, what: str, queue_id: int, created: float, now: float
    ) -> Waiting | None:
        if self._is_told():
            return None
        left = f"{what}; not delivered yet: {count_of(queues.pending(), 'record')}"
        if queue_id < 0 or now - created < LONG:  # even the oldest batch is recent
            return Waiting(left, logging.INFO)
        return Waiting(f"{left}; {self._why(queues, queue_id, created, now).text}")
