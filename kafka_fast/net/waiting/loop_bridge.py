"""Finds what an asyncio event loop awaits of a producer's records.

The loop's reader of this client takes the records that have ended, once for any number of batches
(see `loop_readers`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kafka_fast.dataplane.produce._queues import Queues
from kafka_fast.net.waiting.loop_readers import LoopReaders
from kafka_fast.sending._awaiting import LoopWaits
from kafka_fast.sending._observers import collect

if TYPE_CHECKING:
    import asyncio  # only programs that await pay for the import


class LoopBridge:
    """Holds, for each event loop, the records of one client's queues that the loop awaits."""

    def __init__(self, queues: Queues, readers: LoopReaders) -> None:
        self._queues = queues
        self._readers = readers

    def __call__(self, loop: asyncio.AbstractEventLoop) -> LoopWaits:
        """Return what `loop` awaits; `loop` runs in this thread."""
        reader = self._readers.reader_of(loop)
        if reader.records is None:
            reader.records = self._make(loop, reader.event.raise_)
        return reader.records

    def _make(self, loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> LoopWaits:
        queues, machine = self._queues, self._readers.machine

        def take() -> None:
            if collect(queues):
                machine.wake_callbacks()

        return LoopWaits(queues, loop, take, wake)
