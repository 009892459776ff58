"""How long the event loop of this thread was held by calls that need not wait."""


# Whether the loop has not run for a millisecond, as far as we know; `now` in monotonic seconds.
cdef bint is_held(double now) noexcept nogil

# When the loop is to run other tasks next, in monotonic seconds.
cdef double held_until() noexcept nogil

# Note that the loop has just run other tasks.
cdef void restart(double now) noexcept nogil
