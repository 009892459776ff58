"""Between the data plane's thread and asyncio's event loops.

A loop that awaits records has one event descriptor among its readers, which the data plane raises
when batches have ended. The descriptor belongs to the loop's reader: it goes when the loop is
closed, or with the producer once the loop awaits nothing of it any more.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from kafka_fast.dataplane.produce._awaiting import LoopWaits
from kafka_fast.dataplane.produce._observers import collect
from kafka_fast.dataplane.produce._queues import Queues
from kafka_fast.net._pump import LoopEvent, Machine

if TYPE_CHECKING:
    import asyncio  # only those who await pay for it


class LoopBridge:
    """Finds or makes what an event loop awaits of one client's queues."""

    def __init__(self, queues: Queues, machine: Machine) -> None:
        """Begin without loops."""
        self._queues = queues
        self._machine = machine
        self._found: weakref.WeakValueDictionary[int, LoopWaits] = weakref.WeakValueDictionary()

    def __call__(self, loop: asyncio.AbstractEventLoop) -> LoopWaits:
        """Return what `loop`, which runs in this thread, awaits."""
        waits = self._found.get(id(loop))  # it keeps the loop, so the id is not another's
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
    """Tell those who await; the loop calls this once, however many batches have ended."""
    event.clear()
    waits.settle()
    if queues.dead and waits.idle:
        loop.remove_reader(event.fd)
