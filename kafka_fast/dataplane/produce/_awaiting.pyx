"""What event loops wait for: the ends of batches, of which a loop is told once per turn.

    await handle ──────► Waiter ─┐
    gather(*handles) ────────────┼─► BatchWaits ─► LoopWaits ◄── one event ── data plane
    add_done_callback ───────────┘   (one a batch)  (one a loop)

A thousand awaited records of a batch are a thousand entries of a dictionary, but one wake of the
loop, which settles every batch that has ended by then. The callbacks run in the loop's next
iteration, as those of an `asyncio.Future` do.

A `DeliveryFuture` looks like an asyncio future, so `gather` makes no task for it. But each `await`
yields a `Waiter` of its own: a task that is cancelled cancels what it waits for, and that must not
end another task's wait for the same batch.

Threads: the event loop's, with the GIL. Only `hand_over` is called by any thread that takes note of
ended batches.
"""

cimport cython
from cpython.weakref cimport PyWeakref_NewRef
from libc.stdint cimport uintptr_t

from kafka_fast.dataplane.produce._queues cimport Queues
from kafka_fast.dataplane.core.state cimport kf_batch

import sys
from contextvars import copy_context

cdef object find_loop = None  # asyncio's own function, once somebody has imported asyncio


cdef object running_loop():
    """Return the event loop that runs in this thread, or None."""
    global find_loop
    if find_loop is None:
        events = sys.modules.get("asyncio.events")
        if events is None:
            return None  # a program that never imports asyncio need not pay for it
        find_loop = events._get_running_loop
    return find_loop()


cdef LoopWaits running_waits(Queues queues):
    cdef LoopWaits waits
    loop = running_loop()
    if loop is None:
        return None
    if queues.last_waits is not None:
        found = queues.last_waits()
        if found is not None and (<LoopWaits>found).loop is loop:
            return found
    queues.check_lives()
    if queues.loop_bridge is None:
        return None
    waits = queues.loop_bridge(loop)
    queues.last_waits = PyWeakref_NewRef(waits, None)
    return waits


@cython.final
cdef class LoopWaits:
    """Everything that one event loop awaits of one client's queues.

    Args:
        queues: Whose batches.
        loop: The event loop, which runs in this thread.
        take: Takes note of ended batches, and hands over what waits for them.
        wake: Ends the loop's sleep, and has it call `settle`.
    """

    def __init__(self, Queues queues, loop, take, wake):
        self.queues = queues
        self.loop = loop
        self.take = take
        self.wake = wake
        self.open = {}
        self.ended = []

    @property
    def idle(self):
        """Whether nothing is awaited."""
        return not self.open and not self.ended

    def settle(self):
        """Tell the tasks whose batches have ended. The loop calls this when it is woken."""
        cdef BatchWaits waits
        self.settling = True
        try:
            self.take()
        finally:
            self.settling = False
        ended = self.ended
        self.ended = []
        for waits in ended:
            for future, callbacks in waits.waiting.items():
                waits.tell(future, callbacks)
            waits.waiting.clear()

    cdef BatchWaits find(self, kf_batch* batch):
        if self.last is not None and self.last.address == <uintptr_t>batch:
            return self.last
        return self.open.get(<uintptr_t>batch)

    cdef BatchWaits add(self, kf_batch* batch):
        cdef BatchWaits waits = BatchWaits.__new__(BatchWaits)
        waits.owner = self
        waits.address = <uintptr_t>batch
        waits.waiting = {}
        self.open[waits.address] = waits
        self.last = waits
        return waits

    cdef int hand_over(self, BatchWaits waits) except -1:
        self.open.pop(waits.address, None)
        if self.last is waits:
            self.last = None
        self.ended.append(waits)
        if not self.settling:
            self.wake()
        return 0


@cython.final
cdef class BatchWaits:
    cdef int add(self, object future, object callback, object context) except -1:
        entry = (callback, copy_context() if context is None else context)
        before = self.waiting.get(future)
        self.waiting[future] = entry if before is None else before + entry
        return 0

    cdef int remove(self, object future, object callback) except -1:
        """Forget a callback; return how often it was there."""
        cdef tuple callbacks = self.waiting.get(future, ())
        cdef tuple kept = ()
        cdef Py_ssize_t i
        for i in range(0, len(callbacks), 2):
            if callbacks[i] != callback:
                kept += callbacks[i:i + 2]
        if kept:
            self.waiting[future] = kept
        elif callbacks:
            del self.waiting[future]
        return (len(callbacks) - len(kept)) // 2

    cdef bint cancel(self, object future) except -1:
        """Tell the tasks that await the future that it was cancelled; False if there are none."""
        callbacks = self.waiting.pop(future, None)
        if callbacks is None:
            return False
        if self.given_up is None:
            self.given_up = set()
        self.given_up.add(future)
        self.tell(future, callbacks)
        return True

    cdef int tell(self, object future, tuple callbacks) except -1:
        cdef Py_ssize_t i
        call_soon = self.owner.loop.call_soon
        for i in range(0, len(callbacks), 2):
            call_soon(callbacks[i], future, context=callbacks[i + 1])
        return 0


@cython.final
cdef class Waiter:
    """What one task waits for, in the shape of an asyncio future.

    Each `await` has its own: a task that is cancelled cancels what it waits for, and that must not
    end the wait of another task for the same record.
    """

    def get_loop(self):
        """Return the event loop."""
        return self.waits.owner.loop

    def add_done_callback(self, callback, *, context=None):
        """Have `callback(self)` called in the loop once the batch has ended."""
        self.waits.add(self, callback, context)

    def remove_done_callback(self, callback):
        """Forget a callback; return how often it was there."""
        return self.waits.remove(self, callback)

    def cancel(self, msg=None):
        """End the wait, not the delivery."""
        self.given_up = self.waits.cancel(self)
        return self.given_up

    def cancelled(self):
        """Return whether the wait was ended before the batch was."""
        return self.given_up

    def result(self):
        """Return None; raise CancelledError if the wait was ended."""
        if self.given_up:
            raise sys.modules["asyncio"].CancelledError


cdef Waiter new_waiter(BatchWaits waits, object awaited):
    cdef Waiter waiter = Waiter.__new__(Waiter)
    waiter._asyncio_future_blocking = True
    waiter.waits = waits
    waiter.awaited = awaited
    return waiter
