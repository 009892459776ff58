"""Starts bare threads, and knows which of them have not come to Python yet.

CPython 3.11 and older gives a new thread a state of its own. The interpreter's end frees that, even
if the thread has not run yet: it then reads freed memory, and the process dies of SIGSEGV. So the
end of the process waits for these threads' first step (`process_life.end_clients`).

Thread: any, with the GIL. Nothing here is Python code, or looks up the name of a module: finalizers
call it, while modules are torn down.
"""

import time
from _thread import start_new_thread
from threading import Thread

cdef int starting = 0  # threads that were started, and have not run yet
cdef object _start_new_thread = start_new_thread
cdef object _Thread = Thread
cdef object _begin = None

cdef double LOOK_AGAIN = 0.001  # seconds


cdef class Detached:
    """What calls a function in a daemon thread of a certain name; see `detached`."""

    cdef object function
    cdef str name
    cdef object start

    def __init__(self, object function, str name, object start=None):
        """Prepare a call.

        Args:
            function: to be called.
            name: of the thread.
            start: in place of `_thread.start_new_thread`, for tests.
        """
        self.function = function
        self.name = name
        self.start = _start_new_thread if start is None else start

    def __call__(self, tuple arguments not None):
        """Call `function(*arguments)` in a new thread.

        Raises:
            RuntimeError: no thread can be started: there are too many, or the interpreter ends.
        """
        global starting
        starting += 1
        try:
            self.start(_begin, (self, arguments))
        except BaseException:
            starting -= 1
            raise


def begin(Detached call not None, tuple arguments not None):
    """Run in the bare thread: start the one that has a name, which takes a lock, and waits."""
    global starting
    try:
        _Thread(target=call.function, name=call.name, args=arguments, daemon=True).start()
    finally:
        starting -= 1  # not before the thread with a name runs: it has a state of its own, too


_begin = begin


def wait_for_starts(double patience):
    """Wait until each thread that was started has run; return whether that is so.

    Args:
        patience: seconds to wait, at most.
    """
    cdef object until = time.monotonic() + patience
    while starting > 0:
        if time.monotonic() >= until:
            return False
        time.sleep(LOOK_AGAIN)
    return True


def forget_starts():
    """Forget the threads of the parent, which a forked child does not have."""
    global starting
    starting = 0
