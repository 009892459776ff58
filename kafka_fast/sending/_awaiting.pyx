"""What event loops wait for: the ends of batches, of which a loop is told once per turn.

    await handle ──────► Waiter ─┐
    gather(*handles) ────────────┼─► BatchWaits ─► LoopWaits ◄── one event ── data plane
    add_done_callback ───────────┘   (one a batch)  (one a loop)

A thousand awaited records of a batch are a thousand entries of a dictionary, but one wake of the
loop, which tells of every batch that has ended by then. A batch that was split ends in parts. The
first callbacks run in the iteration that was woken: tasks that await records go on in it. The
others, and those that are added to a future whose fate is known, run in the next one, as all those
of an `asyncio.Future` do.

A `DeliveryFuture` looks like an asyncio future, so `gather` makes no task for it. But each `await`
yields a `Waiter` of its own: a task that is cancelled cancels what it waits for, and that must not
end another task's wait for the same batch.

Thread: the event loop's, with the GIL. Only `hand_over` is called by any thread that takes note of
ended batches.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.pythread cimport PyThread_get_thread_ident
from cpython.weakref cimport PyWeakref_NewRef
from libc.stdint cimport uintptr_t

from kafka_fast.dataplane.core.state cimport kf_batch
from kafka_fast.dataplane.produce._queues cimport Queues

import sys

cdef extern from "Python.h":
    object PyContext_CopyCurrent()
    bint PyFunction_Check(object callback)
    PyObject* PyFunction_GetGlobals(object callback)

cdef int CALLBACKS_PER_HANDLE = 64  # run in one handle of the loop's

cdef object find_loop = None  # asyncio's own function, once somebody has imported asyncio
cdef object tasks_globals = None  # of the module asyncio.tasks


cdef object running_loop():
    """Return the event loop that runs in this thread, or None."""
    global find_loop, tasks_globals
    if find_loop is None:
        # A program that never imports asyncio need not pay for it. Where another thread imports it
        # just now, half of it may be here, and no loop runs yet.
        finder = getattr(sys.modules.get("asyncio.events"), "_get_running_loop", None)
        tasks = sys.modules.get("asyncio.tasks")
        if finder is None or tasks is None:
            return None
        tasks_globals = tasks.__dict__
        find_loop = finder
    return find_loop()


cdef LoopWaits last_waits(Queues queues):
    """Return what the loop awaits that awaited last, if that loop runs in this thread.

    This is to save the call of asyncio's function, which asks the system for its process id.
    """
    if queues.last_waits is None:
        return None
    found = queues.last_waits()
    if (found is None or (<LoopWaits>found).thread != PyThread_get_thread_ident()
            or not (<LoopWaits>found).loop.is_running()):
        return None
    return found


cdef object loop_for(Queues queues):
    cdef LoopWaits waits = last_waits(queues)
    return running_loop() if waits is None else waits.loop


cdef LoopWaits running_waits(Queues queues):
    cdef LoopWaits waits = last_waits(queues)
    if waits is not None:
        return waits
    loop = running_loop()
    if loop is None:
        return None
    queues.check_lives()
    return waits_in(queues, loop)


cdef LoopWaits waits_in(Queues queues, object loop):
    if queues.loop_bridge is None:
        return None
    cdef LoopWaits waits = queues.loop_bridge(loop)
    queues.last_waits = PyWeakref_NewRef(waits, None)
    return waits


cdef object context_for(object callback, object context):
    """Return the context to call a callback in; None: in that of the loop's handle.

    The functions of gather(), wait() and shield() use no context variables. So none are copied for
    them: with the garbage collection that is as much work as the call.
    """
    if (context is None and not (PyFunction_Check(callback)
                                 and PyFunction_GetGlobals(callback) == <PyObject*>tasks_globals)):
        return PyContext_CopyCurrent()
    return context


cdef tuple as_pairs(object entry):
    """Return what `BatchWaits.waiting` holds for a future as (callback, context, …)."""
    return <tuple>entry if type(entry) is tuple else (entry, None)


cdef inline int add_due(list due, object future, object entry) except -1:
    """Add what `BatchWaits.waiting` holds for a future, as `run_due` wants it."""
    cdef Py_ssize_t i
    if type(entry) is tuple:
        for i in range(0, len(<tuple>entry), 2):
            due += ((<tuple>entry)[i], future, (<tuple>entry)[i + 1])
    else:  # by far the most
        due.append(entry)
        due.append(future)
        due.append(None)
    return 0


def run_due(LoopWaits waits, list due):
    """Call callbacks; one that raises does not stop the others.

    Args:
        waits: of the event loop.
        due: callback, future, context; callback, future, context; … None: no context is needed.
    """
    cdef Py_ssize_t i = 0
    callback = future = None
    if waits.known is due:
        waits.known = None  # what is added from now on is called in the loop's next iteration
    while i < len(due):
        try:  # around the loop: to begin a `try` would cost each callback
            while i < len(due):
                callback, future, context = due[i], due[i + 1], due[i + 2]
                i += 3
                if context is None:
                    callback(future)
                else:
                    context.run(callback, future)
        except (SystemExit, KeyboardInterrupt):
            waits.loop.call_soon(run_due, waits, due[i:])
            raise
        except BaseException as error:
            try:
                waits.loop.call_exception_handler({"message": f"exception in callback {callback!r}",
                                                   "exception": error, "future": future})
            except BaseException:  # the user's handler may end the loop
                waits.loop.call_soon(run_due, waits, due[i:])
                raise


@cython.final
cdef class LoopWaits:
    """Everything that one event loop awaits of one client's queues.

    Args:
        queues: whose batches.
        loop: the event loop, which runs in this thread.
        take: takes note of ended batches, and hands over what waits for them.
        wake: ends the loop's sleep, and has it call `take_due` and `run`.
    """

    def __init__(self, Queues queues, loop, take, wake):
        self.queues = queues
        self.loop = loop
        self.thread = PyThread_get_thread_ident()
        self.take = take
        self.wake = wake
        self.open = {}
        self.ended = []
        self.parted = []

    @property
    def idle(self):
        """Whether nothing is awaited."""
        return not self.open and not self.ended

    def take_due(self):
        """Take the callbacks of the batches that have ended, as `run_due` wants them."""
        cdef BatchWaits waits
        cdef list due = []
        self.settling = True
        try:
            self.take()
        finally:
            self.settling = False
        ended = self.ended
        self.ended = []
        for waits in ended:
            for future, entry in waits.waiting.items():
                add_due(due, future, entry)
            waits.waiting.clear()
        if self.parted:
            self.take_parts(due)
        return due

    cdef int take_parts(self, list due) except -1:
        """Add what waits for records that have ended, of batches of which others have not."""
        cdef BatchWaits waits
        parted = self.parted
        self.parted = []
        for waits in parted:
            for future in [it for it in waits.waiting if it.done()]:
                add_due(due, future, waits.waiting.pop(future))
        return 0

    def run(self, list due not None):
        """Run some callbacks at once, and the others in handles of the loop's, some in each.

        The loop calls this when it is woken. Tasks go on here: to wait for its next iteration would
        cost the loop another look at all its descriptors. One handle for each callback would cost
        as much as all the rest.

        Args:
            due: see `run_due`.
        """
        cdef Py_ssize_t step = 3 * CALLBACKS_PER_HANDLE
        cdef Py_ssize_t i
        for i in range(step, len(due), step):
            self.loop.call_soon(run_due, self, due[i:i + step])
        run_due(self, due if len(due) <= step else due[:step])

    cdef int call_soon(self, object callback, object future, object context) except -1:
        """Have a callback called in the loop's next iteration: its future's fate is known."""
        if self.known is None or len(self.known) >= 3 * CALLBACKS_PER_HANDLE:
            self.known = []
            self.loop.call_soon(run_due, self, self.known)
        self.known.append(callback)
        self.known.append(future)
        self.known.append(context_for(callback, context))
        return 0

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

    cdef int hand_over_part(self, BatchWaits waits) except -1:
        self.parted.append(waits)
        if not self.settling:
            self.wake()
        return 0


@cython.final
cdef class BatchWaits:
    def __init__(self, *arguments, **named):
        raise TypeError("BatchWaits is made by LoopWaits")

    cdef int add(self, object future, object callback, object context) except -1:
        cdef Py_ssize_t count = len(self.waiting)
        context = context_for(callback, context)
        entry = callback if context is None else (callback, context)
        before = self.waiting.setdefault(future, entry)
        if len(self.waiting) == count:
            self.waiting[future] = as_pairs(before) + as_pairs(entry)
        return 0

    cdef int remove(self, object future, object callback) except -1:
        """Forget a callback; return how often it was there."""
        cdef tuple callbacks
        cdef tuple kept = ()
        cdef Py_ssize_t i
        if future not in self.waiting:
            return 0
        callbacks = as_pairs(self.waiting[future])
        for i in range(0, len(callbacks), 2):
            if callbacks[i] != callback:
                kept += callbacks[i:i + 2]
        if kept:
            self.waiting[future] = kept
        else:
            del self.waiting[future]
        return (len(callbacks) - len(kept)) // 2

    cdef bint cancel(self, object future) except -1:
        """Tell the tasks that await the future that it was cancelled; False if there are none."""
        entry = self.waiting.pop(future, None)
        if entry is None:
            return False
        if self.given_up is None:
            self.given_up = set()
        self.given_up.add(future)
        self.tell(future, as_pairs(entry))
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

    def __init__(self, *arguments, **named):
        raise TypeError("Waiter is made when a handle is awaited")

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
        """Return whether the wait was ended before the record was."""
        return self.given_up

    def done(self):
        """Return whether the fate of what is awaited is known."""
        return self.awaited.done()

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
