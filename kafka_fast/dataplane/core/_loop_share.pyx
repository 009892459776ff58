"""The share of its event loop's time that a task may take before it lets the other tasks run.

    call ─► is its share over? ─┬ no ──► do the work
                                └ yes ─► yield to the loop, then do the work
    a task goes on after a wait ─► begin_share: until when it may

A task that sends a million records need not wait for anything, nor does one that reads what has
arrived. Without this no other task would run meanwhile. In each of its iterations a loop runs all
tasks that can run. So these share a millisecond, and the loop looks after its timers and sockets
about once in that time.

All clients of a thread share one loop, and so one note. Thread: each has its own note.
"""

cdef extern from *:
    """
    static __thread double kf_share_end; /* when the share of the task that runs has ended */
    static __thread long kf_runnable;    /* tasks that go on in the loop's next iteration */
    """
    double kf_share_end
    long kf_runnable

cdef double LONGEST = 0.001  # seconds for which all tasks together may hold the loop
cdef double LEAST = 20e-6    # of one of them; less would go to the change of tasks


cdef bint share_is_over(double now) noexcept nogil:
    return now >= kf_share_end


cdef double share_end() noexcept nogil:
    return kf_share_end


def is_share_over(double now):
    """Return whether the task that runs has taken its share, as far as we know."""
    return share_is_over(now)


def begin_share(double now):
    """Start the time share of a task that goes on after a wait; `now` is monotonic seconds."""
    global kf_share_end
    kf_share_end = now + max(LEAST, LONGEST / max(1, kf_runnable))


def add_runnable(int count):
    """Note that so many more tasks of our clients' users will run in the loop's next iteration."""
    global kf_runnable
    kf_runnable = max(0, kf_runnable + count)
