"""One client's event among the readers of each asyncio event loop in which it is used.

    kf-data, kf-control ── raise ──► event descriptor ──► LoopReader ──► waits that are over
                                                                    └──► awaited records

The loop owns its reader: the descriptor is closed with the loop, or after the client's end, once
nothing in the loop waits for the client.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafka_fast.dataplane.core._loop_share import add_runnable, begin_share
from kafka_fast.net._pump import LoopEvent, Machine

if TYPE_CHECKING:
    import asyncio  # only programs that await pay for the import

    from kafka_fast.sending._awaiting import LoopWaits


def resume(future: asyncio.Future[Any]) -> None:
    """Have the task that awaits a future go on, in the loop's next iteration."""
    if not future.done():
        future.set_result(True)
        add_runnable(1)


def was_resumed(future: asyncio.Future[Any]) -> bool:
    """Return whether `resume` has ended the wait for a future."""
    return future.done() and not future.cancelled() and future.result() is True


class LoopReader:
    """One client's event in one loop. The loop's thread only."""

    def __init__(self, loop: asyncio.AbstractEventLoop, readers: LoopReaders) -> None:
        """Add the client's event to the readers of the loop.

        Args:
            loop: runs in this thread.
            readers: of the client.
        """
        self.loop = loop
        self.event = LoopEvent(readers.machine)
        self.waiting: dict[asyncio.Future[Any], Callable[[], object]] = {}
        """What tasks wait for: whether to go on, by the future on which the task sleeps."""
        self.records: LoopWaits | None = None
        """The records that are awaited here; None: none ever were."""
        self._readers = readers
        loop.add_reader(self.event.fd, self._look)

    def _look(self) -> None:
        """Have the tasks go on whose waits are over. Called when the event was raised."""
        self.event.clear()
        begin_share(self._readers.now())
        records = self.records
        due = [] if records is None else records.take_due()
        try:
            for future in [future for future, is_over in self.waiting.items() if is_over()]:
                resume(future)
            self.leave_if_idle()
        finally:  # also after a Ctrl-C: nobody else would tell these tasks
            if records is not None:
                records.run(due)  # last: what a task raises may come out of it

    def leave_if_idle(self) -> None:
        """Take this reader out of its loop if the client has ended and nothing is awaited."""
        is_idle = self.records is None or self.records.idle
        if self._readers.is_closed and is_idle and not self.waiting:
            self.loop.remove_reader(self.event.fd)
            self._readers.forget_loop(self.loop)


class LoopReaders:
    """The readers of one client. Any thread, but for the loops' own readers."""

    def __init__(self, machine: Machine, now: Callable[[], float]) -> None:
        """Start without readers; `reader_of` adds the reader of a loop.

        Args:
            machine: raises the readers' events.
            now: returns monotonic seconds.
        """
        self.machine = machine
        self.now = now
        self.is_closed = False
        """Whether the client has ended."""
        # A loop keeps its reader, and a reader its loop: so the id is unique.
        self._found: weakref.WeakValueDictionary[int, LoopReader] = weakref.WeakValueDictionary()

    def reader_of(self, loop: asyncio.AbstractEventLoop) -> LoopReader:
        """Return the reader of a loop, which runs in this thread."""
        reader = self._found.get(id(loop))
        if reader is None:
            reader = self._found[id(loop)] = LoopReader(loop, self)
        return reader

    def forget_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        """Forget a loop's reader, which may still be referred to; see `reader_of`."""
        self._found.pop(id(loop), None)

    def close(self) -> None:
        """Have all readers leave their loops, as soon as nothing is awaited there."""
        self.is_closed = True
        for ref in list(self._found.valuerefs()):  # in one step: loops may begin meanwhile
            reader = ref()
            if reader is not None:
                reader.event.raise_()
