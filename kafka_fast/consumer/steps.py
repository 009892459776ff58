"""What a consumer's calls do, as steps: whoever runs them decides how to wait.

    Consumer ── BlockingDriver ──┐                ┌─► Membership: the group, commits
    a simulation ── its driver ──┼─► ConsumerSteps┼─► Reading: records, positions
    asyncio ── LoopDriver ───────┘                └─► Unread: what is done

Thread: the user's, or that of the event loop; one call at a time.
"""

from __future__ import annotations

from kafka_fast.config import ConsumerSettings
from kafka_fast.consumer.core import ConsumerCore
from kafka_fast.consumer.membership import Membership
from kafka_fast.consumer.record_handover import RecordHandover
from kafka_fast.consumer.unread import Refill, Unread
from kafka_fast.errors import UsageError
from kafka_fast.net.steps import Steps
from kafka_fast.types import TopicPartition

ALIVE_SLICE = 1.0
"""Seconds of a long wait after which the group hears again that its user is well."""


class ConsumerSteps:
    """What one consumer's user may have to wait for."""

    def __init__(
        self,
        consumer: object,
        core: ConsumerCore,
        settings: ConsumerSettings,
        refill: Refill,
    ) -> None:
        """Begin with nothing to read.

        Args:
            consumer: for listeners.
            core: does the work.
            settings: the consumer's configuration.
            refill: waits for what an iteration needs next, and takes it.
        """
        self._core = core
        self._settings = settings
        self._reading = core.reading
        self.unread = Unread(core.reading, refill)
        self.membership = Membership(consumer, core, self.unread, settings)

    # Records

    def begin_poll(self) -> None:
        """The user wants more: what he was given before is done.

        Raises:
            UsageError: nothing is subscribed or assigned.
            WakeupError: another thread called `wakeup`, or closes.
        """
        self.unread.come_back()
        if not (self.membership.is_subscribed or self._reading.intake.partitions):
            raise UsageError("there is nothing to read: subscribe to topics, or assign partitions")
        self._core.waits.check_wakeup()  # a stream that never pauses is never waited for

    def try_poll(self, most: int, handover: RecordHandover) -> bool:
        """Take records that are here; return False if there are none, or something comes first."""
        self.unread.begin(handover)
        if self._settings.group_id is not None:
            membership = self.membership
            if membership.has_to_act:
                return False
            membership.commit_if_due()
            if membership.is_subscribed:
                membership.show_life(0.0)
        if self.unread.try_take(most, handover):
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
            self.unread.begin(handover)  # a listener may have polled
            if self.unread.try_take(most, handover):
                return
            until = min(deadline, self._core.now() + ALIVE_SLICE)
            yield from self._reading.take(most, handover, until)
            if handover.slices:
                return
            if self._core.now() >= deadline and not self._reading.has_group_news:
                return

    # Positions and offsets

    def position(self, partition: TopicPartition, deadline: float) -> Steps[int]:
        """Return the offset of the record that comes next."""
        at = yield from self._reading.await_position(partition, deadline)
        return self.unread.first_offsets().get(partition, at).offset

    def lag(
        self, ends: dict[TopicPartition, int], deadline: float
    ) -> Steps[dict[TopicPartition, int]]:
        """Return how far these ends are away."""
        at = {}
        for partition in ends:
            at[partition] = yield from self.position(partition, deadline)
        return {it: max(0, ends[it] - at[it]) for it in ends}

    # The end

    def unsubscribe(self, deadline: float) -> Steps[None]:
        """Read nothing any more; leave the group."""
        if self.membership.is_subscribed:
            yield from self.membership.unsubscribe(deadline)
        else:
            yield from self.membership.commit_done(deadline)
        self.unread.forget(self._reading.intake.partitions)
        self._reading.assign(())

    def close(self, deadline: float, *, is_interrupted: bool) -> Steps[None]:
        """Commit if that is automatic, leave the group, and end both planes.

        Args:
            deadline: when to give up what others have to do for that.
            is_interrupted: an exception took the user away from what he was given last.
        """
        try:
            if not self._core.closed:  # else an interrupted `close` has said goodbye
                if is_interrupted:
                    self.unread.give_up()
                yield from self.membership.end(deadline)
        finally:
            try:
                self.unread.forget(self._reading.intake.partitions)  # a loop that is left ends
            finally:
                self._core.close()
