"""What a consumer's calls do that may wait, once they have the lock and a deadline: as steps.

    poll ──────────────────────┐                  ┌─► Membership: the group, commits
    ConsumerCalls: all others ─┴─► ConsumerSteps ─┼─► ReadingSide: records, positions
                                                  └─► UserCursor: what is done

A driver runs the steps, and decides how to wait.

Thread: the user's, or that of the event loop; one call at a time.
"""

from __future__ import annotations

from kafka_fast.config import ConsumerSettings
from kafka_fast.consumer.consumer_core import ConsumerCore
from kafka_fast.consumer.group.membership import Membership
from kafka_fast.consumer.reading.record_handover import RecordHandover
from kafka_fast.consumer.reading.user_cursor import Refill, UserCursor
from kafka_fast.errors import UsageError
from kafka_fast.net.waiting.steps import InThread, Steps
from kafka_fast.types import TopicPartition

ALIVE_SLICE = 1.0
"""Seconds of a long wait after which the user's poll is noted again (see `show_life`)."""


class ConsumerSteps:
    """What the calls of one consumer do, while the caller holds the lock."""

    def __init__(
        self,
        consumer: object,
        core: ConsumerCore,
        settings: ConsumerSettings,
        refill: Refill,
    ) -> None:
        """Make the consumer's `UserCursor` and `Membership`.

        Args:
            consumer: the argument of listeners.
            core: does the work.
            settings: the consumer's configuration.
            refill: waits for the next records of an iteration, and takes them.
        """
        self._core = core
        self._settings = settings
        self._reading = core.reading
        self.cursor = UserCursor(core.reading, refill)
        self.membership = Membership(consumer, core, self.cursor, settings)

    # ---- records ----

    def begin_poll(self) -> None:
        """Start a poll: automatic commits then cover all records that the user got before it.

        Raises:
            UsageError: nothing is subscribed or assigned.
            WakeupError: another caller called `wakeup`, or closes.
        """
        self.cursor.cover_handed_over()
        if not (self.membership.is_subscribed or self._reading.buffer.partitions):
            raise UsageError("there is nothing to read: subscribe to topics, or assign partitions")
        # A poll that finds records never waits, so no wait would raise the WakeupError.
        self._core.waits.check_wakeup()

    def try_poll(self, most: int, handover: RecordHandover) -> bool:
        """Take records without waiting.

        Returns:
            False if there are no records, or if callbacks or group news have to be handled first.
        """
        self.cursor.begin_handover(handover)
        if self._settings.group_id is not None:
            membership = self.membership
            if membership.has_to_act:
                return False
            membership.commit_if_due()
            if membership.is_subscribed:
                membership.show_life(0.0)
        if self.cursor.try_take(most, handover):
            return True
        self._reading.try_take(most, handover)
        return bool(handover.slices)

    def poll(self, most: int, handover: RecordHandover, deadline: float) -> Steps[None]:
        """Take records as soon as there are any; after `begin_poll` and `try_poll`.

        Raises:
            KafkaError: see `Consumer.poll`.
        """
        membership = self.membership
        while True:
            if self._settings.group_id is not None:
                yield from membership.run_callbacks()
                membership.commit_if_due()
                yield from membership.handle_news()
                self._core.check_open()  # a listener may have closed it
                if membership.is_subscribed:
                    membership.show_life(0.0)
            self.cursor.begin_handover(handover)  # a listener may have polled
            if self.cursor.try_take(most, handover):
                return
            until = min(deadline, self._core.now() + ALIVE_SLICE)
            yield from self._reading.take_records(most, handover, until)
            if handover.slices:
                return
            if self._core.now() >= deadline and not self._reading.has_group_news:
                return

    # ---- positions and offsets ----

    def position(self, partition: TopicPartition, deadline: float) -> Steps[int]:
        """Return the offset of the record that comes next."""
        at = yield from self._reading.await_position(partition, deadline)
        return self.cursor.first_offsets().get(partition, at).offset

    def lag(
        self, ends: dict[TopicPartition, int], deadline: float
    ) -> Steps[dict[TopicPartition, int]]:
        """Return how far these ends are away from the positions."""
        at = {}
        for partition in ends:
            at[partition] = yield from self.position(partition, deadline)
        return {tp: max(0, ends[tp] - at[tp]) for tp in ends}

    # ---- the end ----

    def unsubscribe(self, deadline: float, *, is_interrupted: bool) -> Steps[None]:
        """Stop reading, and leave the group; the arguments are those of `close`."""
        self.cursor.give_up(is_interrupted=is_interrupted)
        if self.membership.is_subscribed:
            yield from self.membership.unsubscribe(deadline)
        else:
            yield from self.membership.commit_covered(deadline)
        gone = self._reading.buffer.partitions
        self._reading.assign(())
        self.cursor.drop_partitions(gone)

    def close(self, deadline: float, *, is_interrupted: bool) -> Steps[None]:
        """Commit if that is automatic, leave the group, and end both planes.

        Args:
            deadline: when to give up waiting for brokers.
            is_interrupted: whether an exception is on its way; see `UserCursor.give_up`.
        """
        self.cursor.interrupt()  # a loop over records ends after the current record
        try:
            if not self._core.closed:  # otherwise an interrupted `close` has left the group
                self.cursor.give_up(is_interrupted=is_interrupted)
                yield from self.membership.commit_and_leave(deadline)
        except GeneratorExit:  # the caller is gone, and nobody runs more steps
            self._core.close()
            raise
        except BaseException:
            yield from self._end()
            raise
        yield from self._end()

    def _end(self) -> Steps[None]:
        """End both planes."""
        try:
            yield InThread(self._core.close)
        finally:
            # Behind the close: if it is interrupted, the next one would commit unread records.
            self.cursor.drop_partitions(self._reading.buffer.partitions)
