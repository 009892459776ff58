"""The calls of a producer that may wait, as steps, for callers in event loops.

A producer for threads sleeps in C, without the GIL for each wake: in `flush`, and in a send without
room in buffer.memory. These are the same waits as steps. Both share conditions, deadlines, log
lines and errors (`FlushWait` and `RoomWait` in `_produce_waits.pyx`).

Thread: the caller's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_fast.instants import NEVER
from kafka_fast.net.waiting.steps import InThread, Steps, Wait

if TYPE_CHECKING:
    from kafka_fast.dataplane.produce._produce_waits import RoomWait
    from kafka_fast.producer.producer_core import ProducerCore


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
        from kafka_fast.dataplane.produce._produce_waits import RoomWait  # with the first client

        return RoomWait(self._core.produce_waits, topic, self._max_block)

    def room(self, wait: RoomWait, size: int) -> Steps[None]:
        """Wait until `size` bytes are free, or seem so: the caller tries again, and may come back.

        Raises:
            KafkaTimeoutError: there was no room within max.block.ms.
            UsageError: the producer does not run any more.
        """
        queues, waits = self._core.queues, self._core.produce_waits
        queues.check_may_wait()
        waits.begin_wait_for_room()
        try:
            while not waits.has_room(size):
                yield Wait(
                    lambda: waits.has_room(size) or queues.dead,
                    wait.next_look(),
                    "room in buffer.memory",
                )
                if queues.dead:
                    queues.check_may_wait()
        finally:
            waits.end_wait_for_room()

    def flush(self, timeout: float | None) -> Steps[int]:
        """Send all accepted records and wait; return how many are still pending."""
        core, queues = self._core, self._core.queues
        queues.check_owner()
        if queues.dead:
            return 0
        queues.check_may_wait()
        deadline = NEVER if timeout is None else core.now() + max(timeout, 1e-9)
        wait = core.produce_waits.begin_flush(deadline)
        pending = 0
        try:
            while not wait.is_over() and core.now() < deadline:
                yield Wait(wait.is_over, wait.next_look(), "deliveries")
        finally:
            pending = wait.end_flush()
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
