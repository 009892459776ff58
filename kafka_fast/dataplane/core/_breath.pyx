"""How long the event loop of this thread was held by calls that need not wait.

    call ─► is_loop_held(now)? ─ no ──► do the work
                               └ yes ─► let the loop run once, then do the work
    wake, wait, yield ─► note_loop_ran(now)

A task that sends a million records, or that reads what has arrived, need not wait for anything, and
so no other task would run meanwhile. All clients of a thread share one loop, and so one note.

Thread: each has its own note.
"""

cdef extern from *:
    """
    static __thread double kf_held_from; /* when the loop of this thread ran last */
    """
    double kf_held_from

cdef double LONGEST = 0.001  # seconds for which calls may hold the loop


cdef bint is_held(double now) noexcept nogil:
    return now >= held_until()


cdef double held_until() noexcept nogil:
    return kf_held_from + LONGEST


cdef void restart(double now) noexcept nogil:
    global kf_held_from
    kf_held_from = now


def is_loop_held(double now):
    """Return whether the loop of this thread has not run for a millisecond, as far as we know."""
    return is_held(now)


def note_loop_ran(double now):
    """Note that the loop of this thread has just run other tasks."""
    restart(now)
