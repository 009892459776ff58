"""The calls of a producer that may wait, as steps, for callers in event loops.

A producer for threads has two waits of its own, in C and without the GIL for each wake: `flush`,
and the wait for room in buffer.memory. These are the same waits as steps.

Thread: the caller's.
"""

from __future__ import annotations

from functools import partial

from kafka_fast.instants import NEVER
from kafka_fast.logs import LONG
from kafka_fast.net.steps import InThread, Steps, Wait
from kafka_fast.producer.core import ProducerCore


class ProducerSteps:
    """The calls of one producer that may wait."""

    def __init__(self, core: ProducerCore, max_block: float) -> None:
        """Begin with no caller.

        Args:
            core: does the work.
            max_block: seconds that a send waits at most.
        """
        self._core = core
        self._max_block = max_block

    def room(self, topic: str, size: int, began: float) -> Steps[None]:
        """Wait until a caller may try again that found no room for `size` bytes.

        Args:
            topic: where the record goes.
            size: bytes of buffer.memory.
            began: when the caller began to wait: max.block.ms counts from there.

        Raises:
            KafkaTimeoutError: there was no room within max.block.ms.
            UsageError: the producer does not run any more.
        """
        core, queues = self._core, self._core.queues
        queues.check_may_wait()
        deadline = began + self._max_block
        tell_at = began + LONG
        what = queues.no_room(topic)
        queues.begin_wait_for_room()
        try:
            while not queues.has_room(size):
                now = core.now()
                if now >= deadline:
                    limit = f"max.block.ms ({self._max_block * 1000:.0f})"
                    raise queues.late(f"{what} after {limit}", began)
                if now >= tell_at:
                    tell_at = NEVER
                    queues.say_long(f"{what}; waiting up to max.block.ms ({self._max_block:g} s)")
                yield Wait(
                    lambda: queues.has_room(size) or queues.dead,
                    min(deadline, tell_at),
                    "room in buffer.memory",
                )
                if queues.dead:
                    queues.check_may_wait()
        finally:
            queues.end_wait_for_room()

    def flush(self, timeout: float | None) -> Steps[int]:
        """Send all accepted records and wait; return how many are still pending."""
        core, queues = self._core, self._core.queues
        queues.check_owner()
        if queues.dead:
            return 0
        queues.check_may_wait()
        deadline = NEVER if timeout is None else core.now() + max(timeout, 1e-9)
        serial = queues.begin_flush()
        try:
            wait = None
            while not queues.is_flushed(serial) and not queues.dead and core.now() < deadline:
                wait = queues.look_at_flush(wait)
                yield Wait(
                    lambda: queues.is_flushed(serial) or queues.dead,
                    deadline if wait is None else min(deadline, wait.deadline),
                    "deliveries",
                )
        finally:
            queues.end_flush()
        pending = queues.pending_before(serial)
        yield from core.await_callbacks(deadline)
        return pending

    def close(self, timeout: float | None) -> Steps[None]:
        """Deliver all accepted records, for at most `timeout` seconds, then end.

        After an interruption the producer delivers what it has accepted, and ends by itself.
        """
        core = self._core
        if not core.may_wait_to_close():
            core.close(timeout)
            return
        core.queues.refuse()
        try:
            yield from self.flush(timeout)
        except BaseException:
            core.abandon()
            raise
        yield InThread(partial(core.close, 0.0))
