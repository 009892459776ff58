"""The share of its event loop's time that a task may take before it lets the other tasks run."""


# Whether the share of the task that runs has ended; `now` in monotonic seconds.
cdef bint share_is_over(double now) noexcept nogil

# When that share ends, in monotonic seconds.
cdef double share_end() noexcept nogil
