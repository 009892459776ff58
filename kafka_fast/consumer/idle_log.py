"""The log line about a consumer whose polls bring nothing: written once per long wait.

    poll, poll … nothing for three seconds ──► IdleLog ──► the log: the group, a leader, or only
                                                          the end of the log

Thread: the user's.
"""

from __future__ import annotations

import logging

from kafka_fast.config import LATEST, ConsumerSettings
from kafka_fast.consumer.reading.fetch_buffer import FetchBuffer
from kafka_fast.control.consumer.consumer_view import ConsumerView
from kafka_fast.control.consumer.diagnosis import ANSWER_GRACE
from kafka_fast.logs import LONG, ClientLog, LongWait, Waiting, some_of
from kafka_fast.types import TopicPartition

END = "end"
"""Key of the wait for new records."""


class IdleLog:
    """The wait for records of one consumer's user."""

    def __init__(self, view: ConsumerView, buffer: FetchBuffer, settings: ConsumerSettings) -> None:
        """Start without a wait; `note_idle` begins one, and `end_wait` ends it.

        Args:
            view: knows why records do not come.
            buffer: knows how far the user has read.
            settings: the consumer's configuration.
        """
        self._view = view
        self._buffer = buffer
        self._wait = LongWait(ClientLog("kafka_fast.consumer", view.client_id))
        self._fetch_max_wait = settings.fetch_max_wait
        self._begins_at_end = settings.auto_offset_reset == LATEST
        self._began = 0.0
        self._is_assigned = False
        self._at_end: frozenset[TopicPartition] = frozenset()  # at the last look
        self._ended_in: frozenset[TopicPartition] = frozenset()  # whose end was logged

    def end_wait(self) -> None:
        """End the wait: there are records."""
        self._wait.end_wait()
        self._began = 0.0
        self._begins_at_end = False

    def note_idle(self, now: float) -> None:
        """Note that there are no records; log the reason if that has lasted."""
        self._began = self._began or now
        if bool(self._buffer.partitions) != self._is_assigned:
            self._is_assigned = not self._is_assigned
            if not self._wait.is_told:
                self._wait.end_wait()  # a new group takes just under three seconds to form
        told = self._wait.log_if_long(now, self._describe)
        if told is not None and told.key == END:
            self._ended_in = self._at_end

    def _describe(self, now: float) -> Waiting | None:
        partitions = self._buffer.partitions
        active = [partition for partition in partitions if partition not in self._buffer.paused]
        if not partitions:
            return self._with_trouble(self._view.why_waiting_for_group(), now)
        if not active:
            text = f"all partitions that are assigned are paused: {some_of(partitions)}"
            return Waiting(text, logging.INFO, "paused")
        held_up = [partition for partition in active if not self._view.is_fetched(partition, now)]
        if held_up:
            return self._held_up(held_up, now)
        paused = self._view.why_throttled(active, now)
        if paused is not None:
            return Waiting(f"waiting for records of {paused.text}", logging.INFO, "quota")
        behind = [partition for partition in active if not self._buffer.is_at_end(partition)]
        if not behind:
            return self._at_the_end(active)
        if now - self._began < self._fetch_max_wait + ANSWER_GRACE:
            return None  # the first Fetch responses may not have come yet
        return self._held_up(behind, now)

    def _at_the_end(self, active: list[TopicPartition]) -> Waiting | None:
        self._at_end = frozenset(active)
        if self._at_end == self._ended_in:
            return None  # a fast reader is at the end again and again; one line is enough
        text = f"at the end of the log of {some_of(active)}, waiting for new records"
        if self._begins_at_end:
            text += "; auto.offset.reset is latest: what was there before is not read"
        return Waiting(text, logging.INFO, END)

    def _held_up(self, partitions: list[TopicPartition], now: float) -> Waiting | None:
        if all(self._view.is_absent(partition.topic) for partition in partitions):
            return None  # `WatchedTopics` says so
        why = self._view.why_waiting_for_several(partitions, now)
        return self._with_trouble(Waiting(f"waiting for records of {why.text}", key="held"), now)

    def _with_trouble(self, waiting: Waiting | None, now: float) -> Waiting | None:
        """Add the latest troubles with brokers to a warning, unless its text names them."""
        if waiting is None or waiting.level < logging.WARNING:
            return waiting
        troubles = self._view.around(now, now - LONG)
        more = [
            trouble.text
            for trouble in troubles
            if trouble.cause is None or str(trouble.cause) not in waiting.text
        ]
        return waiting._replace(text="; ".join([waiting.text, *more]))
