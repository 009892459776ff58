"""The calls of a producer that may wait, as steps, for callers in event loops.

A producer for threads has two waits of its own, in C and without the GIL for each wake: `flush`,
and the wait for room in buffer.memory. These are the same waits as steps.

Thread: the caller's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_fast.errors import KafkaTimeoutError
from kafka_fast.instants import NEVER
from kafka_fast.logs import LONG
from kafka_fast.net.waiting.steps import InThread, Steps, Wait

if TYPE_CHECKING:
    from kafka_fast.producer.producer_core import ProducerCore


class RoomWait:
    """One caller's wait for room in buffer.memory. It may find room twice, and too late."""

    __slots__ = ("began", "tell_at", "topic")

    def __init__(self, topic: str, began: float) -> None:
        self.topic = topic
        """Where the record goes."""
        self.began = began
        """When the wait began: max.block.ms counts from there."""
        self.tell_at = began + LONG
        """When the wait is logged; NEVER once that was done."""


class ProducerSteps:
    """The calls of one producer that may wait."""

    def __init__(self, core: ProducerCore, max_block: float) -> None:
        """Bind the waits to one producer and its max.block.ms.

        Args:
            core: does the work.
            max_block: seconds that a send waits at most.
        """
        self._core = core
        self._max_block = max_block

    def begin_room(self, topic: str) -> RoomWait:
        """Count a send to this topic that found no room, and return its wait, which begins now."""
        self._core.produce_waits.count_blocked()
        return RoomWait(topic, self._core.now())

    def room_deadline(self, wait: RoomWait) -> float:
        """Return when max.block.ms ends."""
        return wait.began + self._max_block

    def no_room(self, wait: RoomWait) -> KafkaTimeoutError:
        """Return the error of a wait that was too long."""
        waits = self._core.produce_waits
        return waits.no_room_error(wait.topic, self._max_block, wait.began)

    def room(self, wait: RoomWait, size: int) -> Steps[None]:
        """Wait until `size` bytes are free, or seem so: the caller tries again, and may come back.

        Raises:
            KafkaTimeoutError: there was no room within max.block.ms.
            UsageError: the producer does not run any more.
        """
        core, queues, waits = self._core, self._core.queues, self._core.produce_waits
        queues.check_may_wait()
        deadline = self.room_deadline(wait)
        waits.begin_wait_for_room()
        try:
            while not waits.has_room(size):
                now = core.now()
                if now >= deadline:
                    raise self.no_room(wait)
                if now >= wait.tell_at:
                    wait.tell_at = NEVER
                    waits.say_no_room(wait.topic, self._max_block)
                yield Wait(
                    lambda: waits.has_room(size) or queues.dead,
                    min(deadline, wait.tell_at),
                    "room in buffer.memory",
                )
                if queues.dead:
                    queues.check_may_wait()
        finally:
            waits.end_wait_for_room()

    def flush(self, timeout: float | None) -> Steps[int]:
        """Send all accepted records and wait; return how many are still pending."""
        core, queues, waits = self._core, self._core.queues, self._core.produce_waits
        queues.check_owner()
        if queues.dead:
            return 0
        queues.check_may_wait()
        deadline = NEVER if timeout is None else core.now() + max(timeout, 1e-9)
        serial = waits.begin_flush()
        try:
            wait = None
            while not waits.is_flushed(serial) and not queues.dead and core.now() < deadline:
                wait = waits.look_at_flush(wait)
                yield Wait(
                    lambda: waits.is_flushed(serial) or queues.dead,
                    deadline if wait is None else min(deadline, wait.deadline),
                    "deliveries",
                )
        finally:
            waits.end_flush()
        pending = waits.pending_before(serial)
        yield from core.await_callbacks(deadline)
        return pending

    def close(self, timeout: float | None) -> Steps[None]:
        """Deliver all accepted records, for at most `timeout` seconds, then end.

        After an interruption the producer delivers what it has accepted, and ends by itself. What
        is lost then is logged.
        """
        core = self._core
        if not core.may_wait_to_close():
            core.close(timeout)
            return
        core.queues.refuse()
        try:
            yield from self.flush(timeout)
        except BaseException:
            core.abandon("its close() was interrupted")
            raise
        is_interrupted = False

        def end() -> None:
            core.close(0.0)
            if is_interrupted:
                core.log_lost()

        try:
            yield InThread(end)
        except BaseException:
            is_interrupted = True  # `end` may be through already: the caller logs, too
            raise
