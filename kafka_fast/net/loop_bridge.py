"""How the data plane's thread wakes asyncio's event loops when awaited records have ended.

A loop that awaits records has one event descriptor among its readers. The data plane raises that
event when batches have ended. The descriptor belongs to the loop's reader: it is closed with the
loop, or after the producer's end, once the loop awaits no record of that producer.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from kafka_fast.dataplane.produce._awaiting import LoopWaits
from kafka_fast.dataplane.produce._observers import collect
from kafka_fast.dataplane.produce._queues import Queues
from kafka_fast.net._pump import LoopEvent, Machine

if TYPE_CHECKING:
    import asyncio  # only programs that await pay for the import


class LoopBridge:
    """Holds, for each event loop, the records of one client's queues that the loop awaits."""

    def __init__(self, queues: Queues, machine: Machine) -> None:
        """Begin without loops."""
        self._queues = queues
        self._machine = machine
        self._found: weakref.WeakValueDictionary[int, LoopWaits] = weakref.WeakValueDictionary()

    def __call__(self, loop: asyncio.AbstractEventLoop) -> LoopWaits:
        """Return what `loop` awaits; `loop` runs in this thread."""
        waits = self._found.get(id(loop))  # a LoopWaits keeps its loop, so the id is unique
        if waits is None:
            waits = self._found[id(loop)] = self._make(loop)
        return waits

    def _make(self, loop: asyncio.AbstractEventLoop) -> LoopWaits:
        queues, machine = self._queues, self._machine
        event = LoopEvent(machine)

        def take() -> None:
            if collect(queues):
                machine.wake_callbacks()

        waits = LoopWaits(queues, loop, take, event.raise_)
        loop.add_reader(event.fd, _turn, loop, event, waits, queues)
        return waits


def _turn(
    loop: asyncio.AbstractEventLoop, event: LoopEvent, waits: LoopWaits, queues: Queues
) -> None:
    """Settle what is awaited; the loop calls this once, however many batches have ended."""
    event.clear()
    waits.settle()
    if queues.dead and waits.idle:
        loop.remove_reader(event.fd)
