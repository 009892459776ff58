"""A coroutine that usually need not wait."""


cdef enum:
    CALL_NOT_BEGUN
    CALL_BEGUN


cdef class ReadyCall:
    cdef object rest   # the coroutine that goes on where the work has to wait; None: none is needed
    cdef int stage     # CALL_NOT_BEGUN, CALL_BEGUN

    cdef object begin(self)
    cdef str name(self)


# Let instances of a subclass return results without raising a StopIteration.
cdef int send_in_steps(object kind) except -1
